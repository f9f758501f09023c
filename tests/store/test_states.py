"""The database holds everybody to the moves, and refuses rows that cannot be.

Not here: who makes a move and when (tests/flow).
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import product
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from store.ids import new_id
from store.states import FINAL_RUNS, MOVES, OUTCOMES, DraftStatus, EffectState, RunState, outcome_of

LISTED = {(move.thing, move.before, move.after) for move in MOVES}
STATES = {"run": RunState, "draft": DraftStatus, "effect": EffectState}
TABLES = {
    "run": ("workflow_runs", "state"),
    "draft": ("drafts", "status"),
    "effect": ("effect_outbox", "state"),
}
PAIRS = [
    (thing, before.value, after.value)
    for thing, states in STATES.items()
    for before, after in product(states, states)
    if before != after
]
Values = dict[str, Any]
LEASE: Values = {"lease_owner": "one", "lease_expires_at": "2030-01-01", "lease_taken_at": "2030-01-01"}


def run_row(state: str, **more: Any) -> Values:
    """The columns of a run that a state asks for, and no others."""
    processing = state == "processing"
    final = state in {each.value for each in FINAL_RUNS}
    return {
        "state": state,
        "finished_at": "2030-01-01" if final else None,
        "failure": "timeout" if state.startswith("failed") else None,
        **(LEASE if processing else dict.fromkeys(LEASE)),
        **more,
    }


def draft_row(status: str, **more: Any) -> Values:
    return {"status": status, "approval_id": UUID(int=7) if status == "pending" else None, **more}


def effect_row(state: str, **more: Any) -> Values:
    sending = state == "sending"
    return {
        "state": state,
        "lease_owner": "one" if sending else None,
        "lease_expires_at": "2030-01-01" if sending else None,
        "ambiguous_at": "2030-01-01" if state == "unknown" else None,
        "reason": "http_400" if state == "failed" else None,
        **more,
    }


ROWS: dict[str, Callable[..., Values]] = {"run": run_row, "draft": draft_row, "effect": effect_row}


def whole(table: str) -> Values:
    """What else a row needs; unique wherever it must be."""
    id_ = new_id()
    every: dict[str, Values] = {
        "workflow_runs": {
            "run_id": id_,
            "idempotency_key": f"n8n:mail:{id_}",
            "source": "n8n",
            "kind": "mail",
            "event_key": str(id_),
            "entity": "customer:1",
            "draft_key": "k",
            "source_version": 1,
            "payload_hash": "h",
        },
        "drafts": {
            "draft_id": id_,
            "draft_key": f"k{id_}",
            "kind": "mail",
            "entity": "customer:1",
            "run_id": id_,
            "revision": 1,
            "known_version": 1,
            "snapshot_hash": "s",
            "expires_at": "2030-01-01",
        },
        "effect_outbox": {
            "effect_id": id_,
            "idempotency_key": f"n8n:mail:{id_}",
            "run_id": id_,
            "draft_id": id_,
            "draft_key": "k",
            "kind": "mail",
            "effect_type": "http",
            "target": "https://sink.example/",
            "known_version": 1,
        },
        "cards": {"card_id": id_, "draft_id": id_, "channel": "C0REVIEW"},
        "approvals": {"approval_id": id_, "draft_id": id_, "revision": 1, "run_id": id_, "quorum": 1},
        "approval_tokens": {
            "token_hash": str(id_),
            "approval_id": id_,
            "revision": 1,
            "decision": "approve",
            "surface": "message",
            "card_id": id_,
            "shown_hash": "h",
            "expires_at": "2030-01-01",
        },
        "votes": {
            "approval_id": id_,
            "subject": "slack:T:U",
            "decision": "approve",
            "counted_as": "user:U",
            "shown_hash": "h",
        },
        "redrafts": {"redraft_id": id_, "draft_id": id_, "revision": 1, "requested_by": "slack:T:U"},
        "run_inputs": {"run_id": id_, "payload": Jsonb({})},
        "revisions": {
            "draft_id": id_,
            "revision": 1,
            "run_id": id_,
            "body": Jsonb({}),
            "body_hash": "h",
            "author": "model",
        },
        "effect_payloads": {"effect_id": id_, "snapshot_hash": "s", "revision": 1, "body": b"{}"},
        "waiters": {"waiter_id": id_, "run_id": id_, "resume_url": "https://n8n.example/", "url_hash": "h"},
        "alerts": {"alert_id": id_, "alert_key": str(id_), "name": "takeovers"},
        "kill_switch": {"scope": "llm", "open": True, "changed_by": "slack:T:U"},
        "homes": {"team_id": "T0HOME", "user_id": str(id_)},
        "model_tokens": {"day": "2030-01-01", "kind": str(id_), "tokens": 1},
        "kind_limits": {
            "kind": str(id_),
            "breaker_after": 50,
            "breaker_rest_seconds": 30,
            "breaker_rest_most_seconds": 900,
        },
        "departures": {"effect_id": id_, "kind": "mail", "lane": 7},
        "targets": {
            "lane": id_.int % 2**63,
            "kind": "mail",
            "effect_type": "http",
            "target": "https://sink.example/",
            "failures": 1,
        },
        "event_counters": {
            "day": "2030-01-01",
            "source": "n8n",
            "kind": "mail",
            "status": "accepted",
            "n": 1,
        },
        "audit_log": {
            "chain": str(id_),
            "seq": 1,
            "at": "2030-01-01",
            "actor": "system",
            "action": "received",
            "detail_hash": b"",
            "hash": b"",
        },
    }
    return every[table]


def insert(conn: psycopg.Connection[Any], table: str, values: Values) -> None:
    conn.execute(
        sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, values)),
            sql.SQL(", ").join(map(sql.Placeholder, values)),
        ),
        values,
    )


@pytest.fixture
def conn(shared_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction as the owner that is undone."""
    with psycopg.connect(shared_dsn) as made:
        yield made
        made.rollback()


