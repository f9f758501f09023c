"""Everything a card shows, read as one moment's truth.

Not here: what the facts look like (bot/cards), or how a card's own row moves (store/cards).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from store.queries import Connection, query
from store.rows import CardRow, Row

_READ_DRAFTS = query("read_draft_cards")
_READ_EFFECTS = query("read_effect_cards")


class EffectFacts(Row):
    """One effect of a draft, or what undoes one, without the resume effects."""

    effect_id: UUID
    effect_type: str
    state: str
    attempts: int
    reason: str | None
    provider_id: str | None
    started_at: datetime | None
    ambiguous_at: datetime | None
    not_before: datetime | None
    next_attempt_at: datetime
    held_since: datetime | None
    target: str = ""
    rests_until: datetime | None = None
    full_until: datetime | None = None
    full_why: str | None = None
    created_at: datetime
    updated_at: datetime
    clause: tuple[str, ...] | None
    after_id: UUID | None
    undo_of: UUID | None
    undo_by: str | None
    settled_by: str | None


class DraftCard(CardRow):
    """A draft's card: the draft, its question, its decision, its effects, the switch."""

    draft_id: UUID
    entity: str
    status: str
    revision: int
    notice: str | None
    opened_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    approval_id: UUID | None
    newest_approval_id: UUID | None
    is_blocked: bool
    is_expired: bool
    snapshot: dict[str, Any]
    run_state: str
    finished_at: datetime | None
    record_url: str | None
    requested_by: str | None
    run_reason: str | None
    recipients: list[str | None]
    undo_recipients: list[str | None]
    body: dict[str, Any] | None
    author: str
    model: str | None
    prompt_version: str | None
    warnings: list[str]
    before_revision: int | None
    before_body: dict[str, Any] | None
    repeats: int
    voters: list[str]
    decision: str | None
    decided_by: str | None
    consumed_at: datetime | None
    decision_reason: str | None
    approvers: list[str]
    redraft_by: str | None
    redraft_wish: str | None
    redraft_failed: bool
    redrafts_used: int
    earlier_by: str | None
    earlier_at: datetime | None
    earlier_reason: str | None
    replaced_key: str | None
    replaced_sent: list[str]
    replaced_undone: list[str]
    effects: list[EffectFacts]
    switch_rows: dict[str, bool]
    cancelled_by: str | None
    cancelled_at: datetime | None


class EffectCard(CardRow):
    """The card of an effect that was unknown once: what was sent, what is known of it, who settled it."""

    effect_id: UUID
    version: int
    effect_type: str
    target: str
    state: str
    reason: str | None
    provider_id: str | None
    tries: int | None
    updated_at: datetime
    next_attempt_at: datetime
    dead_at: datetime
    entity: str
    revision: int
    recipient: str | None
    body: dict[str, Any] | None
    newer_waits: bool
    is_undo: bool
    lookup: str | None
    asked: int
    last_answer: str | None
    last_at: datetime | None
    settled_by: str | None
    settled_at: datetime | None
    choice: str | None


async def read_draft_cards(conn: Connection, draft_ids: Sequence[UUID]) -> list[DraftCard]:
    """Read what the cards of these drafts show; one that cannot be read is left out."""
    return await _READ_DRAFTS.readable_rows(conn, {"draft_ids": list(draft_ids)}, DraftCard)


async def read_effect_cards(conn: Connection, effect_ids: Sequence[UUID]) -> list[EffectCard]:
    """Read what the cards of these effects show; one that cannot be read is left out."""
    return await _READ_EFFECTS.readable_rows(conn, {"effect_ids": list(effect_ids)}, EffectCard)
