"""Every statement of sql/queries: read by the rules, planned by the server, used once, moving nothing by id.
Not here: how fast they are (tests/store/test_explain.py) and what they do (tests/store, tests/flow).
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from store import queries
from store.errors import BadQuery
from store.queries import Query, load, parse
from tests.house.tree import parsed, place, python_files

EVERY = load()
SORTED = sorted(EVERY.values(), key=lambda each: each.name)
PLANNED = re.compile(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE|VALUES)\b")
OWNERS = {"record_migration"}  # run by migrate alone
PARAMETER = re.compile(r"%\((\w+)\)s")
# The three things that move, and the column that says where they are.
MOVED = {"workflow_runs": "state", "drafts": "status", "effect_outbox": "state"}


def numbered(query: Query) -> str:
    """The statement with its parameters as the server numbers them."""
    names = list(dict.fromkeys(PARAMETER.findall(query.text)))
    return PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", query.text)


def parameters(query: Query) -> int:
    return len(set(PARAMETER.findall(query.text)))


@pytest.fixture(scope="module")
def conn(shared_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A session as the program has it, with the plan that does not know the parameters."""
    with psycopg.connect(shared_dsn, autocommit=True, prepare_threshold=None) as made:
        made.execute("SET plan_cache_mode = force_generic_plan")
        yield made


# Every statement fits the schema, whatever its parameters are, and is one that the program's role may run:
# planning looks at rights too.
@pytest.mark.parametrize("query", SORTED, ids=lambda query: query.name)
def test_every_query_is_planned(conn: psycopg.Connection[Any], query: Query) -> None:
    if not PLANNED.match(query.text):
        conn.pgconn.prepare(b"checked", numbered(query).encode())  # a utility statement is read, not planned
        return
    role = "none" if query.name in OWNERS else "stet_app"
    conn.execute("DEALLOCATE ALL")
    with conn.transaction(force_rollback=True):
        conn.execute(f"SET LOCAL ROLE {role}".encode())
        conn.execute(f"PREPARE checked AS {numbered(query)}".encode())
        nulls = ", ".join(["NULL"] * parameters(query))
        conn.execute(f"EXPLAIN EXECUTE checked{f'({nulls})' if nulls else ''}".encode())


def uses() -> dict[str, set[str]]:
    """Which store files name which query, by calls of query() and of migrate's _run()."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in python_files("bot", "store"):
        for call in ast.walk(parsed(path)):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Name)
                and call.func.id in {"query", "_run"}
            ):
                for argument in call.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        found[argument.value].add(place(path))
    return found


# Every query is used, in exactly one file of the store, and no file asks for one that is not there.
def test_every_query_has_one_home() -> None:
    found = uses()
    offenders = [f"{name} is used nowhere" for name in EVERY if name not in found]
    offenders += [
        f"{name} is used in {', '.join(sorted(where))}" for name, where in found.items() if len(where) > 1
    ]
    offenders += [f"{where} asks for {name}" for name, where in found.items() if name not in EVERY]
    offenders += [
        f"{name} is used outside the store"
        for name, where in found.items()
        if any(not each.startswith("store/") for each in where)
    ]
    assert not offenders, "\n".join(sorted(offenders))


# Comments are for readers: none is sent, where a percent sign in it would be taken for a parameter.
@pytest.mark.parametrize("query", SORTED, ids=lambda query: query.name)
def test_no_comment_is_sent(query: Query) -> None:
    assert "--" not in query.text
    assert "/*" not in query.text
    assert "%" not in PARAMETER.sub("", query.text)


def updates(query: Query) -> Iterator[tuple[str, str, str]]:
    """Each UPDATE of something that moves: table, what is set, and on which condition."""
    for found in re.finditer(r"(?<!FOR )(?<!KEY )(?<!DO )\bUPDATE\s+(\w+)\b", query.text):
        if found[1] in MOVED:
            statement = rest_of(query.text[found.end() :], "RETURNING")
            what = rest_of(statement, "WHERE")
            yield found[1], what, statement[len(what) :]


def rest_of(text: str, end: str) -> str:
    """The text up to the parenthesis that closes what it stands in, or up to a word outside of all others."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth < 0 or (depth == 0 and text.startswith(end, at)):
            return text[:at]
    return text


# Every move names the state it leaves: read first and written by id, it would undo what came between.
@pytest.mark.parametrize("query", SORTED, ids=lambda query: query.name)
def test_every_move_names_the_state_it_leaves(query: Query) -> None:
    for table, what, condition in updates(query):
        column = MOVED[table]
        if re.search(rf"\b{column}\s*=", what):
            assert re.search(rf"\b{column}\s*(=|IN\b|NOT IN\b|IS NOT DISTINCT FROM\b)", condition), (
                f"{query.name} moves {table} by id"
            )


