"""Runs on their way through drafting: claimed, kept, given back, ended.

Not here: how they arrive (store/intake) or what people decide about them (store/decisions).
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from store.queries import Connection, query
from store.rows import Claim, Row

_CLAIM = query("claim_runs")
_RENEW = query("renew_run")
_STORE_RESULT = query("store_result")
_POSTPONE = query("postpone_run")
_FAIL = query("fail_run")
_SUPERSEDE_CLAIMED = query("supersede_claimed_run")
_SUPERSEDE_SHOWN = query("supersede_shown_run")
_SETTLE = query("settle_drafted_run")
_FIND_KEY = query("find_key")


class ClaimedRun(Row):
    """A run that this process drafts, with its content."""

    run_id: UUID
    idempotency_key: str
    kind: str
    entity: str
    draft_key: str
    source_version: int
    version: int
    attempts: int
    takeovers: int
    result: dict[str, Any] | None
    payload: dict[str, Any] | None
    draft: dict[str, Any] | None
    requested_by: str | None


class _Version(Row):
    version: int


@dataclass(slots=True)
class Held:
    """The hold on a claimed run; every write tests it and moves `version` on."""

    run_id: UUID
    owner: str
    version: int

    def params(self) -> dict[str, Any]:
        """Give what identifies the hold in a statement."""
        return {"run_id": self.run_id, "owner": self.owner, "version": self.version}


async def claim_runs(conn: Connection, claim: Claim, *, may_ask: bool = True) -> list[ClaimedRun]:
    """Claim due runs, without `may_ask` only those that need no model call.

    The lease ends by the database's clock.
    """
    return await _CLAIM.rows(conn, claim.params() | {"may_ask": may_ask}, ClaimedRun)


async def renew_run(conn: Connection, held: Held, *, lease_seconds: float, longest_seconds: float) -> None:
    """Keep the lease.

    Raises:
        LostRace: it was lost, or held for longer than a claim may last.

    """
    params = held.params() | {"lease_seconds": lease_seconds, "longest_seconds": longest_seconds}
    await _RENEW.run(conn, params)


async def store_result(conn: Connection, held: Held, result: dict[str, Any]) -> None:
    """Keep the model's answer; LostRace when the lease was lost."""
    held.version = (
        await _STORE_RESULT.one(conn, held.params() | {"result": Jsonb(result)}, _Version)
    ).version


async def postpone_run(
    conn: Connection, held: Held, *, failure: str, wait_seconds: float, counted: bool
) -> None:
    """Give the run back until later; LostRace when the lease was lost."""
    params = {"failure": failure, "wait_seconds": wait_seconds, "counted": int(counted)}
    await _POSTPONE.run(conn, held.params() | params)


async def fail_run(conn: Connection, held: Held, *, failure: str) -> None:
    """End the run as failed; LostRace when the lease was lost."""
    await _FAIL.run(conn, held.params() | {"failure": failure})


async def supersede_claimed_run(conn: Connection, held: Held) -> None:
    """End the run because a newer event is known; LostRace when intake did so already."""
    await _SUPERSEDE_CLAIMED.run(conn, held.params())


async def supersede_shown_run(conn: Connection, run_id: UUID) -> None:
    """End the older run whose draft takes newer content; LostRace when it was decided at this moment."""
    await _SUPERSEDE_SHOWN.run(conn, {"run_id": run_id})


async def settle_drafted_run(conn: Connection, held: Held, *, draft_id: UUID) -> None:
    """Hand the run to people; LostRace when the lease was lost."""
    await _SETTLE.run(conn, held.params() | {"draft_id": draft_id})


async def find_key(conn: Connection, run_id: UUID) -> str:
    """Give the key of a run that is known to exist."""
    return str(await _FIND_KEY.value(conn, {"run_id": run_id}))
