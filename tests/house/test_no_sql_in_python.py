"""Every statement lives in sql/: none in Python, and none built from pieces.
Not here: the statements themselves (tests/house/test_queries.py).
"""

import ast
import re

from tests.house.tree import imports, parsed, place, python_files

# Statements are written with capitals; a sentence that begins with Select is not one.
STATEMENT = re.compile(
    r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|MERGE INTO|WITH|VALUES|CREATE|ALTER|DROP|TRUNCATE|GRANT"
    r"|REVOKE|COPY|SET|RESET|SHOW|LISTEN|UNLISTEN|NOTIFY|LOCK|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|ANALYZE|VACUUM|EXPLAIN|DO)"
    r"\s+[\w\"$%({*]"
)


# No string of ours is a statement.
def test_no_statement_in_a_string() -> None:
    offenders = [
        f"{place(path, node.lineno)}: {node.value.strip()[:60]!r}"
        for path in python_files("bot", "store")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and STATEMENT.match(node.value)
    ]
    assert not offenders, "\n".join(offenders)


# Nothing composes statements, not even safely: ten clear queries beat one with switches.
def test_no_statement_from_pieces() -> None:
    offenders = [
        place(path, node.lineno)
        for path in python_files("bot", "store")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom)
        and (
            node.module == "psycopg.sql"
            or (node.module == "psycopg" and "sql" in {a.name for a in node.names})
        )
    ]
    offenders += [
        place(path, line)
        for path in python_files("bot", "store")
        for line, name in imports(path)
        if name == "psycopg.sql"
    ]
    assert not offenders
