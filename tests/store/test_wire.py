"""The wire between processes: heard by others, not by oneself, coalesced, and no loss that matters.

Not here: what a wake starts (tests/doors).
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import psycopg
import pytest

from store import wire
from store.wire import Wire
from tests.faults import proxied


class Ear:
    """Hears what others tell, one message after the other."""

    def __init__(self) -> None:
        self.listens = False
        self._heard: asyncio.Queue[list[str]] = asyncio.Queue()

    def __call__(self, names: Iterable[str]) -> None:
        said = list(names)
        if said == ["are_you_there"]:
            self.listens = True
        else:
            self._heard.put_nowait(said)

    async def next(self) -> list[str]:
        """Wait for the next message; a net, not a measure."""
        return await asyncio.wait_for(self._heard.get(), 30)

    def nothing_more(self) -> bool:
        return self._heard.empty()


@asynccontextmanager
async def strung(dsn: str, owner: str, ear: Ear) -> AsyncIterator[Wire]:
    made = Wire(dsn, owner, ear)
    made.start()
    try:
        yield made
    finally:
        await made.stop()


async def until_heard(dsn: str, ear: Ear) -> None:
    """Return once the ear listens: ask until it hears."""
    ear.listens = False
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        while not ear.listens:
            await conn.execute("SELECT pg_notify('stet_wake', 'test are_you_there')")


# What one process says, the other hears, and the one that said it does not.
async def test_others_hear(dsn: str) -> None:
    here, there = Ear(), Ear()
    async with strung(dsn, "one", here) as one, strung(dsn, "two", there) as two:
        await until_heard(dsn, here)
        await until_heard(dsn, there)
        one.say(["draft"])
        assert await there.next() == ["draft"]
        two.say(["show"])
        assert await here.next() == ["show"]
        assert here.nothing_more()
        assert there.nothing_more()


# Whatever is said close together is one message with each name once: commits are never serialised by it.
async def test_what_is_said_together_is_one_message(dsn: str) -> None:
    here, there = Ear(), Ear()
    async with strung(dsn, "one", here) as one, strung(dsn, "two", there):
        await until_heard(dsn, there)
        for _ in range(100):
            one.say(["show", "draft"])
        assert await there.next() == ["draft", "show"]
        one.say(["dispatch"])
        assert await there.next() == ["dispatch"]


# Saying something never fails and never waits, with the database away as well as before the wire is strung.
async def test_saying_never_fails(server: str) -> None:
    nowhere = psycopg.conninfo.make_conninfo(server, host="127.0.0.1", port=1)
    ear = Ear()
    silent = Wire(nowhere, "one", ear)
    silent.say(["draft"])
    async with strung(nowhere, "one", ear) as one:
        one.say(["draft"])
        await asyncio.sleep(0)
        one.say(["draft"])
    await silent.stop()


# A broken wire is strung again; what was said meanwhile is not lost with it.
async def test_a_broken_wire_is_strung_again(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "RECONNECT_SECONDS", 0.01)
    here, there = Ear(), Ear()
    async with proxied(dsn) as (proxy, through):
        async with strung(through, "one", here) as one, strung(dsn, "two", there):
            await until_heard(dsn, here)
            await until_heard(dsn, there)
            proxy.lose(b"draft")
            one.say(["draft"])
            await asyncio.wait_for(proxy.dropped.wait(), 30)
            assert await there.next() == ["draft"]
            proxy.cut()
            await until_heard(dsn, here)
            one.say(["show"])
            # A word whose answer was cut is said again: heard twice, never not at all.
            while "show" not in await there.next():
                pass


# Stopping hangs up at once, whatever the wire is doing, and leaves no session behind.
async def test_stop_hangs_up(own_dsn: str) -> None:
    ear = Ear()
    async with strung(own_dsn, "one", ear) as one:
        await until_heard(own_dsn, ear)
        one.say(["draft"])
    with psycopg.connect(own_dsn, autocommit=True) as conn:
        pids = conn.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'stet-wire'"
        ).fetchall()
        for (pid,) in pids:
            # The server may still be reading the farewell: gone by itself, or ended here, but never kept.
            conn.execute("SELECT pg_terminate_backend(%s, 20000)", (pid,))
    assert all(task.done() for task in one._tasks)
