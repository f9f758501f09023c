"""Events as they arrive: what is known of a key, the one insert that decides, what a newer event overtakes.

Not here: in which order this happens and what the sender is told (bot/flow/receive).
"""

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypedDict
from uuid import UUID

import orjson
import psycopg

from store.errors import LostRace, Unstorable
from store.ids import new_id
from store.queries import Connection, query
from store.rows import Row
from store.states import RunState

_FIND = query("find_runs")
_INSERT = query("insert_runs")
_RETIRE = query("retire_stale_runs")
_OVERTAKE = query("overtake")
_CLOSE_REDRAFTS = query("close_overtaken_redrafts")
_LOCK_EFFECTS = query("lock_unfinished_effects")
_OPEN = query("find_open_effects")
_CANCEL_EFFECTS = query("cancel_unstarted_effects")
_WITHDRAW = query("withdraw_runs")
_OUTDATE = query("outdate_equals")
_FIND_REPLACED = query("find_replaced")
_ADD_WAITERS = query("add_waiters")
_LOCK_RUN = query("lock_run_of_key")
_ADD_COUNTS = query("add_event_counts")
_ADD_REPEATS = query("add_repeats")


class NewRun(TypedDict):
    """One arrival as it will be stored; the names are the columns'.

    `salt` and `detail` are the first line of its record (store/audit.seal); `takes_from` is the final run
    whose place a correction of equal version may take.
    """

    run_id: UUID
    idempotency_key: str
    source: str
    kind: str
    event_key: str
    entity: str
    draft_key: str
    source_version: int
    payload_hash: str
    replaces: UUID | None
    takes_from: UUID | None
    payload: Mapping[str, Any]
    draft: Mapping[str, Any] | None
    record_url: str | None
    requested_by: str | None
    reason: str | None
    n8n_workflow: str | None
    n8n_execution: str | None
    workflow_version: str | None
    waiter_id: UUID | None
    resume_url: str | None
    url_hash: str | None
    salt: str
    detail: str


class KnownRun(Row):
    """What is known of a key; `revision` is the newest that this run's content made."""

    idempotency_key: str
    run_id: UUID
    payload_hash: str
    state: RunState
    draft_key: str
    was_stale: bool
    revision: int | None
    decided_by: str | None


class BornRun(Row):
    """A run that this call stored; whether it is the newest, and whether something older came."""

    run_id: UUID
    is_newest: bool
    is_later: bool


class Overtaken(Row):
    """A run that a newer event ended (no draft), or an open draft that it blocks, with that draft's run."""

    run_id: UUID
    idempotency_key: str
    draft_key: str
    draft_id: UUID | None
    draft_status: str | None


class ReplacedRun(Row):
    """The run that a correction names; unsettled while an effect of it is sending or unknown."""

    run_id: UUID
    entity: str
    state: RunState
    is_unsettled: bool


class OpenEffect(Row):
    """An effect that is not over; `is_part`: one of several of its draft."""

    effect_id: UUID
    run_id: UUID
    draft_id: UUID
    draft_key: str
    is_unknown: bool
    is_part: bool


class _EffectId(Row):
    effect_id: UUID


class _DraftId(Row):
    draft_id: UUID


class _RunId(Row):
    run_id: UUID


@asynccontextmanager
async def refusing_bad_values() -> AsyncIterator[None]:
    """Turn what the database says of a value it will never take into one exception.

    Raises:
        Unstorable: the value breaks a type or a constraint.

    """
    try:
        yield
    except (psycopg.DataError, psycopg.IntegrityError) as fault:
        raise Unstorable("the database refused a value") from fault


async def find_runs(conn: Connection, keys: Sequence[str]) -> dict[str, KnownRun]:
    """Read what is known of these keys; locks nothing."""
    rows = await _FIND.rows(conn, {"keys": list(keys)}, KnownRun)
    return {row.idempotency_key: row for row in rows}


async def insert_runs(conn: Connection, runs: Sequence[NewRun]) -> dict[UUID, BornRun]:
    """Store arrivals, each key and draft_key at most once a call; what is not given back was there before."""
    arrivals = orjson.dumps(runs).decode()
    rows = await _INSERT.rows(conn, {"arrivals": arrivals}, BornRun)
    return {row.run_id: row for row in rows}


async def retire_stale_runs(conn: Connection, run_ids: Sequence[UUID]) -> None:
    """End runs in the transaction of their birth: they were not newer than the newest."""
    await _RETIRE.run(conn, {"run_ids": list(run_ids)})


