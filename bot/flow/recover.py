"""Takes effects from owners whose lease ran out: not started goes back, started is unknown, never pending.

Not here: what a living process gives back itself (dispatch) or asking the provider (reconcile).
"""

from dataclasses import dataclass

from bot.flow import settle
from bot.flow.settle import Moved
from bot.policy.delivery import UNKNOWN
from bot.policy.limits import RECOVERY_BATCH, SETTLE_SECONDS
from store import outbox
from store.database import Database
from store.outbox import RecoveredRow
from store.queries import Connection
from store.rows import EffectRef, Result


@dataclass(frozen=True, slots=True)
class Recovering:
    """What recovering needs."""

    db: Database
    ops_channel: str | None = None


async def run_once(deps: Recovering) -> int:
    """Recover up to a batch of effects; gives how many moved."""
    async with deps.db.connection() as conn:
        late = await outbox.find_expired_leases(conn, most=RECOVERY_BATCH)
    if not late:
        return 0

    async def work(conn: Connection) -> int:
        newest = await settle.lock(conn, late)
        taken = await outbox.recover_effects(conn, late, settle_seconds=SETTLE_SECONDS)
        by_id = {effect.effect_id: effect for effect in late}
        moved = [_moved(by_id[row.effect_id], row) for row in taken]
        await settle.conclude(conn, moved, deps.ops_channel)
        overtaken = [one.effect for one in moved if settle.is_overtaken(one.effect, newest)]
        await settle.withdraw(conn, overtaken)
        return len(moved)

    return await deps.db.retrying(work)


def _moved(effect: EffectRef, row: RecoveredRow) -> Moved:
    reason = "lease_expired" if row.state == UNKNOWN else None
    return Moved(effect, row.version, effect.attempts, Result(state=row.state, reason=reason))
