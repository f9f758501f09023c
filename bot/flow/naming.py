"""Names of people and user groups for the cards, so that a card names them without pinging them.

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
GROUPS_METHOD: Final = "usergroups.list"  # One call tells all of them.

_USER: Final = re.compile(r"[UW][A-Z0-9]{1,20}")
_GROUP: Final = re.compile(r"S[A-Z0-9]{1,20}")


class Names:
    """Names of accounts and user groups, looked up within Slack's limits and remembered for an hour."""

    def __init__(
        self, client: SlackClient, pace: Pace, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client.within(LOOK_UP_SECONDS)
        self._pace = pace
        self._clock = clock
        self._known: dict[str, tuple[float, str | None]] = {}
        self._groups: dict[str, str] = {}
        self._groups_until = float("-inf")

    async def of(self, ids: Iterable[str]) -> dict[str, str]:
        """Give the names of these accounts and groups; what has none, or is neither, is left out.

        Raises NetworkInTransaction inside a database transaction.
        """
        asked = set(ids)
        wanted = sorted(one for one in asked if _USER.fullmatch(one))
        groups = {one for one in asked if _GROUP.fullmatch(one)}
        await asyncio.gather(
            *(self._look_up(one) for one in wanted if self._is_due(one)), self._look_up_groups(groups)
        )
        found = {one: self._known[one][1] for one in wanted if one in self._known}
        named = {one: self._groups[one] for one in groups if one in self._groups}
        return named | {one: name for one, name in found.items() if name}

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

    async def _look_up_groups(self, wanted: set[str]) -> None:
        """Ask for all of them at once; while a wanted one is not there, again after some minutes."""
        now = self._clock()
        if not wanted or now < self._groups_until or self._pace.take(GROUPS_METHOD, now=now) > 0:
            return
        answer = self._pace.heard(GROUPS_METHOD, await self._client.groups(), now=self._clock())
        found = _groups(answer.data.get("usergroups")) if isinstance(answer, SlackOk) else {}
        self._groups = found or self._groups  # Old names are better than none.
        known = wanted <= found.keys()
        self._groups_until = self._clock() + (KNOWN_SECONDS if known else UNKNOWN_SECONDS)


def _groups(rows: object) -> dict[str, str]:
    """The group's name rather than its handle: what looks like a mention might ping where it is parsed."""
    listed = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return {str(row["id"]): name for row in listed if "id" in row and (name := _first(row, "name", "handle"))}


def _name(user: object) -> str | None:
    return _first(user, "real_name", "name") if isinstance(user, dict) else None


def _first(row: dict[str, object], *keys: str) -> str | None:
    """The first of these that says something."""
    said = (value.strip() for key in keys if isinstance(value := row.get(key), str))
    return next(filter(None, said), None)