async def overtake(conn: Connection, newest: Mapping[str, UUID]) -> list[Overtaken]:
    """End older undrafted runs of these draft_keys and list the drafts that are now blocked.

    `newest` gives the run that holds each head; the heads are locked.
    """
    params = {"draft_keys": list(newest), "run_ids": list(newest.values())}
    return await _OVERTAKE.rows(conn, params, Overtaken)


async def close_overtaken_redrafts(conn: Connection, draft_ids: Sequence[UUID]) -> None:
    """End the open redrafts of drafts that a newer event blocks."""
    await _CLOSE_REDRAFTS.run(conn, {"draft_ids": list(draft_ids)})


class Keyed(Protocol):
    """Anything that knows its draft_key."""

    @property
    def draft_key(self) -> str:
        """Whose head is locked."""
        ...


async def lock_unfinished_effects(conn: Connection, blocked: Sequence[Keyed]) -> list[UUID]:
    """Hold the unfinished effects of these draft_keys; what is read after this neither starts nor ends."""
    keys = {"draft_keys": sorted({one.draft_key for one in blocked})}
    return [row.effect_id for row in await _LOCK_EFFECTS.rows(conn, keys, _EffectId)]


async def find_open_effects(conn: Connection, draft_keys: Sequence[str]) -> list[OpenEffect]:
    """Give the effects of these draft_keys that are not over, whatever their drafts are; heads are locked."""
    return await _OPEN.rows(conn, {"draft_keys": list(draft_keys)}, OpenEffect)


async def cancel_unstarted_effects(conn: Connection, blocked: Sequence[Overtaken]) -> list[UUID]:
    """Cancel the effects of approved drafts none of whose effects was started; give those drafts.

    The effects are locked.
    """
    rows = await _CANCEL_EFFECTS.rows(conn, {"draft_ids": [one.draft_id for one in blocked]}, _DraftId)
    return list(dict.fromkeys(row.draft_id for row in rows))


async def withdraw_runs(conn: Connection, run_ids: Sequence[UUID]) -> None:
    """Put approved runs back before their reviewers.

    Raises:
        LostRace: one of them is not approved any more.

    """
    rows = await _WITHDRAW.rows(conn, {"run_ids": list(run_ids)}, _RunId)
    if len(rows) != len(run_ids):
        raise LostRace(_WITHDRAW.name, _WITHDRAW.meaning)


async def outdate_equals(conn: Connection, draft_key: str, source_version: int) -> None:
    """Make what is open of a draft_key older than a correction of equal version; the head is locked."""
    await _OUTDATE.run(conn, {"draft_key": draft_key, "source_version": source_version})


async def find_replaced(conn: Connection, key: str) -> ReplacedRun | None:
    """Read the run that a correction names; None if there is none."""
    return await _FIND_REPLACED.maybe(conn, {"key": key}, ReplacedRun)


def url_hash(resume_url: str) -> str:
    """Name a resume URL without telling it: hex SHA-256."""
    return hashlib.sha256(resume_url.encode()).hexdigest()


async def add_waiters(conn: Connection, waiting: Sequence[tuple[UUID, str]]) -> int:
    """Note who else waits (run_id and resume URL); give the number of runs that have new ones."""
    return await _ADD_WAITERS.run(
        conn,
        {
            "waiter_ids": [new_id() for _ in waiting],
            "run_ids": [run_id for run_id, _ in waiting],
            "resume_urls": [url for _, url in waiting],
            "url_hashes": [url_hash(url) for _, url in waiting],
        },
    )


async def lock_run_of_key(conn: Connection, key: str) -> None:
    """Hold the run of one key, and with it the key's chain of the record."""
    await _LOCK_RUN.value(conn, {"key": key})


async def add_event_counts(conn: Connection, counts: Mapping[tuple[str, str, str], int]) -> None:
    """Add to today's counters; keys are source, kind and status."""
    await _ADD_COUNTS.run(
        conn,
        {
            "sources": [source for source, _, _ in counts],
            "kinds": [kind for _, kind, _ in counts],
            "statuses": [status for _, _, status in counts],
            "numbers": list(counts.values()),
        },
    )


async def add_repeats(conn: Connection, repeats: Mapping[str, Mapping[str, int]]) -> None:
    """Add to each key how often it came again, by status."""
    await _ADD_REPEATS.run(
        conn,
        {
            "keys": list(repeats),
            "duplicates": [counts.get("duplicate", 0) for counts in repeats.values()],
            "stales": [counts.get("stale", 0) for counts in repeats.values()],
            "conflicts": [counts.get("conflict", 0) for counts in repeats.values()],
        },
    )
