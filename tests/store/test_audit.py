"""The record: appended in chains, provable, erasable, and rewritten by nobody unnoticed.

Not here: what may be recorded (tests/policy/test_redaction.py) or its commands (tests/test_records.py).
"""

# ruff: noqa: PT012 - what is refused is a whole transaction

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import orjson
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store import audit
from store.audit import Entry, faults_of
from store.database import Database
from store.ids import new_id
from tests.makers import rows

KEY = "n8n:customer_email:evt-1"


async def append(db: Database, *entries: Entry) -> None:
    async with db.transaction() as conn:
        await audit.append(conn, entries)


async def faults(db: Database, chain: str = KEY) -> list[str]:
    async with db.connection() as conn:
        return faults_of(await audit.read_chain(conn, chain))


def line(action: str = "received", chain: str = KEY, **detail: Any) -> Entry:
    return Entry(chain, "source:n8n", action, detail)


@pytest.fixture
async def chain(db: Database) -> str:
    """A chain of five lines, written in two transactions."""
    await append(db, line("received", n=1), line("drafted", n=2), line("draft_opened", n=3))
    await append(db, line("voted", n=4), line("approved", n=5))
    return KEY


@contextmanager
def owner_past_the_triggers(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """The database's owner, who can switch the guards off."""
    tables: tuple[LiteralString, ...] = ("audit_log", "audit_details")
    with psycopg.connect(dsn) as conn:
        for table in tables:
            conn.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        yield conn
        conn.execute("ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_append_only")
        conn.execute("ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_no_truncate")
        conn.execute("ALTER TABLE audit_details ENABLE ALWAYS TRIGGER audit_details_no_update")
        conn.execute("ALTER TABLE audit_details ENABLE ALWAYS TRIGGER audit_details_no_truncate")


# Lines stand in the order they were said, each chain for itself, and every chain holds.
async def test_chains_hold(db: Database, chain: str) -> None:
    await append(
        db, line("received", "n8n:other:1"), line("received", "n8n:other:2"), line("stale", "n8n:other:1")
    )
    async with db.connection() as conn:
        lines = await audit.read_chain(conn, chain)
        names = await audit.list_chains(conn, after="", most=10)
    assert [(each.seq, each.action) for each in lines] == [
        (1, "received"),
        (2, "drafted"),
        (3, "draft_opened"),
        (4, "voted"),
        (5, "approved"),
    ]
    assert [orjson.loads(each.detail or "")["n"] for each in lines] == [1, 2, 3, 4, 5]
    assert sorted(names) == sorted([KEY, "n8n:other:1", "n8n:other:2"])
    assert [await faults(db, name) for name in names] == [[], [], []]


# A walk over all chains comes by each of them once, a page at a time.
async def test_chains_are_listed_page_by_page(db: Database) -> None:
    keys = [f"n8n:mail:{n}" for n in range(7)]
    await append(db, *(line("received", key) for key in keys))
    found: list[str] = []
    async with db.connection() as conn:
        while page := await audit.list_chains(conn, after=found[-1] if found else "", most=3):
            found += page
    assert sorted(found) == sorted(keys)
    assert len(found) == 7


# A line belongs to the transaction that it speaks of: what is undone was never said.
async def test_an_undone_transaction_says_nothing(db: Database, dsn: str) -> None:
    with pytest.raises(LookupError):
        async with db.transaction() as conn:
            await audit.append(conn, [line()])
            raise LookupError
    assert rows(dsn, "SELECT FROM audit_log UNION ALL SELECT FROM audit_details") == []


TAMPERING: dict[str, tuple[LiteralString, list[int]]] = {
    "actor": ("UPDATE audit_log SET actor = 'slack:T:U' WHERE seq = 3", [3]),
    "action": ("UPDATE audit_log SET action = 'rejected' WHERE seq = 3", [3]),
    "time": ("UPDATE audit_log SET at = at + interval '1 microsecond' WHERE seq = 3", [3]),
    "detail hash": ("UPDATE audit_log SET detail_hash = sha256('x') WHERE seq = 3", [3]),
    "first line": ("UPDATE audit_log SET actor = 'slack:T:U' WHERE seq = 1", [1]),
    "last line": ("UPDATE audit_log SET actor = 'slack:T:U' WHERE seq = 5", [5]),
    "detail": ("UPDATE audit_details SET detail = '{\"n\":9}' WHERE seq = 3", [3]),
    "salt": ("UPDATE audit_details SET salt = '\\x00' WHERE seq = 3", [3]),
    "deleted": ("DELETE FROM audit_log WHERE seq = 3", [3]),
    "deleted first": ("DELETE FROM audit_log WHERE seq = 1", [1]),
    "renumbered": ("DELETE FROM audit_log WHERE seq = 3; UPDATE audit_log SET seq = 3 WHERE seq = 4", [3]),
    "swapped": ("UPDATE audit_log SET seq = CASE seq WHEN 2 THEN 300 ELSE 2 END WHERE seq IN (2, 3)", [2]),
    "other chain": ("UPDATE audit_log SET chain = 'n8n:customer_email:evt-2' WHERE seq = 5", []),
}


# Whatever the owner does to a line in the middle with the guards switched off is found, and where.
@pytest.mark.parametrize("kind", [kind for kind in TAMPERING if kind != "other chain"])
async def test_tampering_is_found(db: Database, dsn: str, chain: str, kind: str) -> None:
    statement, where = TAMPERING[kind]
    with owner_past_the_triggers(dsn) as conn:
        conn.execute(statement)
    found = await faults(db, chain)
    assert found
    assert any(f"line {where[0]} " in fault for fault in found)


# A line that was rewritten together with its own hash breaks the one after it.
async def test_a_rewritten_hash_breaks_the_next_line(db: Database, dsn: str, chain: str) -> None:
    with owner_past_the_triggers(dsn) as conn:
        conn.execute(
            "UPDATE audit_log AS l SET actor = 'slack:T:U', hash = audit_hash(p.hash, l.chain, l.seq, l.at,"
            " 'slack:T:U', l.action, l.detail_hash) FROM audit_log AS p WHERE p.seq = 2 AND l.seq = 3"
        )
    assert await faults(db, chain) == [f"{chain}: line 4 was altered, or a line before it is missing"]


# A line moved into another chain does not fit there.
async def test_a_line_of_another_chain_does_not_fit(db: Database, dsn: str, chain: str) -> None:
    with owner_past_the_triggers(dsn) as conn:
        conn.execute(TAMPERING["other chain"][0])
    assert await faults(db, "n8n:customer_email:evt-2")


# Erasing what was said leaves the chain whole, and nothing of it behind.
async def test_erasing_a_detail_leaves_the_chain_whole(db: Database, dsn: str, chain: str) -> None:
    async with db.transaction() as conn:
        await conn.execute("DELETE FROM audit_details WHERE seq IN (2, 5)")
    assert await faults(db, chain) == []
    async with db.connection() as conn:
        lines = await audit.read_chain(conn, chain)
    assert [each.detail is None for each in lines] == [False, True, False, False, True]


# The salt keeps a detail that was erased from being guessed: the same words hash differently each time.
async def test_the_same_detail_hashes_differently(db: Database) -> None:
    await append(db, line(recipient="amy"), line(recipient="amy"))
    async with db.connection() as conn:
        first, second = await audit.read_chain(conn, KEY)
    assert first.detail == second.detail
    assert first.detail_hash != second.detail_hash


# Two writers of one chain without its lock: the second one's transaction is undone, the chain holds.
async def test_unique_decides_between_writers(db: Database, chain: str) -> None:
    with pytest.raises(psycopg.errors.UniqueViolation):
        async with db.transaction() as conn:
            # The snapshot of this transaction is older than the line that comes between.
            await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            await audit.read_chain(conn, chain)
            await append(db, line("voted", by="first"))
            await audit.append(conn, [line("voted", by="second")])
    assert await faults(db, chain) == []
    async with db.connection() as conn:
        assert (await audit.read_chain(conn, chain))[-1].detail == '{"by":"first"}'


# What belongs to no key goes to the chain "system", one writer after the other.
async def test_the_system_chain_takes_turns(db: Database) -> None:
    async def say(n: int) -> None:
        async with db.transaction() as conn:
            await audit.append_system(conn, "slack:T:U", "killed", {"n": n})

    await asyncio.gather(*(say(n) for n in range(20)))
    assert await faults(db, audit.SYSTEM) == []
    async with db.connection() as conn:
        lines = await audit.read_chain(conn, audit.SYSTEM)
    assert sorted(orjson.loads(each.detail or "")["n"] for each in lines) == list(range(20))


# The program's role may add and read lines and erase details, and nothing else.
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET actor = 'x'",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
        "UPDATE audit_details SET detail = '{}'",
        "TRUNCATE audit_details",
        "UPDATE audit_roots SET chains = 0",
        "DELETE FROM audit_roots",
        "ALTER TABLE audit_log DISABLE TRIGGER ALL",
        "ALTER TABLE audit_log DISABLE TRIGGER audit_log_append_only",
        "DROP TRIGGER audit_log_append_only ON audit_log",
        "ALTER FUNCTION refuse_rewriting() RENAME TO refuse_nothing",
        "DROP TABLE audit_log",
        "SET session_replication_role = replica",
        "UPDATE state_moves SET after = before",
        "DELETE FROM state_moves",
    ],
)
async def test_the_program_may_not_rewrite(db: Database, chain: str, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with db.connection() as conn:
            await conn.execute(statement.encode())
    assert await faults(db, chain) == []


# The owner is refused by the triggers as well, also where replication would step past ordinary ones.
@pytest.mark.parametrize("mode", ["origin", "replica", "local"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_log SET actor = 'x'",
        "DELETE FROM audit_log",
        "TRUNCATE audit_log",
        "UPDATE audit_details SET detail = '{}'",
        "TRUNCATE audit_details",
        "UPDATE audit_roots SET chains = 0",
        "DELETE FROM audit_roots",
        "TRUNCATE audit_roots",
    ],
)
async def test_the_owner_is_refused_too(
    db: Database, dsn: str, chain: str, statement: str, mode: LiteralString
) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute("INSERT INTO audit_roots (day, chains, root) VALUES ('2030-01-01', 1, '\\x00')")
        conn.execute(f"SET LOCAL session_replication_role = {mode}")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"):
            conn.execute(statement.encode())
        conn.rollback()
    assert await faults(db, chain) == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), inner, max_size=3)
    ),
    max_leaves=9,
)


# Whatever can be said comes back as it was, and proves itself: every script, quotes, controls and NUL.
@settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    said=st.lists(
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), JSON, max_size=4),
        min_size=1,
        max_size=3,
    )
)
async def test_anything_said_proves_itself(db: Database, said: list[dict[str, Any]]) -> None:
    chain = f"n8n:mail:{new_id()}"
    async with db.transaction() as conn:
        await audit.append(conn, [Entry(chain, "system", "drafted", detail) for detail in said])
        lines = await audit.read_chain(conn, chain)
    assert faults_of(lines) == []
    assert [orjson.loads(each.detail or "") for each in lines] == said
