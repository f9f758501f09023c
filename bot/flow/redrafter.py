"""Fulfils wishes for another revision: claims one, asks the model, shows the answer to people, or gives up.

Not here: keeping the wish (redraft), the transactions that end it (wishes), asking itself (bot/drafting).
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from bot.drafting.check import check_output
from bot.drafting.faults import DraftFault, LostLease, Misconfigured, Throttled
from bot.drafting.model import Answer, Ask, ModelClient
from bot.drafting.prompt import Redraft
from bot.flow import wishes
from bot.flow.budget import Budgeted, ask_within
from bot.flow.checkpoints import reach
from bot.flow.hands import Hands
from bot.flow.holding import while_held
from bot.flow.wishes import Outcome
from bot.policy.keys import body_hash
from bot.policy.kinds import Kind
from bot.policy.limits import (
    KIND_GONE_SECONDS,
    LEASE_SECONDS,
    MAX_MODEL_WORKERS,
    REDRAFT_SECONDS,
    TAKEOVERS_FAIL,
)
from bot.policy.retries import Fault
from store import redrafts
from store.database import Database
from store.drafts import Content
from store.errors import DatabaseAway, LostRace
from store.redrafts import ClaimedRedraft, Grip
from store.rows import Claim

# The model was there and answered: such a wish counts against the kind's `redrafts`.
_ANSWERED: Final = frozenset({Fault.NOT_JSON, Fault.WRONG_JSON, Fault.SOFT_FAILURE, Fault.REFUSED})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Redrafting:
    """What redrafting needs; `finished` is called whenever a wish was worked off, to wake what comes next."""

    db: Database
    owner: str
    policy: Budgeted
    model: ModelClient
    finished: Callable[[], None] = field(default=lambda: None)


class Redrafter:
    """Fulfils up to MAX_MODEL_WORKERS wishes at once; a slow model holds up nobody but its own wish."""

    def __init__(self, deps: Redrafting) -> None:
        self._deps = deps
        self._hands: Hands[Grip, None] = Hands(MAX_MODEL_WORKERS, lambda _: deps.finished())
        self._left: list[Grip] = []

    async def run_once(self) -> int:
        """Close what is overdue, begin as many due wishes as there is room for; give the number of both."""
        await self._give_back_left()
        closed = await wishes.close_overdue(self._deps.db)
        if closed:
            self._deps.finished()
        free = self._hands.free
        if free <= 0:
            return closed
        async with self._deps.db.connection() as conn:
            claim = Claim(
                self._deps.owner, free, LEASE_SECONDS, tuple(self._deps.policy.kinds), KIND_GONE_SECONDS
            )
            claimed = await redrafts.claim_redrafts(conn, claim, longest_seconds=REDRAFT_SECONDS)
        for wish in claimed:
            grip = Grip(wish.redraft_id, self._deps.owner, wish.attempts)
            self._hands.begin(grip, self._work(wish, grip))
        return closed + len(claimed)

    async def _work(self, wish: ClaimedRedraft, grip: Grip) -> None:
        try:
            await _fulfil(self._deps, wish, grip)
        except DatabaseAway:
            log.warning(
                "redrafting stopped: the database is away", extra={"redraft_id": str(wish.redraft_id)}
            )
            self._left.append(grip)

    async def _give_back_left(self) -> None:
        """Give back what the database went away from: its lease is still ours, and nobody works on it."""
        while self._left:
            await self._give_back(self._left[-1])
            self._left.pop()

    async def drain(self) -> None:
        """Wait until nothing is being redrafted."""
        await self._hands.drain()

    async def stop(self) -> None:
        """Abort the model calls and give their wishes back, due now."""
        for grip in await self._hands.stop():
            with suppress(DatabaseAway):
                await self._give_back(grip)

    async def _give_back(self, grip: Grip) -> None:
        """Let a wish be due now. Raises DatabaseAway."""
        try:
            async with self._deps.db.connection() as conn:
                await redrafts.postpone_redraft(conn, grip, wait_seconds=0, longest_seconds=REDRAFT_SECONDS)
        except LostRace:
            log.info("a wish was not given back: its lease or its time is over")


async def _fulfil(deps: Redrafting, wish: ClaimedRedraft, grip: Grip) -> None:
    reach("redraft.after_claim")
    try:
        await _answer_and_use(deps, wish, grip)
    except LostLease:
        log.info("redrafting stopped: the lease was lost", extra={"redraft_id": str(wish.redraft_id)})
    except DraftFault as fault:
        await _give_up_or_wait(deps, wish, grip, fault)
    except LostRace:
        await wishes.close(deps.db, wish, grip, Outcome.OVERTAKEN)


async def _answer_and_use(deps: Redrafting, wish: ClaimedRedraft, grip: Grip) -> None:
    """Make one attempt.

    Raises:
        DraftFault: a row of the matrix.
        LostRace: the wish is somebody else's, closed or about a revision that is not the open one any more.

    """
    if wish.attempts > TAKEOVERS_FAIL:
        raise Misconfigured("takeovers")
    kind = deps.policy.kinds.get(wish.kind)
    if kind is None or wish.body is None or wish.payload is None or wish.wish is None:
        raise Misconfigured("kind_gone" if kind is None else "erased")
    if wish.result is None:
        asked = await ask_within(
            deps.db, deps.policy, kind, partial(_ask, deps, wish, grip, kind), partial(_keep, deps, grip)
        )
        answer = _as_result(asked)
    else:
        answer = wish.result  # An earlier owner had the answer and died: the model is not asked again.
    await wishes.use_answer(deps.db, wish, grip, _as_content(answer, wish, kind))
    reach("redraft.after_commit")


async def _ask(deps: Redrafting, wish: ClaimedRedraft, grip: Grip, kind: Kind) -> Answer:
    """Ask the model for the next revision of what people have before them; the wish is data to it."""
    if kind.prompt is None:
        raise Misconfigured("no_prompt")
    request = Ask(
        kind=kind.name,
        prompt=kind.prompt,
        output=_schema(wish, kind),
        payload=wish.payload or {},
        timeout_seconds=kind.timeout_seconds,
        max_tokens=kind.max_tokens,
        model=kind.model,
        rules=kind.rules,
        sends=kind.sends,
        redraft=Redraft(wish.body or {}, wish.wish or ""),
        total_seconds=max(0.0, wish.left_seconds),
    )
    renew = partial(_renew, deps, grip)
    answer = await while_held(deps.model.ask(request), renew, what=str(wish.redraft_id))
    reach("redraft.after_model")
    return answer


async def _keep(deps: Redrafting, grip: Grip, answer: Answer) -> None:
    async with deps.db.connection() as conn:
        await redrafts.keep_redraft_answer(conn, grip, _as_result(answer))
    reach("redraft.after_answer_stored")


async def _renew(deps: Redrafting, grip: Grip) -> None:
    async with deps.db.connection() as conn:
        await redrafts.renew_redraft(conn, grip, lease_seconds=LEASE_SECONDS, longest_seconds=REDRAFT_SECONDS)


def _schema(wish: ClaimedRedraft, kind: Kind) -> Mapping[str, Any]:
    """The schema that is frozen onto the draft; the effect that is approved is frozen with it."""
    return wish.output or kind.output or {"type": "object"}


def _as_result(answer: Answer) -> dict[str, Any]:
    return {
        "output": answer.output,
        "model": answer.model,
        "fingerprint": answer.fingerprint,
        "prompt_version": answer.prompt_version,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
    }


def _as_content(answer: Mapping[str, Any], wish: ClaimedRedraft, kind: Kind) -> Content:
    output = answer["output"]
    schema, payload = _schema(wish, kind), wish.payload or {}
    verdict = check_output(output, schema=schema, rules=kind.rules, payload=payload, sends=kind.sends)
    warnings = [found.message for found in verdict.warnings]
    facts = {name: answer[name] for name in ("model", "fingerprint", "prompt_version")}
    return Content(output, body_hash(output), "model", warnings=warnings, **facts)


async def _give_up_or_wait(deps: Redrafting, wish: ClaimedRedraft, grip: Grip, fault: DraftFault) -> None:
    """End the wish; only a model that asks for patience is asked again, if there is time enough."""
    log.warning("redrafting failed", extra={"redraft_id": str(wish.redraft_id), "fault": str(fault)})
    if isinstance(fault, Throttled) and fault.retry_after_seconds is not None:
        try:
            async with deps.db.connection() as conn:
                await redrafts.postpone_redraft(
                    conn, grip, wait_seconds=fault.retry_after_seconds, longest_seconds=REDRAFT_SECONDS
                )
        except LostRace:
            pass  # Too late for it, or not ours: closing tells which.
        except DatabaseAway:
            return
        else:
            return
    outcome = Outcome.FAILED if fault.word in _ANSWERED else Outcome.UNAVAILABLE
    await wishes.close(deps.db, wish, grip, outcome, fault)
