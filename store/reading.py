"""What may be read from outside: one run with all that hangs on it, and how much is open.

Not here: whether the reader may (bot/doors/runs) or the figures of a week (store/metrics).
"""

from typing import Any
from uuid import UUID

from store.queries import Connection, query
from store.rows import Row
from store.states import RunState

_READ = query("read_run")
_EVENTS = query("count_events")
_OPEN = query("count_open_work")
_NEWEST = query("newest_migration")

Json = dict[str, Any]


class WholeRun(Row):
    """A run with its draft, revisions, decisions, effects and record, as JSON values of one moment."""

    state: RunState
    idempotency_key: str
    run: Json
    draft: Json | None
    revisions: list[Json]
    decisions: list[Json]
    effects: list[Json]
    audit: list[Json]


class EventCount(Row):
    """How many arrivals of a source and kind got one answer."""

    source: str
    kind: str
    status: str
    n: int


class OpenWork(Row):
    """How many effects, drafts or runs of a kind stand in an open state, and how long the oldest has."""

    thing: str
    state: str
    kind: str
    n: int
    oldest_seconds: float | None


async def read_run(
    conn: Connection, *, source: str, run_id: UUID | None = None, key: str | None = None
) -> WholeRun | None:
    """Read one run of that source by its id or its idempotency key; None if the source has no such run."""
    return await _READ.maybe(conn, {"source": source, "run_id": run_id, "key": key}, WholeRun)


async def count_events(conn: Connection) -> list[EventCount]:
    """Read the counters of all days kept, added up."""
    return await _EVENTS.rows(conn, None, EventCount)


async def count_open_work(conn: Connection) -> list[OpenWork]:
    """Count what is open; the cost does not grow with what is finished."""
    return await _OPEN.rows(conn, None, OpenWork)


async def newest_migration(conn: Connection) -> int:
    """Read the number of the newest migration applied; 0 on an empty ledger."""
    return int(await _NEWEST.value(conn) or 0)
