"""Limits under two pools at once: a cap, a place and a trial are never given out twice.

Not here: one process at a time (tests/flow/test_limits, tests/flow/test_resting).
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextvars import Context
from decimal import Decimal
from typing import Any

import pytest

from bot.connectors.connector import Effect
from bot.contracts.outcome import NotSent, Refused, SendOutcome, Sent, Unknown
from bot.flow.dispatch import Dispatcher
from store import outbox
from store.database import Database
from store.outbox import Room
from store.queries import Connection
from store.rows import ClaimedRow
from tests import makers
from tests.flow.outlets import Scripted, dispatcher, make_due
from tests.flow.test_limits import make_worth

ROUNDS = 50


@pytest.fixture
async def pair(own_db: Database, own_dsn: str) -> AsyncIterator[tuple[Database, Database]]:
    """Two pools, as two processes have them."""
    another = Database(own_dsn)
    await another.open()
    yield own_db, another
    await another.close()


async def both(*some: Dispatcher) -> None:
    """Let all of them claim at once, until nothing is in hand."""
    await asyncio.gather(*(one.run_once() for one in some))
    await asyncio.gather(*(one.quiet() for one in some))


# Two processes, fifty rounds of effects of which some fail: what left or may have left never passes a cap,
# and every share that is free is given out.
async def test_caps_are_exact(pair: tuple[Database, Database], own_dsn: str) -> None:
    answers: list[SendOutcome] = [
        Sent(None),
        NotSent("connection_refused"),
        Sent(None),
        Unknown("timeout"),
        Refused("http_400"),
    ]
    left: list[Effect] = []

    def answer(effect: Effect) -> SendOutcome:
        made = answers[effect.effect_id.int % len(answers)]
        if isinstance(made, Sent | Unknown):
            left.append(effect)
        return made

    sink = Scripted(answer)
    some = [dispatcher(db, sink, owner=f"{n}") for n, db in enumerate(pair)]
    cap = 0
    for number in range(ROUNDS):
        cap += 1 + number % 3
        makers.limit(own_dsn, cap_day=cap, breaker_after=0)
        makers.make_effects(own_dsn, 8, effect={"attempts": 1})
        await both(*some)
        assert len(left) <= cap
    while len(left) < cap:
        before = len(sink.calls)
        await both(*some)
        assert len(sink.calls) > before
    assert len(left) == len({effect.effect_id for effect in left}) == cap


# The same for what effects are worth: two processes never let more out than the cap, fifty times.
async def test_value_caps_are_exact(pair: tuple[Database, Database], own_dsn: str) -> None:
    sink = Scripted()
    worth: dict[object, Decimal] = {}
    some = [dispatcher(db, sink, owner=f"{n}") for n, db in enumerate(pair)]
    cap = Decimal(0)
    for number in range(ROUNDS):
        cap += 10
        makers.limit(own_dsn, value="output.amount", cap_value_day=cap)
        amounts = [3.5, 2.25, 4, 0.25, 7][number % 3 :]
        worth |= dict(zip(make_worth(own_dsn, *amounts), map(Decimal, amounts), strict=True))
        await both(*some)
        sent = sum(worth[call.effect_id] for call in sink.calls)
        waiting = [value for effect_id, value in worth.items() if effect_id not in _ids(sink)]
        assert sent <= cap
        assert not waiting or sent + min(waiting) > cap
    assert Counter(_ids(sink)).most_common(1)[0][1] == 1


def _ids(sink: Scripted) -> list[object]:
    return [call.effect_id for call in sink.calls]


# Never more calls at once than the limit, however many processes have room for more.
async def test_places_are_not_given_twice(pair: tuple[Database, Database], own_dsn: str) -> None:
    makers.limit(own_dsn, concurrency=3)
    makers.make_effects(own_dsn, 60)
    under_way = "SELECT count(*)::int AS n FROM effect_outbox WHERE state = 'sending'"
    seen: list[int] = []

    def answer(_: Effect) -> SendOutcome:
        seen.append(makers.rows(own_dsn, under_way)[0]["n"])
        return Sent(None)

    sink = Scripted(answer)
    some = [dispatcher(db, sink, owner=f"{n}") for n, db in enumerate(pair)]
    while len(sink.calls) < 60:
        await both(*some)
    assert max(seen) <= 3
    assert len(set(_ids(sink))) == 60


# After a rest exactly one effect tries the target, whoever asks first, round after round.
async def test_one_trial(pair: tuple[Database, Database], own_dsn: str) -> None:
    makers.limit(own_dsn, breaker_after=2)
    makers.make_effects(own_dsn, 6, targets=1)
    sink = Scripted(NotSent("connection_refused"))
    some = [dispatcher(db, sink, owner=f"{n}") for n, db in enumerate(pair)]
    await both(*some)
    for _ in range(20):
        before = len(sink.calls)
        make_due(own_dsn)
        makers.change(own_dsn, "UPDATE targets SET rests_until = now() - interval '1 second'")
        await both(*some)
        assert len(sink.calls) == before + 1
    rows = makers.rows(own_dsn, "SELECT DISTINCT state, attempts FROM effect_outbox")
    assert rows == [{"state": "pending", "attempts": 0}]


# Between one process's count and its claim another one counts and claims: it finds the limit held and gets
# nothing, so together they take no more than there is.
@pytest.mark.parametrize(
    "limit",
    [
        {"concurrency": 3},
        {"per_second": 3},
        {"per_minute": 3},
        {"cap_hour": 3},
        {"cap_day": 3},
        {"value": "output.amount", "cap_value_day": 3},
    ],
    ids=lambda limit: next(reversed(limit)),
)
async def test_a_claim_amid_a_claim(
    pair: tuple[Database, Database], own_dsn: str, monkeypatch: pytest.MonkeyPatch, limit: dict[str, Any]
) -> None:
    makers.limit(own_dsn, **limit)
    make_worth(own_dsn, *[1.0] * 12)
    sink = Scripted()
    first, second = (dispatcher(db, sink, owner=f"{n}") for n, db in enumerate(pair))
    claim, between = outbox.claim_effects, list[int]()

    async def claim_late(conn: Connection, owner: str, room: Room) -> list[ClaimedRow]:
        if room.chosen and not between:
            between.append(-1)
            # In a context of its own: it is another process, and in no transaction of ours.
            other = asyncio.get_running_loop().create_task(second.run_once(), context=Context())
            between[0] = await other
        return await claim(conn, owner, room)

    monkeypatch.setattr(outbox, "claim_effects", claim_late)
    assert (await first.run_once(), between) == (3, [0])
    await first.quiet()
    assert len(set(_ids(sink))) == len(sink.calls)
