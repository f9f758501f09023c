"""Claims a run, gets its content (from the event, a stored answer or the model) and opens its draft.

Not here: how the model is asked (bot/drafting) or the transaction that opens a draft (opening).
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from bot.drafting.check import check_output
from bot.drafting.faults import DraftFault, Misconfigured
from bot.drafting.model import Answer, Ask, ModelClient
from bot.flow import opening
from bot.flow.budget import Budgeted, ask_within
from bot.flow.checkpoints import reach
from bot.flow.hands import Hands
from bot.flow.holding import while_held
from bot.flow.weighing import Proposal
from bot.gates.gate import Judge
from bot.policy.keys import body_hash
from bot.policy.kinds import Kind
from bot.policy.limits import (
    DRAFT_BACKOFF_SECONDS,
    KIND_GONE_SECONDS,
    LEASE_SECONDS,
    MAX_MODEL_WORKERS,
    PROCESSING_SECONDS,
    TAKEOVERS_FAIL,
)
from bot.policy.recipients import find_wrong_recipients
from bot.policy.retries import Resume
from bot.policy.rules import RuleVerdict
from store import runs
from store.database import Database
from store.drafts import Content
from store.errors import DatabaseAway, LostRace
from store.rows import Claim
from store.runs import ClaimedRun, Held

log = logging.getLogger(__name__)

MOST_QUIET_SECONDS = 60.0  # One answer may be about one request alone: then the others are tried again.
QUIET_LOOK_SECONDS = 5.0  # Meanwhile those without a draft are passed over one by one: not at every wake.


@dataclass(frozen=True, slots=True)
class Drafting:
    """What drafting needs; `finished` is called whenever a run was worked off, to wake what comes next."""

    db: Database
    owner: str
    policy: Budgeted
    model: ModelClient
    gates: Mapping[str, Judge]
    finished: Callable[[], None] = field(default=lambda: None)
    clock: Callable[[], float] = time.monotonic


class Drafter:
    """Drafts up to MAX_MODEL_WORKERS runs at once; a slow model holds up nobody but its own run."""

    def __init__(self, deps: Drafting) -> None:
        self._deps = deps
        self._hands: Hands[Held, float] = Hands(MAX_MODEL_WORKERS, self._ended)
        self._left: list[Held] = []
        self._left_once: set[UUID] = set()
        self._quiet_until = self._look_again_at = float("-inf")

    async def run_once(self) -> int:
        """Claim as many due runs as there are free places and begin to draft them; give their number.

        While the model asked to be left alone only those that need no call: the others would be refused one
        after the other, each with its line in the record.
        """
        free, now = self._hands.free, self._deps.clock()
        may_ask = now >= self._quiet_until
        if free <= 0 or (not may_ask and now < self._look_again_at):
            return 0
        if not may_ask:
            self._look_again_at = now + QUIET_LOOK_SECONDS
        await self._give_back_left()
        async with self._deps.db.connection() as conn:
            claimed = await runs.claim_runs(conn, self._claim(free), may_ask=may_ask)
        for run in claimed:
            held = Held(run.run_id, self._deps.owner, run.version)
            self._hands.begin(held, self._work(run, held))
        return len(claimed)

    def _claim(self, most: int) -> Claim:
        return Claim(self._deps.owner, most, LEASE_SECONDS, tuple(self._deps.policy.kinds), KIND_GONE_SECONDS)

    async def _work(self, run: ClaimedRun, held: Held) -> float:
        try:
            quiet = await _draft(self._deps, run, held)
        except DatabaseAway:
            log.warning("drafting stopped: the database is away", extra={"run_id": str(run.run_id)})
            self._leave(held)
            return 0.0
        self._left_once.discard(run.run_id)
        return quiet

    def _leave(self, held: Held) -> None:
        """Keep in mind what was left; twice in a row it is the run's own fault, and its takeovers count."""
        if held.run_id in self._left_once:
            self._left_once.discard(held.run_id)
        else:
            self._left_once.add(held.run_id)
            self._left.append(held)

    async def _give_back_left(self) -> None:
        """Give back what the database went away from: nobody works on it, and its lease is still ours."""
        while self._left:
            try:
                async with self._deps.db.connection() as conn:
                    await runs.postpone_run(
                        conn, self._left[-1], failure="stopped", wait_seconds=0, counted=False
                    )
            except LostRace:
                log.info("a run was left: its lease is over", extra={"run_id": str(self._left[-1].run_id)})
            self._left.pop()

    def _ended(self, quiet_seconds: float | None) -> None:
        quiet = min(quiet_seconds or 0.0, MOST_QUIET_SECONDS)
        self._quiet_until = max(self._quiet_until, self._deps.clock() + quiet)
        self._deps.finished()

    async def drain(self) -> None:
        """Wait until nothing is being drafted."""
        await self._hands.drain()

    async def stop(self) -> None:
        """Abort the model calls and give their runs back, due now and uncounted (SPEC section 4)."""
        for held in [*await self._hands.stop(), *self._left]:
            await _give_back(self._deps, held)


async def _draft(deps: Drafting, run: ClaimedRun, held: Held) -> float:
    """Work one run off; give the seconds for which the model asked to be left alone.

    Raises:
        DatabaseAway: the attempt broke off, and holds its lease.

    """
    reach("draft.after_claim")
    try:
        await _draft_or_fault(deps, run, held)
    except DraftFault as fault:
        await _record_fault(deps, run, held, fault)
        return (fault.retry_after_seconds or 0.0) if fault.row.resume is Resume.RETRY_AFTER else 0.0
    except LostRace:
        log.info("drafting stopped: the lease was lost", extra={"run_id": str(run.run_id)})
    return 0.0


