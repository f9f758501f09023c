"""Drafts that a gate lets through without a person: one statement, in the transaction that opens them.

Not here: which ones (bot/gates), decisions of people (store/decisions) or the way out (store/outbox).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from store.ids import new_id
from store.queries import Connection, query
from store.rows import RevisedDraft

_LET = query("let_through")


@dataclass(frozen=True, slots=True)
class Letting:
    """Which gate lets it through (`gate:MODE`, in a person's place), by what rule, after what window.

    `effects` is how many effects the draft's snapshot has.
    """

    gate: str
    effects: int
    rule: str | None = None
    window_seconds: int | None = None


class LetDraft(RevisedDraft):
    """A draft on its way; with a window, when that ends."""

    not_before: datetime | None


async def let_through(
    conn: Connection, hold: Mapping[str, Any], draft_id: UUID, letting: Letting
) -> LetDraft:
    """Approve a draft that was opened or revised in this transaction, and give it its effects.

    `hold` is what identifies the hold on its run (store/runs).

    Raises:
        LostRace: the lease was lost.

    """
    params = {
        **hold,
        "draft_id": draft_id,
        "effect_ids": sorted(new_id() for _ in range(letting.effects)),
        "gate": letting.gate,
        "rule": letting.rule,
        "window_seconds": letting.window_seconds,
    }
    return await _LET.one(conn, params, LetDraft)
