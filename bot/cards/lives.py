"""What an approved effect is called on a card and what became of it: who, what, where to, how it goes on.

Ground of views. Not here: drafts that nobody approved yet (views), or the sentences (status).
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Who:
    """A person or user group: a Slack id (`U…`, `W…`, `S…`), a subject `slack:T…:U…`, or any other word.

    With a name the name is shown as text, which notifies nobody; without one Slack shows the mention.
    """

    id: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """What goes out on approval. `host` is the target's host, or the channel or server it goes through.

    Among several it has a name, and `after` names the one that it waits for.
    """

    effect_type: str
    host: str
    recipient: str | None = None
    name: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Queued:
    """Waits to be sent; after a try that provably sent nothing, with its reason and the next time."""

    tries: int = 0
    last_reason: str | None = None
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Waits until its record can be checked; it is asked for again by itself."""

    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Paused:
    """Held by the kill switch of this scope (`all`, `kind:…`, `effect:…`, or `setting`)."""

    scope: str


@dataclass(frozen=True, slots=True)
class Scheduled:
    """Goes out at its time unless somebody cancels."""

    due: datetime


@dataclass(frozen=True, slots=True)
class Sending:
    """A send has started and has no answer yet."""

    since: datetime


@dataclass(frozen=True, slots=True)
class Sent:
    """Confirmed by the provider, or by the person named."""

    at: datetime
    provider_id: str | None = None
    confirmed_by: Who | None = None


@dataclass(frozen=True, slots=True)
class SendUnknown:
    """Nobody knows whether it was delivered."""

    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class SendFailed:
    """Proven not delivered, and not tried again; `by` when a person gave it up."""

    at: datetime
    reason: str
    by: Who | None = None


@dataclass(frozen=True, slots=True)
class Awaiting:
    """Waits for another effect of the same draft, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """Never sent, because of what became of another effect or of the draft while that one had left."""

    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Kept:
    """Waits for its target (`resting`), for a cap (`cap_…`), or until its value fits into one (`value_…`)."""

    why: str
    until: datetime | None = None
    host: str = ""


Waiting = Held | Kept | Paused | Scheduled | Awaiting
Life = Queued | Waiting | Sending | Sent | SendUnknown | SendFailed | Dropped


@dataclass(frozen=True, slots=True)
class Undoing:
    """Somebody asked to take a delivered effect back: what is sent for that, and its own life."""

    by: Who
    at: datetime
    life: Life


@dataclass(frozen=True, slots=True)
class Part:
    """One effect once it is approved. `undo`: what would take it back, where that can be asked for now."""

    effect_id: UUID
    action: Action
    life: Life
    undo: Action | None = None
    undoing: Undoing | None = None
