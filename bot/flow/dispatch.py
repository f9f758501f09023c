"""Effects leave here: claimed, started, and sent outside any transaction.

Not here: writing answers down (recorder), lost leases (recover), unknown outcomes (reconcile).
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from bot.connectors.connector import Connector, perform
from bot.contracts.outcome import NotSent, Refused, SendOutcome, Sent, Unknown
from bot.flow import giveback
from bot.flow.checking import Asks, Checks
from bot.flow.checkpoints import reach
from bot.flow.claiming import Claims
from bot.flow.outgoing import Held, Policies, to_effect
from bot.flow.recorder import Recorder
from bot.flow.settle import Answer
from bot.policy.clauses import EffectPolicy
from bot.policy.elapsed import elapsed_seconds
from bot.policy.kinds import Policy
from bot.policy.limits import (
    EFFECT_LEASE_EXTRA_SECONDS,
    SEND_MARGIN_SECONDS,
    SLOW_SEND_SECONDS,
    STOP_GRACE_SECONDS,
)
from store import cards, outbox, switch
from store.database import Database
from store.errors import DatabaseAway
from store.outbox import StartedRow
from store.rows import ClaimedRow

LAST_RECORD_SECONDS: Final = 1.0  # After a stop's grace; what is not recorded by then is found by its lease.
MOST_FAULTS: Final = 10  # Kept for the next run; more of them would say nothing new.


@dataclass(frozen=True, slots=True)
class Outlet:
    """What sending needs; `owner` is fresh in every process, cards of unknown effects go to `ops_channel`.

    `policy` is today's, for its limits.
    """

    db: Database
    owner: str
    connectors: Mapping[str, Connector]
    actions_enabled: bool
    ops_channel: str | None = None
    margin_seconds: float = SEND_MARGIN_SECONDS
    prober: Asks | None = None
    settled: Callable[[], None] = field(default=lambda: None)
    policy: Policy | None = None


class Dispatcher:
    """One process's share of the outbox: `run_once` claims and returns, the sends go on by themselves."""

    def __init__(self, deps: Outlet) -> None:
        self._deps = deps
        self._claims = Claims(
            deps.db, deps.owner, list(deps.connectors), deps.actions_enabled, deps.policy, self._claim_again
        )
        self._lanes = self._claims.lanes
        self._policies = Policies()
        self._checks = Checks(deps.db, deps.owner, deps.prober, deps.ops_channel)
        self._recorder = Recorder(deps.db, deps.owner, deps.ops_channel, self._spawn, self._recorded)
        self._claiming = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sends: set[asyncio.Task[Any]] = set()
        self._faults: list[BaseException] = []
        self._again = self._stopping = False

    async def run_once(self) -> int:
        """Claim what is due and there is room for, and set it going; gives how many effects that were.

        Raises:
            DatabaseAway: nothing more could be claimed.
            BaseException: what ended a piece of work in the background since the last call.

        """
        if self._faults:
            raise self._faults.pop(0)
        return await self._claim_all()

    async def quiet(self) -> None:
        """Wait until nothing is in hand any more; raises as `run_once` does."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))
        if self._faults:
            raise self._faults.pop(0)

    async def stop(self, grace_seconds: float = STOP_GRACE_SECONDS) -> None:
        """Start nothing more, give started sends the grace, call the rest unknown, and record all of it."""
        self._stopping = True
        self._checks.stop()
        self._claims.stop()
        await self._empty(grace_seconds)
        for send in self._sends:
            send.cancel()
        await self._empty(LAST_RECORD_SECONDS)
        for task in self._tasks:
            task.cancel()

    async def _empty(self, within_seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                while self._tasks:
                    await asyncio.wait(set(self._tasks))

    async def _claim_all(self) -> int:
        claimed = 0
        async with self._claiming:
            await self._claims.put_limits_down()
            is_first = True
            while not self._stopping:
                self._again = False
                began = elapsed_seconds()
                if is_first or self._claims.is_cut:
                    claimed += self._set_going(await self._claims.claim_guarded(), began)
                is_first = False
                batch = await self._claims.claim()
                claimed += self._set_going(batch, began)
                if not self._again and not (batch and self._claims.is_hungry):
                    break
        return claimed

    def _set_going(self, batch: Sequence[ClaimedRow], began: float) -> int:
        if batch:
            reach("dispatch.after_claim")
            self._spawn(self._carry(batch, began))
        return len(batch)

    def _claim_again(self) -> None:
        self._again = True
        if not self._stopping and not self._claiming.locked():
            self._spawn(self._claim_all())

    async def _carry(self, batch: Sequence[ClaimedRow], began: float) -> None:
        """Start a batch claimed after `began`; what has a record to look at first goes on by itself."""
        waiting = {row.effect_id: row for row in batch}
        try:
            await self._policies.load(self._deps.db, batch)
            held = [Held(row, self._policies.of(row), began) for row in batch]
            for one in held:
                if one.has_probe:
                    del waiting[one.row.effect_id]
                    self._spawn(self._check(one))
            at_once, waiting = [one for one in held if not one.has_probe], {}
            if at_once:
                await self._begin(at_once)
        finally:
            for row in waiting.values():
                self._lanes.give_back(row.lane)

    async def _check(self, one: Held) -> None:
        """Start one effect if its record still allows it; a stop in between gives it back."""
        passes = False
        try:
            if one.policy is not None and not self._stopping:
                passes = await self._checks.pass_on(one.row, one.policy)
        except asyncio.CancelledError:
            await self._put_back([one.row])
            raise
        finally:
            if not passes:
                self._lanes.give_back(one.row.lane)
        if passes:
            reach("dispatch.after_probe")
            await self._begin([one])

    async def _begin(self, held: Sequence[Held]) -> None:
        """Start effects, open their sends, give back what may not start."""
        waiting = {one.row.effect_id: one.row for one in held}
        sends: dict[asyncio.Task[Any], Held] = {}
        try:
            started = {} if self._stopping else await self._start(held)
            reach("dispatch.after_start")
            for one in held:
                if (now := started.get(one.row.effect_id)) is not None:
                    del waiting[one.row.effect_id]
                    sends[self._open(one, now)] = one
            if sends:
                self._spawn(self._watch(sends))
            if waiting:
                await self._put_back(list(waiting.values()))
        finally:
            for row in waiting.values():
                self._lanes.give_back(row.lane)

    async def _put_back(self, rows: Sequence[ClaimedRow]) -> None:
        deps = self._deps
        if self._stopping:
            await giveback.release(deps.db, deps.owner, rows, wait_seconds=0.0)
        else:
            await giveback.put_back(deps.db, deps.owner, rows, deps.ops_channel)

    async def _start(self, held: Sequence[Held]) -> dict[UUID, StartedRow]:
        # Not pipelined: PostgreSQL ends a transaction that idles, so a frozen process holds up no kill; in a
        # pipeline it would wait for ever.
        try:
            async with self._deps.db.transaction() as conn:
                await switch.queue_for_switch(conn)
                return await outbox.start_effects(
                    conn,
                    self._deps.owner,
                    [(one.row, one.timeout_seconds) for one in held],
                    enabled=self._deps.actions_enabled,
                    extra_seconds=EFFECT_LEASE_EXTRA_SECONDS,
                )
        except DatabaseAway:  # Nobody waits for a lease's end then; what did start after all stays as it is.
            await giveback.release(self._deps.db, self._deps.owner, [one.row for one in held])
            raise

    def _open(self, held: Held, now: StartedRow) -> asyncio.Task[Any]:
        send = self._spawn(self._send(held, now))
        self._sends.add(send)
        send.add_done_callback(self._sends.discard)
        return send

    async def _send(self, held: Held, now: StartedRow) -> None:
        """Make one call and hand in its answer, also when it was cancelled: by its deadline or by a stop."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        outcome: SendOutcome | None = None
        may_repeat = False
        try:
            if held.policy is None or held.row.body is None:
                outcome = Refused("policy_unreadable" if held.policy is None else "erased", asked=False)
                return
            if elapsed_seconds() - held.claimed_at > EFFECT_LEASE_EXTRA_SECONDS:
                # We were frozen: the lease may end before the call would.
                outcome = NotSent("late", asked=False)
                return
            connector = self._deps.connectors[held.row.effect_type]
            effect = to_effect(held.row, held.policy, now.attempts)
            may_repeat = connector.idempotent(effect)
            outcome = await perform(connector, effect)
        finally:
            if outcome is None:
                outcome = Unknown("stopped", asked=False) if self._stopping else Unknown("deadline")
            is_good = isinstance(outcome, Sent | Refused)
            self._lanes.judge(held.row.lane, is_good=is_good, seconds=loop.time() - began)
            policy = EffectPolicy(type=held.row.effect_type) if held.policy is None else held.policy
            answer = Answer(held.row, now.version, now.attempts, outcome, policy, may_repeat)
            self._recorder.hand_in(answer)

    async def _watch(self, sends: Mapping[asyncio.Task[Any], Held]) -> None:
        """Let cards say "sending" where it takes long enough to be seen, and end each call at its deadline.

        One watch for a batch: a timer for each call would cost a quarter of all that a quick send costs.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        margin = self._deps.margin_seconds
        open_sends = set(sends)
        for seconds in sorted({SLOW_SEND_SECONDS, *(one.timeout_seconds + margin for one in sends.values())}):
            if open_sends:
                _, open_sends = await asyncio.wait(
                    open_sends, timeout=max(0.0, began + seconds - loop.time())
                )
            for send in open_sends:
                if sends[send].timeout_seconds + margin <= seconds:
                    send.cancel()
            if open_sends and seconds == SLOW_SEND_SECONDS:
                self._spawn(self._show([sends[send].row.draft_id for send in open_sends]))

    async def _show(self, draft_ids: Sequence[UUID]) -> None:
        async with self._deps.db.connection() as conn:
            await cards.want_cards(conn, draft_ids)

    def _recorded(self, answers: Sequence[Answer]) -> None:
        self._deps.settled()
        for answer in answers:
            self._lanes.give_back(answer.effect.lane)
        has_others = any(answer.effect.is_part for answer in answers)  # Which may have waited for it.
        if self._claims.is_hungry or self._claims.is_cut or has_others:
            self._claim_again()

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        fault = None if task.cancelled() else task.exception()
        if fault is not None and len(self._faults) < MOST_FAULTS:
            self._faults.append(fault)
