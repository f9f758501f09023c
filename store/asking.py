"""What people ask of us in Slack: what waits for them, what nobody knows, what became of a key.

Not here: what upstream systems read (store/reading), or who may ask (bot/doors/callers).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from store.queries import Connection, query
from store.rows import Row

_CHAIN = query("find_chain")
_HISTORY = query("find_history")
_WAITING = query("list_waiting")
_COUNT_WAITING = query("count_waiting")
_UNKNOWN = query("list_unknown")
_HOLDER = query("find_holder")


class Chain(Row):
    """The record of one key, and the head whose lock it is written under."""

    idempotency_key: str
    draft_key: str


class EffectLine(Row):
    """One effect of a key; `undoes` and `waits_for` are what another of them is called."""

    effect_type: str
    state: str
    provider_id: str | None
    undo_by: str | None
    name: str | None
    undoes: str | None
    waits_for: str | None


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
    """A draft that can be decided now."""

    draft_id: UUID
    kind: str
    entity: str
    opened_at: datetime
    expires_at: datetime


class WaitingCount(Row):
    """How many drafts of a kind can be decided now."""

    kind: str
    n: int


@dataclass(frozen=True, slots=True)
class Asker:
    """For whom (slack:TEAM:USER) waiting drafts are looked for, and of which kinds."""

    subject: str
    kinds: Sequence[str]


class UnknownLine(Row):
    """An effect nobody knows the outcome of; `total` counts all of them."""

    idempotency_key: str
    effect_type: str
    ambiguous_at: datetime
    total: int


async def find_chain(
    conn: Connection, *, effect_id: UUID | None = None, key: str | None = None
) -> Chain | None:
    """Say on which record stands what is about an effect, or about a key."""
    return await _CHAIN.maybe(conn, {"effect_id": effect_id, "key": key}, Chain)


async def find_history(conn: Connection, keys: Sequence[str]) -> KeyHistory | None:
    """Read what became of the first key that there is, None if there is none."""
    return await _HISTORY.maybe(conn, {"keys": list(keys)}, KeyHistory)


async def list_waiting(conn: Connection, asker: Asker, *, most: int, passed: int = 0) -> list[WaitingRow]:
    """Give up to `most` open questions that this person can answer, oldest first, after `passed` others."""
    params = {"kinds": list(asker.kinds), "subject": asker.subject, "most": most, "passed": passed}
    return await _WAITING.rows(conn, params, WaitingRow)


async def count_waiting(conn: Connection, asker: Asker) -> list[WaitingCount]:
    """Count such questions by kind."""
    params = {"kinds": list(asker.kinds), "subject": asker.subject}
    return await _COUNT_WAITING.rows(conn, params, WaitingCount)


async def list_unknown(conn: Connection, *, most: int) -> list[UnknownLine]:
    """Give up to `most` unknown effects, longest unknown first."""
    return await _UNKNOWN.rows(conn, {"most": most}, UnknownLine)


async def find_holder(conn: Connection, token_hash: str) -> str | None:
    """Give the person (slack:TEAM:USER) whose view carries this token; None for any other token."""
    holder: str | None = await _HOLDER.value(conn, {"token_hash": token_hash})
    return holder
