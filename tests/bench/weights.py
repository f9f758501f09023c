"""What Stet weighs: processor time and bytes an event, memory, and what it costs when nothing happens.
Not here: rates (paths).
"""

import asyncio
from typing import Final

from tests.bench import rows
from tests.bench.figures import Line, at_most, told
from tests.bench.stage import CHANNELS, Bench, Server
from tests.bench.traffic import bearer_event, click, event, pack

WARM_EVENTS: Final = 40
COST_EVENTS: Final = 200
FLAT_EVENTS: Final = 20_000
WAITING_EVENTS: Final = 100_000
IDLE_SECONDS: Final = 8.0
PATIENCE_SECONDS: Final = 60.0
SIZE = "SELECT sum(pg_total_relation_size(relid))::bigint FROM pg_catalog.pg_statio_user_tables"
# Free space is no cost of an event; VACUUM FULL leaves what the rows and their indexes need.
PACK = "VACUUM FULL"


async def cost(bench: Bench) -> list[Line]:
    """An event's whole way, from the post over its card and the click to the send, many at a time."""
    with bench.ground() as ground:
        async with bench.stet(ground.dsn, BENCH_UNPACED="1") as stet:
            await _walk(bench, stet, "warm", WARM_EVENTS)
            rows.run(ground.dsn, PACK)
            before, began = rows.value(ground.dsn, SIZE), stet.cpu_seconds()
            await _walk(bench, stet, "cost", COST_EVENTS)
            seconds = stet.cpu_seconds() - began
        rows.run(ground.dsn, PACK)
        grown = rows.value(ground.dsn, SIZE) - before
    return [
        told("database bytes per finished event", f"{grown / COST_EVENTS:,.0f} bytes"),
        told("processor time per event from post to sent", f"{1000 * seconds / COST_EVENTS:.1f} ms"),
    ]


async def memory(bench: Bench) -> list[Line]:
    """After the first thousand events, after many, and with very many waiting."""
    with bench.ground() as ground:
        async with bench.stet(ground.dsn) as stet:
            await _post(bench, stet, "first", 1_000)
            first = stet.megabytes()
            await _post(bench, stet, "more", FLAT_EVENTS)
            flat = stet.megabytes()
            rows.fill(ground.dsn, bench.kind, rows.WAITING, WAITING_EVENTS, base=ground.base)
            await _post(bench, stet, "last", 1_000)
            waiting = stet.megabytes()
    return [
        told("memory after 1,000 events", f"{first:.0f} MB"),
        at_most(f"memory that {FLAT_EVENTS:,} more events add", flat - first, 10, "MB"),
        at_most(f"memory that {WAITING_EVENTS:,} waiting events add", waiting - flat, 50, "MB"),
    ]


async def idle(bench: Bench) -> list[Line]:
    """Nothing to do."""
    with bench.ground() as ground:
        async with bench.stet(ground.dsn) as stet:
            await asyncio.sleep(2)
            began = stet.cpu_seconds()
            await asyncio.sleep(IDLE_SECONDS)
            share = (stet.cpu_seconds() - began) / IDLE_SECONDS * 100
            size = stet.megabytes()
    return [at_most("idle: of one core", share, 0.5, "%"), at_most("idle: memory", size, 150, "MB")]


async def _post(bench: Bench, stet: Server, name: str, many: int) -> None:
    file = pack(bench.folder / "posted", (bearer_event(event(n, run=name)) for n in range(many)))
    await bench.load(stet, file, once=True, seconds=PATIENCE_SECONDS)


async def _walk(bench: Bench, stet: Server, name: str, many: int) -> None:
    """Post events with drafts, press approve on each card, wait until all are sent and shown as sent."""
    out = bench.outside
    out.posted.clear()
    out.sent = 0
    made = (event(n, run=name, draft=True, kind=f"mail_{n % CHANNELS}") for n in range(many))
    file = pack(bench.folder / "walked", (bearer_event(one) for one in made))
    await bench.load(stet, file, once=True, seconds=PATIENCE_SECONDS)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await out.until(lambda: len(out.posted) >= many)
        presses = [click(value.partition(".")[0], channel, ts) for channel, ts, value in out.posted if value]
        await bench.load(stet, pack(bench.folder / "pressed", presses), once=True, seconds=PATIENCE_SECONDS)
        await out.until(lambda: out.sent >= many)
    await asyncio.sleep(1)  # The last cards say "sent".
