"""The language that one person is answered in: that of their Slack where we speak it, else LANGUAGE.

Not here: the sentences (bot/cards/words) or what channels are told, which is in LANGUAGE for everybody.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bot.cards.notices import Notice
from bot.cards.words import language_of
from bot.doors.payloads import Caller, Command, Press, Submission
from bot.slack.people import People

# The decision that follows asks for the same account and shares the answer; a slow one must not cost it time.
TONGUE_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Tongues:
    """Who reads what."""

    people: People
    language: str

    def known(self, caller: Caller) -> str:
        """By what Slack has told already; asks nothing."""
        return language_of(self.people.locale(caller.team_id, caller.user_id), self.language)

    async def of(self, caller: Caller) -> str:
        """By what Slack has told or tells at once."""
        if self.people.locale(caller.team_id, caller.user_id) is None:
            try:
                async with asyncio.timeout(TONGUE_SECONDS):
                    await self.people.person(caller.team_id, caller.user_id)
            except TimeoutError:
                pass  # The look-up goes on for whoever needs it next.
        return self.known(caller)


@dataclass(frozen=True, slots=True)
class Spoken:
    """What is done for people in one language."""

    press: Callable[[Press], Awaitable[None]]
    submit: Callable[[Submission], Awaitable[Mapping[str, Any] | None]]
    answer: Callable[[Command], Awaitable[Notice]]
    visit: Callable[[Caller], Awaitable[None]]


class Interpreter:
    """Hands everything that comes in to those who speak the language of whoever sent it."""

    def __init__(self, tongues: Tongues, spoken: Mapping[str, Spoken]) -> None:
        self._tongues = tongues
        self._spoken = spoken

    async def press(self, press: Press) -> None:
        """A button."""
        await (await self._for(press.place.caller)).press(press)

    async def submit(self, submission: Submission) -> Mapping[str, Any] | None:
        """A modal that was sent."""
        return await (await self._for(submission.caller)).submit(submission)

    async def answer(self, command: Command) -> Notice:
        """A slash command."""
        return await (await self._for(command.place.caller)).answer(command)

    async def visit(self, caller: Caller) -> None:
        """A Home that was opened."""
        await (await self._for(caller)).visit(caller)

    async def _for(self, caller: Caller) -> Spoken:
        return self._spoken[await self._tongues.of(caller)]
