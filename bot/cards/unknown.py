"""Draws the card of an effect nobody knows the outcome of, for admins in the operators' channel.

What each button does is in `flow/reconcile`; the same effect on its draft's card is in `status`.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from bot.cards.blocks import (
    MESSAGE_TEXT,
    Block,
    Element,
    actions,
    button,
    clip,
    confirm,
    date,
    header,
    lines,
    outside,
    person,
    phrase,
    plain,
    rich,
    small,
    text_length,
)
from bot.cards.draft import cut_note, draw_fields, hidden_note, title_of
from bot.cards.lives import Action, Who
from bot.cards.status import action_line, because
from bot.cards.text import escape
from bot.cards.views import Field
from bot.cards.words import say
from bot.contracts.click import (
    UNKNOWN_DELIVERED_ACTION,
    UNKNOWN_DROP_ACTION,
    UNKNOWN_GIVE_UP_ACTION,
    UNKNOWN_RESEND_ACTION,
)

_EXCERPT: Final = 1_500  # Of what was sent: enough to find it at the provider by.
_RESUME: Final = "resume"


class LookUp(StrEnum):
    """What the last look-up at the provider returned."""

    NONE = "none"  # the connector cannot look up
    NOT_YET = "not_yet"
    ABSENT = "absent"
    NO_ANSWER = "no_answer"
    FOUND = "found"


class Settled(StrEnum):
    """How an unknown effect ended."""

    DELIVERED = "delivered"
    RESENT = "resent"
    DROPPED = "dropped"
    GIVEN_UP = "given_up"
    FOUND = "found"  # the look-up found it


@dataclass(frozen=True, slots=True)
class Evidence:
    """When the line went dead, and what the provider said since."""

    dead_at: datetime
    reason: str
    attempt: int
    look_up: LookUp = LookUp.NOT_YET
    looked_at: datetime | None = None
    look_up_reason: str | None = None
    next_look_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """How it was settled, when, and by whom (None: by the look-up)."""

    how: Settled
    at: datetime
    by: Who | None = None
    provider_id: str | None = None


@dataclass(frozen=True, slots=True)
class UnknownView:
    """Everything the card shows. The button value is bound to the effect's version; None draws no buttons.

    `newer_waits`: a newer event waits, so the second button drops instead of sending again.
    `is_undo`: it takes back what was sent before, and "delivered" speaks of that.
    """

    key: str
    kind: str
    entity: str
    revision: int
    version: int
    action: Action
    sent: tuple[Field, ...]
    evidence: Evidence
    button_value: str | None = None
    newer_waits: bool = False
    is_undo: bool = False
    ending: Ending | None = None
    language: str = "en"


def render(view: UnknownView) -> list[Block]:
    """Draw what was sent, to whom, when the line went dead, what the look-up said; then the three answers."""
    head = [
        header(
            _id(view, "title"),
            f"{say(view.language, 'unknown.header')} {title_of(view.kind)} · {view.entity}",
        ),
        rich(
            _id(view, "state"),
            lines([*_state(view), action_line(view.language, "action.is", view.action), *_evidence(view)]),
        ),
    ]
    foot = small(_id(view, "small"), say(view.language, "small.key", key=clip(view.key, 500)))
    room = min(_EXCERPT, MESSAGE_TEXT - text_length(head) - text_length(foot))
    drawn = draw_fields(view.sent, room=room, language=view.language)
    others = (view.entity, view.key, view.action.recipient or "", view.action.host)
    everything = (*view.sent, *(Field("", other) for other in others))
    hidden = hidden_note(everything, "warnings.hidden", view.language)
    title = lines([*hidden, phrase(view.language, "unknown.sent_text", revision=view.revision)])
    note = [cut_note(drawn.left_out, view.language)] if drawn.left_out else []
    sent = rich(_id(view, "sent"), title, *drawn.parts, *note)
    return [*head, sent, *actions(_id(view, "actions"), _buttons(view)), foot]


def fallback(view: UnknownView) -> str:
    """The message's `text`, for notifications; escaped once."""
    state = plain(phrase(view.language, f"unknown.{view.ending.how if view.ending else 'open'}"))
    return escape(f"{state} · {title_of(view.kind)} · {clip(view.entity, 80)}")


def _id(view: UnknownView, name: str) -> str:
    return f"stet.unknown.v{view.version}.{name}"


def _state(view: UnknownView) -> list[list[Element]]:
    ending, language = view.ending, view.language
    undo = [phrase(language, "unknown.undo")] if view.is_undo else []
    if ending is None:
        return [phrase(language, "unknown.open"), *undo, phrase(language, "unknown.who"), *_held_up(view)]
    found = [phrase(language, f"unknown.{ending.how}"), *undo]
    if ending.by is not None:
        found.append(phrase(language, "unknown.settled_by", who=person(ending.by), at=date(ending.at)))
    else:
        found.append(phrase(language, "unknown.settled_at", at=date(ending.at)))
    if ending.provider_id:
        provider_id = outside(ending.provider_id, limit=120, code=True)
        found.append(phrase(language, "unknown.found_as", id=provider_id))
    return found


def _held_up(view: UnknownView) -> list[list[Element]]:
    """What waits for the answer: a newer event, or whatever may come. Telling an outcome holds up nothing."""
    if view.newer_waits:
        return [phrase(view.language, "unknown.newer")]
    if view.action.effect_type == _RESUME:
        return []
    return [phrase(view.language, "unknown.holds")]


def _evidence(view: UnknownView) -> list[list[Element]]:
    evidence, language = view.evidence, view.language
    why, dead = because(language, evidence.reason), date(evidence.dead_at)
    found = [phrase(language, "unknown.line_dead", attempt=str(evidence.attempt), reason=why, at=dead)]
    looked = date(evidence.looked_at or evidence.dead_at)
    reason = because(language, evidence.look_up_reason or "")
    if view.ending is None or evidence.looked_at is not None:
        found.append(phrase(language, f"unknown.look_up.{evidence.look_up}", at=looked, reason=reason))
    if view.ending is None and evidence.next_look_at is not None:
        found.append(phrase(language, "unknown.next", at=date(evidence.next_look_at)))
    return found


def _buttons(view: UnknownView) -> list[Element]:
    if view.ending is not None or view.button_value is None:
        return []
    return answer_buttons(view.language, view.button_value, newer_waits=view.newer_waits)


def answer_buttons(language: str, value: str, *, newer_waits: bool) -> list[Element]:
    """The three answers, each bound by its value to the effect's version."""
    # Two actions, not one with two labels: whoever was shown "send again" must not drop it by that click.
    answers = (
        (UNKNOWN_DELIVERED_ACTION, "delivered"),
        (UNKNOWN_DROP_ACTION, "drop") if newer_waits else (UNKNOWN_RESEND_ACTION, "resend"),
        (UNKNOWN_GIVE_UP_ACTION, "give_up"),
    )
    return [_answer(language, action_id, word, value) for action_id, word in answers]


def _answer(language: str, action_id: str, word: str, value: str) -> Element:
    label = say(language, f"button.{word}")
    asked = confirm(language, say(language, f"confirm.{word}"), label)
    return button(action_id, label, value, confirm=asked)
