"""What the end of an effect does to its draft and its run.

Not here: the effect's own move (store/outbox, store/unknowns) or when a draft is reopened (store/heads).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson

from store.queries import Connection, query
from store.rows import Row

_SETTLE = query("settle_drafts")
_LOCK_RUNS = query("lock_runs")


class _RunId(Row):
    run_id: UUID


@dataclass(frozen=True, slots=True)
class DraftEnd:
    """How a draft and its run end: `sent` waits for all effects of the draft, anything else does not."""

    draft_id: UUID
    run_id: UUID
    status: str
    run_state: str
    failure: str | None = None


async def settle_drafts(conn: Connection, ends: Sequence[DraftEnd]) -> set[UUID]:
    """End drafts and runs under their heads' locks; gives the runs that ended."""
    rows = await _SETTLE.rows(conn, {"ends": orjson.dumps(ends).decode()}, _RunId)
    return {row.run_id for row in rows}


async def lock_runs(conn: Connection, run_ids: Sequence[UUID]) -> None:
    """Hold runs whose record is about to be written and which do not move themselves."""
    await _LOCK_RUNS.run(conn, {"run_ids": list(run_ids)})
