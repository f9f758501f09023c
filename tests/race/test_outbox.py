"""Several dispatchers, people and newer events at once: each effect leaves once, and one row decides.

Not here: the steps one at a time (tests/flow) or killed processes (tests/crash).
"""

import asyncio
from collections import Counter
from typing import LiteralString

import pytest

from bot.contracts.outcome import Found
from bot.flow import recover
from bot.flow.receive import Accepted, Receiver
from bot.flow.reconcile import Choice, Reconciling, Resolved, run_once, settle_unknown
from bot.flow.recover import Recovering
from bot.flow.tally import Tally
from store import outbox
from store.database import Database
from store.outbox import Room
from tests import makers
from tests.flow.outlets import Scripted, dispatch, dispatcher, effect_row, make_due
from tests.race.barrier import AT_THE_CLAIM, AT_THE_START, ROUNDS, together
from tests.upstream import arrival

ROOM = Room(
    most=100, slots=100, lanes={}, effect_types=["http"], enabled=True, timeout_seconds=10, extra_seconds=30
)


def states(dsn: str) -> Counter[str]:
    return Counter(row["state"] for row in makers.rows(dsn, "SELECT state FROM effect_outbox"))


# F024: two processes share 200 effects; every one is called once, completes, and was tried once.
async def test_two_dispatchers(own_db: Database, own_dsn: str) -> None:
    made = makers.make_effects(own_dsn, 200, targets=3)
    sink = Scripted()
    sink.holds = lambda _: not sink.let_go.is_set()
    another = Database(own_dsn)
    await another.open()
    pair = [dispatcher(own_db, sink, owner="one"), dispatcher(another, sink, owner="two")]
    await asyncio.gather(*(one.run_once() for one in pair))
    sink.let_go.set()
    while states(own_dsn) != {"completed": 200}:
        await asyncio.gather(*(one.run_once() for one in pair))
        await asyncio.gather(*(one.quiet() for one in pair))
    await another.close()
    assert Counter(call.effect_id for call in sink.calls) == Counter(made)
    rows = makers.rows(own_dsn, "SELECT DISTINCT attempts FROM effect_outbox")
    assert [row["attempts"] for row in rows] == [1]


# An owner that slept through its lease may start, record and give back nothing of it any more.
async def test_stale_owner(own_db: Database, own_dsn: str) -> None:
    (effect_id,) = makers.make_effects(own_dsn, 1)
    async with own_db.connection() as conn:
        rows = await outbox.claim_effects(conn, "sleeper", ROOM)
    makers.change(own_dsn, "UPDATE effect_outbox SET lease_expires_at = now() - interval '1 second'")
    assert await recover.run_once(Recovering(own_db)) == 1
    sink = Scripted()
    sink.holds = lambda _: True
    one = dispatcher(own_db, sink, owner="other")
    await one.run_once()
    await sink.held.wait()
    async with own_db.connection() as conn:
        started = await outbox.start_effects(
            conn, "sleeper", [(row, 10) for row in rows], enabled=True, extra_seconds=30
        )
        released = await outbox.release_effects(conn, "sleeper", rows, wait_seconds=0)
    sink.let_go.set()
    await one.quiet()
    assert (started, released) == ({}, set())
    assert (effect_row(own_dsn, effect_id)["state"], len(sink.calls)) == ("completed", 1)


# A newer event against the claim, and between claim and start: either the older effect left, or it was
# withdrawn and was never called.
@pytest.mark.parametrize("barrier", [AT_THE_CLAIM, AT_THE_START], ids=["claim", "start"])
async def test_newer_event_against_claim(own_db: Database, own_dsn: str, barrier: LiteralString) -> None:
    outcomes: Counter[str] = Counter()
    another = Database(own_dsn)
    await another.open()
    receiver = Receiver(another, Tally(another), wake=lambda _step: None)
    for number in range(ROUNDS):
        (made,) = makers.make_effects(own_dsn, 1)
        sink = Scripted()
        one = dispatcher(own_db, sink)
        newer = arrival(18, key=f"newer-{number}", entity=f"customer:{made}")
        answer, _ = await together(own_dsn, barrier, receiver.receive(newer), one.run_once())
        assert isinstance(answer, Accepted)
        await one.run_once()
        await one.quiet()
        row = effect_row(own_dsn, made)
        outcomes[row["state"]] += 1
        fits = {
            "completed": (1, "sent", "completed"),
            "cancelled": (0, "pending", "awaiting_human"),
        }[row["state"]]
        assert (len(sink.calls), row["draft_status"], row["run_state"]) == fits
    assert outcomes.total() == ROUNDS
    await receiver.close()
    await another.close()


# A lease that ends at the very moment of recording: recorded, or unknown and then proven, never sent again.
async def test_recovery_against_recording(own_db: Database, own_dsn: str) -> None:
    for _ in range(20):
        (made,) = makers.make_effects(own_dsn, 1)
        sink = Scripted()
        sink.holds = lambda _: True
        one = dispatcher(own_db, sink)
        await one.run_once()
        await sink.held.wait()
        sink.let_go.set()
        late = (
            "UPDATE effect_outbox SET lease_expires_at = clock_timestamp()"
            " WHERE effect_id = %(id)s AND state = 'sending'"
        )
        await asyncio.gather(
            one.quiet(),
            asyncio.to_thread(makers.change, own_dsn, late, id=made),
            recover.run_once(Recovering(own_db)),
        )
        await recover.run_once(Recovering(own_db))
        await run_once(Reconciling(own_db, {"http": sink}))
        row = effect_row(own_dsn, made)
        assert (row["state"], row["draft_status"], len(sink.calls)) == ("completed", "sent", 1)


# Two people and the look-up settle one unknown effect at once: one of them does, the record has one line.
@pytest.mark.parametrize("round_", range(10))
async def test_one_settles(own_db: Database, own_dsn: str, round_: int) -> None:
    effect_id = makers.make_effect(own_dsn, state="unknown", attempts=1)
    make_due(own_dsn)
    sink = Scripted()
    sink.found = Found("msg-1")
    first, second, _ = await asyncio.gather(
        settle_unknown(own_db, effect_id, 1, choice=Choice.DELIVERED, by="slack:T1:U1"),
        settle_unknown(own_db, effect_id, 1, choice=Choice.GIVE_UP, by="slack:T1:U2"),
        run_once(Reconciling(own_db, {"http": sink})),
    )
    assert [isinstance(one, Resolved) for one in (first, second)].count(True) <= 1
    row = effect_row(own_dsn, effect_id)
    assert row["state"] == ("failed" if isinstance(second, Resolved) else "completed")
    lines = makers.rows(own_dsn, "SELECT FROM audit_log WHERE chain = %(key)s", key=row["idempotency_key"])
    assert len(lines) == 1


# A person's "send again", clicked twice and dispatched by two processes, sends once.
async def test_send_again_once(own_db: Database, own_dsn: str) -> None:
    effect_id = makers.make_effect(own_dsn, state="unknown", attempts=1)
    sink = Scripted()
    await asyncio.gather(
        *(settle_unknown(own_db, effect_id, 1, choice=Choice.RESEND, by=f"slack:T1:U{n}") for n in range(3)),
        dispatch(own_db, sink, owner="one"),
        dispatch(own_db, sink, owner="two"),
    )
    await dispatch(own_db, sink, owner="three")
    assert (effect_row(own_dsn, effect_id)["state"], len(sink.calls)) == ("completed", 1)
