"""Pending drafts whose time is over.

Not here: when that is looked for, and its record (bot/flow/expire).
"""

from collections.abc import Sequence
from uuid import UUID

from store.queries import Connection, query
from store.rows import Row

_LIST = query("list_expired")
_EXPIRE = query("expire_drafts")


class _Key(Row):
    draft_key: str


class ExpiredDraft(Row):
    """A draft that nobody decided in time."""

    draft_id: UUID
    revision: int
    idempotency_key: str


async def list_expired(conn: Connection, *, most: int) -> list[str]:
    """Give the draft_keys of up to `most` pending drafts whose time is over."""
    return [row.draft_key for row in await _LIST.rows(conn, {"most": most}, _Key)]


async def expire_drafts(conn: Connection, draft_keys: Sequence[str]) -> list[ExpiredDraft]:
    """End those of them that are still pending and over, under their heads' locks."""
    return await _EXPIRE.rows(conn, {"draft_keys": list(draft_keys)}, ExpiredDraft)
