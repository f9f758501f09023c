"""Draws the doctor's test card: a button to press, and afterwards whether the click arrived.

Who listens for the click is in `bot/doors/rehearsal`.
"""

from enum import StrEnum

from bot.cards.blocks import Block, Element, actions, button, message_text, person, phrase, rich, section
from bot.cards.lives import Who
from bot.cards.words import say
from bot.contracts.click import REHEARSAL_ACTION


class Stage(StrEnum):
    """How far it is; the sentence `rehearsal.…` of the same name."""

    ASK = "ask"
    ARRIVED = "arrived"  # who
    MISSED = "missed"


def render(stage: Stage, *, value: str = "", who: Who | None = None, language: str = "en") -> list[Block]:
    """Draw the sentence, with the button while it is waited for."""
    buttons = [button(REHEARSAL_ACTION, say(language, "button.rehearsal"), value)] if value else []
    return [
        rich("stet.rehearsal.text", section(_sentence(stage, who, language))),
        *actions("stet.rehearsal.actions", buttons),
    ]


def fallback(stage: Stage, *, who: Who | None = None, language: str = "en") -> str:
    """The message's `text`, for notifications."""
    return message_text(_sentence(stage, who, language))


def _sentence(stage: Stage, who: Who | None, language: str) -> list[Element]:
    if stage is Stage.ARRIVED and who is not None:
        return phrase(language, "rehearsal.arrived", who=person(who))
    return phrase(language, "rehearsal.ask" if stage is Stage.ASK else "rehearsal.missed")
