"""Wakes steps: in this process at once, in others by one coalesced NOTIFY.

Not here: the steps (bot/flow) and their clock (timer).
"""

from collections.abc import Callable, Iterable, Sequence

from bot.doors.timer import Timer
from store.wire import Wire


class Wakes:
    """What doors call when they made work for a step."""

    def __init__(self, timer: Timer, wire: Wire) -> None:
        self._timer = timer
        self._wire = wire

    def now(self, *names: str) -> None:
        """Run these steps at once here, and let idle processes elsewhere help."""
        self._timer.wake(*names)
        self._wire.say(names)

    def here(self, *names: str) -> None:
        """Run these steps at once in this process alone: others have not put anything off."""
        self._timer.wake(*names)


Heard = Callable[[Iterable[str]], None]


def hear_with(timer: Timer) -> Heard:
    """Give what the wire calls when another process has work."""

    def heard(names: Iterable[str]) -> None:
        known: Sequence[str] = list(names)
        timer.wake(*known)

    return heard