# Every move counts the version on, so that whoever read the row before it cannot write after it.
@pytest.mark.parametrize("query", SORTED, ids=lambda query: query.name)
def test_every_move_counts_the_version(query: Query) -> None:
    born_final = {"retire_stale_runs"}  # still in the transaction of their birth, where version 1 says so
    for table, what, _ in updates(query):
        if re.search(rf"\b{MOVED[table]}\s*=", what) and query.name not in born_final:
            assert re.search(r"\bversion\s*=\s*(\w+\.)?version \+ 1", what), (
                f"{query.name} moves {table} silently"
            )


# A deadline in a write is tested by the clock, not by the start: the lock was waited for meanwhile.
@pytest.mark.parametrize("query", SORTED, ids=lambda query: query.name)
def test_deadlines_of_writes_are_tested_by_the_clock(query: Query) -> None:
    for _, _, condition in updates(query):
        assert not re.search(r"(expires_at|fresh_until)\s*[<>]=?\s*now\(\)", condition), query.name


# Other people's time is no parameter: the database's clock alone decides what is due.
@pytest.mark.parametrize("query", SORTED, ids=lambda query: query.name)
def test_time_is_the_databases(query: Query) -> None:
    assert not re.search(r"%\((now|at|today|time)\)s", query.text), query.name


GOOD = """\
-- name: settle
-- End it, at most once; 100 % safe.
-- zero rows: somebody was faster
UPDATE things
   SET state = 'done' -- a word aside, 5 %
 WHERE id = %(id)s AND state = 'open';
"""


# A query is read whole: name, purpose, the sentence on zero rows, and a statement without comments.
def test_the_loader_reads_a_query() -> None:
    assert parse(GOOD, "x.sql") == {
        "settle": Query(
            "settle",
            "UPDATE things\n   SET state = 'done'\n WHERE id = %(id)s AND state = 'open'",
            "End it, at most once; 100 % safe.",
            "somebody was faster",
        )
    }


# Zero rows that mean nothing special raise nothing.
def test_nothing_special_means_nothing() -> None:
    read = parse(GOOD.replace("somebody was faster", "nothing: it was done before"), "x.sql")
    assert read["settle"].meaning == ""


# The loader refuses what breaks the rules, and names the file.
@pytest.mark.parametrize(
    ("source", "says"),
    [
        (GOOD + GOOD, "two queries are called settle"),
        ("SELECT 1;\n" + GOOD, "text before the first name line"),
        ("-- name: one\nSELECT 1;\n", "needs a sentence of purpose"),
        ("-- name: one\n-- Says one.\n", "needs a sentence of purpose and a statement"),
        (GOOD.replace("-- zero rows: somebody was faster\n", ""), "does not say what zero rows mean"),
        (
            "-- name: one\n-- Removes some.\nDELETE FROM things WHERE id = %(id)s;\n",
            "does not say what zero rows mean",
        ),
        (
            "-- name: one\n-- Moves.\nWITH m AS (UPDATE t SET a = 1 WHERE b RETURNING c)\nSELECT c FROM m;\n",
            "does not say what zero rows mean",
        ),
    ],
)
def test_the_loader_refuses(source: str, says: str) -> None:
    with pytest.raises(BadQuery, match=says) as refused:
        parse(source, "x.sql")
    assert str(refused.value).startswith("x.sql: ")


# Reading locks and inserts that yield to what is there are no conditional writes.
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 FROM things WHERE a FOR UPDATE",
        "SELECT 1 FROM things WHERE a FOR NO KEY UPDATE",
        "INSERT INTO things VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 1",
    ],
)
def test_locks_are_no_writes(statement: str) -> None:
    assert parse(f"-- name: one\n-- Says one.\n{statement};\n", "x.sql")["one"].meaning == ""


# Two files may not share a name, and a name that is nowhere is refused where it is asked for.
def test_names_are_one_across_files(tmp_path: Any) -> None:
    (tmp_path / "a.sql").write_text(GOOD, encoding="utf-8")
    (tmp_path / "b.sql").write_text(GOOD, encoding="utf-8")
    with pytest.raises(BadQuery, match=r"b\.sql: two queries are called settle"):
        load(tmp_path)
    with pytest.raises(BadQuery, match="no query is called settle_all"):
        queries.query("settle_all")
