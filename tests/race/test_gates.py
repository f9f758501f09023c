"""The end of a cancel window, and everybody at once: exactly one of cancelled, withdrawn and sent.

Not here: what each does alone (tests/flow/test_delayed, tests/flow/test_cancel).
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, LiteralString
from uuid import UUID

import pytest

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision
from bot.flow.cancel import Cancelled, cancel
from bot.flow.opening import open_or_revise
from bot.flow.weighing import Proposal
from bot.gates import by_exception, delayed
from bot.policy.keys import body_hash
from bot.policy.kinds import Kind, load_policy
from bot.policy.rules import RuleVerdict
from store import runs
from store.database import Database
from store.drafts import Content
from store.rows import Claim
from store.runs import Held
from tests import makers
from tests.flow.conftest import POLICY
from tests.flow.outlets import Scripted, actions, dispatcher
from tests.flow.test_decide import click, deciding
from tests.race.barrier import AT_THE_CLAIM, AT_THE_START, ROUNDS, together

BODY = {"subject": "Hi", "body": "It ships.", "label": "shipping"}
DUE = "UPDATE effect_outbox SET not_before = now(), next_attempt_at = now() WHERE state = 'pending'"


@pytest.fixture
async def another(own_dsn: str) -> AsyncIterator[Database]:
    """A second process's connections."""
    database = Database(own_dsn)
    await database.open()
    yield database
    await database.close()


def with_gate(gate: str, more: str = "") -> Kind:
    text = POLICY.replace('gate = "approve_first"', f'gate = "{gate}"') + more
    return load_policy(text).kinds["customer_email"]


async def schedule(db: Database, dsn: str, number: int) -> dict[str, Any]:
    """A draft whose window ends now, as the click on its card needs it."""
    kind = with_gate("delayed")
    await let(db, dsn, number, Proposal(kind, content(), RuleVerdict((), (), allowed=False), delayed.judge))
    makers.change(dsn, DUE)
    makers.change(dsn, "UPDATE cards SET ts = '1700000000.000100' WHERE ts IS NULL")
    return makers.rows(
        dsn,
        "SELECT d.draft_id, a.approval_id, c.card_id, c.channel, c.ts, e.effect_id, e.idempotency_key AS key"
        " FROM drafts AS d JOIN approvals AS a USING (draft_id) JOIN cards AS c USING (draft_id)"
        " JOIN effect_outbox AS e USING (draft_id) ORDER BY d.opened_at DESC LIMIT 1",
    )[0]


def content() -> Content:
    return Content(BODY, body_hash(BODY), "upstream")


async def let(db: Database, dsn: str, number: int, proposal: Proposal) -> UUID:
    """Claim a new run and open its draft."""
    run_id = makers.make_run(dsn, entity=f"customer:{number}")
    async with db.connection() as conn:
        (run,) = await runs.claim_runs(conn, Claim(f"one-{number}", 1, 60, (), 0))
    await open_or_revise(db, run, Held(run.run_id, f"one-{number}", run.version), proposal)
    return run_id


def press(dsn: str, draft: dict[str, Any]) -> Click:
    return click(draft, makers.make_token(dsn, draft, "cancel"), decision=Decision.CANCEL)


def ends(dsn: str, draft: dict[str, Any]) -> tuple[str, str, str]:
    found = makers.rows(
        dsn,
        "SELECT d.status, r.state AS run, e.state AS effect"
        " FROM drafts AS d JOIN workflow_runs AS r USING (run_id)"
        " JOIN effect_outbox AS e ON e.draft_id = d.draft_id WHERE d.draft_id = %(draft_id)s",
        draft_id=draft["draft_id"],
    )[0]
    return found["status"], found["run"], found["effect"]


# Cancel against the window's end, at the claim and between claim and start: nothing left and the canceller
# hears so, or it left and they are too late.
@pytest.mark.parametrize("barrier", [AT_THE_CLAIM, AT_THE_START], ids=["claim", "start"])
async def test_cancel_against_due_time(
    own_db: Database, own_dsn: str, another: Database, barrier: LiteralString
) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(ROUNDS):
        draft = await schedule(own_db, own_dsn, number)
        sink = Scripted()
        one = dispatcher(another, sink)
        pressed = press(own_dsn, draft)
        answer, _ = await together(own_dsn, barrier, cancel(deciding(own_db), pressed), one.run_once())
        await one.quiet()
        if answer == Cancelled():
            assert ends(own_dsn, draft) == ("cancelled", "cancelled", "cancelled")
            assert not sink.calls
            assert ("slack:T0HOME:U0ALICE", "cancelled") in actions(own_dsn, draft["key"])
        else:
            assert isinstance(answer, NotDecided)
            assert answer.why in {Why.STARTED, Why.SETTLED, Why.TOO_SLOW}
            await one.run_once()
            await one.quiet()
            assert ends(own_dsn, draft) == ("sent", "completed", "completed")
            assert len(sink.calls) == 1
        outcomes[ends(own_dsn, draft)[0]] += 1
    assert outcomes.total() == ROUNDS


# Two drafts open while the agreement has just fallen: ops is told once, whoever notices first.
async def test_loss_is_told_once(own_db: Database, own_dsn: str, another: Database) -> None:
    kind = with_gate("by_exception")
    makers.change(
        own_dsn, "INSERT INTO earnings VALUES (%(ground)s, 'customer_email', true)", ground=kind.ground
    )
    proposal = Proposal(kind, content(), RuleVerdict((), (), allowed=True), by_exception.judge)
    run_ids = [makers.make_run(own_dsn, entity=f"customer:{number}") for number in range(8)]
    async with own_db.connection() as conn:
        claimed = await runs.claim_runs(conn, Claim("one", 8, 60, (), 0))
    assert len(claimed) == len(run_ids)
    await asyncio.gather(
        *(
            open_or_revise(db, run, Held(run.run_id, "one", run.version), proposal)
            for run, db in zip(claimed, [own_db, another] * 4, strict=True)
        )
    )
    assert [row["name"] for row in makers.rows(own_dsn, "SELECT name FROM alerts")] == ["earned_lost"]
    assert {row["status"] for row in makers.rows(own_dsn, "SELECT status FROM drafts")} == {"pending"}
