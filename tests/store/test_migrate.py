"""Migrations from any number of processes, and what is refused in one sentence.

Not here: what they leave behind (tests/house/test_schema.py).
"""

import asyncio
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from store import migrate as migrating
from store.database import Database
from store.errors import BadMigration, DatabaseAway, DatabaseBusy, SchemaMismatch
from store.ids import new_id
from store.migrate import ROOT, check, migrate, migrations
from tests.house.tree import ROOT as TREE
from tests.makers import rows

NAMES = [migration.name for migration in migrations()]
PROCESS = "import sys; from store.migrate import migrate; print(len(migrate(sys.argv[1])))"


@pytest.fixture
def bare(server: str) -> Iterator[str]:
    """A database with nothing in it."""
    name = f"stet_bare_{new_id().hex}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield make_conninfo(server, dbname=name)
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the migrations, to be changed."""
    return Path(shutil.copytree(ROOT, tmp_path / "migrations"))


def ledger(dsn: str) -> list[str]:
    return [row["name"] for row in rows(dsn, "SELECT name FROM schema_migrations ORDER BY number")]


# An empty database gets every migration, in order; the second time there is nothing to do.
def test_an_empty_database_is_migrated_once(bare: str) -> None:
    assert migrate(bare) == NAMES
    assert ledger(bare) == NAMES
    assert migrate(bare) == []
    check(bare)


# F034: four processes at once on an empty database: one works, all come up, nothing is there twice.
@pytest.mark.parametrize("_round", range(3))
async def test_four_processes_at_once(bare: str, _round: int) -> None:
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROCESS, bare, cwd=TREE, stdout=asyncio.subprocess.PIPE
        )
        for _ in range(4)
    ]
    said = [(await process.communicate())[0] for process in started]
    assert [process.returncode for process in started] == [0] * 4
    assert sorted(int(each) for each in said) == [0, 0, 0, len(NAMES)]
    assert ledger(bare) == NAMES


# F034, ten rounds without the price of processes: threads with a connection each meet the same locks.
async def test_four_at_once_ten_times(server: str, bare: str) -> None:
    for _ in range(10):
        with psycopg.connect(bare, autocommit=True) as conn:
            conn.execute("DROP SCHEMA public CASCADE")
            conn.execute("CREATE SCHEMA public")
        applied = await asyncio.gather(*(asyncio.to_thread(migrate, bare) for _ in range(4)))
        assert sorted(len(each) for each in applied) == [0, 0, 0, len(NAMES)]
        assert ledger(bare) == NAMES


# What is missing is applied to what is there.
def test_only_what_is_missing_is_applied(bare: str, folder: Path) -> None:
    migrate(bare, folder)
    new = folder / f"{len(NAMES) + 1:04}_words.sql"
    new.write_text("CREATE TABLE words (word text PRIMARY KEY);\n", encoding="utf-8")
    assert migrate(bare, folder) == [new.name]


# A migration that ran is history: edited, it is refused by name, by migrate and by serve alike.
def test_an_edited_migration_is_refused(bare: str, folder: Path) -> None:
    migrate(bare, folder)
    edited = folder / NAMES[2]
    edited.write_text(edited.read_text("utf-8") + "-- a word more\n", encoding="utf-8")
    for refuse in (migrate, check):
        with pytest.raises(BadMigration, match=f"{edited.name} was edited after it ran: restore the file"):
            refuse(bare, folder)


# A database from a newer version is left alone.
def test_an_unknown_migration_is_refused(bare: str, folder: Path) -> None:
    (folder / f"{len(NAMES) + 1:04}_words.sql").write_text("SELECT 1;\n", encoding="utf-8")
    migrate(bare, folder)
    for refuse in (migrate, check):
        with pytest.raises(SchemaMismatch, match=f"has migration {len(NAMES) + 1}, which .* update Stet"):
            refuse(bare)


# serve on an older schema says what is missing and what to run.
def test_a_missing_migration_is_refused(bare: str, folder: Path) -> None:
    migrate(bare, folder)
    new = folder / f"{len(NAMES) + 1:04}_words.sql"
    new.write_text("SELECT 1;\n", encoding="utf-8")
    with pytest.raises(SchemaMismatch, match=f"lacks {new.name}: run `python -m bot migrate` first"):
        check(bare, folder)


# serve on an empty database says the same, and makes nothing.
def test_an_empty_database_is_refused(bare: str) -> None:
    with pytest.raises(SchemaMismatch, match="is empty: run `python -m bot migrate` first"):
        check(bare)
    assert rows(bare, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace") == []


# A migration that fails is undone whole and not noted; the ones before it stay.
def test_a_failing_migration_leaves_nothing(bare: str, folder: Path) -> None:
    new = folder / f"{len(NAMES) + 1:04}_words.sql"
    new.write_text("CREATE TABLE words (word text);\nSELECT 1 / 0;\n", encoding="utf-8")
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(bare, folder)
    assert ledger(bare) == NAMES
    assert rows(bare, "SELECT to_regclass('words') AS found") == [{"found": None}]
    new.write_text("CREATE TABLE words (word text);\n", encoding="utf-8")
    assert migrate(bare, folder) == [new.name]


# Numbers without a gap, names that say something: else nothing runs at all.
@pytest.mark.parametrize("name", ["0100_words.sql", "words.sql", "9_words.sql", "0001_twice.sql"])
def test_odd_files_are_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("SELECT 1;\n", encoding="utf-8")
    with pytest.raises(BadMigration):
        migrations(folder)


# A table that stays in use ends the wait, behind which every other session would wait too.
def test_a_table_in_use_ends_the_wait(bare: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(bare, folder)
    monkeypatch.setattr(migrating, "LOCK_TIMEOUT_MS", 20)
    new = folder / f"{len(NAMES) + 1:04}_words.sql"
    new.write_text("ALTER TABLE waiters ADD COLUMN word text;\n", encoding="utf-8")
    with psycopg.connect(bare) as other:
        other.execute("SELECT FROM waiters")
        with pytest.raises(DatabaseBusy, match="run migrate again"):
            migrate(bare, folder)
    assert migrate(bare, folder) == [new.name]


# serve takes the restricted role; a user who may not is told at the start, not by a pool without connections.
def test_a_user_who_may_not_take_the_role_is_told(bare: str) -> None:
    migrate(bare)
    with psycopg.connect(bare, autocommit=True) as conn:
        name = sql.Identifier(f"stet_lodger_{new_id().hex}")
        conn.execute(sql.SQL("CREATE ROLE {}").format(name))
        conn.execute(sql.SQL("SET SESSION AUTHORIZATION {}").format(name))
        try:
            with pytest.raises(SchemaMismatch, match="GRANT stet_app"):
                migrating.take_role(conn)
        finally:
            conn.execute("RESET SESSION AUTHORIZATION")
            conn.execute(sql.SQL("DROP ROLE {}").format(name))


# A user who may not make tables is told which setting to change.
def test_a_user_without_rights_is_told(bare: str) -> None:
    with psycopg.connect(bare, autocommit=True) as conn:
        conn.execute("SET client_min_messages = error")
        conn.execute(
            "DO $$ BEGIN CREATE ROLE stet_app NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
    with pytest.raises(SchemaMismatch, match="MIGRATE_DATABASE_URL"):
        migrate(make_conninfo(bare, options="-c role=stet_app"))


# An address where nobody answers is Away, and the sentence names the setting.
def test_no_server_is_away(server: str) -> None:
    nowhere = make_conninfo(server, host="127.0.0.1", port=1)
    with pytest.raises(DatabaseAway, match="DATABASE_URL"):
        check(nowhere)
    with pytest.raises(DatabaseAway):
        migrate(nowhere)


# serve takes the restricted role whoever it connected as, may read the ledger, and owns nothing.
async def test_serve_runs_in_the_restricted_role(bare: str) -> None:
    migrate(bare)
    db = Database(bare)
    await db.open()
    async with db.connection() as conn:
        found = await (await conn.execute("SELECT current_user, count(*) FROM schema_migrations")).fetchone()
    await db.close()
    assert found == ("stet_app", len(NAMES))
    assert conninfo_to_dict(bare).get("user") != "stet_app"
    owned = rows(bare, "SELECT relname FROM pg_class WHERE relowner = 'stet_app'::regrole")
    assert owned == []
