"""The gate `delayed` at work: scheduled, sent after its window, withdrawn, cancelled, or too late.

Not here: what the gate says (tests/gates) or the cancelling click (test_decide, tests/race).
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bot.contracts.event import Event, Origin
from bot.flow import arrive, withdraw
from bot.flow.draft import Drafter
from bot.flow.withdraw import Withdrawing
from bot.policy.kinds import Policy, load_policy
from store import audit
from store.database import Database
from tests.flow.conftest import POLICY
from tests.flow.outlets import Scripted, actions, dispatch
from tests.makers import change, insert_vote, make_draft, make_run, rows

Make = Callable[..., Drafter]
UPSTREAM: dict[str, Any] = {
    "inputs": {"payload": {"to": "amy@example.test"}, "draft": {"subject": "Hi", "body": "B."}}
}
WARNED: dict[str, Any] = {"inputs": {"draft": {"subject": "Hi", "body": "B.", "label": "refund"}}}
HIDDEN: dict[str, Any] = {"inputs": {"draft": {"subject": "Hi", "body": "Pay \u202e001 now."}}}

STATE = """
SELECT d.draft_id, d.status, d.revision, d.approval_id, d.decided_at, d.expires_at, d.notice,
       r.state, r.idempotency_key, r.draft_id AS run_draft, r.lease_owner
  FROM drafts AS d JOIN workflow_runs AS r USING (run_id)
"""
WINDOW_OVER = """
UPDATE effect_outbox SET not_before = not_before - interval '10 minutes',
       next_attempt_at = next_attempt_at - interval '10 minutes',
       fresh_until = fresh_until - interval '10 minutes'
"""


@pytest.fixture(scope="session")
def policy() -> Policy:
    return load_policy(POLICY.replace('gate = "approve_first"', 'gate = "delayed"\ncancel_window = "10m"'))


async def work(drafter: Drafter) -> int:
    claimed = await drafter.run_once()
    await drafter.drain()
    return claimed


def effects(dsn: str) -> list[dict[str, Any]]:
    return rows(
        dsn,
        "SELECT e.*, p.body, extract(epoch FROM e.not_before - now()) AS due_in,"
        " extract(epoch FROM e.fresh_until - e.not_before) AS fresh_for"
        " FROM effect_outbox AS e JOIN effect_payloads AS p USING (effect_id) ORDER BY e.effect_id",
    )


async def accept(db: Database, *, version: int) -> None:
    """Take a newer event in, as the intake's transaction does."""
    event = Event(
        source="n8n",
        kind="customer_email",
        event_key=f"evt-{version}",
        entity="customer:42",
        source_version=version,
        payload={"to": "amy@example.test"},
        record_url=None,
        requested_by=None,
        draft={"subject": "Hi", "body": f"Version {version}."},
        resume_url=None,
        replaces=None,
        reason=None,
    )
    async with db.transaction() as conn:
        await arrive.store_arrivals(conn, [arrive.make_arrival(event, Origin(None, None, None))], "test")


# A draft is scheduled with its effect and its bytes in one go, and no person's place in the channel is taken.
async def test_scheduled(dsn: str, db: Database, drafter_on: Make) -> None:
    run_id = make_run(dsn, **UPSTREAM)
    await work(drafter_on(db))
    (draft,) = rows(dsn, STATE)
    assert (draft["status"], draft["state"], draft["approval_id"]) == ("scheduled", "approved", None)
    assert (draft["run_draft"], draft["lease_owner"]) == (draft["draft_id"], None)
    (effect,) = effects(dsn)
    assert effect["state"] == "pending"
    assert 590 < effect["due_in"] <= 600
    assert effect["next_attempt_at"] == effect["not_before"]
    assert effect["fresh_for"] == 24 * 3600
    assert draft["expires_at"] >= effect["fresh_until"]
    body = json.loads(effect["body"])
    assert (body["effect_id"], body["revision"]) == (str(effect["effect_id"]), 1)
    assert (body["output"], body["recipient"]) == ({"subject": "Hi", "body": "B."}, "amy@example.test")
    assert (body["approved_by"], body["key"]) == ("gate:delayed", draft["idempotency_key"])
    assert set(body) == {
        *(
            "effect_id",
            "key",
            "kind",
            "entity",
            "revision",
            "recipient",
            "output",
            "approved_by",
            "approved_at",
        )
    }
    assert rows(dsn, "SELECT place_kind, waits_until, wanted_version FROM cards") == [
        {"place_kind": None, "waits_until": None, "wanted_version": 1}
    ]
    assert actions(dsn, draft["idempotency_key"]) == [
        ("system", "draft_opened"),
        ("gate:delayed", "scheduled"),
    ]
    async with db.connection() as conn:
        assert not audit.faults_of(await audit.read_chain(conn, draft["idempotency_key"]))
    assert rows(dsn, "SELECT * FROM agreements") == []
    assert run_id is not None


# Nothing leaves before the window is over; then it leaves once, and the draft is sent.
async def test_sent_after_the_window(dsn: str, db: Database, drafter_on: Make) -> None:
    make_run(dsn, **UPSTREAM)
    await work(drafter_on(db))
    sink = Scripted()
    await dispatch(db, sink)
    assert not sink.calls
    change(dsn, WINDOW_OVER)
    await dispatch(db, sink)
    await dispatch(db, sink)
    assert len(sink.calls) == 1
    (draft,) = rows(dsn, STATE)
    assert (draft["status"], draft["state"]) == ("sent", "completed")


