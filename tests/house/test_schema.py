"""The schema for reading equals the migrations; moves are one in Python, SQL and docs.
Not here: what the trigger refuses (tests/store/test_states.py).
"""

import psycopg
import pytest
from psycopg.rows import tuple_row

from store import chart, schema
from store.states import MOVES, DraftStatus, EffectState, RunState
from tests.house.tree import ROOT

# Names that SPEC.md promises, so that whoever knows the contract finds them in the database.
PROMISED = {
    "workflow_runs": "run_id idempotency_key source kind event_key entity draft_key source_version"
    " payload_hash state next_attempt_at takeovers result",
    "drafts": "draft_id draft_key kind entity status revision expires_at decided_at",
    "draft_heads": "draft_key source_version",
    "revisions": "draft_id revision body body_hash",
    "approvals": "approval_id draft_id revision decision approver_subject consumed_at quorum",
    "approval_tokens": "token_hash approval_id",
    "votes": "approval_id subject",
    "redrafts": "draft_id revision requested_by wish lease_owner attempts",
    "effect_outbox": "effect_id idempotency_key effect_type target state started_at not_before"
    " next_attempt_at provider_id ambiguous_at",
    "cards": "draft_id channel ts wanted_version shown_version shown_hash",
    "seen_events": "idempotency_key",
    "kill_switch": "scope open changed_by reason",
    "audit_log": "chain seq at actor action detail_hash hash",
    "audit_details": "chain seq salt detail",
}


@pytest.fixture(scope="module")
def read(shared_dsn: str) -> str:
    return schema.describe(shared_dsn)


# What stands in sql/schema.sql is what the migrations leave, whichever version the server has.
def test_schema_equals_migrations(read: str) -> None:
    assert read == schema.TARGET.read_text("utf-8"), "run `make schema`"


# The text is whole: a database made from it alone has the same schema.
def test_schema_makes_itself(own_dsn: str, read: str) -> None:
    with psycopg.connect(own_dsn) as conn:
        conn.execute("DROP SCHEMA public CASCADE")
        conn.execute("CREATE SCHEMA public")
        conn.execute(read.encode())
    assert schema.describe(own_dsn) == read


# Tables, their indexes and counters, and functions are all there is: whatever else is made must first be
# written down too.
def test_schema_holds_only_what_is_written_down(shared_dsn: str) -> None:
    with psycopg.connect(shared_dsn, row_factory=tuple_row) as conn:
        others = conn.execute(
            "SELECT relkind::text, relname FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind NOT IN ('r', 'i')"
            " AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'i')"
            " UNION ALL SELECT 'type', typname FROM pg_type"
            " WHERE typnamespace = 'public'::regnamespace AND typtype IN ('e', 'd')"
        ).fetchall()
    assert not others


# The trigger decides by the same moves, for the same reasons, as Python knows.
def test_moves_equal_in_sql(shared_dsn: str) -> None:
    with psycopg.connect(shared_dsn) as conn:
        there = conn.execute("SELECT thing, before, after, why FROM state_moves").fetchall()
    ours = [(move.thing, move.before, move.after, move.why) for move in MOVES]
    assert sorted(there) == sorted(ours)


# What people read is drawn from the same moves.
def test_moves_equal_in_docs() -> None:
    assert chart.draw() == chart.TARGET.read_text("utf-8"), "run `make docs`"


# A state that no move reaches or leaves is a slip, and so is a move between states that do not exist.
def test_moves_name_every_state() -> None:
    named = {(move.thing, state) for move in MOVES for state in (move.before, move.after)}
    known = {("run", state.value) for state in RunState}
    known |= {("draft", state.value) for state in DraftStatus}
    known |= {("effect", state.value) for state in EffectState}
    assert named == known


# Whoever knows the contract finds its tables and columns by name.
@pytest.mark.parametrize("table", PROMISED)
def test_promised_names_are_there(shared_dsn: str, table: str) -> None:
    with psycopg.connect(shared_dsn) as conn:
        found = conn.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::text::regclass AND attnum > 0",
            (table,),
        ).fetchall()
    assert set(PROMISED[table].split()) <= {name for (name,) in found}


# A stranger reads what a table is for beside it, and which rule a name stands for.
def test_tables_and_rules_explain_themselves(read: str) -> None:
    silent = [
        line
        for line in read.splitlines()
        if line.startswith("CREATE TABLE ")
        and line != "CREATE TABLE schema_migrations ("
        and f"COMMENT ON TABLE {line.split()[2]} IS" not in read
    ]
    assert not silent


# Both are written where readers look for them.
def test_targets_stand_where_the_house_says() -> None:
    assert schema.TARGET == ROOT / "sql" / "schema.sql"
    assert chart.TARGET == ROOT / "docs" / "states.md"
