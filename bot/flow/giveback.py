"""What was claimed and could not be started: given back, or taken to people if it may never start as it is.

Not here: leases of owners that are gone (recover) or approvals that got too old while they waited (withdraw).
"""

from collections.abc import Sequence

from bot.flow import settle
from bot.policy.limits import OUTDATED_WAIT_SECONDS, RELEASE_WAIT_SECONDS
from store import outbox
from store.database import Database
from store.queries import Connection
from store.rows import ClaimedRow


async def release(
    db: Database, owner: str, rows: Sequence[ClaimedRow], *, wait_seconds: float = RELEASE_WAIT_SECONDS
) -> None:
    """Give effects back as they were: nothing left us, so it counts for nothing."""
    async with db.connection() as conn:
        await outbox.release_effects(conn, owner, rows, wait_seconds=wait_seconds)


async def put_back(db: Database, owner: str, rows: Sequence[ClaimedRow], ops_channel: str | None) -> None:
    """Give effects back that a start refused.

    What is outdated goes to its reviewers or, if an earlier try may have arrived, to ops.
    """
    async with db.connection() as conn:
        outdated = await outbox.find_outdated_effects(conn, [row.effect_id for row in rows])
    if outdated:
        late = [row for row in rows if row.effect_id in outdated]
        await _take_to_people(db, owner, late, ops_channel)
        await release(db, owner, late, wait_seconds=OUTDATED_WAIT_SECONDS)
    await release(db, owner, rows)


async def _take_to_people(
    db: Database, owner: str, rows: Sequence[ClaimedRow], ops_channel: str | None
) -> None:
    async def work(conn: Connection) -> None:
        await settle.lock(conn, rows)
        await settle.withdraw(conn, [row for row in rows if not row.is_ambiguous])
        await settle.halt(conn, owner, [row for row in rows if row.is_ambiguous], ops_channel)

    await db.retrying(work)
