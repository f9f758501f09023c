"""Transactions, the network guard, and what is said when the database is slow, gone or cut off.

Not here: what the statements do (tests/store/*, tests/flow).
"""

# ruff: noqa: PT012 - what is refused is a whole transaction

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from store import alerts, database
from store.database import Database, outside_transaction
from store.errors import BadQuery, CommitUnknown, DatabaseAway, DatabaseBusy, NetworkInTransaction
from store.queries import Connection, query
from tests.faults import proxied
from tests.makers import change, make_run, rows


async def raise_alert(conn: Connection, key: str) -> None:
    """A small write to look for afterwards."""
    await alerts.raise_alert(conn, key=key, name="takeovers", facts={})


def raised(dsn: str) -> list[str]:
    return [row["alert_key"] for row in rows(dsn, "SELECT alert_key FROM alerts ORDER BY alert_key")]


@asynccontextmanager
async def opened(dsn: str, *, max_size: int = 1) -> AsyncIterator[Database]:
    db = Database(dsn, max_size=max_size, name="stet-test-pool")
    await db.open()
    yield db
    await db.close()


def kill(dsn: str, *pids: int) -> None:
    """End these sessions, and return when they are gone."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        for pid in pids:
            conn.execute("SELECT pg_terminate_backend(%s, 20000)", (pid,))


async def pid_of(conn: Connection) -> int:
    return conn.info.backend_pid


async def settled() -> None:
    """Let everything that is ready run."""
    for _ in range(20):
        await asyncio.sleep(0)


# A transaction keeps all of what was done in it.
async def test_a_transaction_commits(db: Database, dsn: str) -> None:
    async with db.transaction() as conn:
        await raise_alert(conn, "one")
        await raise_alert(conn, "two")
    assert raised(dsn) == ["one", "two"]


# Whatever escapes a transaction undoes all of it, and is not disguised.
@pytest.mark.parametrize("pipelined", [False, True])
async def test_an_exception_undoes_the_transaction(db: Database, dsn: str, pipelined: bool) -> None:
    with pytest.raises(LookupError):
        async with db.transaction(pipelined=pipelined) as conn:
            await raise_alert(conn, "one")
            raise LookupError
    assert raised(dsn) == []


# A refused row undoes the transaction too, and says which rule refused it.
async def test_a_refused_row_undoes_the_transaction(db: Database, dsn: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with db.transaction() as conn:
            await raise_alert(conn, "one")
            await conn.execute("DELETE FROM audit_log")
    assert raised(dsn) == []


# Every connection has taken the restricted role, and waits for nothing without end.
async def test_connections_are_restricted(db: Database) -> None:
    async with db.connection() as conn:
        found = await (
            await conn.execute(
                "SELECT current_user, current_setting('lock_timeout'), current_setting('statement_timeout'),"
                " current_setting('idle_in_transaction_session_timeout'), current_setting('TimeZone'),"
                # Before 17 PostgreSQL has no such limit.
                " coalesce(current_setting('transaction_timeout', true), '30s')"
            )
        ).fetchone()
    assert found == ("stet_app", "1500ms", "20s", "10s", "UTC", "30s")


# A network call is refused in a transaction and in whatever it spawned, and allowed before and after it.
async def test_network_is_refused_in_a_transaction(db: Database) -> None:
    async def call() -> None:
        outside_transaction()

    await call()
    async with db.transaction():
        with pytest.raises(NetworkInTransaction):
            await call()
        with pytest.raises(NetworkInTransaction):
            await asyncio.create_task(call())
    await call()
    with pytest.raises(LookupError):
        async with db.transaction():
            raise LookupError
    await call()


# What was committed outlives a crash of the server, though the database is set not to wait for that; one that
# waits for its standbys too is left so.
@pytest.mark.parametrize(("given", "kept"), [("off", "on"), ("on", "on"), ("remote_apply", "remote_apply")])
async def test_commits_are_waited_for(own_dsn: str, given: str, kept: str) -> None:
    with psycopg.connect(own_dsn, autocommit=True) as conn:
        name = sql.Identifier(conn.info.dbname)
        conn.execute(
            sql.SQL("ALTER DATABASE {} SET synchronous_commit = {}").format(name, sql.Literal(given))
        )
    async with opened(own_dsn) as db, db.connection() as conn:
        found = await (await conn.execute("SELECT current_setting('synchronous_commit') AS value")).fetchone()
    assert found == (kept,)


# A pipeline does not know how many rows a statement touched: one that must touch some is refused there.
async def test_a_conditional_write_is_refused_in_a_pipeline(db: Database, dsn: str) -> None:
    with pytest.raises(BadQuery):
        async with db.transaction(pipelined=True) as conn:
            await raise_alert(conn, "one")
            await query("withdraw_runs").run(conn, {"run_ids": []})
    assert raised(dsn) == []


# One task's transaction says nothing about another's network calls.
async def test_the_guard_knows_whose_transaction_it_is(db: Database) -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with db.transaction():
            inside.set()
            await leave.wait()

    holder = asyncio.create_task(hold())
    await inside.wait()
    outside_transaction()
    leave.set()
    await holder


# A row that somebody holds for too long is Busy: nothing was committed, and the connection is good again.
async def test_a_held_row_is_busy(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_TIMEOUT_MS", 20)
    run_id = make_run(dsn)
    async with opened(dsn) as db:
        with psycopg.connect(dsn) as other:
            other.execute("SELECT FROM workflow_runs WHERE run_id = %s FOR UPDATE", (run_id,))
            with pytest.raises(DatabaseBusy):
                async with db.transaction() as conn:
                    await raise_alert(conn, "one")
                    await touch(conn, run_id)
        async with db.transaction() as conn:
            await touch(conn, run_id)
    assert raised(dsn) == []


async def touch(conn: Connection, run_id: UUID) -> None:
    await conn.execute("UPDATE workflow_runs SET updated_at = now() WHERE run_id = %s", (run_id,))


# Busy is not tried again: the caller has no time left for it.
async def test_busy_is_not_retried(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_TIMEOUT_MS", 20)
    run_id, tries = make_run(dsn), 0

    async def work(conn: Connection) -> None:
        nonlocal tries
        tries += 1
        await touch(conn, run_id)

    async with opened(dsn) as db:
        with psycopg.connect(dsn) as other:
            other.execute("SELECT FROM workflow_runs WHERE run_id = %s FOR UPDATE", (run_id,))
            with pytest.raises(DatabaseBusy):
                await db.retrying(work)
    assert tries == 1


# A session killed in the middle of a transaction is Away, nothing stays, and the next call works.
async def test_a_killed_session_is_away_and_the_next_call_works(dsn: str) -> None:
    async with opened(dsn) as db:
        with pytest.raises(DatabaseAway) as fault:
            async with db.transaction() as conn:
                await raise_alert(conn, "one")
                kill(dsn, await pid_of(conn))
                await raise_alert(conn, "two")
        assert not isinstance(fault.value, CommitUnknown)
        async with db.transaction() as conn:
            await raise_alert(conn, "three")
    assert raised(dsn) == ["three"]


# The same, retried: the whole transaction runs again on a living connection.
async def test_a_killed_transaction_is_retried_whole(dsn: str) -> None:
    tries = 0

    async def work(conn: Connection) -> int:
        nonlocal tries
        tries += 1
        await raise_alert(conn, "one")
        if tries == 1:
            kill(dsn, await pid_of(conn))
        await raise_alert(conn, "two")
        return tries

    async with opened(dsn) as db:
        assert await db.retrying(work) == 2
    assert raised(dsn) == ["one", "two"]


# What the server asks to be run again is run again, three times at most.
@pytest.mark.parametrize("sqlstate", ["40001", "40P01"])
async def test_what_the_server_wants_again_is_retried(dsn: str, sqlstate: str) -> None:
    tries = 0

    async def work(conn: Connection) -> None:
        nonlocal tries
        tries += 1
        await conn.execute(
            f"DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '{sqlstate}'; END $$".encode()
        )

    async with opened(dsn) as db:
        with pytest.raises(DatabaseAway):
            await db.retrying(work)
        assert tries == database.RETRIES


# A commit whose answer is lost may have happened: it did here, and nothing tries it again.
async def test_a_lost_answer_to_commit_is_unknown(dsn: str) -> None:
    tries = 0

    async def work(conn: Connection) -> None:
        nonlocal tries
        tries += 1
        await raise_alert(conn, "one")

    async with proxied(dsn) as (proxy, through), opened(through) as db:
        proxy.lose_reply_to(b"COMMIT")
        with pytest.raises(CommitUnknown):
            await db.retrying(work)
        assert proxy.dropped.is_set()
        assert (tries, raised(dsn)) == (1, ["one"])
        async with db.transaction() as conn:
            await raise_alert(conn, "two")
    assert raised(dsn) == ["one", "two"]


# A commit that never arrived is unknown as well: from here the two look the same.
@pytest.mark.parametrize("pipelined", [False, True])
async def test_a_lost_commit_is_unknown(dsn: str, pipelined: bool) -> None:
    async with proxied(dsn) as (proxy, through), opened(through) as db:
        proxy.lose(b"COMMIT")
        with pytest.raises(CommitUnknown):
            async with db.transaction(pipelined=pipelined) as conn:
                await raise_alert(conn, "one")
    assert raised(dsn) == []


# A session that was killed before its commit arrived cannot tell that from one killed after it.
@pytest.mark.parametrize("pipelined", [False, True])
async def test_a_session_killed_at_commit_is_unknown(dsn: str, pipelined: bool) -> None:
    async with opened(dsn) as db:
        with pytest.raises(CommitUnknown):
            async with db.transaction(pipelined=pipelined) as conn:
                await raise_alert(conn, "one")
                kill(dsn, await pid_of(conn))
    assert raised(dsn) == []


# A server that ended our idle transaction is away, whatever the class of its error: nothing was committed.
async def test_an_idle_transaction_that_was_ended_is_away(dsn: str) -> None:
    async with opened(dsn) as db:
        with psycopg.connect(dsn, autocommit=True) as other:
            with pytest.raises(DatabaseAway):
                async with db.transaction() as conn:
                    await raise_alert(conn, "one")
                    await conn.execute("SELECT pg_advisory_lock(4711)")
                    await conn.execute("SET LOCAL idle_in_transaction_session_timeout = 1")
                    other.execute("SELECT pg_advisory_lock(4711)")  # granted when the other session is gone
                    await raise_alert(conn, "two")
        async with db.transaction() as conn:
            await raise_alert(conn, "three")
    assert raised(dsn) == ["three"]


# A task that is cancelled between two statements leaves no transaction open, and the pool whole.
@pytest.mark.parametrize("pipelined", [False, True])
async def test_cancelled_between_statements(dsn: str, pipelined: bool) -> None:
    inside = asyncio.Event()

    async def hold(db: Database) -> None:
        async with db.transaction(pipelined=pipelined) as conn:
            await raise_alert(conn, "one")
            inside.set()
            await asyncio.Event().wait()

    async with opened(dsn) as db:
        await cancel_when(inside, asyncio.create_task(hold(db)))
        await assert_whole(db, dsn)


# The same while a statement waits on the server: it is ended there too.
@pytest.mark.parametrize("pipelined", [False, True])
async def test_cancelled_within_a_statement(dsn: str, pipelined: bool) -> None:
    inside = asyncio.Event()

    async def hold(db: Database) -> None:
        async with db.transaction(pipelined=pipelined) as conn:
            await raise_alert(conn, "one")
            inside.set()
            await (await conn.execute("SELECT pg_advisory_xact_lock(4711)")).fetchone()

    async with opened(dsn) as db:
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(4711)")
            await cancel_when(inside, asyncio.create_task(hold(db)))
        await assert_whole(db, dsn)


async def cancel_when(inside: asyncio.Event, task: asyncio.Task[None]) -> None:
    await inside.wait()
    await settled()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def assert_whole(db: Database, dsn: str) -> None:
    """The one connection of the pool works, and no session of ours holds anything."""
    async with db.transaction() as conn:
        await raise_alert(conn, "two")
    assert raised(dsn) == ["two"]
    held = rows(
        dsn,
        "SELECT state FROM pg_stat_activity WHERE application_name = 'stet-test-pool'"
        " AND datname = current_database() AND xact_start IS NOT NULL",
    )
    assert held == []


# F035: every session was ended behind the pool's back, as by a restart; the next call works all the same.
# Whether the connections were just used or lay idle: a server that ends one says so.
@pytest.mark.parametrize("trusted_seconds", [0.0, 3600.0])
async def test_after_a_restart_the_next_call_works(
    dsn: str, monkeypatch: pytest.MonkeyPatch, trusted_seconds: float
) -> None:
    monkeypatch.setattr(database, "TRUSTED_SECONDS", trusted_seconds)
    async with opened(dsn, max_size=2) as db:
        kill(dsn, *await both_pids(db))
        async with db.transaction() as conn:
            await raise_alert(conn, "one")
    assert raised(dsn) == ["one"]


# F035: the same behind a line that has not told us yet: one call fails, cleanly, and then all work.
async def test_after_a_cut_at_most_one_call_fails(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_has_said", lambda _socket: False)
    async with opened(dsn, max_size=2) as db:
        kill(dsn, *await both_pids(db))
        with pytest.raises(DatabaseAway):
            async with db.transaction() as conn:
                await raise_alert(conn, "one")
        async with db.transaction() as conn:
            await raise_alert(conn, "two")
        assert await both_pids(db)
    assert raised(dsn) == ["two"]


# What is asked for next goes to the connection that came back last: its plans are made.
async def test_the_newest_connection_is_lent_first(dsn: str) -> None:
    async with opened(dsn, max_size=2) as db:
        async with db.connection() as one:
            async with db.connection() as two:
                last = await pid_of(one)
            assert await pid_of(two) != last
        for _ in range(3):
            async with db.connection() as again:
                assert await pid_of(again) == last


async def both_pids(db: Database) -> set[int]:
    """Use both connections at once, and give their sessions."""
    async with db.connection() as one, db.connection() as two:
        return {await pid_of(one), await pid_of(two)}


# F035: a pool of two serves any number who wait for something outside: nobody takes a connection there.
async def test_waiting_outside_holds_no_connection(dsn: str) -> None:
    waiting, answer = asyncio.Semaphore(0), asyncio.Event()

    async def step(db: Database, key: str) -> None:
        async with db.transaction() as conn:
            await raise_alert(conn, key)
        outside_transaction()
        waiting.release()
        await answer.wait()
        async with db.transaction() as conn:
            await raise_alert(conn, f"{key} done")

    async with opened(dsn, max_size=2) as db:
        steps = [asyncio.create_task(step(db, str(n))) for n in range(5)]
        for _ in steps:
            await waiting.acquire()
        async with db.transaction() as conn:
            await raise_alert(conn, "click")
        answer.set()
        await asyncio.gather(*steps)
    assert len(raised(dsn)) == 11


# Nobody waits for a connection longer than a click may; when one comes back, the next call works.
async def test_an_exhausted_pool_is_away(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "ACQUIRE_TIMEOUT_SECONDS", 0.05)
    async with opened(dsn) as db:
        async with db.connection():
            with pytest.raises(DatabaseAway):
                async with db.connection():
                    pass
        async with db.transaction() as conn:
            await raise_alert(conn, "one")
    assert raised(dsn) == ["one"]


# A server that takes connections and says nothing is away, like one that refuses them.
@pytest.mark.parametrize("fault", ["refuse", "black_hole"])
async def test_no_server_is_away(dsn: str, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr(database, "ACQUIRE_TIMEOUT_SECONDS", 0.05)
    async with proxied(dsn) as (proxy, through):
        if fault == "refuse":
            await proxy.refuse()
        else:
            proxy.black_hole()
        async with opened(through) as db:
            with pytest.raises(DatabaseAway):
                async with db.connection():
                    pass


# An outage ends with the first call after it, not with a wait that grew while it lasted.
async def test_an_outage_ends_with_the_next_call(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "RECONNECT_SECONDS", 0.0)
    async with proxied(dsn) as (proxy, through), opened(through, max_size=2) as db:
        await both_pids(db)
        await proxy.refuse()
        proxy.cut()
        monkeypatch.setattr(database, "ACQUIRE_TIMEOUT_SECONDS", 0.05)
        for _ in range(4):
            with pytest.raises(DatabaseAway):
                async with db.transaction() as conn:
                    await raise_alert(conn, "one")
        monkeypatch.setattr(database, "ACQUIRE_TIMEOUT_SECONDS", 30.0)
        await proxy.listen()
        async with db.transaction() as conn:
            await raise_alert(conn, "two")
    assert raised(dsn) == ["two"]


# A closed pool lends nothing and says so as it says everything.
async def test_a_closed_pool_is_away(dsn: str) -> None:
    db = Database(dsn)
    await db.open()
    await db.close()
    with pytest.raises(DatabaseAway):
        async with db.connection():
            pass


# Closing while a transaction runs waits for nobody for ever, and what comes back later is closed, not kept.
async def test_closing_with_a_connection_lent(dsn: str) -> None:
    async with opened(dsn) as db:
        async with db.transaction() as conn:
            await raise_alert(conn, "one")
            await db.close()
        assert conn.closed
    assert raised(dsn) == ["one"]
    assert change(dsn, "DELETE FROM alerts") == 1


# A connection whose server became a standby is away like a broken one, and is not lent again.
async def test_a_standby_is_away(dsn: str) -> None:
    db = Database(dsn, max_size=1)
    await db.open()
    try:
        async with db.connection() as conn:
            await conn.execute("SET default_transaction_read_only = on")
        with pytest.raises(DatabaseAway):
            async with db.transaction() as conn:
                await conn.execute("UPDATE kill_switch SET reason = reason")
        async with db.transaction() as conn:
            await conn.execute("UPDATE kill_switch SET reason = reason")
    finally:
        await db.close()
