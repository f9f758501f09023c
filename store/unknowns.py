"""Effects whose outcome is not known: evidence, look-ups and the settling of them.

Not here: asking a provider or a person (bot/flow/reconcile).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from store.ids import new_id
from store.queries import Connection, query
from store.rows import ClaimedRow, EffectRef, MovedRow, Result, Row

_ADD_EVIDENCE = query("add_evidence")
_TAKE = query("take_unknowns")
_NOTE = query("note_look_up")
_FIND = query("find_unknown")
_FIND_CARD = query("find_unknown_card")
_RESOLVE = query("resolve_unknown")
_RISING = query("list_rising_unknowns")
_THREAD = query("find_unknown_thread")


class PlaceRow(Row):
    """A message: its channel and, once known, its ts."""

    channel: str
    ts: str | None


class UnknownRow(ClaimedRow):
    """An unknown effect to ask about, with what is known of it already."""

    times_asked: int
    has_evidence: bool
    evidence_provider_id: str | None


class RisingRow(Row):
    """An unknown effect, since when, and the step (from 1) that people are to be told of."""

    effect_id: UUID
    version: int
    idempotency_key: str
    ambiguous_at: datetime
    number: int


class ThreadRow(Row):
    """Where an unknown effect's card stands, if it does, and whether it waits in the version asked for."""

    is_open: bool
    channel: str | None
    ts: str | None


class ArrivedRow(Row):
    """An effect that arrived, though it was given up or dropped."""

    effect_id: UUID
    idempotency_key: str


@dataclass(frozen=True, slots=True)
class LateAnswer:
    """An answer to a try that was not ours any more; `answer` is sent, not_sent, refused or unknown."""

    effect_id: UUID
    attempt: int
    answer: str
    provider_id: str | None


async def add_evidence(conn: Connection, answers: Sequence[LateAnswer]) -> list[ArrivedRow]:
    """Keep answers that move nothing; a confirmation lets reconciliation look at once.

    Gives the effects that were over as never sent, and did arrive.
    """
    return await _ADD_EVIDENCE.rows(
        conn,
        {
            "evidence_ids": [new_id() for _ in answers],
            "effect_ids": [late.effect_id for late in answers],
            "attempts": [late.attempt for late in answers],
            "answers": [late.answer for late in answers],
            "provider_ids": [late.provider_id for late in answers],
        },
        ArrivedRow,
    )


async def take_unknowns(
    conn: Connection, *, most: int, hold_seconds: int, effect_types: Sequence[str]
) -> list[UnknownRow]:
    """Take unknown effects that are due to be asked about; nobody else asks for `hold_seconds`."""
    params = {"most": most, "hold_seconds": hold_seconds, "effect_types": list(effect_types)}
    return await _TAKE.rows(conn, params, UnknownRow)


async def note_look_up(conn: Connection, effect: EffectRef, *, answer: str, wait_seconds: float) -> bool:
    """Write down an answer that proves nothing; False if the effect was settled meanwhile."""
    params = {
        "effect_id": effect.effect_id,
        "version": effect.version,
        "answer": answer,
        "wait_seconds": wait_seconds,
    }
    return await _NOTE.run(conn, params) > 0


async def find_unknown(conn: Connection, effect_id: UUID) -> EffectRef | None:
    """Read one effect, whatever its state."""
    return await _FIND.maybe(conn, {"effect_id": effect_id}, EffectRef)


async def find_unknown_card(conn: Connection, effect_id: UUID) -> PlaceRow | None:
    """Say where the card of an effect stands."""
    return await _FIND_CARD.maybe(conn, {"effect_id": effect_id}, PlaceRow)


async def resolve_unknown(conn: Connection, effect: EffectRef, version: int, result: Result) -> int:
    """Move an unknown effect under its head's lock; gives its new version.

    Raises:
        LostRace: it is not unknown any more, or not in this version.

    """
    moved = await _RESOLVE.one(
        conn,
        {
            "effect_id": effect.effect_id,
            "version": version,
            "state": result.state,
            "reason": result.reason,
            "provider_id": result.provider_id,
        },
        MovedRow,
    )
    return moved.version


async def list_rising_unknowns(
    conn: Connection, steps: Sequence[int], *, settle_seconds: int, most: int
) -> list[RisingRow]:
    """Give unknown effects that people have to be told of: after the settle window, then at each step."""
    params = {"steps": [None, *steps], "settle_seconds": settle_seconds, "most": most}
    return await _RISING.rows(conn, params, RisingRow)


async def find_unknown_thread(conn: Connection, effect_id: UUID, version: int) -> ThreadRow | None:
    """Tell where to speak of an unknown effect."""
    return await _THREAD.maybe(conn, {"effect_id": effect_id, "version": version}, ThreadRow)
