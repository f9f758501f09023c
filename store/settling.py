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
_LEFTOVERS = query("cancel_leftovers")
_PARTS = query("settle_parts")
_LOCK_RUNS = query("lock_runs")


class _RunId(Row):
    run_id: UUID


class LeftRow(Row):
    """An effect that was cancelled because of what became of others of its draft, and why."""

    effect_id: UUID
    reason: str
    draft_id: UUID
    run_id: UUID
    idempotency_key: str
    effect_type: str
    attempts: int


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


async def cancel_leftovers(conn: Connection, run_ids: Sequence[UUID]) -> list[LeftRow]:
    """Cancel what of runs of several effects may never leave, under the locks of heads and effects."""
    return await _LEFTOVERS.rows(conn, {"run_ids": list(run_ids)}, LeftRow)


async def settle_parts(conn: Connection, run_ids: Sequence[UUID]) -> set[UUID]:
    """End drafts and runs of several effects as these stand, under their heads' locks; gives the runs."""
    rows = await _PARTS.rows(conn, {"run_ids": list(run_ids)}, _RunId)
    return {row.run_id for row in rows}


async def lock_runs(conn: Connection, run_ids: Sequence[UUID]) -> None:
    """Hold runs whose record is about to be written and which do not move themselves."""
    await _LOCK_RUNS.run(conn, {"run_ids": list(run_ids)})
