"""What a draft's card is drawn from: one frozen value with everything in it. `flow/show` fills it from rows.

How it is drawn is in `review`, `draft` and `modals`; times are aware datetimes, button values ready strings.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal
from uuid import UUID

from bot.cards.lives import Action, Life, Part, Who
from bot.policy.earned import Evidence


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel, by its Slack id, shown as a link to it."""

    id: str


@dataclass(frozen=True, slots=True)
class Field:
    """One named part of the output; `literal` text keeps its shape (JSON, tables)."""

    name: str
    text: str
    literal: bool = False


@dataclass(frozen=True, slots=True)
class Buttons:
    """The value for each button that was minted; None draws no button."""

    approve: str | None = None
    reject: str | None = None
    read: str | None = None
    edit: str | None = None
    redraft: str | None = None
    cancel: str | None = None


@dataclass(frozen=True, slots=True)
class Voting:
    """Who may decide, how many approvals are needed, and who has given one."""

    reviewers: tuple[Who, ...]
    quorum: int = 1
    voters: tuple[Who, ...] = ()


@dataclass(frozen=True, slots=True)
class Previous:
    """The revision before this one, to show what changed."""

    revision: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class SmallPrint:
    """What one looks up once in a hundred cards. `repeats`: how often the event arrived again."""

    key: str
    model: str | None = None
    prompt_version: str | None = None
    edited_by: Who | None = None
    repeats: int = 0


@dataclass(frozen=True, slots=True)
class EarlierRejection:
    """An older draft of the same thing that was rejected."""

    by: Who
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """The run that this one corrects, the provider ids of what that one sent, and which of it was undone."""

    key: str
    reason: str
    sent: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()


class PendingNote(StrEnum):
    """Why an open card is open again, or what to know before deciding."""

    NEW = "new"
    NEWER_EVENT = "newer_event"  # withdrawn: a newer event came before anything was sent
    NOT_FRESH = "not_fresh"  # withdrawn: the approval outlived fresh_for
    RECORD_CHANGED = "record_changed"  # withdrawn: the record has another version by now (`versions`)
    RECORD_CLOSED = "record_closed"  # withdrawn: the record is no longer open
    NEWER_FAILED = "newer_failed"  # a newer event came, and its drafting failed


@dataclass(frozen=True, slots=True)
class Pending:
    """Waits for a decision; `redraft_failed`: the last wish for another revision came to nothing.

    `versions` are those of a changed record: the one there is, and the one that was drafted from.
    """

    note: PendingNote = PendingNote.NEW
    redraft_failed: bool = False
    versions: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Blocked:
    """A newer event was accepted; its draft is being made."""


@dataclass(frozen=True, slots=True)
class Redrafting:
    """Somebody asked the model for another revision."""

    by: Who
    wish: str = ""


@dataclass(frozen=True, slots=True)
class Approved:
    """Decided in favour: by people, or by the gate (`by` empty, `gate` names which, `evidence` by what).

    `life` is that of the effect one must know of first, `parts` are all of them. `newer_waits`: a newer event
    is drafted only once they are over.
    """

    life: Life
    by: tuple[Who, ...] = ()
    at: datetime | None = None
    gate: str = "approve_first"
    evidence: Evidence | None = None
    parts: tuple[Part, ...] = ()
    newer_waits: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """Decided against."""

    by: Who
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Expired:
    """Nobody decided in time."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Superseded:
    """A newer event took its place."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Stopped by a person before anything was sent."""

    by: Who
    at: datetime


State = Pending | Blocked | Redrafting | Approved | Rejected | Expired | Superseded | Cancelled


@dataclass(frozen=True, slots=True)
class Times:
    """Since when the draft waits, and until when."""

    opened_at: datetime
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """The record upstream. A link only when https and on one of `hosts` (the kind's `record_hosts`)."""

    url: str | None = None
    hosts: frozenset[str] = frozenset()
    requested_by: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewView:
    """Everything a draft's card shows. `version` is the card's: it makes block ids new for each drawing.

    `undo` has the button's value for each effect that can be taken back, by its id.
    """

    kind: str
    entity: str
    revision: int
    version: int
    state: State
    actions: tuple[Action, ...]
    draft: tuple[Field, ...]
    voting: Voting
    times: Times
    small: SmallPrint
    labels: tuple[Field, ...] = ()
    warnings: tuple[str, ...] = ()
    previous: Previous | None = None
    source: Source = Source()
    buttons: Buttons = Buttons()
    undo: tuple[tuple[UUID, str], ...] = ()
    confirm: Literal["none", "dialog", "typed"] = "none"
    earlier: EarlierRejection | None = None
    replaces: Replacement | None = None
    language: str = "en"
