"""A connector that plays a script, and what dispatchers in tests are made of.

Not here: rows (tests/makers) or the connectors' own tests (tests/connectors).
"""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

from bot.connectors.connector import Effect
from bot.contracts.outcome import Absent, LookUpOutcome, SendOutcome, Sent
from bot.flow.dispatch import Dispatcher, Outlet
from store.database import Database, outside_transaction
from tests import makers

Script = Callable[[Effect], SendOutcome] | SendOutcome


class Scripted:
    """Answers as told; holds calls back where told, until they are let go."""

    def __init__(
        self, answer: Script | None = None, *, effect_type: str = "http", repeats: bool = False
    ) -> None:
        self.effect_type = effect_type
        self.repeats = repeats
        self.answer: Script = answer or Sent("msg-1")
        self.found: LookUpOutcome = Absent()
        self.calls: list[Effect] = []
        self.asked: list[Effect] = []
        self.holds: Callable[[Effect], bool] = lambda _: False
        self.held = asyncio.Event()
        self.let_go = asyncio.Event()

    def idempotent(self, effect: Effect) -> bool:
        return self.repeats

    async def send(self, effect: Effect) -> SendOutcome:
        outside_transaction()
        self.calls.append(effect)
        if self.holds(effect):
            self.held.set()
            await self.let_go.wait()
        return self.answer(effect) if callable(self.answer) else self.answer

    async def look_up(self, effect: Effect) -> LookUpOutcome:
        outside_transaction()
        self.asked.append(effect)
        return self.found


def dispatcher(db: Database, *connectors: Scripted, owner: str = "me", **more: Any) -> Dispatcher:
    """A dispatcher that puts the cards of unknown effects into C0OPS."""
    settings: dict[str, Any] = {"actions_enabled": True, "ops_channel": "C0OPS"} | more
    return Dispatcher(Outlet(db, owner, {one.effect_type: one for one in connectors}, **settings))


async def dispatch(db: Database, *connectors: Scripted, **more: Any) -> Dispatcher:
    """Run one dispatcher once, until nothing is in hand."""
    one = dispatcher(db, *connectors, **more)
    await one.run_once()
    await one.quiet()
    one._claims.stop()  # It is not there any more when a rate would let more out.
    return one


def effect_row(dsn: str, effect_id: UUID) -> dict[str, Any]:
    """An effect as it stands, with the states of its draft and run and how far its card is behind."""
    return makers.rows(
        dsn,
        "SELECT e.*, d.status AS draft_status, r.state AS run_state, r.failure, c.wanted_version,"
        " e.next_attempt_at - clock_timestamp() AS wait FROM effect_outbox AS e"
        " LEFT JOIN drafts AS d USING (draft_id) LEFT JOIN workflow_runs AS r ON r.run_id = e.run_id"
        " LEFT JOIN cards AS c ON c.draft_id = e.draft_id WHERE e.effect_id = %(effect_id)s",
        effect_id=effect_id,
    )[0]


def actions(dsn: str, key: str) -> list[tuple[str, str]]:
    """Who did what, by the record of one key."""
    lines = makers.rows(
        dsn, "SELECT actor, action FROM audit_log WHERE chain = %(key)s ORDER BY seq", key=key
    )
    return [(line["actor"], line["action"]) for line in lines]


def make_due(dsn: str) -> None:
    """Let every wait be over."""
    makers.change(dsn, "UPDATE effect_outbox SET next_attempt_at = now() - interval '1 second'")
