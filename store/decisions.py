"""Questions put to people and the one statement that answers them.

Not here: who may answer (bot/policy/people) or how tokens are made (store/tokens).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from store.errors import LostRace
from store.queries import AsyncCursor, Connection, query
from store.rows import Row

_FIND = query("find_questions")
_VOTE = query("vote")
_FIND_DECISION = query("find_decision")


class Question(Row):
    """The question behind one token, as it stood when it was read."""

    token_hash: str
    approval_id: UUID
    allows: str
    surface: str
    card_id: UUID | None
    holder: str | None
    shown_hash: str
    revision: int
    card_channel: str | None
    card_ts: str | None
    draft_id: UUID
    draft_key: str
    kind: str
    entity: str
    status: str
    newest_revision: int
    run_id: UUID
    is_current: bool | None
    is_expired: bool
    expires_at: datetime
    is_blocked: bool
    is_redrafting: bool
    snapshot: dict[str, Any]
    idempotency_key: str
    requested_by: str | None
    editor: str
    body_hash: str
    over_decision: str | None
    over_by: str | None
    over_at: datetime | None
    over_reason: str | None
    voters: list[str]


class Voted(Row):
    """What one vote did; `reached` says whether it decided."""

    idempotency_key: str
    draft_id: UUID
    run_id: UUID
    revision: int
    votes: int
    quorum: int
    reached: bool
    shown_hash: str


class CastVote(Voted):
    """The same, among several: by the token that it answered."""

    token_hash: str


class DecisionRow(Row):
    """What became of a question."""

    decision: str | None
    approver_subject: str | None
    consumed_at: datetime | None
    token_hash: str | None
    voted: bool


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's answer; `considered` are the voters whose membership was checked for this very vote."""

    token_hash: str
    revision: int
    decision: str
    surface: str
    channel: str | None
    ts: str | None
    subject: str
    counted_as: str
    reason: str | None
    considered: list[str]
    still_reviewers: list[str]
    effect_ids: list[UUID]


async def find_question(conn: Connection, token_hash: str) -> Question | None:
    """Read what a token asks; None for a token that was never ours."""
    return (await find_questions(conn, [token_hash])).get(token_hash)


async def find_questions(conn: Connection, token_hashes: Sequence[str]) -> dict[str, Question]:
    """Read what tokens ask, by token hash; those that were never ours are left out."""
    rows = await _FIND.rows(conn, {"token_hashes": list(token_hashes)}, Question)
    return {row.token_hash: row for row in rows}


async def send_vote(conn: Connection, answer: Vote) -> AsyncCursor[CastVote]:
    """Record one answer, in a pipelined transaction under the head's lock; `read_vote` gives what it did."""
    return await _VOTE.send(conn, _written([answer]), CastVote)


async def read_vote(sent: AsyncCursor[CastVote]) -> CastVote:
    """Give what a vote did.

    Raises:
        LostRace: nothing was changed; the question is over or has changed.

    """
    voted = await sent.fetchone()
    if voted is None:
        raise lost_vote()
    return voted


async def cast_votes(conn: Connection, answers: Sequence[Vote]) -> dict[str, CastVote]:
    """Record answers to as many drafts, under their heads' locks; what is left out changed nothing."""
    rows = await _VOTE.rows(conn, _written(answers), CastVote)
    return {row.token_hash: row for row in rows}


def lost_vote() -> LostRace:
    """What is raised for a vote that changed nothing."""
    return LostRace(_VOTE.name, _VOTE.meaning)


def _written(answers: Sequence[Vote]) -> dict[str, str]:
    return {"votes": orjson.dumps(answers).decode()}


async def find_decision(
    conn: Connection, *, token_hash: str, subject: str, decision: str
) -> DecisionRow | None:
    """Read again what became of a question, for a commit whose answer was lost."""
    return await _FIND_DECISION.maybe(
        conn, {"token_hash": token_hash, "subject": subject, "decision": decision}, DecisionRow
    )
