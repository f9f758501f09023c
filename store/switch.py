"""The kill switch's rows, and the locks that let a kill be final when it is answered.

Not here: what the rows mean (bot/policy/switch) or who may change them (bot/doors).
"""

from datetime import datetime
from uuid import UUID

from store.queries import Connection, query
from store.rows import Row

_READ = query("read_switch")
_QUEUE = query("queue_for_switch")
_LOCK = query("lock_switch")
_LOCK_ROW = query("lock_switch_row")
_SET = query("set_switch")
_NOTE = query("note_switched")
_TAKE = query("take_unshown")
_STARTED = query("list_started")
_WANT_CARDS = query("want_waiting_cards")


class SwitchRow(Row):
    """One scope: open or closed, by whom, since when and why."""

    scope: str
    open: bool
    changed_by: str
    changed_at: datetime
    reason: str | None


class _Scope(Row):
    scope: str


class StartedRow(Row):
    """An effect whose call may be on the wire."""

    effect_id: UUID
    idempotency_key: str
    kind: str
    effect_type: str
    started_at: datetime


async def read_switch(conn: Connection) -> list[SwitchRow]:
    """Give every scope that has a row; `all` without one counts as closed."""
    return await _READ.rows(conn, None, SwitchRow)


async def read_scopes(conn: Connection) -> dict[str, bool]:
    """Give scope to open, as bot/policy/switch reads it."""
    return {row.scope: row.open for row in await read_switch(conn)}


async def queue_for_switch(conn: Connection) -> None:
    """Stand in line before starting sends, in the transaction of the start."""
    await _QUEUE.run(conn)


async def lock_switch(conn: Connection) -> None:
    """Hold the switch alone: starts in hand have committed by then, none begins before us."""
    await _LOCK.value(conn)
    await _LOCK_ROW.value(conn)


async def set_switch(conn: Connection, *, scope: str, is_open: bool, by: str, reason: str | None) -> None:
    """Write one scope under `lock_switch`; a missing row is made again. Its cards have to be asked for."""
    await _SET.run(conn, {"scope": scope, "open": is_open, "by": by, "reason": reason})
    await _NOTE.run(conn, {"scope": scope})


async def take_unshown(conn: Connection) -> list[str]:
    """Take the scopes that were switched and whose cards nobody has asked for yet."""
    return [row.scope for row in await _TAKE.rows(conn, None, _Scope)]


async def list_started(conn: Connection, scope: str) -> list[StartedRow]:
    """Give the effects of a scope that were started and have not ended."""
    return await _STARTED.rows(conn, {"scope": scope}, StartedRow)


async def want_waiting_cards(conn: Connection, scope: str) -> None:
    """Ask for the cards of all drafts whose effects wait under this scope."""
    await _WANT_CARDS.run(conn, {"scope": scope})
