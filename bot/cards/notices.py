"""Draws what is said in a sentence or two: private answers to clicks, alerts, lines in a thread.

The sentences are in `words_en_answers`; longer answers to slash commands are put together in `answers`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from bot.cards.blocks import (
    Block,
    Element,
    channel,
    date,
    lines,
    message_text,
    outside,
    people,
    person,
    phrase,
    rich,
    words,
)
from bot.cards.lives import Who
from bot.cards.status import because
from bot.cards.views import Channel

PART_TEXT: Final = 500  # Of one text from outside: a key has 380 characters at most, a reason is a sentence.
PARTS_TEXT: Final = 6_000  # Of all of them: MESSAGE_TEXT less our own words in forty lines.
FALLBACK_PART: Final = 200  # The `text` is for notifications, where a phone shows some 200 characters.
FALLBACK_PARTS: Final = 1_200
FALLBACK_BYTES: Final = 3_990  # Slack: 4,000 bytes for a private answer
LEAST_TEXT: Final = 30  # However many there are, one can be told from another.

Part = str | int | datetime | Channel | Who | tuple[Who, ...]


class Refusal(StrEnum):
    """Why a click changed nothing. Places to fill: see the sentence `refused.…` of the same name."""

    NEWER_REVISION = "newer_revision"
    ASKED_AGAIN = "asked_again"
    EXPIRED = "expired"  # at
    APPROVED = "approved"  # who, at
    REJECTED = "rejected"  # who, at
    CANCELLED = "cancelled"  # who, at
    SUPERSEDED = "superseded"
    BLOCKED = "blocked"
    REDRAFTING = "redrafting"
    STARTED = "started"
    UNDONE = "undone"  # who, at
    NOT_UNDOABLE = "not_undoable"
    SETTLED = "settled"
    NOT_REVIEWER = "not_reviewer"
    NOT_QUALIFIED = "not_qualified"
    GUEST = "guest"
    STRANGER = "stranger"
    DEACTIVATED = "deactivated"
    BOT = "bot"
    UNKNOWN = "unknown"  # the person could not be read
    GROUP_UNREADABLE = "group_unreadable"
    REQUESTER = "requester"
    EDITOR = "editor"
    CORRECTOR = "corrector"
    ALREADY_VOTED = "already_voted"  # count, quorum
    WRONG_SURFACE = "wrong_surface"
    UNKNOWN_BUTTON = "unknown_button"
    KIND_GONE = "kind_gone"
    NONE_WAITING = "none_waiting"
    REDRAFTS_USED_UP = "redrafts_used_up"
    NOT_EDITABLE = "not_editable"
    TYPED_WRONG = "typed_wrong"
    NOT_ADMIN = "not_admin"
    ADMINS_UNREADABLE = "admins_unreadable"
    EFFECT_MOVED = "effect_moved"
    TOO_SLOW = "too_slow"
    NOT_KNOWN_YET = "not_known_yet"
    AWAY = "away"
    CLICK_AGAIN = "click_again"
    NO_WINDOW = "no_window"


class Done(StrEnum):
    """What a click did."""

    APPROVED = "approved"
    VOTED = "voted"  # count, quorum
    REJECTED = "rejected"
    EDITED = "edited"  # revision
    UNCHANGED = "unchanged"
    REDRAFTING = "redrafting"
    CANCELLED = "cancelled"
    UNDOING = "undoing"
    SETTLED = "settled"


class Alert(StrEnum):
    """What the operators' channel is told."""

    PAYLOAD_CONFLICT = "payload_conflict"  # key
    DRAFTING_FAILED = "drafting_failed"  # key, reason, mend (see `mend`)
    QUOTA = "quota"  # key
    BUDGET = "budget"  # scope
    TAKEOVERS = "takeovers"  # key, count
    CHANNEL_MISSING = "channel_missing"  # channel, reason
    CARD_REFUSED = "card_refused"  # key, reason
    UNKNOWN_FIRST = "unknown_first"  # key, at; these four in the thread of the effect's card
    UNKNOWN_HOUR = "unknown_hour"  # key
    UNKNOWN_HOURS = "unknown_hours"  # key, admins
    UNKNOWN_DAY = "unknown_day"  # key, admins
    EARNED_LOST = "earned_lost"  # kind, reason
    EFFECT_FAILED = "effect_failed"  # key, because; so the next three
    UNDO_FAILED = "undo_failed"
    RESUME_FAILED = "resume_failed"
    RESUME_AWAY = "resume_away"  # one stands for all of an hour
    ARRIVED_LATE = "arrived_late"  # key
    EFFECT_HELD = "effect_held"  # key, kind, reason
    LIMITS_HOLD = "limits_hold"  # key, kind, because
    CAP_FULL = "cap_full"  # kind, because, at
    TARGET_RESTING = "target_resting"  # target, kind, count, at
    TARGET_BACK = "target_back"  # target, kind
    STEP_FAILED = "step_failed"  # step, reason
    SWITCH_CLOSED = "switch_closed"  # scope, who, reason
    SWITCH_OPENED = "switch_opened"  # scope, who, reason


