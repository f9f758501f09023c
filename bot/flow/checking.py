"""Looks at an effect's record right before it is started: as it was, changed since, or not to be known now.

Not here: asking itself (bot/connectors/probe), starting (dispatch), what the clock takes back (withdraw).
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from bot.cards.notices import Alert
from bot.connectors.connector import Effect
from bot.contracts.outcome import Changed, ProbeOutcome, Unchanged, Unclear
from bot.flow import settle
from bot.flow.checkpoints import reach
from bot.flow.outgoing import to_effect
from bot.flow.parts import SYSTEM
from bot.policy.ahead import Probe
from bot.policy.clauses import EffectPolicy
from bot.policy.limits import HOLD_LEAST_SECONDS, HOLD_MOST_SECONDS
from store import alerts, audit, cards, probing
from store.database import Database
from store.queries import Connection
from store.rows import ClaimedRow

BOUNDS: Final = (HOLD_LEAST_SECONDS, HOLD_MOST_SECONDS)


class Asks(Protocol):
    """Asks for records (bot/connectors/probe)."""

    async def ask(self, effect: Effect, probe: Probe, versions: Collection[int]) -> ProbeOutcome:
        """Ask once, outside any transaction."""


@dataclass(slots=True)
class Checks:
    """One process's looks at records; without somebody to ask, nothing that needs a look passes."""

    db: Database
    owner: str
    prober: Asks | None
    ops_channel: str | None
    _asking: set[asyncio.Task[Any]] = field(default_factory=set)

    async def pass_on(self, row: ClaimedRow, policy: EffectPolicy) -> bool:
        """Say whether a claimed effect may start; what may not is held or taken back by then.

        Raises:
            asyncio.CancelledError: by `stop`, before anything was written.

        """
        outcome = await self._ask(row, policy)
        match outcome:
            case Unchanged():
                return True
            case Changed(version=version):
                await self.db.retrying(lambda conn: self._take_back(conn, row, version))
                reach("dispatch.after_take_back")
            case Unclear(reason=reason):
                await self.db.retrying(lambda conn: self._hold(conn, row, reason))
                reach("dispatch.after_hold")
        return False

    def stop(self) -> None:
        """Break off every look: a record that hangs must not hold up a stop."""
        for task in self._asking:
            task.cancel()

    async def _ask(self, row: ClaimedRow, policy: EffectPolicy) -> ProbeOutcome:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - this is a coroutine
        self._asking.add(task)
        try:
            if policy.probe is None:
                return Unchanged()
            if self.prober is None:
                return Unclear("not_set")
            async with self.db.connection() as conn:
                versions = await probing.find_probed_versions(conn, row.effect_id)
            if versions is None:
                return Unclear("no_version")
            known = {versions.source_version, versions.known_version}
            return await self.prober.ask(to_effect(row, policy, row.attempts), policy.probe, known)
        finally:
            self._asking.discard(task)

    async def _take_back(self, conn: Connection, row: ClaimedRow, version: int | None) -> None:
        """Take a draft back to its reviewers; what may be out already goes to ops instead."""
        await settle.lock(conn, [row])
        if row.is_ambiguous:
            await settle.halt(conn, self.owner, [row], self.ops_channel)
        elif await probing.withdraw_changed_effect(conn, self.owner, row):
            versions = await probing.find_probed_versions(conn, row.effect_id)
            drafted = versions.source_version if versions else row.known_version
            why = "record_closed" if version is None else f"record_changed:{version}:{drafted}"
            await settle.take_back(conn, row, f"withdrawn_{why}", why)

    async def _hold(self, conn: Connection, row: ClaimedRow, reason: str) -> None:
        """Let it wait; card, record and ops hear when that begins."""
        await settle.lock(conn, [row])
        held = await probing.hold_effect(conn, self.owner, row, reason=reason, bounds=BOUNDS)
        if held is None or not held.is_new:
            return
        facts = {"effect_id": str(row.effect_id), "reason": reason}
        line = audit.Entry(row.idempotency_key, SYSTEM, "effect_held", facts)
        await settle.write_down(conn, [line], {row.idempotency_key: row.run_id}, set())
        await cards.want_cards(conn, [row.draft_id])
        # One a kind and day: an owner of records that is away holds everything of a kind at once.
        key = f"effect_held:{row.kind}:{datetime.now(UTC):%Y-%m-%d}"
        told = {"key": row.idempotency_key, "kind": row.kind, "reason": reason}
        await alerts.raise_alert(conn, key=key, name=Alert.EFFECT_HELD, facts=told)
