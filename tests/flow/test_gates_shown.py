"""What people see and can do of a draft that a gate let through: the card, Cancel, and what decisions count.

Not here: the gates' verdicts (tests/gates) or exact blocks (tests/cards).
"""

from collections.abc import Callable
from typing import Any

import pytest

from bot.contracts.answer import NotDecided, Why
from bot.contracts.click import Decision
from bot.demo.slack_server import SlackStandIn
from bot.flow.decide import Decided, decide
from bot.flow.draft import Drafter
from bot.policy.kinds import Policy, load_policy
from store.database import Database
from tests.flow.conftest import POLICY
from tests.flow.screens import NewShower, buttons, said, seen
from tests.flow.test_by_exception import TERMS, agree
from tests.flow.test_decide import click, deciding
from tests.makers import change, make_draft, make_run, make_token, rows

Make = Callable[..., Drafter]
EVENT: dict[str, Any] = {"inputs": {"draft": {"subject": "Hi", "body": "It ships.", "label": "shipping"}}}


def with_gate(gate: str, more: str = "") -> Policy:
    return load_policy(POLICY.replace('gate = "approve_first"', f'gate = "{gate}"') + more)


@pytest.fixture(scope="session")
def policy() -> Policy:
    """One kind, whose gate each test chooses."""
    return with_gate("delayed")


async def open_one(dsn: str, drafter: Drafter) -> None:
    make_run(dsn, **EVENT)
    await drafter.run_once()
    await drafter.drain()


# A scheduled draft says when it goes out, in the reader's time zone, and that it can be cancelled.
async def test_scheduled_card(
    dsn: str, db: Database, drafter_on: Make, slack: SlackStandIn, shower: NewShower
) -> None:
    await open_one(dsn, drafter_on(db))
    await shower().run_once()
    (card,) = seen(slack)
    assert "Scheduled" in said(card)
    assert "unless somebody cancels" in said(card)
    due = rows(dsn, "SELECT floor(extract(epoch FROM not_before))::bigint AS at FROM effect_outbox")[0]["at"]
    assert str(due) in str(card.blocks)
    assert "stet.cancel" in buttons(card)
    assert "stet.approve" not in buttons(card)


# What went out alone says by which figures it might.
async def test_exception_card(
    *, dsn: str, db: Database, drafter_on: Make, policy: Policy, slack: SlackStandIn, shower: NewShower
) -> None:
    before = policy.kinds["customer_email"]
    policy.kinds["customer_email"] = kind = with_gate("by_exception", TERMS).kinds["customer_email"]
    try:
        agree(dsn, kind, 20)
        await open_one(dsn, drafter_on(db))
    finally:
        policy.kinds["customer_email"] = before
    await shower().run_once()
    (card,) = seen(slack)
    assert "of the last 20 decisions 20 approved such a draft unedited" in said(card)


# A button of the time when the draft still waited for a person says that it is decided, and by what.
async def test_old_button(dsn: str, db: Database, drafter_on: Make) -> None:
    old = make_draft(dsn)
    token = make_token(dsn, old)
    make_run(dsn, version=18, **EVENT)
    drafter = drafter_on(db)
    await drafter.run_once()
    await drafter.drain()
    answer = await decide(deciding(db), click(old, token))
    assert isinstance(answer, NotDecided)
    assert (answer.why, answer.by) == (Why.APPROVED, "gate:delayed")


# Every decision of people counts, and for the kind only an approval of what the run opened with.
@pytest.mark.parametrize(
    ("decision", "edited", "unedited"),
    [
        (Decision.APPROVE, False, True),
        (Decision.APPROVE, True, False),
        (Decision.REJECT, False, False),
    ],
)
async def test_decisions_count(
    dsn: str, db: Database, *, decision: Decision, edited: bool, unedited: bool
) -> None:
    draft = make_draft(dsn, snapshot={"ground": "this"})
    if edited:
        change(dsn, "UPDATE drafts SET revision = 2")
        change(
            dsn,
            "INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)"
            " SELECT draft_id, 2, run_id, body, body_hash, 'slack:T0HOME:U0CAROL' FROM revisions",
        )
        change(dsn, "UPDATE approvals SET revision = 2")
    token = make_token(dsn, draft, str(decision), revision=1 + edited)
    asked = click(draft, token, decision=decision, revision=1 + edited, reason="No")
    assert isinstance(await decide(deciding(db), asked), Decided)
    counted = rows(dsn, "SELECT ground, run_id, unedited FROM agreements")
    assert counted == [{"ground": "this", "run_id": draft["run_id"], "unedited": unedited}]


# A vote that does not decide yet counts nothing; the one that reaches the quorum counts once.
async def test_quorum_counts_once(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, snapshot={"ground": "this", "quorum": 2})
    for user, counted in (("U0ALICE", 0), ("U0BOB", 1)):
        token = make_token(dsn, draft)
        assert isinstance(await decide(deciding(db), click(draft, token, user)), Decided)
        assert rows(dsn, "SELECT count(*) AS n FROM agreements")[0]["n"] == counted
