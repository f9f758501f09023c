"""One person's answer to a question as it reaches us, and why it may count for nothing.
Not here: reading Slack's payload (bot/doors) or judging the person (bot/policy/answering).
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bot.contracts.click import Decision, Surface


class Why(StrEnum):
    """Why nothing was decided; the words are in bot/cards (refused.*)."""

    UNKNOWN_BUTTON = "unknown_button"
    WRONG_SURFACE = "wrong_surface"
    NEWER_REVISION = "newer_revision"
    ASKED_AGAIN = "asked_again"
    EXPIRED = "expired"
    APPROVED = "approved"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    SETTLED = "settled"
    BLOCKED = "blocked"
    REDRAFTING = "redrafting"
    KIND_GONE = "kind_gone"
    NONE_WAITING = "none_waiting"
    ALREADY_VOTED = "already_voted"
    TYPED_WRONG = "typed_wrong"
    STARTED = "started"
    UNDONE = "undone"
    NOT_UNDOABLE = "not_undoable"
    EFFECT_MOVED = "effect_moved"
    REDRAFTS_USED_UP = "redrafts_used_up"
    NOT_EDITABLE = "not_editable"
    TOO_SLOW = "too_slow"
    NOT_KNOWN_YET = "not_known_yet"
    AWAY = "away"


@dataclass(frozen=True, slots=True)
class Click:
    """One answer of one person; team and user are Slack's signed ones, channel and ts its surface's.

    `typed` is what the person typed to confirm it, where the kind asks for that.
    """

    token: str = field(repr=False)
    revision: int
    decision: Decision
    team_id: str
    user_id: str
    surface: Surface
    channel: str | None = None
    ts: str | None = None
    reason: str | None = None
    typed: str | None = None


@dataclass(frozen=True, slots=True)
class NotDecided:
    """Nothing was changed, and why; who decided instead, if somebody did."""

    why: str
    by: str | None = None
    at: datetime | None = None
    counts: tuple[int, int] | None = None
