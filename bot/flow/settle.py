"""What follows when effects end, in the transaction of their end: drafts, runs, cards, the record, ops.

Not here: sending (dispatch), asking (reconcile), or which state an answer leads to (bot/policy/delivery).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from bot.contracts.outcome import SendOutcome, Sent
from bot.flow import failures, parts
from bot.flow.parts import SYSTEM
from bot.flow.resting import note
from bot.policy.clauses import EffectPolicy
from bot.policy.delivery import CANCELLED, COMPLETED, FAILED, PENDING, UNKNOWN, Try, follow, word_for
from store import alerts, audit, cards, heads, intake, outbox, settling, unknowns
from store.heads import Reopening
from store.outbox import WithdrawnRow
from store.queries import Connection
from store.rows import Cancelled, ClaimedRow, EffectRef, HeadRow, Result
from store.settling import DraftEnd
from store.states import DraftStatus, RunState
from store.unknowns import LateAnswer

RESUME: Final = "resume"  # Tells an outcome, so it takes no part in it (SPEC section 3).

_NOTICES: Final = {"newer_version": "withdrawn_newer", "stale": "withdrawn_stale"}
_ENDS: Final = {
    COMPLETED: (DraftStatus.SENT, RunState.COMPLETED),
    FAILED: (DraftStatus.FAILED, RunState.FAILED_TERMINAL),
    CANCELLED: (DraftStatus.CANCELLED, RunState.SUPERSEDED),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one started try: the effect as it was claimed, its version and tries since the start."""

    effect: ClaimedRow
    version: int
    attempts: int
    outcome: SendOutcome
    policy: EffectPolicy
    may_repeat: bool

    def result(self, newest: Mapping[str, HeadRow], resting: Collection[int] = ()) -> Result:
        """What follows, given the locked heads and the lanes whose targets rest."""
        tried = Try(
            number=self.attempts,
            bound=self.policy.attempts,
            settle_seconds=self.policy.settle_seconds,
            is_ambiguous=self.effect.is_ambiguous,
            may_repeat=self.may_repeat,
            is_overtaken=is_overtaken(self.effect, newest),
            is_resting=self.effect.lane in resting,
        )
        return follow(self.outcome, tried)


@dataclass(frozen=True, slots=True)
class Moved:
    """An effect that moved in this transaction, its version and tries now, and why."""

    effect: EffectRef
    version: int
    attempts: int
    result: Result


async def lock(conn: Connection, effects: Sequence[EffectRef]) -> dict[str, HeadRow]:
    """Lock the heads of these effects, first in the transaction; resume effects have no part in that."""
    keys = [effect.draft_key for effect in effects if effect.effect_type != RESUME]
    return await heads.lock_heads(conn, keys) if keys else {}


def is_overtaken(effect: EffectRef, newest: Mapping[str, HeadRow]) -> bool:
    """Whether a newer version waits for this effect to be over."""
    head = newest.get(effect.draft_key)
    return effect.effect_type != RESUME and head is not None and head.source_version > effect.known_version


async def record(
    conn: Connection, owner: str, answers: Sequence[Answer], ops_channel: str | None
) -> set[UUID]:
    """Record a batch of answers; gives the effects that were not ours: their answers are evidence."""
    newest = await lock(conn, [answer.effect for answer in answers])
    resting = await note(conn, [(answer.effect, answer.outcome) for answer in answers])
    results = [answer.result(newest, resting) for answer in answers]
    versions = await outbox.record_outcomes(
        conn,
        owner,
        [(one.effect.effect_id, one.version, result) for one, result in zip(answers, results, strict=True)],
    )
    moved = [
        Moved(one.effect, versions[one.effect.effect_id], one.attempts, result)
        for one, result in zip(answers, results, strict=True)
        if one.effect.effect_id in versions
    ]
    await conclude(conn, moved, ops_channel)
    back = [one.effect for one in moved if one.result.state == PENDING and is_overtaken(one.effect, newest)]
    await withdraw(conn, back)
    late = [answer for answer in answers if answer.effect.effect_id not in versions]
    if late:
        for one in await unknowns.add_evidence(conn, [_late(answer) for answer in late]):
            await failures.tell_of_arrival(conn, one.effect_id, one.idempotency_key)
    return {answer.effect.effect_id for answer in late}


async def halt(conn: Connection, owner: str, effects: Sequence[EffectRef], ops_channel: str | None) -> None:
    """Call held effects unknown that may be out already and may not be sent again; their heads are locked."""
    if not effects:
        return
    result = Result(state=UNKNOWN, reason="outdated", is_ambiguous=True)
    versions = await outbox.record_outcomes(
        conn, owner, [(effect.effect_id, effect.version, result) for effect in effects]
    )
    moved = [
        Moved(one, versions[one.effect_id], one.attempts, result)
        for one in effects
        if one.effect_id in versions
    ]
    await conclude(conn, moved, ops_channel)


async def conclude(
    conn: Connection,
    moved: Sequence[Moved],
    ops_channel: str | None,
    lines: Sequence[audit.Entry] | None = None,
) -> None:
    """Let drafts, runs, cards, the record and ops follow effects that just moved, under their heads' locks.

    `lines` take the place of the lines of the record that the moves would have by themselves.
    """
    bound = [one for one in moved if one.effect.effect_type != RESUME]
    over = [one for one in bound if one.result.state in _ENDS]
    ends = [_end(one) for one in over if one.effect.clause is None]
    ended = await settling.settle_drafts(conn, ends) if ends else set()
    said = [_line(one) for one in bound if one.result.state != PENDING] if lines is None else lines
    await write_down(conn, said, {one.effect.idempotency_key: one.effect.run_id for one in moved}, ended)
    if late := [one.effect.run_id for one in over if one.effect.clause is not None]:
        await cards.want_corrections(conn, late)  # A run may be corrected before the last of these is over.
    if others := [one.effect for one in over if one.effect.is_part]:
        await parts.follow(conn, others)
    if bound:
        await cards.want_cards(conn, [one.effect.draft_id for one in bound])
    for one in moved:
        if one.result.state == UNKNOWN:
            await _tell_ops(conn, one, ops_channel)
        elif one.result.state == FAILED and lines is None:
            await failures.tell(conn, one.effect, one.result.reason or "")


