"""A database of the first release, with effects in every state: migrated, it goes on sending.

Not here: migrations as such (tests/store/test_migrate).
"""

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from bot.contracts.outcome import Found, Sent
from bot.flow import reconcile, recover
from store.database import Database
from store.ids import new_id
from store.migrate import ROOT, migrate, migrations
from tests import makers
from tests.flow.outlets import Scripted, dispatch, make_due
from tests.flow.test_parts import voted

FIRST = 11  # The number of the migrations that the first release had.


@pytest.fixture
def first(server: str, tmp_path: Path) -> Iterator[str]:
    """A database as the first release made it."""
    name = f"stet_first_{new_id().hex}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    folder = tmp_path / "migrations"
    folder.mkdir()
    for migration in migrations()[:FIRST]:
        shutil.copy(ROOT / migration.name, folder)
    dsn = make_conninfo(server, dbname=name)
    migrate(dsn, folder)
    yield dsn
    makers.forget_owner(dsn)
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
async def moved_on(first: str) -> AsyncIterator[Database]:
    """The same database for this release; it is migrated by the test."""
    database = Database(first)
    await database.open()
    yield database
    await database.close()


def frozen(dsn: str) -> list[dict[str, Any]]:
    return makers.rows(dsn, "SELECT snapshot_hash, body FROM policy_snapshots ORDER BY 1")


# What waited is sent once, what was under way or unknown is asked about, what is over stays; an open question
# is answered by its old button, and no policy that people decided under reads differently.
async def test_effects_of_the_first_release(first: str, moved_on: Database) -> None:
    asked = makers.make_draft(first)
    ways: dict[str, dict[str, Any]] = {
        "pending": {},
        "unknown": {"attempts": 1},
        "completed": {"provider_id": "msg-0", "started": True},
        "failed": {},
        "cancelled": {},
    }
    kept = {state: makers.make_effect(first, state=state, **more) for state, more in ways.items()}
    held = makers.make_effect(first, state="sending", lease_age_seconds=1)
    started = makers.make_effect(first, state="sending", lease_age_seconds=1, started=True, attempts=1)
    policies = frozen(first)
    assert migrate(first) == [one.name for one in migrations()[FIRST:]]
    assert frozen(first) == policies
    sink = Scripted(Sent("msg-1"))
    sink.found = Found("msg-2")
    assert await recover.run_once(recover.Recovering(moved_on)) == 2
    makers.change(first, "UPDATE effect_outbox SET next_attempt_at = now()")
    assert await reconcile.run_once(reconcile.Reconciling(moved_on, {"http": sink})) == 2
    decided = await voted(first, moved_on, asked, ["only"])
    make_due(first)
    await dispatch(moved_on, sink)
    assert {call.effect_id for call in sink.calls} == {kept["pending"], held, decided["effects"]["only"]}
    assert len(sink.calls) == 3
    assert all(call.policy.response_id == "id" for call in sink.calls)
    states = {row["effect_id"]: row for row in makers.rows(first, "SELECT * FROM effect_outbox")}
    assert {name: states[kept[name]]["state"] for name in kept} == dict.fromkeys(kept, "completed") | {
        "failed": "failed",
        "cancelled": "cancelled",
    }
    assert [states[one]["provider_id"] for one in (kept["completed"], started)] == ["msg-0", "msg-2"]


# Bytes of the first release stay as they are and may be erased, once.
def test_bytes_of_the_first_release(first: str) -> None:
    makers.make_effect(first)
    migrate(first)
    with pytest.raises(psycopg.errors.CheckViolation):
        makers.change(first, "UPDATE effect_payloads SET body = '{}'")
    erase = "UPDATE effect_payloads SET body = NULL, erased_at = now()"
    assert makers.change(first, erase) == 1
    with pytest.raises(psycopg.errors.CheckViolation):
        makers.change(first, "UPDATE effect_payloads SET body = '{}', erased_at = NULL")