def move(conn: psycopg.Connection[Any], pair: tuple[str, str, str]) -> None:
    """Put a row into one state, and from there into another, whole in both."""
    thing, before, after = pair
    table, column = TABLES[thing]
    base = whole(table)
    key = next(iter(base))
    insert(conn, table, base | ROWS[thing](before))
    values = ROWS[thing](after)
    places = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in values
    )
    conn.execute(
        sql.SQL("UPDATE {} SET {} WHERE {} = {} AND {} = {}").format(
            sql.Identifier(table),
            places,
            sql.Identifier(key),
            sql.Placeholder("key"),
            sql.Identifier(column),
            sql.Placeholder("before"),
        ),
        values | {"key": base[key], "before": before},
    )


# Every move that is listed can be made.
@pytest.mark.parametrize("pair", sorted(LISTED & set(PAIRS)), ids="-".join)
def test_listed_moves_are_accepted(conn: psycopg.Connection[Any], pair: tuple[str, str, str]) -> None:
    move(conn, pair)


# Every other pair of states is refused, whoever tries: the owner here.
@pytest.mark.parametrize("pair", sorted(set(PAIRS) - LISTED), ids="-".join)
def test_unlisted_moves_are_refused(conn: psycopg.Connection[Any], pair: tuple[str, str, str]) -> None:
    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        move(conn, pair)
    assert refused.value.diag.constraint_name == "state_moves_listed"


# Each thing can be in each of its states, whole as that state asks.
@pytest.mark.parametrize(
    ("thing", "state"), [(thing, state.value) for thing, states in STATES.items() for state in states]
)
def test_every_state_can_be(conn: psycopg.Connection[Any], thing: str, state: str) -> None:
    table, _ = TABLES[thing]
    insert(conn, table, whole(table) | ROWS[thing](state))


