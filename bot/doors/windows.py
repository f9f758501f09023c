"""Opens modals over what a person has before them, and says something there where no message can.

Not here: which modal (buttons), what it says (bot/cards), or the tokens in it (bot/flow/open).
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bot.cards import modals
from bot.cards.notices import Notice, Refusal, refused
from bot.contracts.click import Surface
from bot.doors.payloads import Caller, Press
from bot.doors.whispers import Whispers, word_of
from bot.slack.answer import SlackOk, SlackRefused
from bot.slack.client import SlackClient

OPEN_SECONDS: Final = 1.4  # The trigger lives 3 s, of which reading the draft has had its part.
# The guide and the method page spell them differently (docs, handling-user-interaction and views.open).
TRIGGER_GONE: Final = frozenset(
    {"expired_trigger_id", "trigger_expired", "exchanged_trigger_id", "trigger_exchanged"}
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Windows:
    """What showing windows needs."""

    slack: SlackClient
    whispers: Whispers
    at_home: Callable[[Caller, Notice], Awaitable[None]]
    language: str = "en"

    async def open(self, press: Press, modal: Mapping[str, Any]) -> None:
        """Show a modal: on top of the one the press came from, else as the first. Else the person is told."""
        hurried = self.slack.within(OPEN_SECONDS)
        call = hurried.push_view if press.surface is Surface.VIEW else hurried.open_view
        answer = await call(press.trigger_id, modal)
        if isinstance(answer, SlackOk):
            return
        word = word_of(answer)
        refusal = Refusal.CLICK_AGAIN
        if isinstance(answer, SlackRefused) and word not in TRIGGER_GONE:
            log.error("Slack refuses a window", extra={"reason": word, "action": press.action_id})
            refusal = Refusal.NO_WINDOW
        elif word not in TRIGGER_GONE:
            log.warning("a window could not be opened", extra={"reason": word})
        self.tell(press, refused(refusal, language=self.language))

    def turn(self, press: Press, modal: Mapping[str, Any]) -> None:
        """Put a modal in the place of the one the press came from, after Slack has had its answer."""
        self.whispers.later(self._turn(press, modal))

    def tell(self, press: Press, notice: Notice) -> None:
        """Say something to whoever pressed: beside a message, or in the modal itself."""
        match press.surface:
            case Surface.MESSAGE:
                self.whispers.tell(press.place, notice)
            case Surface.VIEW:
                self.turn(press, modals.tell(notice))
            case Surface.HOME:
                self.whispers.later(self._over_home(press, notice))

    async def _turn(self, press: Press, modal: Mapping[str, Any]) -> None:
        if press.view is None:
            return
        answer = await self.slack.update_view(press.view.view_id, modal)
        if not isinstance(answer, SlackOk):
            log.warning("a window could not be changed", extra={"reason": word_of(answer)})

    async def _over_home(self, press: Press, notice: Notice) -> None:
        answer = await self.slack.within(OPEN_SECONDS).open_view(press.trigger_id, modals.tell(notice))
        if not isinstance(answer, SlackOk):
            await self.at_home(press.place.caller, notice)
