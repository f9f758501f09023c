"""Every recurring statement finds its open rows by its partial index, beside 100,000 finished ones.

Not here: how long it takes (bench) or what it does (tests/store, tests/flow).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from store.queries import load, query
from tests.conftest import _clone, _drop
from tests.makers import SNAPSHOT

FINISHED = 100_000
OPEN = 60  # in each open state: more than any statement below may take at once
MOST = 20
PLANNED = re.compile(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b")
PARAMETER = re.compile(r"%\((\w+)\)s")
BIG = {
    *("workflow_runs", "run_inputs", "draft_heads", "drafts", "revisions"),
    *("effect_outbox", "effect_payloads", "cards", "alerts", "seen_events", "approvals", "agreements"),
    "approval_tokens",
    "departures",
}
# A statement may read what it takes, a few pages of each index on the way, and as much again to spare.
PAGES = 2_500
ROWS = 40 * OPEN

# What the rows of one filling are called; everything below is made from it.
PLACES: LiteralString = """
CREATE TEMP TABLE places ON COMMIT DROP AS
SELECT n, ('01900000-0000-7000-8000-' || lpad(to_hex(%(base)s + n), 12, '0'))::uuid AS id,
       'n8n:mail:' || %(base)s + n AS key, 'draft-key-' || %(base)s + n AS draft_key
  FROM generate_series(1, %(many)s) AS n
"""
RUNS: LiteralString = """
INSERT INTO workflow_runs (run_id, idempotency_key, source, kind, event_key, entity, draft_key,
    source_version, payload_hash, state, draft_id, failure, finished_at, next_attempt_at,
    lease_owner, lease_expires_at, lease_taken_at)
SELECT id, key, 'n8n', 'mail', key, 'customer:1', draft_key, 1, 'hash', %(run)s, id,
    CASE WHEN %(run)s LIKE 'failed%%' THEN 'timeout' END, CASE WHEN %(final)s THEN now() END,
    now() - interval '1 hour', CASE WHEN %(run)s = 'processing' THEN 'gone' END,
    CASE WHEN %(run)s = 'processing' THEN now() - interval '1 hour' END,
    CASE WHEN %(run)s = 'processing' THEN now() - interval '2 hours' END
  FROM places
"""
INPUTS: LiteralString = "INSERT INTO run_inputs (run_id, payload) SELECT id, '{}' FROM places"
SEEN: LiteralString = "INSERT INTO seen_events (idempotency_key, run_id) SELECT key, id FROM places"
HEADS: LiteralString = """
INSERT INTO draft_heads (draft_key, source_version, run_id, draft_id)
SELECT draft_key, 1, id, id FROM places
"""
DRAFTS: LiteralString = """
INSERT INTO drafts (draft_id, draft_key, kind, entity, run_id, status, revision, approval_id, known_version,
    snapshot_hash, expires_at)
SELECT id, draft_key, 'mail', 'customer:1', id, %(draft)s, 1, CASE WHEN %(draft)s = 'pending' THEN id END,
    1, 's', now() - interval '1 hour'
  FROM places
"""
REVISIONS: LiteralString = """
INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)
SELECT id, 1, id, '{}', 'h', 'model' FROM places
"""
APPROVALS: LiteralString = """
INSERT INTO approvals (approval_id, draft_id, revision, run_id, quorum)
SELECT id, id, 1, id, 1 FROM places
"""
CARDS: LiteralString = """
INSERT INTO cards (card_id, draft_id, channel, ts, wanted_version, shown_version, next_attempt_at)
SELECT id, id, 'C0REVIEW', '1.1', 2, CASE WHEN %(draft)s = 'pending' THEN 1 ELSE 2 END,
    now() - interval '1 hour'
  FROM places
"""
EFFECTS: LiteralString = """
INSERT INTO effect_outbox (effect_id, idempotency_key, run_id, draft_id, draft_key, kind, effect_type,
    target, known_version, state, next_attempt_at, fresh_until, lease_owner, lease_expires_at, started_at,
    ambiguous_at)
SELECT id, key, id, id, draft_key, 'mail', 'http', 'https://sink.example/' || n %% 3, 1, %(effect)s,
    now() - interval '1 hour',
    now() + CASE WHEN n %% 2 = 0 THEN interval '1 hour' ELSE interval '-1 hour' END,
    CASE WHEN %(effect)s = 'sending' THEN 'gone' END,
    CASE WHEN %(effect)s = 'sending' THEN now() - interval '1 hour' END, now() - interval '2 hours',
    CASE WHEN %(effect)s = 'unknown' THEN now() - interval '2 hours' END
  FROM places