IMPOSSIBLE = [
    ("runs_known_state", "workflow_runs", run_row("pending")),
    ("runs_lease_while_processing", "workflow_runs", run_row("processing") | dict.fromkeys(LEASE)),
    ("runs_lease_while_processing", "workflow_runs", run_row("received") | LEASE),
    ("runs_lease_while_processing", "workflow_runs", run_row("processing", lease_expires_at=None)),
    ("runs_lease_while_processing", "workflow_runs", run_row("processing", lease_taken_at=None)),
    ("runs_finished_when_final", "workflow_runs", run_row("completed", finished_at=None)),
    ("runs_finished_when_final", "workflow_runs", run_row("approved", finished_at="2030-01-01")),
    ("runs_failure_named", "workflow_runs", run_row("failed_retryable", failure=None)),
    ("workflow_runs_source_version_check", "workflow_runs", run_row("received", source_version=-1)),
    ("run_inputs_erased_or_there", "run_inputs", {"payload": None}),
    ("run_inputs_erased_or_there", "run_inputs", {"erased_at": "2030-01-01"}),
    ("drafts_known_status", "drafts", draft_row("completed")),
    ("drafts_question_while_pending", "drafts", draft_row("pending", approval_id=None)),
    ("drafts_question_while_pending", "drafts", draft_row("approved", approval_id=UUID(int=7))),
    ("drafts_revision_check", "drafts", draft_row("pending", revision=0)),
    ("revisions_erased_or_there", "revisions", {"body": None}),
    ("revisions_erased_or_there", "revisions", {"erased_at": "2030-01-01"}),
    ("approvals_quorum_check", "approvals", {"quorum": 0}),
    (
        "approvals_decision_check",
        "approvals",
        {
            "consumed_at": "2030-01-01",
            "ended_at": "2030-01-01",
            "decision": "maybe",
            "approver_subject": "slack:T:U",
        },
    ),
    ("approvals_decided_whole", "approvals", {"decision": "approve"}),
    ("approvals_decided_whole", "approvals", {"approver_subject": "slack:T:U"}),
    (
        "approvals_decided_is_over",
        "approvals",
        {"consumed_at": "2030-01-01", "decision": "approve", "approver_subject": "slack:T:U"},
    ),
    ("approval_tokens_decision_check", "approval_tokens", {"decision": "maybe"}),
    ("approval_tokens_surface_check", "approval_tokens", {"surface": "mail"}),
    ("tokens_bound_to_surface", "approval_tokens", {"card_id": None}),
    ("tokens_bound_to_surface", "approval_tokens", {"surface": "view", "card_id": None}),
    ("tokens_bound_to_surface", "approval_tokens", {"holder": "slack:T:U"}),
    ("votes_decision_check", "votes", {"decision": "edit"}),
    ("redrafts_closed_with_outcome", "redrafts", {"closed_at": "2030-01-01"}),
    ("redrafts_closed_with_outcome", "redrafts", {"outcome": "done"}),
    (
        "redrafts_lease_while_open",
        "redrafts",
        {
            "closed_at": "2030-01-01",
            "outcome": "done",
            "lease_owner": "one",
            "lease_expires_at": "2030-01-01",
        },
    ),
    ("redrafts_lease_whole", "redrafts", {"lease_owner": "one"}),
    ("effects_known_state", "effect_outbox", effect_row("sent")),
    ("effects_lease_while_sending", "effect_outbox", effect_row("sending", lease_owner=None)),
    ("effects_lease_while_sending", "effect_outbox", effect_row("sending", lease_expires_at=None)),
    (
        "effects_lease_while_sending",
        "effect_outbox",
        effect_row("pending", lease_owner="one", lease_expires_at="2030-01-01"),
    ),
    ("effects_unknown_was_started", "effect_outbox", effect_row("unknown", ambiguous_at=None)),
    ("effects_failed_says_why", "effect_outbox", effect_row("failed", reason=None)),
    ("effects_undone_by_somebody", "effect_outbox", effect_row("pending", undo_of=UUID(int=7))),
    ("tokens_undo_one_effect", "approval_tokens", {"decision": "undo"}),
    ("tokens_undo_one_effect", "approval_tokens", {"effect_id": UUID(int=7)}),
    ("effect_payloads_erased_or_there", "effect_payloads", {"body": None}),
    ("cards_of_one_thing", "cards", {"draft_id": None}),
    ("cards_of_one_thing", "cards", {"effect_id": UUID(int=7)}),
    ("cards_of_one_thing", "cards", {"queue_of": "C0REVIEW", "queue_count": 3}),
    ("cards_queue_counts", "cards", {"draft_id": None, "queue_of": "C0REVIEW"}),
    ("cards_queue_counts", "cards", {"queue_count": 3}),
    ("cards_wait_for_a_place", "cards", {"waits_until": "2030-01-01"}),
    (
        "redrafts_answer_while_open",
        "redrafts",
        {"closed_at": "2030-01-01", "outcome": "done", "result": "{}"},
    ),
    ("homes_page_check", "homes", {"page": 0}),
    ("cards_never_ahead", "cards", {"shown_version": 2}),
    ("cards_lease_whole", "cards", {"lease_owner": "one"}),
    ("kill_switch_scope", "kill_switch", {"scope": "kind:Bad Name"}),
    ("event_counters_status_check", "event_counters", {"status": "lost"}),
    ("model_tokens_tokens_check", "model_tokens", {"tokens": -1}),
    ("kind_limits_concurrency_check", "kind_limits", {"concurrency": 0}),
    ("kind_limits_per_second_check", "kind_limits", {"per_second": 0}),
    ("kind_limits_per_minute_check", "kind_limits", {"per_minute": 0}),
    ("kind_limits_cap_hour_check", "kind_limits", {"cap_hour": 0}),
    ("kind_limits_cap_day_check", "kind_limits", {"cap_day": 0}),
    *(
        ("kind_limits_cap_value_day_check", "kind_limits", {"value_path": ["amount"], "cap_value_day": cap})
        for cap in (0, Decimal("Infinity"), Decimal("NaN"))
    ),
    ("kind_limits_breaker_after_check", "kind_limits", {"breaker_after": -1}),
    ("kind_limits_breaker_rest_seconds_check", "kind_limits", {"breaker_rest_seconds": 0}),
    ("kind_limits_check", "kind_limits", {"breaker_rest_most_seconds": 29}),
    ("limits_full_why", "kind_limits", {"full_until": "2030-01-01", "full_why": "cap_week"}),
    ("limits_full_whole", "kind_limits", {"full_until": "2030-01-01"}),
    ("limits_full_whole", "kind_limits", {"full_why": "cap_day"}),
    ("limits_value_whole", "kind_limits", {"value_path": ["amount"]}),
    ("limits_value_whole", "kind_limits", {"cap_value_day": 1}),
    *(
        ("departures_value_finite", "departures", {"value": value})
        for value in (-1, Decimal("Infinity"), Decimal("NaN"))
    ),
    ("targets_failures_check", "targets", {"failures": -1}),
    ("targets_rest_while_open", "targets", {"opened_at": "2030-01-01"}),
    ("targets_rest_while_open", "targets", {"rests_until": "2030-01-01"}),
    ("targets_trial_while_open", "targets", {"trial_id": UUID(int=7)}),
    ("audit_one_line", "audit_log", {"actor": "system\nslack:T:U"}),
    ("audit_one_line", "audit_log", {"action": "Received"}),
]


