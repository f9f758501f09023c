"""Brings the schema to the newest version, from any number of processes at once.

Not here: the migrations themselves (sql/migrations).
"""

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from store.database import APP_ROLE
from store.errors import BadMigration, DatabaseAway, DatabaseBusy, SchemaMismatch
from store.queries import query

ROOT = Path(__file__).resolve().parent.parent / "sql" / "migrations"
LOCK_ID = 0x57E7_0001  # Any number, the same in every process: the advisory lock of migrate.
LOCK_TIMEOUT_MS = 10_000  # Behind a lock that we wait for, every other session waits as well.
_FILE = re.compile(r"^(?P<number>\d{4})_[a-z0-9_]+\.sql$")

Sync = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of sql/migrations."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the file: a migration that has landed is never edited."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations(root: Path = ROOT) -> list[Migration]:
    """Read every migration in order.

    Raises:
        BadMigration: a file name is odd, or a number is missing or used twice.

    """
    found = []
    for path in sorted(root.glob("*.sql")):
        named = _FILE.match(path.name)
        if named is None:
            raise BadMigration(f"{path.name} is not named NNNN_words.sql")
        found.append(Migration(int(named["number"]), path.name, path.read_text(encoding="utf-8")))
    if [m.number for m in found] != list(range(1, len(found) + 1)):
        raise BadMigration("the numbers of sql/migrations are not 0001, 0002, ... without a gap")
    return found


def migrate(dsn: str, root: Path = ROOT) -> list[str]:
    """Apply what is missing, each file in a transaction of its own, and name what was applied.

    Any number of processes may call this at once on an empty database: one works, the others wait for it.

    Raises:
        BadMigration: a file that already ran reads differently now.
        SchemaMismatch: migrations that this program does not know ran there, or its user may not migrate.
        DatabaseBusy: a table stayed in use.
        DatabaseAway: it could not be reached.

    """
    try:
        with psycopg.connect(
            dsn, autocommit=True, connect_timeout=5, application_name="stet-migrate"
        ) as conn:
            _run(conn, "lock_migrations", {"lock_id": LOCK_ID})
            _run(conn, "limit_lock_waits", {"milliseconds": str(LOCK_TIMEOUT_MS)})
            return _apply(conn, migrations(root))
    except psycopg.errors.InsufficientPrivilege as fault:
        raise SchemaMismatch(
            "this database user may not change the schema, or not make or grant a role: set"
            f" MIGRATE_DATABASE_URL to the owner's, and have a DBA run CREATE ROLE {APP_ROLE} NOLOGIN;"
            f" GRANT {APP_ROLE} TO it"
        ) from fault
    except psycopg.errors.LockNotAvailable as fault:
        raise DatabaseBusy("a table stayed in use: stop what holds it and run migrate again") from fault
    except psycopg.OperationalError as fault:
        raise DatabaseAway("the database for migrate could not be reached") from fault


def _apply(conn: Sync, known: list[Migration]) -> list[str]:
    _run(conn, "make_ledger")
    there = _ledger(conn)
    _compare(there, known)
    applied = []
    for migration in known:
        if migration.number in there:
            continue
        with conn.transaction():
            conn.execute(migration.text.encode())
            _run(
                conn,
                "record_migration",
                {"number": migration.number, "name": migration.name, "checksum": migration.checksum},
            )
        applied.append(migration.name)
    _run(conn, "let_app_read_ledger")
    return applied


def _compare(there: dict[int, str], known: list[Migration]) -> None:
    ours = {migration.number: migration for migration in known}
    for number, checksum in sorted(there.items()):
        if number not in ours:
            raise SchemaMismatch(
                f"the database has migration {number}, which this version does not know: update Stet"
            )
        if ours[number].checksum != checksum:
            raise BadMigration(f"{ours[number].name} was edited after it ran: restore the file")


def check(dsn: str, root: Path = ROOT) -> None:
    """Refuse a schema that is not exactly ours, and a user that may not take the role we work in.

    Raises:
        SchemaMismatch: a migration is missing, unknown or different; the sentence says what to run.
        DatabaseAway: it could not be reached.

    """
    known = migrations(root)
    try:
        with psycopg.connect(dsn, autocommit=True, connect_timeout=5) as conn:
            take_role(conn)
            there = _ledger(conn)
    except psycopg.OperationalError as fault:
        raise DatabaseAway("the database could not be reached: check DATABASE_URL") from fault
    _compare(there, known)
    missing = [migration.name for migration in known if migration.number not in there]
    if missing:
        raise SchemaMismatch(f"the schema lacks {missing[0]}: run `python -m bot migrate` first")


def take_role(conn: Sync) -> None:
    """Take the restricted role as the pool will, which could only say that it gets no connection.

    Raises:
        SchemaMismatch: this user may not, or there is no such role yet.

    """
    try:
        _run(conn, "try_role", {"role": APP_ROLE})
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue) as fault:
        with suppress(psycopg.errors.InsufficientPrivilege):
            _ledger(conn)  # That the database is empty says more.
        raise SchemaMismatch(
            f"the user of DATABASE_URL may not take the role {APP_ROLE}: run `python -m bot migrate` as"
            f" this user, or have a DBA run GRANT {APP_ROLE} TO it"
        ) from fault


def _run(conn: Sync, name: str, params: dict[str, object] | None = None) -> psycopg.Cursor[Any]:
    return conn.execute(query(name).text.encode(), params)


def _ledger(conn: Sync) -> dict[int, str]:
    try:
        rows = _run(conn, "list_migrations").fetchall()
    except psycopg.errors.UndefinedTable:
        raise SchemaMismatch("the database is empty: run `python -m bot migrate` first") from None
    return {int(number): str(checksum) for number, checksum in rows}
