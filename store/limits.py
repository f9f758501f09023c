"""Limits of what leaves: written at the start, held and measured by whoever claims a limited kind.

Not here: what fits (bot/policy/caps), targets that fail (store/targets), or the claim itself (store/outbox).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from store.queries import Connection, query
from store.rows import Row

_WRITE = query("write_limits")
_DROP = query("drop_limits")
_LANES = query("find_guarded_lanes")
_LOCK = query("lock_limits")
_LOCK_TRIALS = query("lock_trials")
_KINDS = query("measure_kinds")
_SENDS = query("measure_sends")
_PICK = query("pick_effects")
_NOTE = query("note_departures")
_TRIAL = query("begin_trial")
_SET_FULL = query("set_full")
_HOLD = query("hold_effects")
_FORGET = query("forget_departures")
_UNTOLD = query("take_untold_kinds")
_LIST = query("list_limits")


class GuardedLane(Row):
    """A lane with waiting effects that is claimed under locks: of a limited kind, or with a rested target."""

    lane: int
    kind: str
    is_trial: bool
    is_limited: bool


class HeldLimits(Row):
    """The limits of a kind that we hold until the transaction ends."""

    kind: str
    concurrency: int | None
    per_second: int | None
    per_minute: int | None
    cap_hour: int | None
    cap_day: int | None
    cap_value_day: Decimal | None
    full_until: datetime | None
    full_why: str | None


class UsedRow(Row):
    """What is used of a kind's caps in this hour and day (UTC), and when those end."""

    kind: str
    used_hour: int
    used_day: int
    used_value: Decimal
    day_seconds: float
    hour_seconds: float


class LaneUse(Row):
    """What a lane has under way, and what it took lately."""

    lane: int
    in_flight: int
    second: int
    minute: int
    second_in: float
    minute_in: float


class PickedRow(Row):
    """A due effect of a limited kind or of a target in trial."""

    effect_id: UUID
    idempotency_key: str
    kind: str
    lane: int
    value: Decimal | None
    is_counted: bool
    holds_hour: bool
    holds_day: bool


class HeldRow(Row):
    """An effect that was put off because it fits into no window."""

    effect_id: UUID
    idempotency_key: str
    draft_id: UUID
    kind: str
    reason: str


class FullKind(Row):
    """A kind whose cap began (or, without a time, ended) to hold back effects."""

    kind: str
    full_until: datetime | None
    full_why: str | None


class LimitsRow(Row):
    """The caps of one kind; `is_full`: `full_until` has not come."""

    kind: str
    cap_hour: int | None
    cap_day: int | None
    cap_value_day: Decimal | None
    full_until: datetime | None
    full_why: str | None
    is_full: bool


class _Lane(Row):
    lane: int


@dataclass(frozen=True, slots=True)
class Departure:
    """A share that is taken."""

    effect_id: UUID
    kind: str
    lane: int
    value: Decimal | None


async def write_limits(conn: Connection, limits: Sequence[Mapping[str, Any]]) -> None:
    """Put down limits, a mapping of the table's columns for each kind."""
    await _WRITE.run(conn, {"limits": orjson.dumps(list(limits), default=str).decode()})


async def drop_limits(conn: Connection, kinds: Sequence[str]) -> None:
    """Forget the limits of kinds that have none any more."""
    await _DROP.run(conn, {"kinds": list(kinds)})


async def find_guarded_lanes(
    conn: Connection, effect_types: Sequence[str], *, enabled: bool
) -> list[GuardedLane]:
    """Give the lanes that claims pass by though something waits in them; none costs one look."""
    params = {"effect_types": list(effect_types), "enabled": enabled}
    return await _LANES.rows(conn, params, GuardedLane)


async def lock_limits(conn: Connection, kinds: Sequence[str]) -> dict[str, HeldLimits]:
    """Hold the limits of those kinds that nobody else holds."""
    return {row.kind: row for row in await _LOCK.rows(conn, {"kinds": list(kinds)}, HeldLimits)}


async def lock_trials(conn: Connection, lanes: Sequence[int]) -> set[int]:
    """Hold those targets that have rested and that nobody else holds."""
    return {row.lane for row in await _LOCK_TRIALS.rows(conn, {"lanes": list(lanes)}, _Lane)}


async def measure_kinds(conn: Connection, kinds: Sequence[str]) -> dict[str, UsedRow]:
    """Count the shares of kinds; exact only in a statement after `lock_limits`."""
    return {row.kind: row for row in await _KINDS.rows(conn, {"kinds": list(kinds)}, UsedRow)}


async def measure_sends(conn: Connection, lanes: Sequence[int]) -> dict[int, LaneUse]:
    """Count what lanes have under way and took lately; exact as above."""
    return {row.lane: row for row in await _SENDS.rows(conn, {"lanes": list(lanes)}, LaneUse)}


async def pick_effects(
    conn: Connection,
    most: Mapping[int, int],
    kinds: Sequence[str],
    *,
    ours: Collection[int],
    kind_gone_seconds: float,
) -> list[PickedRow]:
    """Look at the due effects of lanes that are held, at most so many a lane; nothing is taken by it.

    In other lanes than `ours` only at those that have been due for `kind_gone_seconds`.
    """
    params = {
        "lanes": list(most.keys()),
        "most": list(most.values()),
        "ours": [lane in ours for lane in most],
        "kinds": list(kinds),
        "kind_gone_seconds": kind_gone_seconds,
    }
    return await _PICK.rows(conn, params, PickedRow)


async def note_departures(conn: Connection, taken: Sequence[Departure]) -> None:
    """Count what was claimed, in the transaction of the claim."""
    await _NOTE.run(
        conn,
        {
            "effect_ids": [one.effect_id for one in taken],
            "kinds": [one.kind for one in taken],
            "lanes": [one.lane for one in taken],
            "values": [one.value for one in taken],
        },
    )


async def begin_trial(conn: Connection, effect_ids: Sequence[UUID]) -> None:
    """Let claimed effects be the trials of their targets, which are held."""
    await _TRIAL.run(conn, {"effect_ids": list(effect_ids)})


async def set_full(conn: Connection, kind: str, why: str | None) -> None:
    """Say which cap holds a kind back, None for none any more."""
    await _SET_FULL.run(conn, {"kind": kind, "why": why})


async def hold_effects(conn: Connection, held: Mapping[UUID, str], *, wait_seconds: int) -> list[HeldRow]:
    """Put effects off that fit into no window, each for its reason."""
    rows = [{"effect_id": effect_id, "reason": reason} for effect_id, reason in held.items()]
    return await _HOLD.rows(
        conn, {"held": orjson.dumps(rows).decode(), "wait_seconds": wait_seconds}, HeldRow
    )


async def forget_departures(conn: Connection, *, most: int) -> int:
    """Remove what no window counts any more."""
    return await _FORGET.run(conn, {"most": most})


async def take_untold_kinds(conn: Connection) -> list[FullKind]:
    """Take the news about full kinds, to be told in the same transaction."""
    return await _UNTOLD.rows(conn, None, FullKind)


async def list_limits(conn: Connection) -> list[LimitsRow]:
    """Give the caps of every limited kind."""
    return await _LIST.rows(conn, None, LimitsRow)
