"""Takes unknown effects to the provider, or to a person: no machine guesses.

Not here: how an effect became unknown (settle, recover), or the card that asks (bot/cards).
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from bot.connectors.connector import Connector, ask
from bot.contracts.outcome import Absent, Found, LookUpOutcome, NoAnswer
from bot.flow import settle
from bot.flow.checkpoints import reach
from bot.flow.outgoing import Policies, to_effect
from bot.flow.settle import Moved, facts_of
from bot.policy.delivery import CANCELLED, COMPLETED, FAILED, PENDING, look_up_wait_seconds
from bot.policy.limits import EFFECT_LEASE_EXTRA_SECONDS, LOOK_UP_BATCH, LOOK_UP_SECONDS
from store import audit, cards, unknowns
from store.database import Database
from store.errors import LostRace
from store.queries import Connection
from store.rows import Result
from store.unknowns import UnknownRow

HOLD_SECONDS: Final = LOOK_UP_SECONDS + EFFECT_LEASE_EXTRA_SECONDS  # Nobody else asks while we do.


@dataclass(frozen=True, slots=True)
class Reconciling:
    """What reconciling needs; `ops_channel` is where the cards of unknown effects are."""

    db: Database
    connectors: Mapping[str, Connector]
    ops_channel: str | None = None


class Choice(StrEnum):
    """What a person can say of an unknown effect; `drop` in place of `resend` when a newer version waits."""

    DELIVERED = "delivered"
    RESEND = "resend"
    GIVE_UP = "give_up"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Resolved:
    """It counts; the state it moved to."""

    key: str
    state: str


class NotResolved(StrEnum):
    """Nothing was changed, and why."""

    GONE = "gone"
    SETTLED = "settled"
    NEWER_WAITS = "newer_waits"
    NOTHING_NEWER = "nothing_newer"


_STATES: Final = {
    Choice.DELIVERED: COMPLETED,
    Choice.RESEND: PENDING,
    Choice.GIVE_UP: FAILED,
    Choice.DROP: CANCELLED,
}


async def run_once(deps: Reconciling) -> int:
    """Ask about up to a batch of unknown effects whose settle window is over; gives how many those were."""
    async with deps.db.connection() as conn:
        rows = await unknowns.take_unknowns(
            conn, most=LOOK_UP_BATCH, hold_seconds=HOLD_SECONDS, effect_types=list(deps.connectors)
        )
    policies = Policies()
    await policies.load(deps.db, rows)
    answers = await asyncio.gather(*(_look_up(deps, row, policies) for row in rows))
    for row, answer in zip(rows, answers, strict=True):
        reach("reconcile.after_look_up")
        await _record(deps, row, answer)
        reach("reconcile.after_record")
    return len(rows)


async def _look_up(deps: Reconciling, row: UnknownRow, policies: Policies) -> LookUpOutcome:
    """Read the evidence, or else ask the provider."""
    if row.has_evidence:
        return Found(row.evidence_provider_id)
    policy = policies.of(row)
    if policy is None or row.body is None:
        return NoAnswer("policy_unreadable" if policy is None else "erased")
    effect = to_effect(row, policy, row.attempts)
    try:
        async with asyncio.timeout(LOOK_UP_SECONDS):
            return await ask(deps.connectors[row.effect_type], effect)
    except TimeoutError:
        return NoAnswer("timeout")


async def _record(deps: Reconciling, row: UnknownRow, answer: LookUpOutcome) -> None:
    match answer:
        case Found(provider_id):
            await _complete(deps, row, provider_id)
        case Absent():
            await _note(deps, row, "absent")
        case NoAnswer(reason):
            await _note(deps, row, reason)


async def _complete(deps: Reconciling, row: UnknownRow, provider_id: str | None) -> None:
    result = Result(
        state=COMPLETED, provider_id=provider_id, reason="evidence" if row.has_evidence else "found"
    )

    async def work(conn: Connection) -> None:
        await settle.lock(conn, [row])
        version = await unknowns.resolve_unknown(conn, row, row.version, result)
        await settle.conclude(conn, [Moved(row, version, row.attempts, result)], deps.ops_channel)
        await cards.want_cards(conn, effect_ids=[row.effect_id])

    try:
        await deps.db.retrying(work)
    except LostRace:
        return  # A person was quicker.


async def _note(deps: Reconciling, row: UnknownRow, answer: str) -> None:
    async with deps.db.transaction() as conn:
        wait = look_up_wait_seconds(row.times_asked)
        if await unknowns.note_look_up(conn, row, answer=answer, wait_seconds=wait):
            await cards.want_cards(conn, effect_ids=[row.effect_id])


async def settle_unknown(
    db: Database, effect_id: UUID, version: int, *, choice: Choice, by: str
) -> Resolved | NotResolved:
    """Let a person settle an unknown effect, once, in the version that the card showed.

    Raises:
        DatabaseAway: nothing was changed.

    """
    async with db.connection() as conn:
        effect = await unknowns.find_unknown(conn, effect_id)
    if effect is None:
        return NotResolved.GONE
    result = Result(state=_STATES[choice], reason=None if choice is Choice.DELIVERED else str(choice))

    async def work(conn: Connection) -> Resolved | NotResolved:
        overtaken = settle.is_overtaken(effect, await settle.lock(conn, [effect]))
        if choice is Choice.RESEND and overtaken:
            return NotResolved.NEWER_WAITS
        if choice is Choice.DROP and not overtaken:
            return NotResolved.NOTHING_NEWER
        now = await unknowns.resolve_unknown(conn, effect, version, result)
        moved = Moved(effect, now, effect.attempts, result)
        await settle.conclude(conn, [moved], None, [_resolution(moved, choice, by)])
        await cards.want_cards(conn, effect_ids=[effect_id])
        return Resolved(effect.idempotency_key, result.state)

    try:
        return await db.retrying(work)
    except LostRace:
        return NotResolved.SETTLED


def _resolution(moved: Moved, choice: Choice, by: str) -> audit.Entry:
    detail: dict[str, Any] = facts_of(moved) | {"choice": str(choice), "state": moved.result.state}
    return audit.Entry(moved.effect.idempotency_key, by, "effect_resolved", detail)
