"""The gate `by_exception` at work: what is counted, what goes out alone, and how a kind loses it again.

Not here: Wilson's bound (tests/policy/test_earned) or what the gate says (tests/gates).
"""

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from bot.flow.draft import Drafter
from bot.policy.keys import body_hash
from bot.policy.kinds import Kind, Policy, load_policy
from store import audit, cancelling, heads
from store.cancelling import Cancelling
from store.database import Database
from tests.flow.conftest import POLICY
from tests.flow.outlets import Scripted, actions, dispatch
from tests.makers import change, insert, make_draft, make_run, rows

Make = Callable[..., Drafter]
SHIPPING: dict[str, Any] = {"subject": "Hi", "body": "It ships Monday.", "label": "shipping"}
TERMS = """
[[kinds.customer_email.rules]]
level = "allow"
path = "output.label"
op = "in"
value = ["shipping", "refund"]
message = "A question about a parcel."
[kinds.customer_email.earned]
decisions = 20
threshold = 0.8
sample = 0.0
"""


@pytest.fixture(scope="session")
def policy() -> Policy:
    return load_policy(POLICY.replace('gate = "approve_first"', 'gate = "by_exception"') + TERMS)


@pytest.fixture
def kind(policy: Policy) -> Kind:
    return policy.kinds["customer_email"]


async def work(drafter: Drafter) -> None:
    await drafter.run_once()
    await drafter.drain()


def agree(dsn: str, kind: Kind, unedited: int, edited: int = 0) -> None:
    """Decisions of people, one a second, the edited ones last."""
    with psycopg.connect(dsn) as conn:
        for number in range(unedited + edited):
            conn.execute(
                "INSERT INTO agreements (ground, decided_at, run_id, unedited)"
                " VALUES (%s, clock_timestamp(), gen_random_uuid(), %s)",
                (kind.ground, number < unedited),
            )


def event(dsn: str, number: int = 1, **changed: Any) -> Any:
    draft = SHIPPING | changed
    return make_run(
        dsn, entity=f"customer:{number}", inputs={"payload": {"to": "amy@example.test"}, "draft": draft}
    )


def standing(dsn: str) -> list[tuple[str, str]]:
    found = rows(
        dsn,
        "SELECT d.status, r.state FROM drafts AS d JOIN workflow_runs AS r USING (run_id) ORDER BY opened_at",
    )
    return [(row["status"], row["state"]) for row in found]


def reasons(dsn: str) -> list[str | None]:
    found = rows(
        dsn,
        "SELECT t.detail::jsonb ->> 'asked_because' AS why"
        " FROM audit_log AS l JOIN audit_details AS t USING (chain, seq)"
        " WHERE l.action = 'draft_opened' ORDER BY l.at",
    )
    return [row["why"] for row in found]


# What was earned goes out at once, with its bytes, and the record says by which figures.
async def test_goes_out_alone(dsn: str, db: Database, drafter_on: Make, kind: Kind) -> None:
    agree(dsn, kind, 20)
    run_id = event(dsn)
    await work(drafter_on(db))
    assert standing(dsn) == [("approved", "approved")]
    (question,) = rows(dsn, "SELECT * FROM approvals")
    assert (question["decision"], question["approver_subject"]) == ("approve", "gate:by_exception")
    assert question["reason"] == "earned 20/20"
    key = rows(dsn, "SELECT idempotency_key FROM workflow_runs WHERE run_id = %(id)s", id=run_id)[0][
        "idempotency_key"
    ]
    assert actions(dsn, key) == [("system", "draft_opened"), ("gate:by_exception", "approved")]
    async with db.connection() as conn:
        lines = await audit.read_chain(conn, key)
        assert not audit.faults_of(lines)
    said = json.loads(lines[-1].detail or "")
    assert (said["decisions"], said["unedited"], said["threshold"]) == (20, 20, 0.8)
    assert said["lower_bound"] == pytest.approx(0.8389, abs=1e-4)
    assert said["rules"] == ["output.label"]
    sink = Scripted()
    await dispatch(db, sink)
    assert json.loads(sink.calls[0].body)["approved_by"] == "gate:by_exception"
    assert standing(dsn) == [("sent", "completed")]
    assert rows(dsn, "SELECT count(*) AS n FROM agreements")[0]["n"] == 20


# Everything that speaks against it, one at a time, brings it before a person.
@pytest.mark.parametrize(
    ("changed", "unedited", "why"),
    [
        ({"label": "refund"}, 20, "warned"),
        ({"body": "Pay \u202e001 now."}, 20, "warned"),
        ({"label": "other"}, 20, "not_allowed"),
        ({}, 19, "not_earned"),
        ({}, 0, "not_earned"),
    ],
)
async def test_asks(
    dsn: str, db: Database, drafter_on: Make, kind: Kind, *, changed: Any, unedited: int, why: str
) -> None:
    agree(dsn, kind, unedited)
    event(dsn, **changed)
    await work(drafter_on(db))
    assert standing(dsn) == [("pending", "awaiting_human")]
    assert reasons(dsn) == [why]
    assert rows(dsn, "SELECT * FROM effect_outbox") == []


