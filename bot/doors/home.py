"""App Home: what waits for the person who opened it.

Not here: buttons pressed on it (buttons), or finding what waits (commands, for /stet queue).
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.cards.answers import usage
from bot.cards.notices import Notice, Refusal, refused, render
from bot.doors.callers import Callers
from bot.doors.payloads import Caller
from bot.doors.whispers import word_of
from bot.policy.people import NotAllowed, Person
from bot.slack.answer import SlackOk
from bot.slack.client import SlackClient
from store.errors import DatabaseAway

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Home:
    """What the Home needs. `waiting` says what `/stet queue` says; it raises DatabaseAway."""

    callers: Callers
    waiting: Callable[[Person], Awaitable[Notice]]
    slack: SlackClient
    language: str = "en"


async def publish(deps: Home, caller: Caller) -> None:
    """Draw the Home of one person anew; events that Slack repeats do no harm."""
    notice = await _what_waits(deps, caller)
    answer = await deps.slack.publish_home(caller.user_id, {"type": "home", "blocks": render(notice)})
    if not isinstance(answer, SlackOk):
        log.warning("a Home could not be published", extra={"reason": word_of(answer)})


async def _what_waits(deps: Home, caller: Caller) -> Notice:
    person = await deps.callers.member(caller)
    if isinstance(person, NotAllowed):
        return usage("members_only", language=deps.language)
    try:
        return await deps.waiting(person)
    except DatabaseAway:
        return refused(Refusal.AWAY, language=deps.language)
