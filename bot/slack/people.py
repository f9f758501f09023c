"""Who a person is and who stands in a user group, asked of Slack and remembered for less than a minute.

Whether that person may decide is judged in `bot/policy/people`; an answer that cannot be read means unknown.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar

from bot.policy.elapsed import elapsed_seconds
from bot.policy.people import Person
from bot.slack.answer import SlackOk
from bot.slack.client import SlackClient
from store.database import outside_transaction

# SPEC section 8: never older than 60 s when a decision is taken; the decision itself may take 2.5 s, so an
# answer is used only up to the 57th second, counted from the moment it was asked for.
FRESH_SECONDS: Final = 57.0
LOOK_UP_SECONDS: Final = 1.2  # About half of the 2.5 s that a decision has in all.
REMEMBERED: Final = 2000  # People and groups each; about 1 MB. The longest unasked one leaves.

Value = TypeVar("Value")
SLACKBOT: Final = "USLACKBOT"  # `is_bot` is false for it (docs, user object).


class _Asked(Generic[Value]):
    """Answers by key. Look-ups of one key that come together share one; None is never remembered."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: OrderedDict[Hashable, tuple[float, Value]] = OrderedDict()
        self._running: dict[Hashable, asyncio.Task[Value | None]] = {}

    def last(self, key: Hashable) -> Value | None:
        """The last answer, however old; nothing that matters may rest on it."""
        kept = self._known.get(key)
        return kept[1] if kept is not None else None

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[Value | None]]) -> Value | None:
        kept = self._known.get(key)
        if kept is not None and self._clock() - kept[0] < FRESH_SECONDS:
            self._known.move_to_end(key)
            return kept[1]
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(self._ask(key, ask))
            self._running[key] = task
        # Whoever gives up waiting (Slack cut the line) must not end the look-up of the others.
        return await asyncio.shield(task)

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[Value | None]]) -> Value | None:
        asked_at = self._clock()
        try:
            value = await ask()
        finally:
            del self._running[key]
        if value is None:
            self._known.pop(key, None)
            return None
        self._known[key] = (asked_at, value)
        self._known.move_to_end(key)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return value


class People:
    """Looks people and groups up, within LOOK_UP_SECONDS each, and never says more than Slack said.

    Every method raises NetworkInTransaction inside a database transaction, even if the answer is remembered:
    whether it is must not decide whether a mistake shows.
    """

    def __init__(
        self,
        client: SlackClient,
        *,
        clock: Callable[[], float] = elapsed_seconds,
        look_up_seconds: float = LOOK_UP_SECONDS,
    ) -> None:
        self._client = client.within(look_up_seconds)
        self._people: _Asked[Person] = _Asked(clock)
        self._groups: _Asked[frozenset[str]] = _Asked(clock)

    async def person(self, team_id: str | None, user_id: str) -> Person:
        """The account behind a click, `team_id` being the clicker's own team.

        Without a team, or if Slack does not answer, answers unreadably or knows the id in another team, the
        person's `known` is false.
        """
        outside_transaction()
        if not team_id:
            return unknown_person("", user_id)
        found = await self._people.get((team_id, user_id), lambda: self._ask_person(team_id, user_id))
        return found or unknown_person(team_id, user_id)

    def locale(self, team_id: str | None, user_id: str) -> str | None:
        """The locale that Slack told last of somebody, without asking; None if it has not."""
        person = self._people.last((team_id, user_id))
        return person.locale if person is not None else None

    async def members(self, group_ids: Iterable[str]) -> dict[str, frozenset[str] | None]:
        """The members of each group; None for a group that could not be read."""
        outside_transaction()
        wanted = sorted(set(group_ids))
        found = await asyncio.gather(*(self._members(group_id) for group_id in wanted))
        return dict(zip(wanted, found, strict=True))

    async def look_up(
        self, team_id: str | None, user_id: str, group_ids: Iterable[str]
    ) -> tuple[Person, dict[str, frozenset[str] | None]]:
        """Person and groups at the same time: all that one decision asks, in the time of one look-up."""
        return await asyncio.gather(self.person(team_id, user_id), self.members(group_ids))

    async def _ask_person(self, team_id: str, user_id: str) -> Person | None:
        answer = await self._client.user_info(user_id)
        return read_person(team_id, user_id, answer.data) if isinstance(answer, SlackOk) else None

    async def _members(self, group_id: str) -> frozenset[str] | None:
        return await self._groups.get(group_id, lambda: self._ask_members(group_id))

    async def _ask_members(self, group_id: str) -> frozenset[str] | None:
        answer = await self._client.group_members(group_id)
        return read_members(answer.data) if isinstance(answer, SlackOk) else None


def unknown_person(team_id: str, user_id: str) -> Person:
    """Somebody of whom nothing is known, and who therefore may do nothing."""
    return Person(
        team_id=team_id,
        user_id=user_id,
        enterprise_user_id=None,
        is_restricted=False,
        is_ultra_restricted=False,
        is_stranger=False,
        deleted=False,
        is_bot=False,
        known=False,
    )


def read_person(team_id: str, user_id: str, data: Mapping[str, Any]) -> Person | None:
    """Read users.info strictly; None if it is about another id or team, or a flag that decides is missing.

    Where a request does not say the person's own team (App Home), an account that Slack calls a stranger is
    one, though not in the team that was asked for.

    Slack leaves out `deleted` and `is_stranger` when they are false, and the guest flags of a deleted account
    (docs, user object); everything else must be there.
    """
    user = data.get("user")
    if not isinstance(user, Mapping):
        return None
    enterprise = user.get("enterprise_user")
    enterprise = enterprise if isinstance(enterprise, Mapping) else {}
    if user_id not in (user.get("id"), enterprise.get("id")):
        return None
    if team_id not in _teams(user, enterprise):
        stranger = user.get("is_stranger") is True
        return replace(unknown_person(team_id, user_id), is_stranger=True) if stranger else None
    deleted = user.get("deleted", False)
    unsaid = True if deleted is True else None
    flags = {name: user.get(name, unsaid) for name in ("is_restricted", "is_ultra_restricted", "is_bot")}
    flags |= {"deleted": deleted, "is_stranger": user.get("is_stranger", False)}
    if not all(isinstance(flag, bool) for flag in flags.values()):
        return None
    enterprise_id, locale = enterprise.get("id"), user.get("locale")
    return Person(
        team_id=team_id,
        user_id=user_id,
        enterprise_user_id=enterprise_id if isinstance(enterprise_id, str) else None,
        is_restricted=flags["is_restricted"],
        is_ultra_restricted=flags["is_ultra_restricted"],
        is_stranger=flags["is_stranger"],
        deleted=flags["deleted"],
        is_bot=flags["is_bot"] or user_id == SLACKBOT,
        known=True,
        locale=locale if isinstance(locale, str) else None,
    )


def read_members(data: Mapping[str, Any]) -> frozenset[str] | None:
    """Read usergroups.users.list; None if it is not a list of ids."""
    users = data.get("users")
    if not isinstance(users, list) or not all(isinstance(user, str) and user for user in users):
        return None
    return frozenset(users)


def _teams(user: Mapping[str, Any], enterprise: Mapping[str, Any]) -> set[str]:
    """The workspaces of an account; on Grid it has several."""
    teams = enterprise.get("teams")
    more = teams if isinstance(teams, list) else []
    return {team for team in (user.get("team_id"), *more) if isinstance(team, str)}
