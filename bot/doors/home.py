"""App Home: somebody opened it, turned a page or pressed a button on it, so it is drawn again.

Not here: drawing and publishing (bot/flow/home) or what a decision's button does (buttons).
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from bot.cards.home import page_of_action
from bot.cards.notices import Notice, Refusal, refused, render
from bot.contracts.click import Surface
from bot.doors.callers import Callers
from bot.doors.payloads import Caller, Press
from bot.doors.whispers import Whispers
from bot.flow.home import Homes, Standing
from bot.policy.people import NotAllowed, Person
from bot.slack.client import SlackClient
from store.errors import DatabaseAway

FIRST: Final = 1

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Home:
    """What the door needs; `press` does what any other button asks for."""

    homes: Homes
    whispers: Whispers
    slack: SlackClient
    press: Callable[[Press], Awaitable[None]]
    language: str = "en"


async def visit(deps: Home, caller: Caller, page: int | None = FIRST) -> None:
    """Draw the Home of one person anew; events that Slack repeats do no harm."""
    try:
        await deps.homes.show(caller.team_id, caller.user_id, page)
    except DatabaseAway:
        notice = refused(Refusal.AWAY, language=deps.language)
        await deps.slack.publish_home(caller.user_id, {"type": "home", "blocks": render(notice)})


async def say(homes: Homes, slack: SlackClient, caller: Caller, notice: Notice) -> None:
    """Say something on the Home of one person, where no window could."""
    try:
        await homes.say(caller.team_id, caller.user_id, notice)
    except DatabaseAway:
        await slack.publish_home(caller.user_id, {"type": "home", "blocks": render(notice)})


async def press(deps: Home, pressed: Press) -> None:
    """Turn the Home's pages; whatever else is pressed on it changes it, so it is drawn again after that."""
    if pressed.surface is not Surface.HOME:
        return await deps.press(pressed)
    page = page_of_action(pressed.action_id)
    if page is None:
        await deps.press(pressed)
    return deps.whispers.later(visit(deps, pressed.place.caller, page))


async def find_standing(callers: Callers, team_id: str, user_id: str) -> Standing | NotAllowed:
    """Who somebody is to us now; whatever is unknown means no."""
    caller = Caller(team_id, user_id)
    person = await callers.member(caller)
    if isinstance(person, NotAllowed):
        return person
    is_admin = isinstance(await callers.admin(caller), Person)
    reviewed = await callers.kinds_of(person)
    return Standing(person, reviewed.kinds, is_admin, reviewed.is_whole)
