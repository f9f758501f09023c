"""Whether a click arrives: a test card in OPS_CHANNEL, a listener, and what it means when nothing comes.

Not here: the listener itself (bot/doors/rehearsal).
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from bot.cards import rehearsal
from bot.cards.lives import Who
from bot.cards.rehearsal import Stage
from bot.contracts.click import REHEARSAL_ACTION
from bot.doors.payloads import Caller
from bot.doors.rehearsal import CannotListen, Rehearsal, listening
from bot.doors.slack_door import PATH
from bot.examination.finding import Finding, word_of
from bot.settings import Settings
from bot.slack.answer import SlackOk
from bot.slack.client import SlackClient
from bot.slack.identity import Identity

CLICK_SECONDS: Final = 60.0  # For somebody to find the channel and press.
_WHAT: Final = "interactivity"


async def examine_click(
    settings: Settings, say: Callable[[str], None], *, seconds: float = CLICK_SECONDS
) -> AsyncIterator[Finding]:
    """Post the card, wait, and say what came; the card says the same afterwards."""
    token, channel = settings.slack_bot_token, settings.ops_channel
    if token is None or settings.slack_signing_secret is None:
        return  # Already among the settings' problems.
    if channel is None:
        yield Finding(_WHAT, "OPS_CHANNEL is not set: the test card needs a channel")
        return
    slack = SlackClient(token.get_secret_value(), base_url=settings.slack_api_url)
    await slack.open()
    try:
        yield await _rehearse(settings, slack, Card(slack, channel, settings.language), say, seconds)
    finally:
        await slack.close()


@dataclass(slots=True)
class Card:
    """The test card in its channel."""

    slack: SlackClient
    channel: str
    language: str
    ts: str = ""

    async def post(self, value: str) -> str | None:
        """Post it with its button; give Slack's word if it was not posted."""
        blocks = rehearsal.render(Stage.ASK, value=value, language=self.language)
        text = rehearsal.fallback(Stage.ASK, language=self.language)
        answer = await self.slack.post(self.channel, text=text, blocks=blocks)
        if not isinstance(answer, SlackOk):
            return word_of(answer)
        self.ts = str(answer.data.get("ts"))
        return None

    async def end(self, by: Caller | None) -> None:
        """Say on it what came of it, without a button; it is only a card, so what Slack says is no matter."""
        stage, who = (Stage.ARRIVED, Who(by.user_id)) if by else (Stage.MISSED, None)
        await self.slack.update(
            self.channel,
            self.ts,
            text=rehearsal.fallback(stage, who=who, language=self.language),
            blocks=rehearsal.render(stage, who=who, language=self.language),
        )


async def _rehearse(
    settings: Settings, slack: SlackClient, card: Card, say: Callable[[str], None], seconds: float
) -> Finding:
    identity, heard = Identity(slack), Rehearsal(REHEARSAL_ACTION, secrets.token_urlsafe(16))
    await identity.ask()
    try:
        async with listening(settings, slack, identity, heard):
            refusal = await card.post(heard.value)
            if refusal is not None:
                return Finding(_WHAT, f"the test card was not posted to {card.channel} ({refusal})")
            say(f"       press the button in {card.channel} within {seconds:.0f} s")
            with suppress(TimeoutError):
                await asyncio.wait_for(heard.arrived.wait(), seconds)
            await card.end(heard.by)
    except CannotListen as fault:
        return Finding(_WHAT, str(fault))
    return Finding(f"{_WHAT}: the click arrived") if heard.by else Finding(_WHAT, _mend(settings, heard))


def _mend(settings: Settings, heard: Rehearsal) -> str:
    """What its absence means, from what came in its place."""
    if heard.unsigned:
        return "something came whose signature is not good: copy SLACK_SIGNING_SECRET again"
    if heard.others:
        return "other clicks came, that one did not: press the button of the test card"
    if settings.slack_app_token is not None:
        return (
            "no click came: switch on Interactivity and Socket Mode in the app, and stop other processes of"
            " this app meanwhile, for Slack hands a click to any one of them"
        )
    return (
        "no click came: switch on Interactivity in the app, with the Request URL"
        f" {settings.public_url}{PATH}, which must lead to {settings.host}:{settings.port} here"
    )