"""
PAYLOADS: LiteralString = """
INSERT INTO effect_payloads (effect_id, snapshot_hash, revision, body)
SELECT id, 's', 1, '{}' FROM places
"""
ALERTS: LiteralString = """
INSERT INTO alerts (alert_id, alert_key, name, next_attempt_at, sent_at)
SELECT id, key, 'takeovers', now() - interval '1 hour', CASE WHEN %(final)s THEN now() END FROM places
"""
# The buttons of finished ones are good to read for long; some others have run out.
TOKENS: LiteralString = """
INSERT INTO approval_tokens (token_hash, approval_id, revision, decision, surface, card_id, shown_hash,
    expires_at)
SELECT card_id::text, draft_id, 1, 'approve', 'message', card_id, 'h',
       now() + CASE WHEN shown_version < wanted_version THEN interval '-9 days' ELSE interval '9 days' END
  FROM cards
"""
AGREEMENTS: LiteralString = """
INSERT INTO agreements (ground, decided_at, run_id, unedited)
SELECT 'ground-' || n %% 5, now() - n * interval '1 second', gen_random_uuid(), true
  FROM generate_series(1, %s) AS n
"""

# A kind with limits that has let most of its past out long ago, and a target that has rested.
LIMITS: LiteralString = """
INSERT INTO kind_limits (kind, cap_day, value_path, cap_value_day, concurrency, breaker_after,
    breaker_rest_seconds, breaker_rest_most_seconds)
VALUES ('mail', 1000, '{output,amount}', 5000, 5, 50, 30, 900)
"""
DEPARTURES: LiteralString = """
INSERT INTO departures (effect_id, kind, lane, value, taken_at)
SELECT effect_id, kind, lane, 1,
       now() - CASE WHEN state = 'completed' THEN interval '2 days' ELSE interval '1 minute' END
  FROM effect_outbox WHERE state IN ('completed', 'sending')
"""


@dataclass(frozen=True)
class Filling:
    """So many rows of everything: in which states, and whether the alerts among them were sent."""

    many: int
    run: str
    draft: str | None = None
    effect: str | None = None
    final: bool = False


FILLINGS = (
    Filling(FINISHED, "completed", "sent", "completed", final=True),
    Filling(OPEN, "received"),
    Filling(OPEN, "processing"),
    Filling(OPEN, "failed_retryable"),
    Filling(OPEN, "awaiting_human", "pending"),
    Filling(OPEN, "approved", "approved", "pending"),
    Filling(OPEN, "approved", "approved", "sending"),
    Filling(OPEN, "approved", "approved", "unknown"),
)


def fill(conn: psycopg.Connection[Any], base: int, filling: Filling) -> None:
    statements = [PLACES, RUNS, INPUTS, SEEN, HEADS, ALERTS]
    statements += [DRAFTS, REVISIONS, APPROVALS, CARDS] if filling.draft else []
    statements += [EFFECTS, PAYLOADS] if filling.effect else []
    with conn.transaction():
        conn.execute("SET LOCAL synchronous_commit = off")
        for statement in statements:
            psycopg.ClientCursor(conn).execute(statement, vars(filling) | {"base": base})


@pytest.fixture(scope="module")
def large(server: str, template: str) -> Iterator[psycopg.Connection[Any]]:
    """A database with a long past, and a session that plans as the program's do."""
    name = _clone(server, template)
    with psycopg.connect(make_conninfo(server, dbname=name), autocommit=True, prepare_threshold=None) as conn:
        insert = "INSERT INTO policy_snapshots (snapshot_hash, kind, body) VALUES ('s', 'mail', %s)"
        conn.execute(insert, (Jsonb(SNAPSHOT),))
        for place, filling in enumerate(FILLINGS):
            fill(conn, place * FINISHED, filling)
        conn.execute(AGREEMENTS, (FINISHED,))
        conn.execute(DEPARTURES)
        conn.execute(TOKENS)
        conn.execute("VACUUM ANALYZE")
        conn.execute("SET plan_cache_mode = force_generic_plan")
        yield conn
    _drop(server, name)


Params = dict[str, Any]
NOBODY = [f"draft-key-{n}" for n in range(5, 10)]  # finished ones
OPEN_DRAFTS_AT = 5 * FINISHED  # where the approved drafts with a pending effect begin


