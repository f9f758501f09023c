"""Runs the clock: ends pending drafts that nobody decided in time, blocked ones too.

Not here: reminders, or telling who waits upstream. Expired is never rejected.
"""

from dataclasses import dataclass
from typing import Final

from bot.flow.checkpoints import reach
from store import audit, expiry, heads
from store.audit import SYSTEM, Entry
from store.database import Database

BATCH: Final = 100  # Heads locked together: short enough that no click waits for long behind them.


@dataclass(frozen=True, slots=True)
class Expiring:
    """What the clock needs."""

    db: Database


async def run_once(deps: Expiring) -> int:
    """End up to BATCH drafts whose time is over; 0 when none is left, or others were quicker.

    Raises:
        DatabaseBusy: a head is locked for longer than a statement may wait; the next sweep comes again.

    """
    async with deps.db.connection() as conn:
        keys = await expiry.list_expired(conn, most=BATCH)
    if not keys:
        return 0
    async with deps.db.transaction() as conn:
        await heads.lock_heads(conn, keys)
        expired = await expiry.expire_drafts(conn, keys)
        lines = [
            Entry(
                one.idempotency_key,
                SYSTEM,
                "expired",
                {"draft_id": str(one.draft_id), "revision": one.revision},
            )
            for one in expired
        ]
        if lines:
            await audit.append(conn, lines)
    reach("expire.after_commit")
    return len(expired)
