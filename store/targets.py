"""Targets that fail: how often in a row over all processes, and which of them rest.

Not here: what counts as a failure (bot/flow/settle) or the claim of a trial (store/limits).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import orjson

from store.queries import Connection, query
from store.rows import Row

_LOCK = query("lock_targets")
_FORGET = query("forget_failures")
_COUNT = query("count_failures")
_REST = query("rest_targets")
_RESTING = query("list_resting")
_UNTOLD = query("take_untold_targets")
_LIST = query("list_resting_targets")
_WANT = query("want_lane_cards")


@dataclass(frozen=True, slots=True)
class Failures:
    """How often one lane's target failed in a row in a batch of answers, and the effects that told."""

    lane: int
    kind: str
    effect_type: str
    target: str
    effect_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Breaker:
    """What holds for kinds without limits of their own."""

    after: int
    rest_seconds: int
    rest_most_seconds: int


class RestingTarget(Row):
    """A target that is left in peace."""

    kind: str
    effect_type: str
    target: str
    opened_at: datetime
    rests_until: datetime


class TargetNews(Row):
    """A target that rests, or (without times) that does not any more."""

    lane: int
    kind: str
    effect_type: str
    target: str
    failures: int
    opened_at: datetime | None
    rests_until: datetime | None
    trials: int


class _Lane(Row):
    lane: int


async def lock_targets(conn: Connection, lanes: Sequence[int]) -> None:
    """Hold what is known of these targets, for a batch that tells good and bad of several."""
    await _LOCK.rows(conn, {"lanes": list(lanes)}, _Lane)


async def forget_failures(conn: Connection, lanes: Sequence[int]) -> None:
    """Note that these targets answer."""
    await _FORGET.run(conn, {"lanes": sorted(lanes)})


async def count_failures(conn: Connection, failed: Sequence[Failures], breaker: Breaker) -> set[int]:
    """Note failures, let targets rest that failed too often; gives those of these lanes that rest now."""
    rows = [
        {
            "lane": one.lane,
            "kind": one.kind,
            "effect_type": one.effect_type,
            "target": one.target,
            "failures": len(one.effect_ids),
        }
        for one in failed
    ]
    lanes = [one.lane for one in failed]
    await _COUNT.run(conn, {"failed": orjson.dumps(rows).decode()})
    await _REST.run(
        conn,
        {
            "lanes": lanes,
            "kinds": [one.kind for one in failed],
            "failed_ids": [effect_id for one in failed for effect_id in one.effect_ids],
            "after": breaker.after,
            "rest_seconds": breaker.rest_seconds,
            "rest_most_seconds": breaker.rest_most_seconds,
        },
    )
    return {row.lane for row in await _RESTING.rows(conn, {"lanes": lanes}, _Lane)}


async def take_untold_targets(conn: Connection) -> list[TargetNews]:
    """Take the news about targets, to be told in the same transaction."""
    return await _UNTOLD.rows(conn, None, TargetNews)


async def list_resting_targets(conn: Connection) -> list[RestingTarget]:
    """Give the targets that rest."""
    return await _LIST.rows(conn, None, RestingTarget)


async def want_lane_cards(conn: Connection, *, lanes: Sequence[int] = (), kinds: Sequence[str] = ()) -> None:
    """Ask for the cards of all drafts whose effects wait in these lanes or are of these kinds."""
    await _WANT.run(conn, {"lanes": list(lanes), "kinds": list(kinds)})
