"""Slack's own rate limits, as the stand-in enforces them: tiers a method, one post a second and channel.

How our side keeps below them is in `bot/slack/pace`, written apart on purpose: each checks the other.
"""

import math
from collections import deque
from typing import Final

MINUTE_SECONDS: Final = 60.0
# Calls a minute (docs, rate-limits and each method's page). auth.test: "hundreds a minute".
TIERS: Final = {
    "auth.test": 600,
    "chat.postMessage": 300,
    "chat.update": 50,
    "chat.delete": 50,
    "chat.postEphemeral": 100,
    "views.open": 100,
    "views.push": 100,
    "views.update": 100,
    "views.publish": 100,
    "users.info": 100,
    "usergroups.list": 20,
    "usergroups.users.list": 20,
    "conversations.info": 50,
    "conversations.history": 50,
    "conversations.replies": 50,
    "conversations.members": 100,
    "conversations.open": 50,
}
POSTS_AT_ONCE: Final = 3  # "Short bursts are allowed": two posts a second apart may arrive 900 ms apart.
POSTS_IN_SECONDS: Final = 3.0


class Rates:
    """Counts what was let through in the last minute. `factor` widens all limits; None lifts them."""

    def __init__(self, factor: float | None = 1.0) -> None:
        self.factor = factor
        self._passed: dict[tuple[str, str], deque[float]] = {}

    def refuse(self, method: str, channel: str | None, now: float) -> int:
        """Seconds for `Retry-After`, or 0 and the call is counted."""
        if self.factor is None:
            return 0
        windows = [(method, "", int(TIERS.get(method, 20) * self.factor), MINUTE_SECONDS)]
        if method == "chat.postMessage" and channel:
            windows.append((method, channel, int(POSTS_AT_ONCE * self.factor), POSTS_IN_SECONDS))
        waits = [self._wait(name, where, allowed, now - seconds) for name, where, allowed, seconds in windows]
        if any(waits):
            return max(1, math.ceil(max(waits)))
        for name, where, _, _ in windows:
            self._passed.setdefault((name, where), deque()).append(now)
        return 0

    def _wait(self, method: str, channel: str, allowed: int, since: float) -> float:
        passed = self._passed.get((method, channel), deque())
        while passed and passed[0] <= since:
            passed.popleft()
        return passed[0] - since if len(passed) >= max(1, allowed) else 0.0
