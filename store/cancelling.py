"""Cancelling what was approved and has not started, and finding out why that came too late.

Not here: withdrawal by a newer event or by time (store/outbox, store/intake), or who may (bot/policy).
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from store.ids import new_id
from store.queries import Connection, query
from store.rows import Row

_CANCEL = query("cancel_draft")
_FIND = query("find_cancelled")


@dataclass(frozen=True, slots=True)
class Cancelling:
    """Which token is spent, from which message, and by whom."""

    token_hash: str
    revision: int
    surface: str
    channel: str | None
    ts: str | None
    subject: str


class CancelledDraft(Row):
    """A draft that nothing will leave of; `effects` were stopped."""

    draft_id: UUID
    run_id: UUID
    revision: int
    effects: int


class Standing(Row):
    """How the draft of a token stands: its newest decision, and whether a send of it was ever started."""

    status: str
    decision: str | None
    approver_subject: str | None
    consumed_at: datetime | None
    token_hash: str | None
    is_started: bool


async def cancel_draft(conn: Connection, cancelling: Cancelling) -> CancelledDraft:
    """Cancel the draft with its run and all its effects, under the head's lock.

    Raises:
        LostRace: nothing may be kept of this transaction: an effect has started, or the draft has moved.

    """
    return await _CANCEL.one(conn, asdict(cancelling) | {"approval_id": new_id()}, CancelledDraft)


async def find_cancelled(conn: Connection, token_hash: str) -> Standing | None:
    """Read how the draft of a token stands; None for a token that was never ours."""
    return await _FIND.maybe(conn, {"token_hash": token_hash}, Standing)
