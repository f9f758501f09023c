"""What people decided, with the content they were first shown: to try another policy on it.

Not here: what a policy would have done (bot/replay), or the counts that a running gate reads (store/earned).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from store.queries import Connection, query
from store.rows import Row

_LIST = query("list_decided_questions")
_READ = query("read_decided_questions")


class DecidedRow(Row):
    """One decision; `is_judged` if it is young enough, else it counts as evidence only and has no content."""

    kind: str
    key: str
    run_id: UUID
    entity: str
    corrects: bool
    decided_at: datetime
    opened_at: datetime
    unedited: bool
    is_judged: bool
    output: dict[str, Any] | None
    payload: dict[str, Any] | None


class _Id(Row):
    approval_id: UUID


async def list_decided(conn: Connection, *, after: UUID, most: int) -> list[UUID]:
    """Give the next decided questions."""
    return [row.approval_id for row in await _LIST.rows(conn, {"after": after, "most": most}, _Id)]


async def read_decided(conn: Connection, approval_ids: Sequence[UUID], *, days: int) -> list[DecidedRow]:
    """Read what was decided on these questions; the content of those of the last `days` days."""
    return await _READ.rows(conn, {"approval_ids": list(approval_ids), "days": days}, DecidedRow)
