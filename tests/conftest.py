"""One real database a test run, emptied between tests; a clone of it for races and crashes.

Not here: rows in any state and age (tests/makers) or stand-ins (bot/demo).
"""

import os
from collections.abc import AsyncIterator, Iterator
from typing import LiteralString
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from store import embedded
from store.database import Database
from store.ids import new_id
from store.migrate import migrate

TEMPLATE = f"stet_template_{os.getpid()}"  # Several runs may share one server.


def _named(dsn: str, name: str) -> str:
    """The same server, another database."""
    if "://" in dsn:
        parts = urlsplit(dsn)
        return urlunsplit(parts._replace(path=f"/{name}"))
    return psycopg.conninfo.make_conninfo(dsn, dbname=name)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A server to make databases on: TEST_DATABASE_URL, else an embedded one that forgets."""
    given = os.environ.get("TEST_DATABASE_URL")
    if given:
        yield given
        return
    with embedded.ephemeral() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def template(server: str) -> Iterator[str]:
    """A migrated, empty database that is only ever cloned."""
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(TEMPLATE)))
        conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    migrate(_named(server, TEMPLATE))
    yield TEMPLATE
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(TEMPLATE)))


def _clone(server: str, template: str) -> str:
    name = f"stet_test_{new_id().hex}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )
    return name


def _drop(server: str, name: str) -> None:
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def shared_dsn(server: str, template: str) -> Iterator[str]:
    """The database that most tests share, one after the other."""
    name = _clone(server, template)
    yield _named(server, name)
    _drop(server, name)


@pytest.fixture
def dsn(shared_dsn: str) -> Iterator[str]:
    """The shared database, emptied after the test."""
    yield shared_dsn
    empty(shared_dsn)


@pytest.fixture
def own_dsn(server: str, template: str) -> Iterator[str]:
    """A database of this test alone: for several processes, kills and migrations."""
    name = _clone(server, template)
    yield _named(server, name)
    _drop(server, name)


@pytest.fixture
async def db(dsn: str) -> AsyncIterator[Database]:
    """A pool on the shared database, in the restricted role."""
    database = Database(dsn)
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def own_db(own_dsn: str) -> AsyncIterator[Database]:
    """A pool on this test's own database."""
    database = Database(own_dsn)
    await database.open()
    yield database
    await database.close()


def empty(dsn: str) -> None:
    """Delete every row but the migrations' own, as the owner, stepping past the record's triggers."""
    with psycopg.connect(dsn) as conn:
        kept = {"schema_migrations", "state_moves", "kill_switch"}
        rows = conn.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        tables = [name for (name,) in rows if name not in kept]
        always_on = "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE tgenabled = 'A'"
        guards = conn.execute(always_on).fetchall()
        _switch_triggers(conn, guards, "DISABLE TRIGGER {}")
        for name in tables:
            conn.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
        _switch_triggers(conn, guards, "ENABLE ALWAYS TRIGGER {}")
        conn.execute("DELETE FROM kill_switch WHERE scope <> 'all'")
        conn.execute("UPDATE kill_switch SET open = true")


def _switch_triggers(conn: psycopg.Connection, guards: list[tuple[str, str]], how: LiteralString) -> None:
    for table, trigger in guards:
        conn.execute(
            sql.SQL("ALTER TABLE {} " + how).format(sql.Identifier(table), sql.Identifier(trigger))
        )
