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
from tests.makers import forget_owner, owner_of

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
    forget_owner(_named(server, name))
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
    forget_owner(_named(server, name))
    _drop(server, name)


@pytest.fixture(scope="session")
async def pools() -> AsyncIterator[list[Database]]:
    """The pools on the shared database, one after the other: a test may close the one it was lent."""
    opened: list[Database] = []
    yield opened
    for database in opened:
        await database.close()


@pytest.fixture
async def db(dsn: str, pools: list[Database]) -> Database:
    """A pool on the shared database, in the restricted role, kept from test to test: planning costs most."""
    if not pools or pools[-1]._pool.closed:
        pools.append(Database(dsn))
        await pools[-1].open()
    return pools[-1]


@pytest.fixture
async def own_db(own_dsn: str) -> AsyncIterator[Database]:
    """A pool on this test's own database."""
    database = Database(own_dsn)
    await database.open()
    yield database
    await database.close()


_EMPTY: LiteralString = """
DO $$
DECLARE
    one record;
    is_filled boolean;
BEGIN
    FOR one IN
        SELECT c.oid::regclass AS name,
               EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND tgenabled = 'A') AS is_guarded
          FROM pg_class AS c
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
           AND c.relname NOT IN ('schema_migrations', 'state_moves', 'kill_switch')
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', one.name) INTO is_filled;
        CONTINUE WHEN NOT is_filled;
        IF one.is_guarded THEN
            EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', one.name);
        END IF;
        EXECUTE format('DELETE FROM %s', one.name);
        IF one.is_guarded THEN
            EXECUTE (SELECT string_agg(
                           format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', one.name, tgname), ';')
                       FROM pg_trigger WHERE tgrelid = one.name::oid AND NOT tgisinternal);
        END IF;
    END LOOP;
    DELETE FROM kill_switch;
    INSERT INTO kill_switch (scope, open, changed_by, reason)
    VALUES ('all', true, 'migration', 'first installation');
END $$"""


def empty(dsn: str) -> None:
    """Delete every row but the migrations' own, as the owner, stepping past the record's triggers."""
    with owner_of(dsn) as conn:
        conn.execute(_EMPTY)
