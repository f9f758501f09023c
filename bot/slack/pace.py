"""How fast calls to Slack may follow each other: arithmetic over a clock that the caller brings.

Nothing here waits or calls: a worker asks `take`, and goes on with other work when the answer is not yet.
"""

from dataclasses import dataclass
from typing import Final

from bot.slack.answer import SlackAnswer, SlackLimited

MINUTE_SECONDS: Final = 60.0
REMEMBERED: Final = 4096  # Keys kept before those that no longer hold anybody back are dropped: about 1 MB.


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `per_minute` calls in any minute, `burst` of them at once, in all or for each channel."""

    per_minute: int
    burst: int
    by_channel: bool = False

    @property
    def interval_seconds(self) -> float:
        """Between two calls of a steady stream, so that a burst before it still fits into the minute."""
        return MINUTE_SECONDS / (self.per_minute - self.burst if self.burst > 1 else self.per_minute)


# Slack's tiers, calls a minute for each method, workspace and app (docs, rate-limits).
TIER_2: Final = Limit(per_minute=20, burst=5)
TIER_3: Final = Limit(per_minute=50, burst=10)
TIER_4: Final = Limit(per_minute=100, burst=20)
# One message a second and channel, "several hundred a minute" in all (docs, chat.postMessage): 200 is the
# cautious reading of several hundred.
POST: Final = (Limit(per_minute=60, burst=1, by_channel=True), Limit(per_minute=200, burst=20))

LIMITS: Final[dict[str, tuple[Limit, ...]]] = {
    "chat.postMessage": POST,
    "chat.update": (TIER_3,),
    "chat.postEphemeral": (TIER_4,),
    "conversations.history": (TIER_3,),
    "conversations.replies": (TIER_3,),
    "conversations.info": (TIER_3,),
    "conversations.open": (TIER_3,),
    "views.open": (TIER_4,),
    "views.push": (TIER_4,),
    "views.update": (TIER_4,),
    "views.publish": (TIER_4,),
    "users.info": (TIER_4,),
    "usergroups.list": (TIER_2,),
    "usergroups.users.list": (TIER_2,),
}

Key = tuple[str, str | None]


class Pace:
    """The limits of one workspace. Times are seconds of any monotonic clock, always the same one."""

    def __init__(self, limits: dict[str, tuple[Limit, ...]] | None = None) -> None:
        self._limits = LIMITS if limits is None else limits
        self._next: dict[tuple[str, str | None, int], float] = {}
        self._held_until: dict[Key, float] = {}

    def wait_seconds(self, method: str, *, channel: str | None = None, now: float) -> float:
        """Seconds until this call may be made; 0.0 is now. Spends nothing."""
        waits = [self._held(method, channel) - now]
        for key, limit in self._keys(method, channel):
            waits.append(self._next.get(key, now) - (limit.burst - 1) * limit.interval_seconds - now)
        return max(0.0, *waits)

    def take(self, method: str, *, channel: str | None = None, now: float) -> float:
        """Spend one call and return 0.0; or spend nothing and return the seconds to wait."""
        wait = self.wait_seconds(method, channel=channel, now=now)
        if wait > 0:
            return wait
        for key, limit in self._keys(method, channel):
            self._next[key] = max(self._next.get(key, now), now) + limit.interval_seconds
        self._forget(now)
        return 0.0

    def hold(self, method: str, *, channel: str | None = None, now: float, seconds: float) -> None:
        """Slack said Retry-After: nothing more before so many seconds.

        A method counted by channel holds that channel; when a second one is held at the same time, the limit
        is the workspace's, and the whole method is held.
        """
        until = now + seconds
        if not self._by_channel(method) or channel is None or self._another_is_held(method, channel, now):
            self._extend((method, None), until)
        if channel is not None and self._by_channel(method):
            self._extend((method, channel), until)

    def heard(
        self, method: str, answer: SlackAnswer, *, channel: str | None = None, now: float
    ) -> SlackAnswer:
        """Take note of an answer, and hand it on."""
        if isinstance(answer, SlackLimited):
            self.hold(method, channel=channel, now=now, seconds=answer.retry_after_seconds)
        return answer

    def _keys(self, method: str, channel: str | None) -> list[tuple[tuple[str, str | None, int], Limit]]:
        limits = self._limits.get(method, (TIER_2,))
        return [
            ((method, channel if limit.by_channel else None, number), limit)
            for number, limit in enumerate(limits)
            if channel is not None or not limit.by_channel
        ]

    def _by_channel(self, method: str) -> bool:
        return any(limit.by_channel for limit in self._limits.get(method, ()))

    def _held(self, method: str, channel: str | None) -> float:
        return max(self._held_until.get(key, float("-inf")) for key in ((method, None), (method, channel)))

    def _another_is_held(self, method: str, channel: str, now: float) -> bool:
        return any(
            name == method and other not in (None, channel) and until > now
            for (name, other), until in self._held_until.items()
        )

    def _extend(self, key: Key, until: float) -> None:
        self._held_until[key] = max(until, self._held_until.get(key, until))

    def _forget(self, now: float) -> None:
        """Keys whose time has passed hold nobody back."""
        if len(self._next) > REMEMBERED:
            self._next = {key: at for key, at in self._next.items() if at > now}
        if len(self._held_until) > REMEMBERED:
            self._held_until = {key: at for key, at in self._held_until.items() if at > now}
