"""Draws the queue card of a channel: how many drafts wait for their own card, and the way to the next.

Who waits and who gets a place is in `flow/places`; the modal that the button opens is in `reading`.
"""

from dataclasses import dataclass

from bot.cards.blocks import Block, Element, actions, button, message_text, phrase, rich, section
from bot.cards.words import say
from bot.contracts.click import NEXT_VALUE, QUEUE_NEXT_ACTION


@dataclass(frozen=True, slots=True)
class QueueView:
    """How many wait. `version` is the card's: it makes block ids new for each drawing."""

    count: int
    version: int
    language: str = "en"


def render(view: QueueView) -> list[Block]:
    """Draw the number and the button; with nobody in line, a sentence that says so and no button."""
    label = say(view.language, "button.next")
    buttons = [button(QUEUE_NEXT_ACTION, label, NEXT_VALUE)] if view.count else []
    return [
        rich(f"stet.queue.v{view.version}.text", section(_sentence(view))),
        *actions(f"stet.queue.v{view.version}.actions", buttons),
    ]


def fallback(view: QueueView) -> str:
    """The message's `text`, for notifications; escaped once."""
    return message_text(_sentence(view))


def _sentence(view: QueueView) -> list[Element]:
    if not view.count:
        return phrase(view.language, "queue.card_empty")
    return phrase(view.language, "queue.card", count=f"{view.count:,}")