# Each rule refuses the row that it is there for, under its own name.
@pytest.mark.parametrize(
    ("rule", "table", "values"), IMPOSSIBLE, ids=[f"{rule}-{n}" for n, (rule, _, _) in enumerate(IMPOSSIBLE)]
)
def test_impossible_rows_are_refused(
    conn: psycopg.Connection[Any], rule: str, table: str, values: Values
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        insert(conn, table, whole(table) | values)
    assert refused.value.diag.constraint_name == rule


SAME = UUID(int=7)
TWICE = [
    ("runs_one_per_key", "workflow_runs", run_row("received", idempotency_key="one")),
    (
        "drafts_one_open_per_key",
        "drafts",
        draft_row("pending", draft_key="one"),
        draft_row("approved", draft_key="one"),
    ),
    (
        "drafts_one_open_per_key",
        "drafts",
        draft_row("scheduled", draft_key="one"),
        draft_row("pending", draft_key="one"),
    ),
    ("revisions_once", "revisions", {"draft_id": SAME}),
    ("votes_one_a_person", "votes", {"approval_id": SAME}),
    ("redrafts_one_open", "redrafts", {"draft_id": SAME}),
    (
        "effects_once",
        "effect_outbox",
        effect_row("completed", idempotency_key="one"),
        effect_row("pending", idempotency_key="one"),
    ),
    (
        "effects_one_undo",
        "effect_outbox",
        effect_row("failed", idempotency_key="a", undo_of=SAME, undo_by="slack:T:U"),
        effect_row("pending", idempotency_key="b", undo_of=SAME, undo_by="slack:T:U"),
    ),
    ("cards_one_per_draft", "cards", {"draft_id": SAME}),
    ("cards_one_per_effect", "cards", {"draft_id": None, "effect_id": SAME}),
    ("cards_one_per_queue", "cards", {"draft_id": None, "queue_of": "C0REVIEW", "queue_count": 3}),
    ("waiters_once", "waiters", {"run_id": SAME}),
    ("alerts_once", "alerts", {"alert_key": "one"}),
    ("audit_chain_once", "audit_log", {"chain": "one"}),
    ("event_counters_one_a_day", "event_counters", {}),
]


# What may be there once is refused a second time, under the rule's own name.
@pytest.mark.parametrize(
    ("rule", "table", "pair"),
    [(rule, table, (pair * 2)[:2]) for rule, table, *pair in TWICE],
    ids=[f"{rule}-{n}" for n, (rule, *_) in enumerate(TWICE)],
)
def test_a_second_one_is_refused(
    conn: psycopg.Connection[Any], rule: str, table: str, pair: list[Values]
) -> None:
    insert(conn, table, whole(table) | pair[0])
    with pytest.raises(psycopg.errors.UniqueViolation) as refused:
        insert(conn, table, whole(table) | pair[1])
    assert refused.value.diag.constraint_name == rule


ALLOWED_TWICE = [
    ("drafts", draft_row("sent", draft_key="one"), draft_row("pending", draft_key="one")),
    ("redrafts", {"draft_id": SAME, "closed_at": "2030-01-01", "outcome": "done"}, {"draft_id": SAME}),
    (
        "effect_outbox",
        effect_row("cancelled", idempotency_key="one"),
        effect_row("pending", idempotency_key="one"),
    ),
    (
        "effect_outbox",
        effect_row("pending", idempotency_key="one"),
        effect_row("pending", idempotency_key="one", target="https://other.example/"),
    ),
]


# What is over, cancelled or for somebody else stands in nobody's way.
@pytest.mark.parametrize(("table", "first", "second"), ALLOWED_TWICE)
def test_history_stands_in_nobodys_way(
    conn: psycopg.Connection[Any], table: str, first: Values, second: Values
) -> None:
    insert(conn, table, whole(table) | first)
    insert(conn, table, whole(table) | second)


# No rule of the schema goes untested: a new CHECK or unique rule wants its row above.
def test_every_rule_is_tested(conn: psycopg.Connection[Any]) -> None:
    found = conn.execute(
        "SELECT conname FROM pg_constraint"
        " WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'u')"
        " UNION SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid"
        " WHERE i.indisunique AND NOT i.indisprimary AND c.relnamespace = 'public'::regnamespace"
    ).fetchall()
    tested = {rule for rule, *_ in IMPOSSIBLE} | {rule for rule, *_ in TWICE}
    assert {name for (name,) in found} - tested == {"state_moves_thing_check"}


# The word that tells upstream the outcome is there for every final state and for none that is open.
def test_outcomes_are_of_final_states() -> None:
    assert set(OUTCOMES) == FINAL_RUNS
    assert [outcome_of(state) is not None for state in RunState] == [s in FINAL_RUNS for s in RunState]


# A state that no move leaves is final, and no other is.
def test_final_runs_are_where_no_move_leaves() -> None:
    leaving = {before for thing, before, _ in LISTED if thing == "run"}
    assert {state.value for state in RunState} - leaving == {state.value for state in FINAL_RUNS}