# What people have to see is never passed by a clock: a warning, text that nobody sees, a correction.
@pytest.mark.parametrize(("more", "why"), [(WARNED, "warned"), (HIDDEN, "warned"), ({}, "correction")])
async def test_asked_all_the_same(dsn: str, db: Database, drafter_on: Make, more: Any, why: str) -> None:
    if more:
        make_run(dsn, **more)
    else:
        old = make_run(dsn, state="completed", version=16)
        make_run(dsn, replaces=old, **UPSTREAM)
    await work(drafter_on(db))
    (draft,) = rows(dsn, STATE)
    assert (draft["status"], draft["state"]) == ("pending", "awaiting_human")
    assert effects(dsn) == []
    said = rows(dsn, "SELECT detail::jsonb ->> 'asked_because' AS why FROM audit_details")
    assert [line["why"] for line in said] == [why]


# A newer event withdraws what has not started, and its content is scheduled anew, with a window of its own.
async def test_newer_event_schedules_anew(dsn: str, db: Database, drafter_on: Make) -> None:
    make_run(dsn, **UPSTREAM)
    await work(drafter_on(db))
    await accept(db, version=18)
    (draft,) = rows(dsn, STATE)
    assert (draft["status"], draft["state"], draft["notice"]) == (
        "pending",
        "awaiting_human",
        "withdrawn_newer",
    )
    change(dsn, WINDOW_OVER)
    sink = Scripted()
    await dispatch(db, sink)
    assert not sink.calls
    assert await work(drafter_on(db)) == 1
    (again,) = rows(dsn, STATE)
    assert (again["draft_id"], again["status"], again["revision"]) == (draft["draft_id"], "scheduled", 2)
    assert [effect["state"] for effect in effects(dsn)] == ["cancelled", "pending"]
    assert 590 < effects(dsn)[1]["due_in"] <= 600
    change(dsn, WINDOW_OVER)
    await dispatch(db, sink)
    assert [json.loads(call.body)["output"]["body"] for call in sink.calls] == ["Version 18."]


# A draft that waits for a person takes the newer event's content and is scheduled, its old question over.
async def test_pending_draft_becomes_scheduled(dsn: str, db: Database, drafter_on: Make) -> None:
    old = make_draft(dsn)
    make_run(dsn, version=18, **UPSTREAM)
    await work(drafter_on(db))
    (draft,) = rows(dsn, STATE)
    assert (draft["draft_id"], draft["status"], draft["revision"]) == (old["draft_id"], "scheduled", 2)
    ended = rows(dsn, "SELECT end_reason, approver_subject FROM approvals ORDER BY revision")
    assert [(one["end_reason"], one["approver_subject"]) for one in ended] == [
        ("superseded", None),
        ("decided", "gate:delayed"),
    ]


# A newer event that comes once the send has started waits for its end, and then gets a draft of its own.
async def test_newer_event_after_the_start(dsn: str, db: Database, drafter_on: Make) -> None:
    make_run(dsn, **UPSTREAM)
    await work(drafter_on(db))
    change(
        dsn,
        "UPDATE effect_outbox SET state = 'sending', lease_owner = 'x', started_at = now(),"
        " lease_expires_at = now()",
    )
    await accept(db, version=18)
    assert rows(dsn, STATE)[0]["status"] == "scheduled"
    assert await work(drafter_on(db)) == 0
    assert len(rows(dsn, STATE)) == 1


# What fell due in an outage is sent if still fresh, counted from its window's end; else a person decides.
@pytest.mark.parametrize(("late", "status"), [("23 hours", "sent"), ("25 hours", "pending")])
async def test_late(dsn: str, db: Database, drafter_on: Make, late: str, status: str) -> None:
    make_run(dsn, **UPSTREAM)
    await work(drafter_on(db))
    change(dsn, WINDOW_OVER)
    change(
        dsn,
        "UPDATE effect_outbox SET not_before = not_before - %(late)s::interval,"
        " next_attempt_at = next_attempt_at - %(late)s::interval,"
        " fresh_until = fresh_until - %(late)s::interval",
        late=late,
    )
    sink = Scripted()
    await dispatch(db, sink)
    await withdraw.run_once(Withdrawing(db))
    (draft,) = rows(dsn, STATE)
    assert (draft["status"], len(sink.calls)) == (status, int(status == "sent"))
    if status == "pending":
        assert (draft["notice"], draft["state"]) == ("withdrawn_stale", "awaiting_human")


# A person's earlier approval of the same draft does not look like one of what the clock sends.
async def test_earlier_approval_is_not_shown(dsn: str, db: Database, drafter_on: Make) -> None:
    old = make_draft(dsn)
    insert_vote(dsn, old, subject="slack:T0HOME:U0ALICE")
    make_run(dsn, version=18, **UPSTREAM)
    await work(drafter_on(db))
    newest = rows(
        dsn, "SELECT approver_subject FROM approvals WHERE consumed_at IS NOT NULL ORDER BY consumed_at"
    )
    assert newest[-1]["approver_subject"] == "gate:delayed"


# Whoever lost the lease schedules nothing.
async def test_stale_owner(dsn: str, db: Database, drafter_on: Make) -> None:
    make_run(dsn, **UPSTREAM)
    drafter = drafter_on(db, "slow")
    await drafter.run_once()
    change(dsn, "UPDATE workflow_runs SET lease_owner = 'other', version = version + 1")
    await drafter.drain()
    assert rows(dsn, STATE) == []
    assert effects(dsn) == []
