"""What people ask of us in Slack: what waits for them, what nobody knows, what became of a key.

Not here: what upstream systems read (store/reading), or who may ask (bot/doors/callers).
"""

from collections.abc import Sequence
from datetime import datetime

from store.queries import Connection, query
from store.rows import Row

_HISTORY = query("find_history")
_WAITING = query("list_waiting")
_UNKNOWN = query("list_unknown")
_HOLDER = query("find_holder")


class EffectLine(Row):
    """One effect of a key."""

    effect_type: str
    state: str
    provider_id: str | None


class KeyHistory(Row):
    """One key: its run, newest revision, last decision and effects."""

    idempotency_key: str
    kind: str
    state: str
    received_at: datetime
    failure: str | None
    repeats: int | None
    revision: int | None
    author: str | None
    model: str | None
    prompt_version: str | None
    decision: str | None
    decided_by: str | None
    decided_at: datetime | None
    reason: str | None
    effects: list[EffectLine]


class WaitingRow(Row):
    """A draft that can be decided now; `total` counts all of them."""

    kind: str
    entity: str
    opened_at: datetime
    expires_at: datetime
    total: int


class UnknownLine(Row):
    """An effect nobody knows the outcome of; `total` counts all of them."""

    idempotency_key: str
    effect_type: str
    ambiguous_at: datetime
    total: int


async def find_history(conn: Connection, keys: Sequence[str]) -> KeyHistory | None:
    """Read what became of the first key that there is, None if there is none."""
    return await _HISTORY.maybe(conn, {"keys": list(keys)}, KeyHistory)


async def list_waiting(conn: Connection, kinds: Sequence[str], *, most: int) -> list[WaitingRow]:
    """Give up to `most` open questions of these kinds, oldest first."""
    return await _WAITING.rows(conn, {"kinds": list(kinds), "most": most}, WaitingRow)


async def list_unknown(conn: Connection, *, most: int) -> list[UnknownLine]:
    """Give up to `most` unknown effects, longest unknown first."""
    return await _UNKNOWN.rows(conn, {"most": most}, UnknownLine)


async def find_holder(conn: Connection, token_hash: str) -> str | None:
    """Give the person (slack:TEAM:USER) whose view carries this token; None for any other token."""
    holder: str | None = await _HOLDER.value(conn, {"token_hash": token_hash})
    return holder
