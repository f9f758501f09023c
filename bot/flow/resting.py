"""Learns from answers which targets are well: failures in a row let a target rest, an answer ends that.

Not here: claiming the trial of a target that has rested (guarding), or telling people (news).
"""

from collections.abc import Sequence
from typing import Final

from bot.contracts.outcome import NotSent, SendOutcome, Sent, Unknown
from bot.policy.limits import BREAKER_AFTER, BREAKER_REST_MOST_SECONDS, BREAKER_REST_SECONDS
from store import targets
from store.queries import Connection
from store.rows import ClaimedRow
from store.targets import Breaker, Failures

BREAKER: Final = Breaker(BREAKER_AFTER, BREAKER_REST_SECONDS, BREAKER_REST_MOST_SECONDS)

_RESUME: Final = "resume"  # One lane for many waiting executions, each at an address of its own.


def _failures(lane: int, some: Sequence[ClaimedRow]) -> Failures:
    one = some[0]
    return Failures(lane, one.kind, one.effect_type, one.target, tuple(each.effect_id for each in some))


async def note(conn: Connection, answers: Sequence[tuple[ClaimedRow, SendOutcome]]) -> set[int]:
    """Count what a batch of answers says of its targets; gives the lanes among them whose targets rest now.

    Failures are counted in the order of the answers, over all processes: whatever else a target answers,
    a refusal of one effect included, ends the row.
    """
    failed: dict[int, list[ClaimedRow]] = {}
    well: set[int] = set()
    for effect, outcome in answers:
        if effect.effect_type == _RESUME or not (isinstance(outcome, Sent) or outcome.asked):
            continue
        if isinstance(outcome, NotSent | Unknown):
            failed.setdefault(effect.lane, []).append(effect)
        else:
            well.add(effect.lane)
            failed.pop(effect.lane, None)
    if failed:
        await targets.lock_targets(conn, sorted(well | failed.keys()))
    if well:
        await targets.forget_failures(conn, sorted(well))
    if not failed:
        return set()
    found = [_failures(lane, some) for lane, some in sorted(failed.items())]
    return await targets.count_failures(conn, found, BREAKER)
