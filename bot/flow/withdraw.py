"""Takes approvals back that got too old before anything was sent, also while the switch is closed.

Not here: withdrawal by a newer event (arrive, in the intake's transaction) or by a person (decide).
"""

from dataclasses import dataclass

from bot.flow import settle
from bot.policy.limits import RECOVERY_BATCH
from store import outbox
from store.database import Database
from store.queries import Connection


@dataclass(frozen=True, slots=True)
class Withdrawing:
    """What withdrawing needs."""

    db: Database


async def run_once(deps: Withdrawing) -> int:
    """Withdraw up to a batch of stale approvals; gives how many drafts went back to their reviewers."""
    async with deps.db.connection() as conn:
        stale = await outbox.find_stale_effects(conn, most=RECOVERY_BATCH)
    if not stale:
        return 0

    async def work(conn: Connection) -> int:
        await settle.lock(conn, stale)
        return await settle.withdraw(conn, stale)

    return await deps.db.retrying(work)