def some_id(n: int) -> str:
    return f"01900000-0000-7000-8000-{n:012x}"


IDS = [some_id(OPEN_DRAFTS_AT + n) for n in range(1, 11)]
KEYS = [f"draft-key-{OPEN_DRAFTS_AT + n}" for n in range(1, 11)]
CLAIM: Params = {"owner": "one", "most": MOST, "lease_seconds": 60}
EFFECT_CLAIM: Params = {
    "owner": "one",
    "enabled": True,
    "most": MOST,
    "slots": 10,
    "lanes": [],
    "lane_slots": [],
    "effect_types": ["http"],
    "chosen": [],
    "timeout_seconds": 10,
    "extra_seconds": 30,
    "kinds": ["mail"],
    "kind_gone_seconds": 15,
}
HTTP_LANE = 2262102016328052233  # hashtextextended('http mail https://sink.example/0', 0)
OWN: Params = {"kinds": ["mail"], "kind_gone_seconds": 60}
ALERT_CLAIM: Params = {"most": MOST, "first_wait_seconds": 1, "longest_wait_seconds": 60}

ASKED: Params = {"kinds": ["mail"], "subject": "slack:T0STET:U0ALICE"}
DUE = '[{"kind": "mail", "reminded": 0, "after_seconds": 0}]'
LANE: Params = {"channel": "C0REVIEW", "kind": "mail"}
ANY_PARTIAL: Sequence[str] = ()  # Several hold the pending drafts alone; which is cheapest hangs on how many.
NEXT: Params = ASKED | {"channel": "C0REVIEW", "after": None, "most": MOST}

# These are asked where kind `mail` has limits; everywhere else it has none.
GUARDED = {"find_guarded_lanes", "pick_effects", "measure_kinds", "forget_departures"}

# Each recurring statement, what it is asked, and the indexes that it must go by.
RECURRING: tuple[tuple[str, Params, Sequence[str]], ...] = (
    ("claim_runs", CLAIM | OWN | {"may_ask": True}, ["runs_due", "effects_open_by_draft_key"]),
    ("claim_runs", CLAIM | OWN | {"may_ask": False}, ["runs_due", "effects_open_by_draft_key"]),
    ("claim_effects", EFFECT_CLAIM, ["effects_due", "effects_open_by_draft_key"]),
    ("claim_effects", EFFECT_CLAIM | {"most": 0, "chosen": IDS}, ["effect_outbox_pkey"]),
    ("find_guarded_lanes", {"enabled": True, "effect_types": ["http"]}, ["effects_due"]),
    ("pick_effects", OWN | {"lanes": [HTTP_LANE], "most": [MOST], "ours": [True]}, ["effects_due"]),
    ("measure_sends", {"lanes": [HTTP_LANE]}, ["effects_leased", "departures_of_lane"]),
    ("measure_kinds", {"kinds": ["mail"]}, ["departures_of_kind", "effect_outbox_pkey"]),
    ("forget_departures", {"most": MOST}, ["departures_of_kind"]),
    ("want_lane_cards", {"lanes": [HTTP_LANE], "kinds": []}, ["cards_one_per_draft"]),
    ("find_expired_leases", {"most": MOST}, ["effects_leased"]),
    ("find_stale_effects", {"most": MOST}, ["effects_going_stale"]),
    (
        "take_unknowns",
        {"most": MOST, "effect_types": ["http"], "hold_seconds": 60},
        ["effects_unknown"],
    ),
    ("drop_old_tokens", {"keep_seconds": 86400, "most": MOST}, ["tokens_expiring"]),
    ("claim_cards", CLAIM | {"among": 1000}, ["cards_behind"]),
    ("claim_alerts", ALERT_CLAIM, ["alerts_to_send"]),
    ("list_expired", {"most": MOST}, ["drafts_expiring"]),
    ("expire_drafts", {"draft_keys": KEYS}, ANY_PARTIAL),
    ("read_evidence", {"ground": "ground-3", "most": 50}, ["agreements_newest"]),
    ("find_open_draft", {"draft_key": KEYS[0]}, ["drafts_one_open_per_key"]),
    ("lock_heads", {"draft_keys": KEYS}, ["draft_heads_pkey"]),
    ("overtake", {"draft_keys": KEYS, "run_ids": []}, ["runs_open_by_draft_key", "drafts_one_open_per_key"]),
    ("overtake", {"draft_keys": NOBODY, "run_ids": []}, ["runs_open_by_draft_key"]),
    ("lock_unfinished_effects", {"draft_keys": KEYS}, ["effects_open_by_draft_key"]),
    ("cancel_unstarted_effects", {"draft_ids": IDS}, ["drafts_pkey", "effects_once"]),
    ("want_cards", {"draft_ids": IDS, "effect_ids": []}, ["cards_one_per_draft"]),
    ("list_started", {"scope": "all"}, ["effects_leased"]),
    ("want_waiting_cards", {"scope": "all"}, ["cards_one_per_draft"]),
    ("count_open_work", {}, ["drafts_expiring", "runs_due"]),
    ("list_waiting", ASKED | {"passed": 0, "most": MOST}, ANY_PARTIAL),
    ("count_waiting", ASKED, ANY_PARTIAL),
    ("list_unreminded", {"due": DUE, "most": MOST}, ANY_PARTIAL),
    ("measure_lanes", {}, ["cards_waiting", "cards_in_place"]),
    ("admit_cards", LANE | {"most": MOST}, ["cards_waiting"]),
    ("want_queue_cards", {"channels": ["C0REVIEW"], "counts": [3]}, ["cards_one_per_queue"]),
    ("list_next", NEXT, ["cards_waiting"]),
    ("list_unsettled", {"most": MOST}, ["effects_unknown"]),
    ("list_unknown", {"most": MOST}, ["effects_unknown"]),
    ("find_runs", {"keys": [f"n8n:mail:{n}" for n in range(1, 9)]}, ["runs_one_per_key"]),
)


