"""Writes down the schema as a database's catalog has it: `python -m store.schema` writes sql/schema.sql.

Not here: how it came to stand so (sql/migrations). Nothing runs sql/schema.sql; it is for reading.
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from store import embedded
from store.errors import EmbeddedError
from store.migrate import migrate
from store.queries import query

TARGET = Path(__file__).resolve().parent.parent / "sql" / "schema.sql"

_HEAD = """\
-- The whole schema as the migrations leave it. Written by `make schema`: change a migration, never this file.
"""

_TABLES = query("list_tables")
_COLUMNS = query("list_columns")
_CONSTRAINTS = query("list_constraints")
_INDEXES = query("list_indexes")
_TRIGGERS = query("list_triggers")
_FUNCTIONS = query("list_functions")
_GRANTS = query("list_grants")

Found = dict[str, Any]


def describe(dsn: str) -> str:
    """Write down a database's schema; the same text from every server version, and it runs."""
    with psycopg.connect(dsn, row_factory=dict_row, connect_timeout=5) as conn:
        tables, functions, columns, constraints, indexes, triggers, grants = (
            conn.execute(each.text.encode()).fetchall()
            for each in (_TABLES, _FUNCTIONS, _COLUMNS, _CONSTRAINTS, _INDEXES, _TRIGGERS, _GRANTS)
        )
    by_table = [_by_table(found) for found in (columns, constraints, indexes, triggers, grants)]
    parts = [_HEAD, *(_function(found) for found in functions)]
    for table in tables:
        name = table["name"]
        columns, constraints, indexes, triggers, grants = (found[name] for found in by_table)
        lines = [_table(table, columns, constraints)]
        lines += [f"{index['definition']};" for index in indexes]
        lines += [line for trigger in triggers for line in _trigger(trigger)]
        lines += [f"GRANT {grant['privileges']} ON {name} TO stet_app;" for grant in grants]
        parts.append("\n".join(_without_schema(line) for line in lines) + "\n")
    return "\n".join(parts)


def _by_table(found: Iterable[Found]) -> dict[str, list[Found]]:
    grouped: dict[str, list[Found]] = defaultdict(list)
    for each in found:
        grouped[each["table_name"]].append(each)
    return grouped


def _without_schema(line: str) -> str:
    return line.replace(" ON public.", " ON ").replace("FUNCTION public.", "FUNCTION ")


def _function(found: Found) -> str:
    return _without_schema(found["definition"].rstrip()) + ";\n"


def _trigger(found: Found) -> list[str]:
    return [f"{line};" for line in (found["definition"], found["always_on"]) if line is not None]


def _table(table: Found, columns: list[Found], constraints: list[Found]) -> str:
    width = max(len(column["name"]) for column in columns)
    rules = [_column(column, width) for column in columns]
    rules += [f"CONSTRAINT {rule['name']} {rule['definition']}" for rule in constraints]
    name = table["name"]
    lines = [table["opening"], ",\n".join(f"    {rule}" for rule in rules), ");"]
    if table["says"]:
        lines.append(f"COMMENT ON TABLE {name} IS {_quoted(table['says'])};")
    lines += [
        f"COMMENT ON COLUMN {name}.{column['name']} IS {_quoted(column['says'])};"
        for column in columns
        if column["says"]
    ]
    return "\n".join(lines)


def _column(column: Found, width: int) -> str:
    words = [column["name"].ljust(width), column["type_name"]]
    if column["is_required"]:
        words.append("NOT NULL")
    if column["is_generated"]:
        words.append(f"GENERATED ALWAYS AS ({column['default_of']}) STORED")
    elif column["is_counted"]:
        words.append("GENERATED ALWAYS AS IDENTITY")
    elif column["default_of"] is not None:
        words.append(f"DEFAULT {column['default_of']}")
    return " ".join(words)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def main() -> int:
    """Migrate a server that is made for it and forgotten, and write what stands there then."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="stet-schema-") as folder,
            embedded.server(Path(folder), durable=False) as dsn,
        ):
            migrate(dsn)
            TARGET.write_text(describe(dsn), encoding="utf-8")
    except EmbeddedError as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
