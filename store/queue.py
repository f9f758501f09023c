"""Places for cards in a channel: who waits for one, who gets it, and what the queue card is to say.

Not here: how many places a kind has (bot/policy) or the drawing of cards (bot/flow/show).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from store.queries import Connection, query
from store.rows import CardRow, Row

_TRY_LOCK = query("try_queue_lock")
_MEASURE = query("measure_lanes")
_ADMIT = query("admit_cards")
_WANT = query("want_queue_cards")
_READ = query("read_queue_cards")
_NEXT = query("list_next")


class Lane(Row):
    """The cards of one kind in one channel: how many wait, and how many places are taken."""

    channel: str
    kind: str
    waiting: int
    taken: int


class QueueCard(CardRow):
    """The card that stands for all that wait in its channel; it has no revisions but its first."""

    revision: int
    queue_count: int


class _Next(Row):
    draft_id: UUID


@dataclass(frozen=True, slots=True)
class Line:
    """Who is next in line: of which channel and kinds, for whom, after which draft (None: the first)."""

    channel: str
    kinds: Sequence[str]
    subject: str
    after: UUID | None = None


async def try_queue_lock(conn: Connection) -> bool:
    """Be the only one who gives out places in this transaction; False if another is at it."""
    return bool(await _TRY_LOCK.value(conn))


async def measure_lanes(conn: Connection) -> list[Lane]:
    """Count who waits and which places are taken, for lanes that somebody waits in."""
    return await _MEASURE.rows(conn, None, Lane)


async def admit_cards(conn: Connection, lane: Lane, *, most: int) -> int:
    """Give up to `most` places to those of a lane whose drafts expire first; give how many got one."""
    return await _ADMIT.run(conn, {"channel": lane.channel, "kind": lane.kind, "most": most})


async def want_queue_cards(conn: Connection, counts: Mapping[str, int]) -> int:
    """Have the queue cards say these numbers, and all others that nobody waits; give how many change."""
    params = {"channels": list(counts), "counts": list(counts.values())}
    return int(await _WANT.value(conn, params))


async def read_queue_cards(conn: Connection, channels: Sequence[str]) -> list[QueueCard]:
    """Read what the queue cards of these channels show."""
    return await _READ.rows(conn, {"channels": list(channels)}, QueueCard)


async def list_next(conn: Connection, line: Line, *, most: int) -> list[UUID]:
    """Give the drafts that are next in line for one person, who expires first in front."""
    params = {
        "channel": line.channel,
        "kinds": list(line.kinds),
        "subject": line.subject,
        "after": line.after,
        "most": most,
    }
    return [row.draft_id for row in await _NEXT.rows(conn, params, _Next)]
