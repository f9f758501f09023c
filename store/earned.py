"""How people decided about drafts of one ground, and whether that was enough the last time.

Not here: how much is enough (bot/policy/earned), or the decisions, which add to it (store/decisions).
"""

from uuid import UUID

from store.queries import Connection, query
from store.rows import Row

_READ = query("read_evidence")
_IS_CORRECTION = query("is_correction")
_NOTE_EARNED = query("note_earned")
_NOTE_LOST = query("note_lost")


class EvidenceRow(Row):
    """The last decisions of people, newest first in their counting, and what was noted of the ground."""

    decisions: int
    unedited: int
    was_earned: bool


class _Changes(Row):
    changes: int


async def read_evidence(conn: Connection, *, ground: str, most: int) -> EvidenceRow:
    """Count the last `most` decisions about drafts of this ground."""
    return await _READ.one(conn, {"ground": ground, "most": most}, EvidenceRow)


async def is_correction(conn: Connection, run_id: UUID) -> bool:
    """Tell whether a run corrects another one."""
    return bool(await _IS_CORRECTION.value(conn, {"run_id": run_id}))


async def note_earned(conn: Connection, *, ground: str, kind: str) -> int | None:
    """Note that the ground has earned it; gives the number of the change, None if it was noted already."""
    row = await _NOTE_EARNED.maybe(conn, {"ground": ground, "kind": kind}, _Changes)
    return None if row is None else row.changes


async def note_lost(conn: Connection, *, ground: str) -> int | None:
    """Note that the ground has lost it; gives the number of the change, None if it was noted already."""
    row = await _NOTE_LOST.maybe(conn, {"ground": ground}, _Changes)
    return None if row is None else row.changes
