"""Loads sql/queries by name and runs what it loaded.

Not here: the statements themselves (sql/queries) or which connection they run on (store/database).
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import class_row, dict_row
from pydantic import BaseModel, ValidationError

from store.errors import BadQuery, LostRace

log = logging.getLogger(__name__)

Connection = AsyncConnection[Any]

__all__ = ["AsyncCursor", "Connection", "Query", "load", "parse", "query"]

ROOT = Path(__file__).resolve().parent.parent / "sql" / "queries"

_NAME = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)\s*$")
_ZERO = re.compile(r"zero rows:\s*(?P<meaning>.+)", re.IGNORECASE)
_WRITE = re.compile(r"(?<!FOR )(?<!NO KEY )(?<!DO )\b(UPDATE|DELETE FROM)\b")

RowT = TypeVar("RowT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Query:
    """One named statement; `meaning` says what zero rows mean, empty where they mean nothing special."""

    name: str
    text: str
    purpose: str
    meaning: str

    async def run(self, conn: Connection, params: Mapping[str, Any] | None = None) -> int:
        """Execute and give the number of rows touched.

        Raises:
            LostRace: zero rows, and the query says what that means.
            BadQuery: the same in a pipeline, where nobody knows the number yet.

        """
        cursor = await conn.execute(self.text.encode(), params, prepare=True)
        if cursor.rowcount < 0 and self.meaning:
            raise BadQuery(f"{self.name}: whether zero rows were touched is not known in a pipeline")
        if cursor.rowcount == 0 and self.meaning:
            raise LostRace(self.name, self.meaning)
        return cursor.rowcount

    async def send(self, conn: Connection, params: Mapping[str, Any], row: type[RowT]) -> AsyncCursor[RowT]:
        """Send in a pipelined transaction without waiting; what it gave is fetched from the cursor later."""
        cursor = conn.cursor(row_factory=class_row(row))
        await cursor.execute(self.text.encode(), params, prepare=True)
        return cursor

    async def maybe(self, conn: Connection, params: Mapping[str, Any] | None, row: type[RowT]) -> RowT | None:
        """Give the one row, or None."""
        async with conn.cursor(row_factory=class_row(row)) as cursor:
            await cursor.execute(self.text.encode(), params, prepare=True)
            return await cursor.fetchone()

    async def one(self, conn: Connection, params: Mapping[str, Any] | None, row: type[RowT]) -> RowT:
        """Give the one row.

        Raises:
            LostRace: there is none.

        """
        found = await self.maybe(conn, params, row)
        if found is None:
            raise LostRace(self.name, self.meaning or "no such row")
        return found

    async def rows(self, conn: Connection, params: Mapping[str, Any] | None, row: type[RowT]) -> list[RowT]:
        """Give every row as a frozen value."""
        async with conn.cursor(row_factory=class_row(row)) as cursor:
            await cursor.execute(self.text.encode(), params, prepare=True)
            return await cursor.fetchall()

    async def readable_rows(
        self, conn: Connection, params: Mapping[str, Any] | None, row: type[RowT]
    ) -> list[RowT]:
        """Give every row that has its shape; one that has not must not take the others with it."""
        found = []
        for values in await self.dicts(conn, params):
            try:
                found.append(row(**values))
            except ValidationError as fault:
                fields = [str(each["loc"][0]) for each in fault.errors(include_input=False)]
                told = {"query": self.name, "fields": fields}
                log.error("a row cannot be read", extra=told)  # noqa: TRY400 - a trace would quote contents
        return found

    async def dicts(self, conn: Connection, params: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Give every row as a dictionary, for shapes used in one place only."""
        async with conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(self.text.encode(), params, prepare=True)
            return await cursor.fetchall()

    async def value(self, conn: Connection, params: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401
        """Give the first column of the first row, None without a row."""
        cursor = await conn.execute(self.text.encode(), params, prepare=True)
        found = await cursor.fetchone()
        return None if found is None else found[0]


def parse(source: str, origin: str) -> dict[str, Query]:
    """Read the queries of one file.

    Raises:
        BadQuery: a name twice, no purpose, or a conditional write without its sentence on zero rows.

    """
    found: dict[str, Query] = {}
    name, comments, body = "", [], []  # type: str, list[str], list[str]
    for line in [*source.splitlines(), "-- name: end_of_file"]:
        opened = _NAME.match(line)
        if opened:
            if name:
                _add(found, _build(name, comments, body, origin), origin)
            name, comments, body = opened["name"], [], []
        elif line.lstrip().startswith("--"):
            comments.append(line.lstrip().removeprefix("--").strip())
        elif name:
            body.append(line.split(" -- ")[0])
        elif line.strip():
            raise BadQuery(f"{origin}: text before the first name line")
    return found


def _add(found: dict[str, Query], made: Query, origin: str) -> None:
    if made.name in found:
        raise BadQuery(f"{origin}: two queries are called {made.name}")
    found[made.name] = made


def _build(name: str, comments: list[str], body: list[str], origin: str) -> Query:
    text = "\n".join(line for line in body if line.strip()).strip().removesuffix(";")
    said = " ".join(comments)
    zero = _ZERO.search(said)
    purpose = said[: zero.start()].strip() if zero else said.strip()
    if not text or not purpose:
        raise BadQuery(f"{origin}: {name} needs a sentence of purpose and a statement")
    if _WRITE.search(text) and "WHERE" in text and zero is None:
        raise BadQuery(f"{origin}: {name} writes on a condition and does not say what zero rows mean")
    meaning = zero["meaning"].strip() if zero else ""
    return Query(name, text, purpose, "" if meaning.startswith("nothing") else meaning)


def load(root: Path = ROOT) -> dict[str, Query]:
    """Read every file under `root`.

    Raises:
        BadQuery: a file breaks the rules above, or two files use one name.

    """
    every: dict[str, Query] = {}
    for path in sorted(root.glob("*.sql")):
        for made in parse(path.read_text(encoding="utf-8"), path.name).values():
            _add(every, made, path.name)
    return every


_ALL = load()


def query(name: str) -> Query:
    """Give the query of that name.

    Raises:
        BadQuery: there is none.

    """
    try:
        return _ALL[name]
    except KeyError:
        raise BadQuery(f"no query is called {name}") from None
