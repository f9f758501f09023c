"""The newest version of each draft_key: the version gate and the first lock.

Not here: what is done under the lock (bot/flow).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from store.ids import new_id
from store.queries import Connection, query
from store.rows import HeadRow, ReopenedRow

_LOCK = query("lock_heads")
_LOCK_FREE = query("lock_free_heads")
_REOPEN = query("reopen_drafts")


@dataclass(frozen=True, slots=True)
class Reopening:
    """A draft that goes back to its reviewers; `notice` is the word its card explains (newer_failed, …)."""

    draft_id: UUID
    notice: str


async def lock_heads(conn: Connection, draft_keys: Sequence[str]) -> dict[str, HeadRow]:
    """Lock these heads in order of draft_key: first in every transaction that touches a draft."""
    rows = await _LOCK.rows(conn, {"draft_keys": sorted(set(draft_keys))}, HeadRow)
    return {row.draft_key: row for row in rows}


async def lock_free_heads(conn: Connection, draft_keys: Sequence[str]) -> list[str]:
    """Lock those of these heads that nobody holds, and give their draft_keys; waits for none."""
    rows = await _LOCK_FREE.rows(conn, {"draft_keys": sorted(set(draft_keys))}, HeadRow)
    return [row.draft_key for row in rows]


async def lock_head_unread(conn: Connection, draft_key: str) -> None:
    """Lock one head in a pipelined transaction, where nobody reads what it says."""
    await _LOCK.send(conn, {"draft_keys": [draft_key]}, HeadRow)


async def reopen_drafts(conn: Connection, reopenings: Sequence[Reopening]) -> list[ReopenedRow]:
    """Open a fresh question about the same revision and ask for the card; the heads are locked already.

    With the notice `newer_failed` the draft answers to the newest version from now on; with any other it
    stays blocked while a newer event is known. Runs that were approved are moved by the caller.
    """
    return await _REOPEN.rows(
        conn,
        {
            "draft_ids": [r.draft_id for r in reopenings],
            "approval_ids": [new_id() for _ in reopenings],
            "notices": [r.notice for r in reopenings],
        },
        ReopenedRow,
    )
