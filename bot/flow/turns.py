"""Whose turn it is to call Slack for a card: the pace of its methods, with a time for each who has to wait.

Ground of show. Not here: Slack's limits themselves (bot/slack/pace).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from bot.slack.answer import SlackAnswer
from bot.slack.pace import Pace

POST: Final = "chat.postMessage"
UPDATE: Final = "chat.update"
HISTORY: Final = "conversations.history"

SPACING_SECONDS: Final = 1.5  # Between steady edits (tier 3): whose turn came too early would go last.
LONGEST_TURN_SECONDS: Final = 60.0  # Whoever waits longer asks again: things may have changed.


@dataclass(slots=True)
class Turns:
    """Who has to wait gets a time of their own, so that a thousand cards do not all ask every second."""

    pace: Pace
    clock: Callable[[], float]
    _next: dict[tuple[str, str], float] = field(default_factory=dict)

    def take(self, method: str, channel: str) -> float:
        """Spend one call and give 0.0; or give the seconds to wait, longer for each one that asks."""
        now = self.clock()
        wait = self.pace.take(method, channel=channel, now=now)
        if wait <= 0:
            return 0.0
        at = max(self._next.get((method, channel), now), now + wait)
        at = min(at, now + max(wait, LONGEST_TURN_SECONDS))
        self._next[method, channel] = at + SPACING_SECONDS
        return at - now

    def heard(self, method: str, channel: str, answer: SlackAnswer) -> SlackAnswer:
        """Take note of an answer, and hand it on."""
        return self.pace.heard(method, answer, channel=channel, now=self.clock())
