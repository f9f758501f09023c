"""Wishes for another revision by the model: opened by a person, claimed by a worker, closed once.

Not here: asking the model (bot/flow/redrafter) or storing what it wrote (store/drafts).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from store.ids import new_id
from store.queries import Connection, query
from store.rows import Claim, EditedDraft, Row, Spending

_COUNT = query("count_redrafts")
_OPEN = query("open_redraft")
_FIND_BY = query("find_redraft_by")
_CLAIM = query("claim_redrafts")
_RENEW = query("renew_redraft")
_KEEP_ANSWER = query("keep_redraft_answer")
_POSTPONE = query("postpone_redraft")
_USE = query("use_redraft")
_CLOSE = query("close_redraft")
_LIST_OVERDUE = query("list_overdue_redrafts")
_CLOSE_OVERDUE = query("close_overdue_redrafts")


class ClaimedRedraft(Row):
    """A wish that this process fulfils, with what the model needs to know."""

    redraft_id: UUID
    draft_id: UUID
    draft_key: str
    revision: int
    requested_by: str
    wish: str | None
    attempts: int
    result: dict[str, Any] | None
    left_seconds: float
    kind: str
    body: dict[str, Any] | None
    payload: dict[str, Any] | None
    output: dict[str, Any] | None
    idempotency_key: str


class OverdueRedraft(Row):
    """A wish whose time was over."""

    redraft_id: UUID
    draft_id: UUID
    revision: int
    idempotency_key: str


class _Key(Row):
    draft_key: str


class _Id(Row):
    redraft_id: UUID


@dataclass(frozen=True, slots=True)
class Grip:
    """The hold on a claimed wish: the owner, and which claim it was."""

    redraft_id: UUID
    owner: str
    attempts: int


async def count_redrafts(conn: Connection, draft_id: UUID) -> int:
    """Count the wishes about the draft's present event that the model was, or may be, asked."""
    return int(await _COUNT.value(conn, {"draft_id": draft_id}))


async def open_redraft(conn: Connection, spending: Spending, *, wish: str, most: int) -> UUID:
    """Keep a wish, under the head's lock.

    Raises:
        LostRace: the question is over, has changed, or `most` wishes were granted.

    """
    params = asdict(spending) | {"redraft_id": new_id(), "wish": wish, "most": most}
    return (await _OPEN.one(conn, params, _Id)).redraft_id


async def find_redraft_by(conn: Connection, spending: Spending) -> UUID | None:
    """Read again whether this person's wish was kept, for a commit whose answer was lost."""
    params = {"token_hash": spending.token_hash, "subject": spending.subject}
    found = await _FIND_BY.maybe(conn, params, _Id)
    return found.redraft_id if found else None


async def claim_redrafts(conn: Connection, claim: Claim, *, longest_seconds: float) -> list[ClaimedRedraft]:
    """Claim due wishes; one lives for `longest_seconds` in all."""
    return await _CLAIM.rows(conn, claim.params() | {"longest_seconds": longest_seconds}, ClaimedRedraft)


async def renew_redraft(
    conn: Connection, grip: Grip, *, lease_seconds: float, longest_seconds: float
) -> None:
    """Keep the lease; LostRace when it was lost or the wish is over."""
    await _RENEW.run(
        conn, asdict(grip) | {"lease_seconds": lease_seconds, "longest_seconds": longest_seconds}
    )


async def keep_redraft_answer(conn: Connection, grip: Grip, result: dict[str, Any]) -> None:
    """Keep the model's answer; LostRace when the lease was lost."""
    await _KEEP_ANSWER.run(conn, asdict(grip) | {"result": Jsonb(result)})


async def postpone_redraft(
    conn: Connection, grip: Grip, *, wait_seconds: float, longest_seconds: float
) -> None:
    """Give the wish back until later; LostRace when it was lost or there is not time enough."""
    await _POSTPONE.run(
        conn, asdict(grip) | {"wait_seconds": wait_seconds, "longest_seconds": longest_seconds}
    )


async def use_redraft(conn: Connection, grip: Grip) -> EditedDraft:
    """Open the next revision and its question and close the wish; the content has to follow.

    Raises:
        LostRace: the lease was lost, or the revision is not the open one any more.

    """
    return await _USE.one(conn, asdict(grip) | {"approval_id": new_id()}, EditedDraft)


async def close_redraft(conn: Connection, grip: Grip, outcome: str) -> None:
    """End the wish without a revision; LostRace when somebody else did."""
    await _CLOSE.one(conn, asdict(grip) | {"outcome": outcome}, _Id)


async def list_overdue_redrafts(conn: Connection, *, most: int, longest_seconds: float) -> list[str]:
    """Give the draft_keys of wishes whose time is over."""
    params = {"most": most, "longest_seconds": longest_seconds}
    return [row.draft_key for row in await _LIST_OVERDUE.rows(conn, params, _Key)]


async def close_overdue_redrafts(
    conn: Connection, draft_keys: Sequence[str], *, longest_seconds: float
) -> list[OverdueRedraft]:
    """End the wishes of these keys whose time is over; the heads are locked."""
    params = {"draft_keys": list(draft_keys), "longest_seconds": longest_seconds}
    return await _CLOSE_OVERDUE.rows(conn, params, OverdueRedraft)