# Only the last decisions count, and only those about drafts made by this prompt and these rules.
async def test_last_decisions_of_this_ground(dsn: str, db: Database, drafter_on: Make, kind: Kind) -> None:
    agree(dsn, kind, 0, edited=30)
    agree(dsn, kind.model_copy(update={"prompt": "Other {payload}"}), 50)
    event(dsn, 1)
    await work(drafter_on(db))
    agree(dsn, kind, 20)
    event(dsn, 2)
    await work(drafter_on(db))
    assert [status for status, _ in standing(dsn)] == ["pending", "approved"]


# A share is shown all the same, drawn by our own id of the run: a retry draws no other lot.
async def test_sample(dsn: str, db: Database, drafter_on: Make, kind: Kind, policy: Policy) -> None:
    earned = kind.earned.model_copy(update={"sample": 0.5}) if kind.earned else None
    policy.kinds["customer_email"] = kind.model_copy(update={"earned": earned})
    try:
        agree(dsn, kind, 20)
        for number in range(30):
            event(dsn, number)
        drafter = drafter_on(db)
        while rows(dsn, "SELECT 1 FROM workflow_runs WHERE state = 'received'"):
            await work(drafter)
    finally:
        policy.kinds["customer_email"] = kind
    seen = [status for status, _ in standing(dsn)]
    assert {"pending", "approved"} == set(seen)
    assert set(reasons(dsn)) == {"sampled", None}
    assert reasons(dsn).count("sampled") == seen.count("pending")


# When agreement falls the kind asks again by itself; ops hears once, and again only after it was earned anew.
async def test_lost_and_told_once(dsn: str, db: Database, drafter_on: Make, kind: Kind) -> None:
    drafter = drafter_on(db)
    alerts = "SELECT facts FROM alerts ORDER BY raised_at"
    for number, (unedited, edited, status, told) in enumerate(
        [
            (20, 0, "approved", 0),
            (0, 1, "pending", 1),
            (0, 1, "pending", 1),
            (20, 0, "approved", 1),
            (0, 1, "pending", 2),
        ]
    ):
        agree(dsn, kind, unedited, edited)
        event(dsn, number)
        await work(drafter)
        assert standing(dsn)[-1][0] == status
        assert len(rows(dsn, alerts)) == told
    assert [row["facts"] for row in rows(dsn, alerts)] == [
        {"kind": "customer_email", "reason": "19/20"},
        {"kind": "customer_email", "reason": "19/20"},
    ]
    assert [action for _, action in actions(dsn, "system")] == [
        *("exceptions_earned", "exceptions_lost", "exceptions_earned", "exceptions_lost")
    ]


# A kind that never earned it is silent about that.
async def test_never_earned_is_no_loss(dsn: str, db: Database, drafter_on: Make, kind: Kind) -> None:
    agree(dsn, kind, 0, edited=20)
    event(dsn)
    await work(drafter_on(db))
    assert rows(dsn, "SELECT * FROM alerts") == []
    assert rows(dsn, "SELECT * FROM earnings") == []


# A cancellation of what a gate let through speaks against it.
async def test_cancelling_counts_against(dsn: str, db: Database, drafter_on: Make, kind: Kind) -> None:
    agree(dsn, kind, 20)
    event(dsn)
    await work(drafter_on(db))
    token = cancel_token(dsn)
    async with db.transaction() as conn:
        await heads.lock_heads(
            conn, [row["draft_key"] for row in rows(dsn, "SELECT draft_key FROM draft_heads")]
        )
        await cancelling.cancel_draft(conn, token)
    assert standing(dsn) == [("cancelled", "cancelled")]
    assert rows(dsn, "SELECT unedited FROM agreements ORDER BY decided_at DESC LIMIT 1") == [
        {"unedited": False}
    ]


def cancel_token(dsn: str) -> Cancelling:
    """A Cancel button on the card of the only draft, bound to the question that its gate answered."""
    (card,) = rows(
        dsn,
        "SELECT card_id, channel, approval_id, revision FROM cards JOIN approvals USING (draft_id)",
    )
    with psycopg.connect(dsn) as conn:
        insert(
            conn,
            "approval_tokens",
            {
                "token_hash": body_hash({"card": str(card["card_id"])}),
                "approval_id": card["approval_id"],
                "revision": card["revision"],
                "decision": "cancel",
                "surface": "message",
                "card_id": card["card_id"],
                "shown_hash": "0" * 64,
                "expires_at": conn.execute("SELECT now() + interval '1 hour'").fetchone()[0],  # type: ignore[index]
            },
        )
    token_hash = body_hash({"card": str(card["card_id"])})
    return Cancelling(token_hash, card["revision"], "message", card["channel"], "1.1", "slack:T0HOME:U0ALICE")


# A draft that waits for a person and takes a newer event's content goes out like any other.
async def test_pending_draft_goes_out(dsn: str, db: Database, drafter_on: Make, kind: Kind) -> None:
    old = make_draft(dsn, run={"entity": "customer:1"})
    agree(dsn, kind, 20)
    make_run(dsn, version=18, entity="customer:1", inputs={"draft": SHIPPING})
    await work(drafter_on(db))
    (draft,) = rows(dsn, "SELECT draft_id, status, revision FROM drafts")
    assert (draft["draft_id"], draft["status"], draft["revision"]) == (old["draft_id"], "approved", 2)
    assert (
        change(
            dsn, "UPDATE effect_outbox SET version = version WHERE state = 'pending' AND not_before IS NULL"
        )
        == 1
    )
