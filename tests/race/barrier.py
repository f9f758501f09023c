"""Lets racers go at one instant: all of them wait for a lock in the database, which is let go once they do.

Not here: what they race for (the tests).
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, LiteralString

import psycopg

from tests.makers import locked_out
from tests.processes import CAMPAIGN

ROUNDS = 50 if CAMPAIGN else 10
# Where they are stopped: at any look at the queue, so before a claim; between claim and start, and before the
# head that cancelling and newer events lock first, or where a kill waits; at any look at the switch.
AT_THE_CLAIM: LiteralString = "LOCK TABLE effect_outbox IN ACCESS EXCLUSIVE MODE"
AT_THE_START: LiteralString = (
    "SELECT pg_advisory_xact_lock(1467416578) FROM (SELECT count(*) FROM"
    " (SELECT FROM draft_heads FOR UPDATE) AS head) AS heads"
)
AT_THE_SWITCH: LiteralString = "LOCK TABLE kill_switch IN ACCESS EXCLUSIVE MODE"


async def together(
    dsn: str, barrier: LiteralString, *racers: Coroutine[Any, Any, Any], waiting: int = 0
) -> list[Any]:
    """Start racers, hold them where they meet the barrier, let them go when all of them wait there.

    `waiting`: how many wait, where a racer is what wakes other processes.
    """
    async with await psycopg.AsyncConnection.connect(dsn) as holding:
        await holding.execute(barrier)
        racing = [asyncio.create_task(racer) for racer in racers]
        await locked_out(dsn, waiting or len(racers))
        await holding.commit()
    return await asyncio.gather(*racing)
