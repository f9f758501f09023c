"""The commands over the record: verify every chain, show one.

Not here: how a line is proven (tests/store/test_audit.py).
"""

import psycopg
import pytest

from bot import records
from bot.records import show_chain, verify_record
from store import audit
from store.audit import Entry
from store.database import Database


async def say_of(db: Database, *keys: str) -> None:
    async with db.transaction() as conn:
        await audit.append(conn, [Entry(key, "source:n8n", "received", {"n": 1}) for key in keys])
        await audit.append(conn, [Entry(key, "slack:T:U", "approved", {"n": 2}) for key in keys])


# A record that holds: the number of chains, and 0 for scripts; every page of chains is read.
async def test_verify_counts_chains(db: Database, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "CHAINS_AT_ONCE", 2)
    await say_of(db, *(f"n8n:mail:{n}" for n in range(5)))
    said: list[str] = []
    assert await verify_record(dsn, said.append) == 0
    assert said == ["5 chains, 0 faults"]


# An empty record holds too.
async def test_verify_of_nothing(dsn: str) -> None:
    said: list[str] = []
    assert await verify_record(dsn, said.append) == 0
    assert said == ["0 chains, 0 faults"]


# A record that was altered: which chain, which line, and 1 for scripts.
async def test_verify_names_the_fault(db: Database, dsn: str) -> None:
    await say_of(db, "n8n:mail:1", "n8n:mail:2")
    with psycopg.connect(dsn) as conn:
        conn.execute("ALTER TABLE audit_log DISABLE TRIGGER audit_log_append_only")
        conn.execute("UPDATE audit_log SET actor = 'slack:T:V' WHERE chain = 'n8n:mail:2' AND seq = 2")
        conn.execute("ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_append_only")
    said: list[str] = []
    assert await verify_record(dsn, said.append) == 1
    assert said == [
        "n8n:mail:2: line 2 was altered, or a line before it is missing",
        "2 chains, 1 faults",
    ]


# The history of one key, oldest first, with what was erased marked as erased.
async def test_show_prints_one_chain(db: Database, dsn: str) -> None:
    await say_of(db, "n8n:mail:1", "n8n:mail:2")
    async with db.transaction() as conn:
        await conn.execute("DELETE FROM audit_details WHERE chain = 'n8n:mail:1' AND seq = 1")
    said: list[str] = []
    assert await show_chain(dsn, "n8n:mail:1", said.append) == 0
    first, second = said
    assert first.split()[0] == "1"
    assert first.split()[3:] == ["source:n8n", "received", "(erased)"]
    assert second.split()[3:] == ["slack:T:U", "approved", '{"n":2}']


# A key that nobody ever sent: how a key is written, and 1 for scripts.
async def test_show_of_an_unknown_key(dsn: str) -> None:
    said: list[str] = []
    assert await show_chain(dsn, "evt-1", said.append) == 1
    assert said == ["The record knows no key evt-1. A key is written source:kind:event_key."]
