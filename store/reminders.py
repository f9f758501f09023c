"""Pending drafts that nobody answered yet, and which reminders their thread had.

Not here: when a kind reminds (bot/policy), what is said and where (bot/flow/remind).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

import orjson

from store.queries import Connection, query
from store.rows import Row

_LIST = query("list_unreminded")
_TAKE = query("take_reminder")
_GIVE_BACK = query("give_reminder_back")
_KEEP_LINE = query("keep_reminder_line")


@dataclass(frozen=True, slots=True)
class Due:
    """When drafts of a kind that had `reminded` reminders get their next: seconds after they were asked."""

    kind: str
    reminded: int
    after_seconds: float


class Unreminded(Row):
    """A draft whose next reminder is due; `asked_at` names its term, `reminder_ts` the line it has."""

    draft_id: UUID
    kind: str
    entity: str
    expires_at: datetime
    asked_at: datetime
    reminded: int
    reminder_ts: str | None
    channel: str
    ts: str
    waited_seconds: float


async def list_unreminded(conn: Connection, due: Sequence[Due], *, most: int) -> list[Unreminded]:
    """Give up to `most` drafts whose next reminder is due, the longest waiting first."""
    written = orjson.dumps([asdict(one) for one in due]).decode()
    return await _LIST.rows(conn, {"due": written, "most": most}, Unreminded)


async def take_reminder(conn: Connection, draft: Unreminded, *, number: int) -> None:
    """Take the reminders of a term up to `number` (from 1); LostRace when they are not ours to post."""
    await _TAKE.run(conn, {"draft_id": draft.draft_id, "asked_at": draft.asked_at, "number": number})


async def give_reminder_back(conn: Connection, draft: Unreminded, *, number: int) -> None:
    """Make a reminder due again that was proven not to be posted."""
    params = {"draft_id": draft.draft_id, "asked_at": draft.asked_at, "number": number}
    await _GIVE_BACK.run(conn, params | {"before": draft.reminded})


async def keep_reminder_line(conn: Connection, draft: Unreminded, ts: str) -> None:
    """Keep where the line stands that later reminders edit."""
    await _KEEP_LINE.run(conn, {"draft_id": draft.draft_id, "asked_at": draft.asked_at, "ts": ts})
