"""Claims what is held to limits: one process at a time a kind, counted under the lock, in one transaction.

Not here: what fits (bot/policy/caps), sending (dispatch), or telling anybody (news).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bot.policy.caps import Candidate, Choice, Left, choose
from bot.policy.kinds import Policy
from bot.policy.limits import HELD_SECONDS, LOOK_AHEAD
from store import alerts, cards, limits, outbox
from store.database import Database
from store.limits import Departure, GuardedLane, HeldLimits, LaneUse, UsedRow
from store.outbox import Room
from store.queries import Connection
from store.rows import ClaimedRow

TRIAL_SLOTS: Final = 1  # One effect at a time asks a target that has rested.


@dataclass(frozen=True, slots=True)
class Turn:
    """What was claimed; whether more waits for a place, and in how many seconds a rate lets more out."""

    rows: list[ClaimedRow] = field(default_factory=list)
    is_cut: bool = False
    wait_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class _Held:
    """What this transaction holds, and how it stands."""

    lanes: list[GuardedLane]
    limits: Mapping[str, HeldLimits]
    used: Mapping[str, UsedRow]
    use: Mapping[int, LaneUse]


async def put_down(db: Database, policy: Policy) -> None:
    """Write the policy file's limits where every claim reads them; before that nothing is claimed.

    Raises:
        DatabaseAway: they may not be there.

    """
    limited = [name for name, kind in policy.kinds.items() if kind.limits != type(kind.limits)()]

    async def work(conn: Connection) -> None:
        if limited:
            await limits.write_limits(conn, [_row(policy, name) for name in sorted(limited)])
        await limits.drop_limits(conn, sorted(policy.kinds.keys() - set(limited)))

    await db.retrying(work)


def _row(policy: Policy, name: str) -> dict[str, Any]:
    given = policy.kinds[name].limits
    counts = given.model_dump(exclude={"value", "cap_value_day"}, by_alias=False)
    return {"kind": name, **counts, "value_path": given.value_path, "cap_value_day": given.value_cap}


async def claim_guarded(db: Database, owner: str, room: Room) -> Turn:
    """Claim what limits let out now, and trials of targets that have rested."""
    async with db.connection() as conn:
        found = await limits.find_guarded_lanes(conn, room.effect_types, enabled=room.enabled)
    if not found or room.most < 1:
        return Turn(is_cut=bool(found))
    async with db.transaction() as conn:
        return await _claim(conn, owner, room, found)


async def _claim(conn: Connection, owner: str, room: Room, found: Sequence[GuardedLane]) -> Turn:
    held = await _hold(conn, found)
    slots = {one.lane: _slots(one, held, room) for one in held.lanes}
    if not any(slots.values()):
        return Turn(is_cut=bool(slots), wait_seconds=_wait_seconds(held, {}))
    most = {one.lane: _look_at(one, slots[one.lane], held) for one in held.lanes}
    picked = await limits.pick_effects(
        conn,
        most,
        list(held.limits),
        ours={one.lane for one in held.lanes if room.has(one.kind)},
        kind_gone_seconds=room.kind_gone_seconds,
    )
    candidates = [Candidate(**row.model_dump()) for row in picked]
    choice = choose(
        candidates, {kind: _left(one, held.used[kind]) for kind, one in held.limits.items()}, slots
    )
    rows = await _take(conn, owner, room, choice.chosen[: room.most], held)
    await _say(conn, choice, held, {one.kind for one in held.lanes if slots[one.lane]})
    taken = Counter(row.lane for row in rows)
    is_cut = bool(choice.cut) or any(taken[lane] >= n for lane, n in slots.items())
    return Turn(rows, is_cut=is_cut, wait_seconds=_wait_seconds(held, taken))


async def _hold(conn: Connection, found: Sequence[GuardedLane]) -> _Held:
    """Lock first, count in later statements: those see what whoever held the lock before us has done."""
    own = await limits.lock_limits(conn, sorted({one.kind for one in found if one.is_limited}))
    trials = await limits.lock_trials(conn, [one.lane for one in found if one.is_trial])
    lanes = [
        one
        for one in found
        if (one.kind in own or not one.is_limited) and (one.lane in trials or not one.is_trial)
    ]
    used = await limits.measure_kinds(conn, list(own)) if own else {}
    use = await limits.measure_sends(conn, [one.lane for one in lanes]) if lanes else {}
    return _Held(lanes, own, used, use)


def _slots(one: GuardedLane, held: _Held, room: Room) -> int:
    """How many effects of a lane may leave now, as far as the lane goes."""
    bounds = [room.lanes.get(one.lane, room.slots), room.most]
    if one.is_trial:
        bounds.append(TRIAL_SLOTS)
    if (given := held.limits.get(one.kind)) is not None:
        use = held.use[one.lane]
        pairs = (
            (given.concurrency, use.in_flight),
            (given.per_second, use.second),
            (given.per_minute, use.minute),
        )
        bounds += [most - used for most, used in pairs if most is not None]
    return max(0, min(bounds))


def _look_at(one: GuardedLane, slots: int, held: _Held) -> int:
    """How far to look: a value cap may have to pass some by."""
    given = held.limits.get(one.kind)
    picky = given is not None and given.cap_value_day is not None
    return max(slots, LOOK_AHEAD) if picky and slots else slots


def _left(given: HeldLimits, used: UsedRow) -> Left:
    return Left(
        hour=None if given.cap_hour is None else given.cap_hour - used.used_hour,
        day=None if given.cap_day is None else given.cap_day - used.used_day,
        value=None if given.cap_value_day is None else given.cap_value_day - used.used_value,
        value_most=given.cap_value_day,
    )


async def _take(
    conn: Connection, owner: str, room: Room, chosen: Sequence[Candidate], held: _Held
) -> list[ClaimedRow]:
    if not chosen:
        return []
    by_id = {one.effect_id: one for one in chosen}
    rows = await outbox.claim_effects(conn, owner, replace(room, most=0, chosen=list(by_id)))
    await limits.note_departures(
        conn,
        [
            Departure(row.effect_id, row.kind, row.lane, by_id[row.effect_id].value)
            for row in rows
            if row.kind in held.limits
        ],
    )
    trials = {one.lane for one in held.lanes if one.is_trial}
    if asking := [row.effect_id for row in rows if row.lane in trials]:
        await limits.begin_trial(conn, asking)
    return rows


async def _say(conn: Connection, choice: Choice, held: _Held, looked_at: set[str]) -> None:
    """Put down which caps hold effects back, and put off those that no window could let out."""
    for kind, given in held.limits.items():
        why = choice.full.get(kind)
        if kind in looked_at and (why is not None or given.full_why is not None):
            await limits.set_full(conn, kind, why)
    if not choice.held:
        return
    for row in await limits.hold_effects(conn, choice.held, wait_seconds=HELD_SECONDS):
        await cards.want_cards(conn, [row.draft_id])
        facts = {"key": row.idempotency_key, "kind": row.kind, "because": row.reason}
        key = f"limits_hold:{row.effect_id}:{row.reason}"
        await alerts.raise_alert(conn, key=key, name="limits_hold", facts=facts)


def _wait_seconds(held: _Held, taken: Mapping[int, int]) -> float | None:
    """When the first lane that a rate holds back may go on; others go on with an answer or at a poll."""
    waits = []
    for one in held.lanes:
        given, use = held.limits.get(one.kind), held.use[one.lane]
        if given is None:
            continue
        more = taken.get(one.lane, 0)
        pairs = ((given.per_second, use.second, use.second_in), (given.per_minute, use.minute, use.minute_in))
        spent = [wait for most, used, wait in pairs if most is not None and used + more >= most]
        if spent:
            waits.append(max(spent))
    return min(waits, default=None)
