"""The frozen values that rows become.

Not here: what a row means for a card or an answer (bot/).
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field


class Row(BaseModel):
    """A row as read: frozen, and refusing columns it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class AuditRow(Row):
    """One line of the record with its detail, if that was not erased."""

    chain: str
    seq: int
    at: datetime
    actor: str
    action: str
    detail_hash: bytes
    hash: bytes
    salt: bytes | None
    detail: str | None


class ChainName(Row):
    """The name of one chain of the record."""

    chain: str


class HeadRow(Row):
    """The newest version known of a draft_key."""

    draft_key: str
    source_version: int
    run_id: UUID
    draft_id: UUID | None


class ReopenedRow(Row):
    """A draft that is pending again, and the run it belongs to."""

    draft_id: UUID
    run_id: UUID


class RevisedDraft(Row):
    """A draft and the number of the revision it shows now."""

    draft_id: UUID
    revision: int


class EditedDraft(RevisedDraft):
    """A draft with room for the content of its next revision, and the run it belongs to."""

    run_id: UUID


@dataclass(frozen=True, slots=True)
class Claim:
    """Who claims, how many at most, for how long, and which kinds it can work on.

    Those of other kinds it gets only once they have been due for `kind_gone_seconds`.
    """

    owner: str
    most: int
    lease_seconds: float
    kinds: tuple[str, ...]
    kind_gone_seconds: float

    def params(self) -> dict[str, Any]:
        """Give them as a statement takes them."""
        return asdict(self) | {"kinds": list(self.kinds)}


class EffectRef(Row):
    """An effect as far as moving it needs; `version` is the one the next move must find.

    `clause` says which of several effects of its draft it is, or which effect's undo; None for an only one.
    """

    effect_id: UUID
    version: int
    idempotency_key: str
    run_id: UUID
    draft_id: UUID
    draft_key: str
    effect_type: str
    known_version: int
    attempts: int
    clause: tuple[str, ...] | None = None

    @property
    def is_undo(self) -> bool:
        """Whether it takes back another one: its draft and run are over already."""
        return self.clause is not None and self.clause[-1] == "undo"

    @property
    def is_part(self) -> bool:
        """Whether its draft has other effects, whose ends count for draft and run as much."""
        return self.clause is not None and not self.is_undo


class Cancelled(Protocol):
    """A cancelled effect, as far as its draft has to follow."""

    @property
    def effect_id(self) -> UUID:
        """Its id."""
        ...

    @property
    def draft_id(self) -> UUID:
        """Its draft."""
        ...

    @property
    def run_id(self) -> UUID:
        """Its run."""
        ...

    @property
    def idempotency_key(self) -> str:
        """Its key."""
        ...


class ClaimedRow(EffectRef):
    """An effect that we hold, with the bytes to send."""

    kind: str
    target: str = Field(repr=False)
    lane: int
    created_at: datetime
    is_ambiguous: bool
    snapshot_hash: str
    revision: int
    recipient: str | None = Field(repr=False)
    body: bytes | None = Field(repr=False)
    entity: str
    address: str | None = Field(default=None, repr=False)  # a waiting execution's URL


class MovedRow(Row):
    """An effect after a move."""

    effect_id: UUID
    version: int


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a try: the state it moves to, and the wait in seconds until it is looked at again.

    `is_uncounted`: the target rests; the try does not use up one of the effect's attempts.
    """

    state: str
    reason: str | None = None
    provider_id: str | None = None
    wait_seconds: float = 0.0
    is_ambiguous: bool = False
    is_uncounted: bool = False


Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Spending:
    """Which token of their own window a person spends on an edit or a wish."""

    token_hash: str
    revision: int
    surface: str
    subject: str


class CardRow(Row):
    """Where a card stands in Slack; `wanted_version` is the one that the facts beside it answer."""

    card_id: UUID
    channel: str
    ts: str | None
    wanted_version: int
    noted_revision: int
    post_id: UUID | None
    post_started_at: datetime | None
    post_age_seconds: float
    attempts: int
    problem: str | None
    idempotency_key: str
    kind: str
