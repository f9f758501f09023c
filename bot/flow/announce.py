"""Tells the outcome of a run to whoever waits upstream: one effect a waiter, put into the outbox.

Not here: what ends a run (it shows itself, sql/migrations/0010), the calls (dispatch, bot/connectors/resume).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bot.flow.checkpoints import reach
from bot.policy.limits import INTAKE_SECONDS, RESUME_DELAY_SECONDS
from store import outcomes
from store.database import Database
from store.queries import Connection

BATCH: Final = 100  # Runs held together; none of them moves any more, so nobody waits behind them for long.
DELAY_SECONDS: Final = RESUME_DELAY_SECONDS + 0.25  # Our answer may be on its way out of this process still.


@dataclass(frozen=True, slots=True)
class Announcing:
    """What announcing needs; `due_in` hears in how many seconds the youngest of the effects is due."""

    db: Database
    due_in: Callable[[float], None] = lambda _seconds: None


async def run_once(deps: Announcing) -> int:
    """Put up to a batch of outcomes into the outbox, in one transaction; give how many runs those were of.

    Raises:
        DatabaseAway: nobody was marked as told.

    """

    async def work(conn: Connection) -> tuple[int, int]:
        ended = await outcomes.hold_ended_runs(conn, most=BATCH)
        if not ended:
            return 0, 0
        told = await outcomes.announce_outcomes(
            conn, ended, answer_seconds=INTAKE_SECONDS, delay_seconds=DELAY_SECONDS
        )
        reach("announce.before_commit")
        return len(ended), told

    ended, told = await deps.db.retrying(work)
    if told:
        reach("announce.after_commit")
        deps.due_in(DELAY_SECONDS)
    return ended
