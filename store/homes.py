"""App Homes that people have open, and what is only told there: own decisions, unsettled effects, the week.

Not here: what waits for somebody (store/asking) or how a Home looks (bot/cards/home).
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from store.queries import Connection, query
from store.rows import Row

OPEN_SECONDS = 3600  # Whoever opened it longer ago looks at something else by now, and opens it again.
REST_SECONDS = 10  # Between two looks at one Home: soon enough to be believed, seldom enough to cost little.
TOKEN_KEEP_SECONDS = 600  # A click on a drawing that was just replaced still counts.

_OPEN = query("open_home")
_FORGET = query("forget_homes")
_CLAIM = query("claim_homes")
_RECORD = query("record_home")
_DROP_TOKENS = query("drop_home_tokens")
_DECIDED = query("list_decided")
_UNSETTLED = query("list_unsettled")
_WEEK = query("count_week")


class HomeRow(Row):
    """One person's Home: which page of it they have, and what was drawn last."""

    team_id: str
    user_id: str
    page: int
    shown_hash: str | None
    view_hash: str | None


@dataclass(frozen=True, slots=True)
class Published:
    """What one person has before them by now."""

    team_id: str
    user_id: str
    page: int
    shown_hash: str
    view_hash: str | None


class DecidedRow(Row):
    """One answer of a person."""

    decision: str
    voted_at: datetime
    draft_id: UUID


class UnsettledRow(Row):
    """An effect nobody knows the outcome of; `total` counts all of them."""

    effect_id: UUID
    version: int
    idempotency_key: str
    kind: str
    effect_type: str
    target: str
    ambiguous_at: datetime
    recipient: str | None
    entity: str
    newer_waits: bool
    total: int


class WeekRow(Row):
    """The last seven days: answers of POST /events, questions that ended, effects."""

    accepted: int
    duplicates: int
    stales: int
    conflicts: int
    approved: int
    rejected: int
    expired: int
    sent: int
    failed: int


async def open_home(conn: Connection, *, team_id: str, user_id: str, page: int | None) -> HomeRow:
    """Note that somebody has their Home before them, on that page (None: the one they had)."""
    return await _OPEN.one(conn, {"team_id": team_id, "user_id": user_id, "page": page}, HomeRow)


async def claim_homes(conn: Connection, *, most: int) -> list[HomeRow]:
    """Forget Homes that nobody opened lately, and take up to `most` that are due to be looked at."""
    await _FORGET.run(conn, {"open_seconds": OPEN_SECONDS})
    return await _CLAIM.rows(conn, {"most": most, "rest_seconds": REST_SECONDS}, HomeRow)


async def record_home(conn: Connection, published: Published) -> None:
    """Record what was published."""
    await _RECORD.run(conn, asdict(published) | {"rest_seconds": REST_SECONDS})


async def drop_home_tokens(conn: Connection, holder: str) -> None:
    """Remove the buttons of older drawings of one person's Home."""
    await _DROP_TOKENS.run(conn, {"holder": holder, "keep_seconds": TOKEN_KEEP_SECONDS})


async def list_decided(conn: Connection, subject: str, *, most: int) -> list[DecidedRow]:
    """Give up to `most` answers of a person (slack:TEAM:USER), the newest first."""
    return await _DECIDED.rows(conn, {"subject": subject, "most": most}, DecidedRow)


async def list_unsettled(conn: Connection, *, most: int) -> list[UnsettledRow]:
    """Give up to `most` unknown effects, longest unknown first."""
    return await _UNSETTLED.rows(conn, {"most": most}, UnsettledRow)


async def count_week(conn: Connection) -> WeekRow:
    """Count the last seven days."""
    return await _WEEK.one(conn, None, WeekRow)