async def write_down(
    conn: Connection, lines: Sequence[audit.Entry], runs: Mapping[str, UUID], ended: set[UUID]
) -> None:
    """Append to the record; a run that did not move is locked first, for its chain's sake."""
    still = {runs[line.chain] for line in lines} - ended
    if still:
        await settling.lock_runs(conn, list(still))
    await audit.append(conn, lines)


async def withdraw(conn: Connection, effects: Sequence[EffectRef]) -> int:
    """Take outdated effects that were not started back to their reviewers, under their heads' locks.

    With several effects that takes them all, unless one has left: then the others are over without it. An
    undo is over too, and may be asked for again.
    """
    if not effects:
        return 0
    if several := [effect for effect in effects if effect.is_part]:
        await intake.lock_unfinished_effects(conn, several)
    gone = await outbox.withdraw_effects(conn, [effect.effect_id for effect in effects])
    await reopen(conn, [(one, _NOTICES[one.reason], one.reason) for one in gone if not one.is_undo])
    await _give_up_undos(conn, [one for one in gone if one.is_undo])
    taken = {one.effect_id for one in gone}
    if others := [effect for effect in several if effect.effect_id not in taken]:
        await parts.follow(conn, others)
    return len(gone)


async def take_back(conn: Connection, one: EffectRef, notice: str, reason: str) -> None:
    """Let the draft follow an effect that was just cancelled for its record's sake, with all its others.

    Where one of these has left, the draft is not asked about again: not all of it was sent.
    """
    gone: list[Cancelled] = [one]
    if one.is_part:
        await intake.lock_unfinished_effects(conn, [one])
        others = await outbox.withdraw_siblings(conn, one.effect_id)
        if not others:
            await write_down(conn, [_withdrawn(one, reason)], {one.idempotency_key: one.run_id}, set())
            await cards.want_cards(conn, [one.draft_id])
            return await parts.follow(conn, [one])
        gone += others
    return await reopen(conn, [(each, notice, reason) for each in gone])


async def reopen(conn: Connection, gone: Sequence[tuple[Cancelled, str, str]]) -> None:
    """Ask the reviewers of effects that were just cancelled anew; each with its notice, and why."""
    if gone:
        reopenings = {one.draft_id: Reopening(one.draft_id, notice) for one, notice, _ in gone}
        await heads.reopen_drafts(conn, list(reopenings.values()))
        await intake.withdraw_runs(conn, sorted({one.run_id for one, _, _ in gone}))
        await audit.append(conn, [_withdrawn(one, reason) for one, _, reason in gone])


async def _give_up_undos(conn: Connection, gone: Sequence[WithdrawnRow]) -> None:
    """Say of undos that waited too long that they are over: the button stands there again."""
    if gone:
        lines = [_line_of(one, "effect_cancelled", one.reason) for one in gone]
        await write_down(conn, lines, {one.idempotency_key: one.run_id for one in gone}, set())
        await cards.want_cards(conn, [one.draft_id for one in gone])


async def _tell_ops(conn: Connection, one: Moved, ops_channel: str | None) -> None:
    if ops_channel is not None:
        await cards.open_card(conn, channel=ops_channel, effect_id=one.effect.effect_id)
        return
    facts = {"effect_id": str(one.effect.effect_id), "key": one.effect.idempotency_key}
    await alerts.raise_alert(
        conn, key=f"unknown_effect:{one.effect.effect_id}:{one.version}", name="unknown_effect", facts=facts
    )


def _end(one: Moved) -> DraftEnd:
    status, run_state = _ENDS[one.result.state]
    failure = one.result.reason if one.result.state == FAILED else None
    return DraftEnd(one.effect.draft_id, one.effect.run_id, status, run_state, failure)


def _line(one: Moved) -> audit.Entry:
    return audit.Entry(one.effect.idempotency_key, SYSTEM, f"effect_{one.result.state}", facts_of(one))


def facts_of(one: Moved) -> dict[str, Any]:
    """What the record says of a move: ids, words and numbers."""
    facts = {
        "effect_id": str(one.effect.effect_id),
        "effect_type": one.effect.effect_type,
        "attempts": one.attempts,
        "provider_id": one.result.provider_id,
        "reason": one.result.reason,
        "body_hash": _hash_of(one.effect),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def _hash_of(effect: EffectRef) -> str | None:
    """The hash of the very bytes that were sent, to hold against those of the decision."""
    body = effect.body if isinstance(effect, ClaimedRow) else None
    return None if body is None else sha256(body).hexdigest()


def _withdrawn(one: Cancelled, reason: str) -> audit.Entry:
    return _line_of(one, "withdrawn", reason)


def _line_of(one: Cancelled, action: str, reason: str) -> audit.Entry:
    detail = {"effect_id": str(one.effect_id), "draft_id": str(one.draft_id), "reason": reason}
    return audit.Entry(one.idempotency_key, SYSTEM, action, detail)


def _late(answer: Answer) -> LateAnswer:
    provider_id = answer.outcome.provider_id if isinstance(answer.outcome, Sent) else None
    return LateAnswer(answer.effect.effect_id, answer.attempts, word_for(answer.outcome), provider_id)
