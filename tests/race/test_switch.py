"""Kills against running dispatchers: when a kill is answered, no further send starts.

Not here: what a closed switch holds back (tests/flow/test_stop).
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any, LiteralString
from uuid import UUID

import pytest

from bot.flow import stop
from store import outbox, switch
from store.database import Database
from store.outbox import Room
from tests import makers
from tests.flow.outlets import Scripted, dispatch, dispatcher, make_due
from tests.race.barrier import AT_THE_START, AT_THE_SWITCH, ROUNDS, together

ANN = "slack:T1:U0ANN"


def tried(dsn: str) -> int:
    """How many sends were ever started."""
    return len(makers.rows(dsn, "SELECT FROM effect_outbox WHERE attempts > 0"))


# A kill amid two dispatchers: what was started by then is all that is ever called, and opening sends the
# rest once.
@pytest.mark.parametrize("scope", ["all", "kind:customer_email", "effect:http"])
async def test_kill_against_claims(own_db: Database, own_dsn: str, scope: str) -> None:
    sink = Scripted()
    another = Database(own_dsn)
    await another.open()
    pair = [dispatcher(own_db, sink, owner="one"), dispatcher(another, sink, owner="two")]
    made = 0
    for _ in range(ROUNDS):
        made += len(makers.make_effects(own_dsn, 20, targets=4))
        runs = [asyncio.create_task(one.run_once()) for one in pair]
        await stop.kill(own_db, scope=scope, by=ANN, reason="race")
        at_kill = await asyncio.to_thread(tried, own_dsn)
        await asyncio.gather(*runs)
        await asyncio.gather(*(one.run_once() for one in pair))
        await asyncio.gather(*(one.quiet() for one in pair))
        assert tried(own_dsn) == at_kill == len(sink.calls)
        await stop.resume(own_db, scope=scope, by=ANN, reason="race")
        make_due(own_dsn)
        while tried(own_dsn) < made:
            await dispatch(own_db, sink, owner="three")
        await asyncio.gather(*(one.quiet() for one in pair))
    await another.close()
    assert max(Counter(call.effect_id for call in sink.calls).values()) == 1


# A kill and dispatchers let go at one instant, at the look at the switch or at the start: when the kill is
# answered no further send starts, its answer names each call on the wire, and opening sends the rest once.
@pytest.mark.parametrize("barrier", [AT_THE_SWITCH, AT_THE_START], ids=["claim", "start"])
async def test_kill_against_claim_and_start(own_db: Database, own_dsn: str, barrier: LiteralString) -> None:
    sink = Scripted()
    sink.holds = lambda _: True
    another = Database(own_dsn)
    await another.open()
    pair = [dispatcher(own_db, sink, owner="one"), dispatcher(another, sink, owner="two")]

    answers: list[tuple[set[UUID], int]] = []

    async def kill() -> None:
        killed = await stop.kill(own_db, by=ANN, reason="race")
        answers.append(({one.effect_id for one in killed.started}, await asyncio.to_thread(tried, own_dsn)))

    for number in range(1, ROUNDS + 1):
        sink.let_go.clear()
        before = len(sink.calls)
        makers.make_effects(own_dsn, 6, targets=6)
        # One takes all that is due: only that one comes as far as the start.
        some = pair if barrier == AT_THE_SWITCH else pair[:1]
        racers: list[Coroutine[Any, Any, Any]] = [one.run_once() for one in some]
        racers.insert(number % 2 * len(racers), kill())
        await together(own_dsn, barrier, *racers)
        started, at_kill = answers[-1]
        await asyncio.gather(*(one.run_once() for one in pair))
        sink.let_go.set()
        await asyncio.gather(*(one.quiet() for one in pair))
        assert tried(own_dsn) == at_kill == len(sink.calls)
        assert {call.effect_id for call in sink.calls[before:]} == started
        await stop.resume(own_db, by=ANN, reason="race")
        while tried(own_dsn) < 6 * number:
            make_due(own_dsn)
            await dispatch(own_db, sink, owner="three")
        await asyncio.gather(*(one.quiet() for one in pair))
    await another.close()
    assert max(Counter(call.effect_id for call in sink.calls).values()) == 1


# F029: the switch closes while sends are on the wire: they are recorded truthfully, nothing new starts from
# the queue or from what is delayed, and after opening each leaves once.
async def test_kill_during_a_batch(own_db: Database, own_dsn: str) -> None:
    queued = makers.make_effects(own_dsn, 50)
    delayed = makers.make_effects(own_dsn, 5)
    makers.change(
        own_dsn,
        "UPDATE effect_outbox SET not_before = now() + interval '1 hour' WHERE effect_id = ANY(%(ids)s)",
        ids=delayed,
    )
    sink = Scripted()
    sink.holds = lambda _: len(sink.calls) == 3
    one = dispatcher(own_db, sink, margin_seconds=60.0)
    await one.run_once()
    await sink.held.wait()
    killed = await stop.kill(own_db, by=ANN, reason="stop")
    calls = len(sink.calls)
    makers.change(own_dsn, "UPDATE effect_outbox SET not_before = now() WHERE not_before IS NOT NULL")
    await one.run_once()
    sink.let_go.set()
    await one.quiet()
    await one.run_once()
    await one.quiet()
    assert sink.calls[2].effect_id in {effect.effect_id for effect in killed.started}
    assert len(sink.calls) == calls == tried(own_dsn)
    states = Counter(row["state"] for row in makers.rows(own_dsn, "SELECT state FROM effect_outbox"))
    assert states == {"completed": calls, "pending": 55 - calls}
    await stop.resume(own_db, by=ANN, reason="go on")
    make_due(own_dsn)
    await one.run_once()
    await one.quiet()
    assert Counter(call.effect_id for call in sink.calls) == Counter([*queued, *delayed])


# A kill waits for a start in hand and then lists it; a start that comes while the kill is in hand waits, and
# finds a closed switch, though its snapshot could be older.
@pytest.mark.parametrize("scope", ["all", "kind:customer_email"])
async def test_kill_and_start_wait_for_each_other(own_db: Database, own_dsn: str, scope: str) -> None:
    first, _ = makers.make_effects(own_dsn, 2)
    room = Room(
        most=9, slots=9, lanes={}, effect_types=["http"], enabled=True, timeout_seconds=10, extra_seconds=30
    )
    async with own_db.connection() as conn:
        rows = {row.effect_id: row for row in await outbox.claim_effects(conn, "me", room)}

    async def start(*ids: object) -> int:
        async with own_db.transaction() as conn:
            await switch.queue_for_switch(conn)
            chosen = [(row, 10) for effect_id, row in rows.items() if effect_id in ids]
            return len(await outbox.start_effects(conn, "me", chosen, enabled=True, extra_seconds=30))

    async with own_db.transaction() as conn:
        await switch.queue_for_switch(conn)
        started = await outbox.start_effects(conn, "me", [(rows[first], 10)], enabled=True, extra_seconds=30)
        kill = asyncio.create_task(stop.kill(own_db, scope=scope, by=ANN, reason="race"))
        await _somebody_waits(own_dsn, 1)
        late = asyncio.create_task(start(*rows))
        await _somebody_waits(own_dsn, 2)
        assert not kill.done()
    killed = await kill
    assert (len(started), [effect.effect_id for effect in killed.started], await late) == (1, [first], 0)


async def _somebody_waits(dsn: str, count: int) -> None:
    """Come back once so many sessions wait for the switch's lock, as the server tells."""
    waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    while len(await asyncio.to_thread(makers.rows, dsn, waiting)) < count:
        pass
