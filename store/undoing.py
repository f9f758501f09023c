"""Taking back an effect that was delivered, and finding out why that cannot be asked for.

Not here: sending what takes it back (store/outbox), or who may ask (bot/policy).
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from store.ids import new_id
from store.queries import Connection, query
from store.rows import Row

_UNDO = query("undo_effect")
_FIND = query("find_undone")
_DROP_FAILED = query("drop_failed_undo")


@dataclass(frozen=True, slots=True)
class Undo:
    """Which token is spent, from which message, and by whom."""

    token_hash: str
    revision: int
    surface: str
    channel: str | None
    ts: str | None
    subject: str


class UndoneEffect(Row):
    """An effect that is being taken back by another one of `effect_type`."""

    draft_id: UUID
    run_id: UUID
    effect_id: UUID
    effect_type: str
    shown_hash: str


class Undoable(Row):
    """How the effect of a token stands; `undo_…` is the undo that is there already."""

    state: str
    status: str
    undo_by: str | None
    undo_at: datetime | None
    undo_id: UUID | None
    is_open: bool


async def undo_effect(conn: Connection, undo: Undo) -> tuple[UndoneEffect, UUID]:
    """Put what takes an effect back into the outbox, under the head's lock; give it and its own id.

    An undo that failed before makes room for it.

    Raises:
        LostRace: nothing was changed: undone already, open still, or the draft has moved.

    """
    undo_id = new_id()
    await _DROP_FAILED.run(conn, {"token_hash": undo.token_hash})
    return await _UNDO.one(conn, asdict(undo) | {"undo_id": undo_id}, UndoneEffect), undo_id


async def find_undone(conn: Connection, token_hash: str) -> Undoable | None:
    """Read how the effect of an undo's token stands; None for any other token."""
    return await _FIND.maybe(conn, {"token_hash": token_hash}, Undoable)
