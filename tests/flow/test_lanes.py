"""How many sends a lane may have open.

Not here: which effects fill them (tests/store/test_outbox).
"""

from bot.flow.lanes import Lanes
from bot.policy.limits import (
    EFFECTS_IN_FLIGHT,
    LANE_LEAST_SLOTS,
    LANE_QUICK_SLOTS,
    LANE_SLOTS,
    LANE_STEADY_SLOTS,
)

LANE = 7


def bound_after(count: int, seconds: float, *, is_good: bool = True) -> int:
    lanes = Lanes()
    for _ in range(count):
        lanes.judge(LANE, is_good=is_good, seconds=seconds)
    return lanes.slots()[LANE]


# A healthy target gets more, one that answers at once much more, a slow or failing one few but never none.
def test_bounds() -> None:
    assert bound_after(1000, 0.1) == LANE_STEADY_SLOTS
    assert bound_after(1000, 0.001) == LANE_QUICK_SLOTS
    assert bound_after(1000, 5.0) == LANE_LEAST_SLOTS
    assert bound_after(1000, 0.1, is_good=False) == LANE_LEAST_SLOTS
    assert LANE_LEAST_SLOTS < LANE_SLOTS


# What is open takes slots and room, and gives them back.
def test_slots_and_room() -> None:
    lanes = Lanes()
    for _ in range(3):
        lanes.take(LANE)
    assert (lanes.slots()[LANE], lanes.room()) == (LANE_SLOTS - 3, EFFECTS_IN_FLIGHT - 3)
    for _ in range(3):
        lanes.give_back(LANE)
    assert (lanes.slots()[LANE], lanes.room()) == (LANE_SLOTS, EFFECTS_IN_FLIGHT)