async def _draft_or_fault(deps: Drafting, run: ClaimedRun, held: Held) -> None:
    """Make one attempt.

    Raises:
        DraftFault: a row of the matrix.
        LostRace: the run is somebody else's by now.

    """
    await opening.alert_takeovers(deps.db, run)
    if run.takeovers >= TAKEOVERS_FAIL:
        raise Misconfigured("takeovers")
    kind = deps.policy.kinds.get(run.kind)
    if kind is None or run.payload is None:
        raise Misconfigured("kind_gone" if kind is None else "erased")
    if find_wrong_recipients(kind, run.payload):
        raise Misconfigured("recipient")  # Intake looked where the policy of that day said.
    content, verdict = await _content(deps, run, held, kind)
    proposal = Proposal(kind, content, verdict, deps.gates[kind.gate])
    await opening.open_or_revise(deps.db, run, held, proposal)
    reach("draft.after_open_commit")


async def _content(deps: Drafting, run: ClaimedRun, held: Held, kind: Kind) -> tuple[Content, RuleVerdict]:
    if run.draft is not None:
        verdict = _check(run.draft, run, kind)
        return _as_content(run.draft, verdict, author="upstream"), verdict
    if run.result is None:
        answer = await ask_within(
            deps.db, deps.policy, kind, partial(_ask, deps, run, held, kind), partial(_keep, deps, held)
        )
        stored = _as_result(answer)
    else:
        stored = run.result  # An earlier try had the answer and failed later: the model is not asked again.
    verdict = _check(stored["output"], run, kind)
    facts = {name: stored[name] for name in ("model", "fingerprint", "prompt_version")}
    return _as_content(stored["output"], verdict, author="model", **facts), verdict


def _check(output: Mapping[str, Any], run: ClaimedRun, kind: Kind) -> RuleVerdict:
    schema = kind.output if kind.output is not None else {"type": "object"}
    return check_output(output, schema=schema, rules=kind.rules, payload=run.payload or {}, sends=kind.sends)


def _as_content(
    output: Mapping[str, Any], verdict: RuleVerdict, *, author: str, **facts: str | None
) -> Content:
    warnings = [found.message for found in verdict.warnings]
    return Content(output, body_hash(dict(output)), author, warnings=warnings, **facts)


def _as_result(answer: Answer) -> dict[str, Any]:
    return {
        "output": answer.output,
        "model": answer.model,
        "provider": answer.provider,
        "fingerprint": answer.fingerprint,
        "prompt_version": answer.prompt_version,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "turns": answer.turns,
        "requests": answer.requests,
    }


async def _ask(deps: Drafting, run: ClaimedRun, held: Held, kind: Kind) -> Answer:
    """Ask the model while the lease is renewed beside it; a lost lease ends the call.

    Raises:
        DraftFault: the row of the matrix that ended it.
        LostLease: a renewal found the lease gone.

    """
    if kind.prompt is None or kind.output is None:
        raise Misconfigured("no_prompt")
    reach("draft.before_model")
    request = Ask(
        kind=kind.name,
        prompt=kind.prompt,
        output=kind.output,
        payload=run.payload or {},
        timeout_seconds=kind.timeout_seconds,
        max_tokens=kind.max_tokens,
        model=kind.model,
        rules=kind.rules,
        sends=kind.sends,
    )
    renew = partial(_renew, deps, held)
    answer = await while_held(deps.model.ask(request), renew, what=str(run.run_id))
    reach("draft.after_model")
    return answer


async def _keep(deps: Drafting, held: Held, answer: Answer) -> None:
    async with deps.db.connection() as conn:
        await runs.store_result(conn, held, _as_result(answer))
    reach("draft.after_answer_stored")


async def _renew(deps: Drafting, held: Held) -> None:
    async with deps.db.connection() as conn:
        await runs.renew_run(conn, held, lease_seconds=LEASE_SECONDS, longest_seconds=PROCESSING_SECONDS)


async def _record_fault(deps: Drafting, run: ClaimedRun, held: Held, fault: DraftFault) -> None:
    """Do what the matrix says of this fault."""
    row = fault.row
    log.warning("drafting failed", extra={"run_id": str(run.run_id), "fault": str(fault)})
    if row.ends_in is None:
        return
    counted = row.resume is Resume.BACKOFF
    used_up = counted and run.attempts >= len(DRAFT_BACKOFF_SECONDS)
    try:
        if row.resume is None or used_up:
            await opening.end_failed(deps.db, run, held, fault)
            return
        wait = fault.retry_after_seconds
        if wait is None:
            wait = float(DRAFT_BACKOFF_SECONDS[min(run.attempts, len(DRAFT_BACKOFF_SECONDS) - 1)])
        await opening.postpone(deps.db, run, held, fault, opening.Wait(wait, counted))
    except (LostRace, DatabaseAway):
        log.info("a drafting failure was not recorded", extra={"run_id": str(run.run_id)})


async def _give_back(deps: Drafting, held: Held) -> None:
    try:
        async with deps.db.connection() as conn:
            await runs.postpone_run(conn, held, failure="stopped", wait_seconds=0, counted=False)
    except (LostRace, DatabaseAway):
        log.info(
            "a run could not be given back; its lease ends by itself", extra={"run_id": str(held.run_id)}
        )
