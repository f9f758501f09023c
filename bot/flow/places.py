"""Gives cards their places: at most `max_open_cards` of a kind are open in a channel, others wait in line.

Not here: drawing cards, the queue card among them (show), or opening the next draft in line (next).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from bot.policy.kinds import Kind
from bot.policy.limits import MAX_OPEN_CARDS
from store import queue
from store.database import Database


class Kinds(Protocol):
    """Today's policy (bot/wiring)."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds by name."""
        ...


@dataclass(frozen=True, slots=True)
class Placing:
    """What giving places needs."""

    db: Database
    policy: Kinds


async def run_once(deps: Placing) -> int:
    """Let cards in where places are free, oldest expiry first, and have the queue cards say who is left.

    Gives how many cards got a place or have to say another number. One process at a time counts, so that two
    never give the same place away; the other comes again.
    """
    left: Counter[str] = Counter()
    admitted = 0
    async with deps.db.transaction() as conn:
        if not await queue.try_queue_lock(conn):
            return 0
        for lane in await queue.measure_lanes(conn):
            free = max(0, places_of(deps.policy, lane.kind) - lane.taken)
            if free:
                admitted += await queue.admit_cards(conn, lane, most=free)
            left[lane.channel] += max(0, lane.waiting - free)
        changed = await queue.want_queue_cards(conn, +left)
    return admitted + changed


def places_of(policy: Kinds, name: str) -> int:
    """How many cards of a kind may be open in a channel; of a kind that left the policy, the default."""
    kind = policy.kinds.get(name)
    return MAX_OPEN_CARDS if kind is None else kind.max_open_cards