class Thread(StrEnum):
    """A line in a card's thread."""

    REVISION = "revision"  # revision
    EDITED = "edited"  # revision, who
    REMINDER = "reminder"  # expires
    REMINDED_AGAIN = "reminded_again"  # count, expires
    ESCALATED = "escalated"  # who, expires
    ESCALATED_THERE = "escalated_there"  # kind, entity, where, expires


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence by its key. Text among the parts counts as from outside: marked, cut, never parsed."""

    key: str
    parts: Mapping[str, Part] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notice:
    """Some sentences, a line each."""

    said: tuple[Said, ...]
    language: str = "en"


def refused(why: Refusal, /, *, language: str = "en", **parts: Part) -> Notice:
    """Tell one person why their click changed nothing."""
    return Notice((Said(f"refused.{why}", parts),), language)


def done(what: Done, /, *, language: str = "en", **parts: Part) -> Notice:
    """Tell one person what their click did."""
    return Notice((Said(f"done.{what}", parts),), language)


def alert(what: Alert, /, *, language: str = "en", **parts: Part) -> Notice:
    """Tell the operators. `mend` among the parts is `misconfigured`, `invalid`, `refused` or `retries`."""
    return Notice((Said(f"alert.{what}", parts),), language)


def thread(what: Thread, /, *, language: str = "en", **parts: Part) -> Notice:
    """Say something in a card's thread."""
    return Notice((Said(f"thread.{what}", parts),), language)


def render(notice: Notice) -> list[Block]:
    """Draw the notice as one block of rich text."""
    return [rich("stet.notice", lines(lines_of(notice)))]


def lines_of(notice: Notice) -> list[list[Element]]:
    """The notice's sentences, to be drawn among others."""
    limit = _room_each(notice, PART_TEXT, PARTS_TEXT)
    return [_sentence(notice.language, said, limit) for said in notice.said]


def fallback(notice: Notice) -> str:
    """The message's `text`: the same sentences, escaped once, as many as Slack takes."""
    limit = _room_each(notice, FALLBACK_PART, FALLBACK_PARTS)
    said: list[str] = []
    room = FALLBACK_BYTES
    for one in notice.said:
        line = message_text(_sentence(notice.language, one, limit))
        room -= len(line.encode()) + 1
        if room < 0:
            return "\n".join([*said, "…"])
        said.append(line)
    return "\n".join(said)


def _room_each(notice: Notice, most: int, together: int) -> int:
    """How long each text from outside may be, so that all of them fit into one message."""
    texts = sum(isinstance(part, str | Who) for said in notice.said for part in said.parts.values())
    return max(min(most, together // max(texts, 1)), LEAST_TEXT)


def _sentence(language: str, said: Said, limit: int) -> list[Element]:
    drawn = {name: _part(language, name, part, limit) for name, part in said.parts.items()}
    return phrase(language, said.key, **drawn)


def _part(language: str, name: str, part: Part, limit: int) -> Element | list[Element]:
    match part:
        case Who():
            return person(part)
        case tuple():
            return people(part)
        case Channel():
            return channel(part)
        case datetime():
            return date(part)
        case int():
            return words(f"{part:,}") if name == "count" else words(str(part))
        case str() if name == "mend":
            return phrase(language, f"mend.{part}")
        case str() if name == "because":
            return because(language, part)
        case str():
            return outside(part, limit=limit)
