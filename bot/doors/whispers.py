"""Tells one person something in private, after Slack has had its answer, so that nobody waits for it.

Not here: what is said (bot/cards/notices) or when (the other doors).
"""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any, Final
from urllib.parse import urlsplit

from bot.cards import modals
from bot.cards.notices import Notice, fallback, render
from bot.doors.payloads import Place
from bot.slack.answer import SlackAnswer, SlackNotDelivered, SlackOk, SlackRefused, SlackUnknown
from bot.slack.client import SlackClient

WHISPER_SECONDS: Final = 5.0  # One note; Slack answers in a tenth of it, and at a stop we wait no longer.

log = logging.getLogger(__name__)


class Whispers:
    """Sends private notes as tasks of their own; whoever stops the process waits for them by `settle`."""

    def __init__(self, slack: SlackClient) -> None:
        self._slack = slack.within(WHISPER_SECONDS)
        self._tasks: set[asyncio.Task[None]] = set()

    def tell(self, place: Place, notice: Notice) -> None:
        """Say something to one person soon. What goes wrong is logged: a note undoes nothing."""
        self.later(self._say(place, notice))

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something after the answer to Slack; it must not raise, and what escapes is only logged."""
        task = asyncio.get_running_loop().create_task(_contained(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self, grace_seconds: float = WHISPER_SECONDS) -> None:
        """Wait for what is on its way, and for what that begins; what takes longer is given up."""
        try:
            async with asyncio.timeout(grace_seconds):
                while self._tasks:
                    await asyncio.wait(set(self._tasks))
        except TimeoutError:
            for task in self._tasks:
                task.cancel()

    async def _say(self, place: Place, notice: Notice) -> None:
        """By the interaction's own address, which works where we may not post; else where they are."""
        text, blocks = fallback(notice), render(notice)
        if place.response_url is not None and self._is_slack(place.response_url):
            answer = await self._slack.respond(place.response_url, text=text, blocks=blocks)
            if isinstance(answer, SlackOk | SlackUnknown):
                return  # Unknown: it may have arrived; said twice is worse than lost.
        if place.view_id is not None:
            answer = await self._slack.update_view(place.view_id, modals.tell(notice))
        elif place.trigger_id is not None:
            answer = await self._slack.open_view(place.trigger_id, modals.tell(notice))
        elif place.channel is not None:
            whom = place.caller.user_id
            answer = await self._slack.ephemeral(place.channel, whom, text=text, blocks=blocks)
        else:
            log.info("a private note had no way to go")
            return
        if not isinstance(answer, SlackOk):
            log.warning("a private note was not delivered", extra={"reason": word_of(answer)})

    def _is_slack(self, url: str) -> bool:
        """Whether an address is Slack's own: signed or not, we post to nobody else."""
        api, given = urlsplit(self._slack.sdk.base_url), urlsplit(url)
        if (given.scheme, given.netloc) == (api.scheme, api.netloc):
            return True
        return given.scheme == "https" and given.netloc == f"hooks.{api.netloc}"


def word_of(answer: SlackAnswer) -> str:
    """Slack's word, or ours, for an answer that is no success."""
    match answer:
        case SlackRefused(error=word) | SlackUnknown(reason=word) | SlackNotDelivered(reason=word):
            return word
        case _:
            return "limited"


async def _contained(work: Awaitable[None]) -> None:
    try:
        await work
    except Exception as fault:  # noqa: BLE001 - a task nobody awaits: the class is all that may be told
        log.warning("something after an answer failed", extra={"fault": type(fault).__name__})
