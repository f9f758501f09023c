"""Outcomes that upstream executions wait for: each waiter's effect, put into the outbox once.

Not here: what ends a run, or the calls to the waiting executions (bot/connectors/resume).
"""

from collections.abc import Sequence
from uuid import UUID

import orjson

from store.queries import Connection, query
from store.rows import Row
from store.states import OUTCOMES

_HOLD = query("hold_ended_runs")
_ANNOUNCE = query("announce_outcomes")
_WORDS = orjson.dumps({str(state): word for state, word in OUTCOMES.items()}).decode()


class _RunId(Row):
    run_id: UUID


class _WaiterId(Row):
    waiter_id: UUID


async def hold_ended_runs(conn: Connection, *, most: int) -> list[UUID]:
    """Hold up to `most` runs that are over and have waiters who do not know it."""
    rows = await _HOLD.rows(conn, {"most": most}, _RunId)
    return [row.run_id for row in rows]


async def announce_outcomes(
    conn: Connection, run_ids: Sequence[UUID], *, answer_seconds: int, delay_seconds: float
) -> int:
    """Put a resume effect into the outbox for each waiter of these held runs; give how many those were.

    None is due before `delay_seconds` after our answer to whoever waits, and that came within
    `answer_seconds` of the waiter being noted.
    """
    params = {
        "run_ids": list(run_ids),
        "outcomes": _WORDS,
        "answer_seconds": answer_seconds,
        "delay_seconds": delay_seconds,
    }
    return len(await _ANNOUNCE.rows(conn, params, _WaiterId))