def prepare(conn: psycopg.Connection[Any], name: str) -> list[str]:
    """Let the server know a statement as "checked", and give the names of its parameters in their order."""
    text = query(name).text
    names = list(dict.fromkeys(PARAMETER.findall(text)))
    numbered = PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", text)
    conn.execute("DEALLOCATE ALL")
    conn.execute(f"PREPARE checked AS {numbered}".encode())
    return names


def explain(conn: psycopg.Connection[Any], name: str, params: Params) -> Params:
    """Run a statement as the program would, undo it, and give the plan with what it touched."""
    names = prepare(conn, name)
    places = f"({', '.join(['%s'] * len(names))})" if names else ""
    with conn.transaction(force_rollback=True):
        if name in GUARDED:
            conn.execute(LIMITS)
        cursor = psycopg.ClientCursor(conn)
        cursor.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE checked{places}".encode(),
            [params[each] for each in names],
        )
        found = cursor.fetchone()
    assert found is not None
    plan: Params = found[0][0]["Plan"]
    return plan


def nodes(plan: Params) -> Iterator[Params]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


def touched(node: Params) -> float:
    """Rows that a node looked at, kept or thrown away."""
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return float((node["Actual Rows"] + removed) * node["Actual Loops"])


# No statement that runs all the time reads the past: it goes by the index made for it, and touches little.
@pytest.mark.parametrize(
    ("name", "params", "indexes"), RECURRING, ids=[f"{name}-{n}" for n, (name, _, _) in enumerate(RECURRING)]
)
def test_recurring_statements_read_no_history(
    large: psycopg.Connection[Any], name: str, params: Params, indexes: Sequence[str]
) -> None:
    plan = explain(large, name, params)
    every = list(nodes(plan))
    used = {node["Index Name"] for node in every if "Index Name" in node}
    read_whole = {node["Relation Name"] for node in every if node["Node Type"] == "Seq Scan"}
    assert not read_whole & BIG
    assert set(indexes) <= used
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < PAGES
    assert max((touched(node) for node in every if "Relation Name" in node), default=0) < ROWS


# No other statement reads a long table whole either, planned as the program plans it, whatever it is asked.
@pytest.mark.parametrize("name", sorted(each.name for each in load().values() if PLANNED.match(each.text)))
def test_no_statement_reads_a_table_whole(large: psycopg.Connection[Any], name: str) -> None:
    places = prepare(large, name)
    nulls = f"({', '.join(['NULL'] * len(places))})" if places else ""
    found = large.execute(f"EXPLAIN (FORMAT JSON) EXECUTE checked{nulls}".encode()).fetchone()
    assert found is not None
    every = nodes(found[0][0]["Plan"])
    read_whole = {node["Relation Name"] for node in every if node["Node Type"] == "Seq Scan"}
    assert not read_whole & BIG
