"""A process with a dispatcher and nothing else: empties an outbox through a connector that does nothing.
Not here: the rows (rows). Run as `python -m tests.bench.drain`; takes an order, gives a result.
"""

import cProfile
import json
import os
import resource
import sys
import time
from typing import Any

import uvloop

from bot.connectors.connector import Effect
from bot.contracts.outcome import Absent, LookUpOutcome, SendOutcome, Sent
from bot.flow.dispatch import Dispatcher, Outlet
from store.database import Database


class Nothing:
    """Answers at once that it was done."""

    def __init__(self, effect_type: str) -> None:
        self.effect_type = effect_type

    def idempotent(self, effect: Effect) -> bool:
        """Whether a repetition does no harm."""
        return True

    async def send(self, effect: Effect) -> SendOutcome:
        """Do nothing."""
        return Sent("nothing")

    async def look_up(self, effect: Effect) -> LookUpOutcome:
        """Find nothing."""
        return Absent()


async def drain(order: dict[str, Any]) -> dict[str, Any]:
    """Send everything that is due."""
    db = Database(order["dsn"])
    await db.open()
    connectors = {name: Nothing(name) for name in ("http", "resume")}
    dispatcher = Dispatcher(Outlet(db, "bench", connectors, actions_enabled=True))
    async with db.connection():
        began, cpu_began = time.perf_counter(), time.process_time()
    while await dispatcher.run_once():
        await dispatcher.quiet()
    seconds = time.perf_counter() - began
    cpu = time.process_time() - cpu_began
    await db.close()
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    given = json.load(sys.stdin)
    profile = cProfile.Profile() if "BENCH_PROFILE" in os.environ else None
    if profile is not None:
        profile.enable()
    result = uvloop.run(drain(given))
    if profile is not None:
        profile.disable()
        profile.dump_stats(os.environ["BENCH_PROFILE"])
    json.dump(result, sys.stdout)
