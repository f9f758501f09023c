"""How many sends each lane may have open in this process: few where a target is slow or fails, else more.

Not here: which effects those are (store/outbox) or how long a lane's queue is.
"""

from dataclasses import dataclass, field
from typing import Final

from bot.policy.limits import (
    EFFECTS_IN_FLIGHT,
    LANE_LEAST_SLOTS,
    LANE_QUICK_SLOTS,
    LANE_SLOTS,
    LANE_STEADY_SLOTS,
    QUICK_SEND_SECONDS,
    SLOW_SEND_SECONDS,
)

MOST_REMEMBERED: Final = 10_000  # Lanes with a history; more means targets made up one by one.


@dataclass(slots=True)
class _Lane:
    bound: float = LANE_SLOTS
    in_flight: int = 0


@dataclass(slots=True)
class Lanes:
    """Open sends by lane. As in TCP's congestion window, a good answer adds one, a bad one takes half."""

    in_flight: int = 0
    _lanes: dict[int, _Lane] = field(default_factory=dict)

    def room(self) -> int:
        """How many sends may be opened in all."""
        return max(0, EFFECTS_IN_FLIGHT - self.in_flight)

    def slots(self) -> dict[int, int]:
        """How many each lane with a history may open; any other may open LANE_SLOTS."""
        return {name: max(0, int(lane.bound) - lane.in_flight) for name, lane in self._lanes.items()}

    def take(self, name: int) -> None:
        """Count one claimed effect."""
        self._lanes.setdefault(name, _Lane()).in_flight += 1
        self.in_flight += 1

    def judge(self, name: int, *, is_good: bool, seconds: float) -> None:
        """Learn from one answer and how long it took."""
        lane = self._lanes.setdefault(name, _Lane())
        if not is_good or seconds > SLOW_SEND_SECONDS:
            lane.bound = max(float(LANE_LEAST_SLOTS), lane.bound / 2)
        elif seconds < QUICK_SEND_SECONDS:
            lane.bound = min(float(LANE_QUICK_SLOTS), lane.bound + 1)
        elif lane.bound < LANE_STEADY_SLOTS:
            lane.bound += 1

    def give_back(self, name: int) -> None:
        """Count one effect as over: recorded, released or lost."""
        self._lanes[name].in_flight -= 1
        self.in_flight -= 1
        if len(self._lanes) > MOST_REMEMBERED:
            self._lanes = {name: lane for name, lane in self._lanes.items() if lane.in_flight}
