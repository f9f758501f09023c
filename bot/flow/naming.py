"""People's names for the cards, so that a card names them without pinging them.

Ground of show. Not here: whether somebody may decide, which never hangs on a name (bot/slack/people).
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from typing import Final

from bot.slack.answer import SlackOk
from bot.slack.client import SlackClient
from bot.slack.pace import Pace

KNOWN_SECONDS: Final = 3600.0  # Names change seldom; a card may call somebody by an hour-old one.
UNKNOWN_SECONDS: Final = 300.0  # Not to be asked for with every card while Slack does not answer.
LOOK_UP_SECONDS: Final = 2.0  # A card does not wait long for a name: an id tells who it is, too.
REMEMBERED: Final = 2000  # Far more people than decide in one workspace.
METHOD: Final = "users.info"

_USER: Final = re.compile(r"[UW][A-Z0-9]{1,20}")


class Names:
    """Names of accounts, looked up within Slack's limits and remembered for an hour."""

    def __init__(
        self, client: SlackClient, pace: Pace, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client.within(LOOK_UP_SECONDS)
        self._pace = pace
        self._clock = clock
        self._known: dict[str, tuple[float, str | None]] = {}

    async def of(self, ids: Iterable[str]) -> dict[str, str]:
        """Give the names of these accounts; whoever has none, or is no account, is left out.

        Raises NetworkInTransaction inside a database transaction.
        """
        wanted = sorted({one for one in ids if _USER.fullmatch(one)})
        await asyncio.gather(*(self._look_up(one) for one in wanted if self._is_due(one)))
        found = {one: self._known[one][1] for one in wanted if one in self._known}
        return {one: name for one, name in found.items() if name}

    def _is_due(self, user: str) -> bool:
        until, _ = self._known.get(user, (float("-inf"), None))
        return self._clock() >= until

    async def _look_up(self, user: str) -> None:
        if self._pace.take(METHOD, now=self._clock()) > 0:
            return
        answer = self._pace.heard(METHOD, await self._client.user_info(user), now=self._clock())
        name = _name(answer.data.get("user")) if isinstance(answer, SlackOk) else None
        if name is None and user in self._known:
            name = self._known[user][1]  # An old name is better than none.
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[user] = (self._clock() + (KNOWN_SECONDS if name else UNKNOWN_SECONDS), name)


def _name(user: object) -> str | None:
    if not isinstance(user, dict):
        return None
    for key in ("real_name", "name"):
        if isinstance(user.get(key), str) and user[key].strip():
            return str(user[key]).strip()
    return None
