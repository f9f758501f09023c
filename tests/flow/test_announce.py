"""Outcomes told to whoever waits: each word, all waiters, late ones, two processes, deaths and the switch.

Not here: what n8n answers (tests/connectors/test_resume).
"""

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest

from bot.connectors.connector import Effect
from bot.contracts.event import Origin, read_event
from bot.contracts.outcome import NotSent, Refused, Sent, Unknown
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import C_OPS
from bot.flow import announce, recover, withdraw
from bot.flow.announce import Announcing
from bot.flow.arrive import make_arrival
from bot.flow.receive import Duplicate, Receiver, Stale
from bot.flow.tally import Tally
from store import intake, outcomes
from store.database import Database
from store.states import OUTCOMES
from tests import makers
from tests.flow.outlets import Scripted, dispatch, effect_row
from tests.flow.screens import NewShower, buttons, said
from tests.flow.waiting import N8N, make_waiter, outcome, told

ALICE = "slack:T1:U0ALICE"


async def tell(db: Database) -> int:
    return await announce.run_once(Announcing(db))


def decided(dsn: str, status: str, decision: str, **more: Any) -> dict[str, Any]:
    """A settled draft whose question somebody answered."""
    draft = makers.make_draft(dsn, status=status, **more)
    makers.change(
        dsn,
        "UPDATE approvals SET ended_at = now(), end_reason = 'decided', consumed_at = now(),"
        " decision = %(decision)s, approver_subject = %(alice)s, reason = %(reason)s"
        " WHERE approval_id = %(id)s",
        decision=decision,
        alice=ALICE,
        reason="too blunt" if decision == "reject" else None,
        id=draft["approval_id"],
    )
    return draft


# What was sent is told whole: who decided, which text, under which id; the URL stays where nobody reads it.
async def test_sent(db: Database, dsn: str) -> None:
    draft = decided(dsn, "sent", "approve")
    effect_id = makers.make_effect(dsn, draft=draft, state="completed", provider_id="msg-9")
    waiter_id = make_waiter(dsn, draft["run_id"])
    assert await tell(db) == 1
    said = outcome(dsn)
    assert said.pop("decided_at").endswith("Z")
    assert said == {
        "key": draft["key"],
        "run_id": str(draft["run_id"]),
        "outcome": "sent",
        "reason": None,
        "decided_by": ALICE,
        "revision": 1,
        "body": {"subject": "About your parcel", "body": "It ships Monday."},
        "effects": [
            {"effect_id": str(effect_id), "effect_type": "http", "state": "completed", "provider_id": "msg-9"}
        ],
    }
    row = told(dsn)[0]
    assert (row["effect_id"], row["state"], row["recipient"]) == (waiter_id, "pending", None)
    assert row["target"] == f"{N8N}#{waiter_id}"
    assert (row["fresh_until"], row["settled_at"] is None, row["is_waited"]) == (None, False, False)
    assert await tell(db) == 0


# A refusal by a person is told with its reason, and with the text that was refused.
async def test_rejected(db: Database, dsn: str) -> None:
    draft = decided(dsn, "rejected", "reject")
    make_waiter(dsn, draft["run_id"])
    assert await tell(db) == 1
    said = outcome(dsn)
    assert (said["outcome"], said["reason"], said["decided_by"]) == ("rejected", "too blunt", ALICE)
    assert (said["revision"], said["effects"]) == (1, [])


# Nobody answered in time: expired, and nobody is named, even if an approval was withdrawn before.
async def test_expired(db: Database, dsn: str) -> None:
    draft = decided(dsn, "expired", "approve")
    make_waiter(dsn, draft["run_id"])
    assert await tell(db) == 1
    said = outcome(dsn)
    assert (said["outcome"], said["decided_by"], said["decided_at"], said["reason"]) == (
        "expired",
        None,
        None,
        None,
    )


# What a person stopped is cancelled by that person.
async def test_cancelled(db: Database, dsn: str) -> None:
    draft = decided(dsn, "cancelled", "cancel")
    makers.make_effect(dsn, draft=draft, state="cancelled")
    make_waiter(dsn, draft["run_id"])
    assert await tell(db) == 1
    said = outcome(dsn)
    assert (said["outcome"], said["decided_by"]) == ("cancelled", ALICE)
    assert [one["state"] for one in said["effects"]] == ["cancelled"]


# A run that no draft came of has failed, with the class of its failure and neither text nor revision.
async def test_failed_without_a_draft(db: Database, dsn: str) -> None:
    make_waiter(dsn, makers.make_run(dsn, state="failed_terminal"))
    assert await tell(db) == 1
    said = outcome(dsn)
    assert (said["outcome"], said["reason"]) == ("failed", "timeout")
    assert (said["revision"], said["body"], said["effects"]) == (None, None, [])


# Each final state has its word, and every open one is silent.
@pytest.mark.parametrize("state", ["received", "awaiting_human", "approved", *OUTCOMES])
async def test_every_state(db: Database, dsn: str, state: str) -> None:
    make_waiter(dsn, makers.make_run(dsn, state=state))
    word = dict(OUTCOMES).get(state)  # type: ignore[call-overload]
    assert await tell(db) == (word is not None)
    assert [row["state"] for row in told(dsn)] == ([] if word is None else ["pending"])
    if word is not None:
        assert outcome(dsn)["outcome"] == word


# Content that was erased is told no more.
async def test_erased(db: Database, dsn: str) -> None:
    draft = decided(dsn, "sent", "approve")
    makers.change(dsn, "UPDATE revisions SET body = NULL, erased_at = now()")
    make_waiter(dsn, draft["run_id"])
    await tell(db)
    assert (outcome(dsn)["revision"], outcome(dsn)["body"]) == (1, None)


# Every execution that waits is told, each once, with the same bytes.
async def test_several_waiters(db: Database, dsn: str) -> None:
    draft = decided(dsn, "sent", "approve")
    waiters = [make_waiter(dsn, draft["run_id"], place=f"{number}/gate-1") for number in range(3)]
    assert await tell(db) == 1
    assert [row["effect_id"] for row in told(dsn)] == waiters
    assert outcome(dsn)["outcome"] == "sent"


# Whoever joins after the outcome hears exactly what the first one heard, whatever was erased since.
async def test_late_waiter(db: Database, dsn: str) -> None:
    draft = decided(dsn, "sent", "approve")
    make_waiter(dsn, draft["run_id"])
    await tell(db)
    makers.change(dsn, "UPDATE revisions SET body = NULL, erased_at = now()")
    make_waiter(dsn, draft["run_id"], place="18/gate-1")
    assert await tell(db) == 1
    assert outcome(dsn)["body"] == {"subject": "About your parcel", "body": "It ships Monday."}
    assert len(told(dsn)) == 2


# Nobody is called before two seconds after our answer; who has waited long is called at once.
@pytest.mark.parametrize(("age", "least", "most"), [(0, 2.0, 2.3), (3600, -1.0, 0.0)])
async def test_not_before_our_answer(db: Database, dsn: str, age: float, least: float, most: float) -> None:
    due: list[float] = []
    make_waiter(dsn, makers.make_run(dsn, state="superseded"), age_seconds=age)
    makers.change(dsn, "UPDATE waiters SET added_at = clock_timestamp() WHERE %(young)s", young=age == 0)
    await announce.run_once(Announcing(db, due.append))
    row = told(dsn)[0]
    assert least - 1 < row["wait"].total_seconds() < most
    since_told = (row["not_before"] - row["settled_at"]).total_seconds()
    assert (since_told >= 2.0) is (age == 0)
    assert row["next_attempt_at"] == row["not_before"]
    assert due == [announce.DELAY_SECONDS]


async def receive(db: Database, woken: list[str], **changes: Any) -> Any:
    """Let an event arrive through the intake."""
    event = {
        "event_key": "ticket-1",
        "kind": "customer_email",
        "entity": "customer:42",
        "source_version": 5,
        "payload": {"to": "amy@example.test"},
    } | changes
    receiver = Receiver(db, Tally(db), wake=woken.append)
    from_n8n = read_event(json.dumps(event).encode(), source="n8n", header_key=None)
    return await receiver.receive(make_arrival(from_n8n, Origin()))


# A stale event's execution hears superseded, and is woken for.
async def test_stale_event(db: Database, dsn: str) -> None:
    woken: list[str] = []
    makers.make_run(dsn, version=9)
    answer = await receive(db, woken, resume_url=f"{N8N}/webhook-waiting/1/gate?signature=s")
    assert isinstance(answer, Stale)
    assert "resume" in woken
    assert await tell(db) == 1
    assert outcome(dsn)["outcome"] == "superseded"


# A redelivery from another execution is told the outcome that is there already; the same one only once.
async def test_duplicate_after_the_outcome(db: Database, dsn: str) -> None:
    woken: list[str] = []
    first = f"{N8N}/webhook-waiting/1/gate?signature=s"
    await receive(db, woken, resume_url=first)
    makers.change(
        dsn,
        "UPDATE workflow_runs SET state = 'processing', lease_owner = 'x', lease_expires_at = now(),"
        " lease_taken_at = now()",
    )
    makers.change(
        dsn,
        "UPDATE workflow_runs SET state = 'failed_terminal', failure = 'refused', lease_owner = NULL,"
        " lease_expires_at = NULL, lease_taken_at = NULL, finished_at = now()",
    )
    assert await tell(db) == 1
    woken.clear()
    assert isinstance(await receive(db, woken, resume_url=first), Duplicate)
    assert woken == []
    assert await tell(db) == 0
    second = f"{N8N}/webhook-waiting/2/gate?signature=s"
    assert isinstance(await receive(db, woken, resume_url=second), Duplicate)
    assert woken == ["resume"]
    assert await tell(db) == 1
    assert len(told(dsn)) == 2
    assert (outcome(dsn)["outcome"], outcome(dsn)["reason"]) == ("failed", "refused")


# A waiter that joins while its run's outcome is being told waits for that, and is told right after.
async def test_joining_at_that_moment(db: Database, dsn: str) -> None:
    run_id = makers.make_run(dsn, state="superseded")
    make_waiter(dsn, run_id)
    async with db.transaction() as conn:
        held = await outcomes.hold_ended_runs(conn, most=10)
        joining = asyncio.create_task(join(db, run_id))
        await locked_out(dsn)
        assert await outcomes.announce_outcomes(conn, held, answer_seconds=5, delay_seconds=2) == 1
    await joining
    assert await tell(db) == 1
    assert len(told(dsn)) == 2


async def join(db: Database, run_id: UUID) -> None:
    async with db.connection() as conn:
        await intake.add_waiters(conn, [(run_id, f"{N8N}/webhook-waiting/9/gate?signature=s")])


async def locked_out(dsn: str) -> None:
    """Wait until somebody waits for a lock."""
    waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(30):
        while not makers.rows(dsn, waits):  # noqa: ASYNC110 - PostgreSQL does not tell who waits for a lock
            await asyncio.sleep(0)


# Two processes tell each waiter once between them.
async def test_two_processes(db: Database, dsn: str) -> None:
    for number in range(30):
        run_id = makers.make_run(dsn, state="superseded", entity=f"customer:{number}")
        make_waiter(dsn, run_id, place=f"{number}/gate")
    await asyncio.gather(*(tell(db) for _ in range(4)))
    while await tell(db):
        pass
    rows = told(dsn)
    assert len(rows) == 30
    assert all(row["settled_at"] for row in rows)


# A process that dies in the middle has told nobody and marked nobody; the next one tells all.
async def test_death_in_the_middle(db: Database, dsn: str) -> None:
    make_waiter(dsn, makers.make_run(dsn, state="superseded"))
    with pytest.raises(ZeroDivisionError):
        await tell_and_die(db)
    assert told(dsn) == []
    assert await tell(db) == 1
    assert len(told(dsn)) == 1


async def tell_and_die(db: Database) -> None:
    async with db.transaction() as conn:
        held = await outcomes.hold_ended_runs(conn, most=10)
        assert await outcomes.announce_outcomes(conn, held, answer_seconds=5, delay_seconds=2) == 1
        raise ZeroDivisionError


def resumes(answer: Any = None, **more: Any) -> Scripted:
    return Scripted(answer or Sent(None), effect_type="resume", **more)


# The kill switch holds outcomes back like everything else, and lets each go once.
@pytest.mark.parametrize("scope", ["all", "effect:resume", "kind:customer_email"])
async def test_kill_switch(db: Database, dsn: str, scope: str) -> None:
    make_waiter(dsn, makers.make_run(dsn, state="superseded"))
    await tell(db)
    makers.change(
        dsn,
        "INSERT INTO kill_switch (scope, open, changed_by) VALUES (%(scope)s, false, 'test')"
        " ON CONFLICT (scope) DO UPDATE SET open = false",
        scope=scope,
    )
    connector = resumes()
    await dispatch(db, connector)
    assert connector.calls == []
    makers.change(dsn, "UPDATE kill_switch SET open = true")
    await dispatch(db, connector)
    await dispatch(db, connector)
    assert [call.target for call in connector.calls] == [f"{N8N}/webhook-waiting/17/gate-1?signature=secret"]


# Whatever becomes of telling an outcome, the run and its draft stay as they ended, and say nothing of it.
@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (Sent(None), "completed"),
        (Refused("gone"), "failed"),
        (Unknown("timeout"), "unknown"),
        (NotSent("http_409"), "pending"),
    ],
)
async def test_run_and_draft_stay(db: Database, dsn: str, answer: Any, state: str) -> None:
    draft = decided(dsn, "sent", "approve")
    makers.make_effect(dsn, draft=draft, state="completed", provider_id="msg-9")
    make_waiter(dsn, draft["run_id"])
    await tell(db)
    await dispatch(db, resumes(answer))
    row = effect_row(dsn, told(dsn)[0]["effect_id"])
    assert (row["state"], row["draft_status"], row["run_state"]) == (state, "sent", "completed")
    assert row["wanted_version"] == 1
    assert makers.rows(dsn, "SELECT FROM audit_log") == []


# One that is gone fails alone: the others hear the outcome.
async def test_gone_alone(db: Database, dsn: str) -> None:
    run_id = makers.make_run(dsn, state="superseded")
    for number in range(3):
        make_waiter(dsn, run_id, place=f"{number}/gate")
    await tell(db)

    def answer(effect: Effect) -> Any:
        return Refused("gone") if "/1/" in effect.target else Sent(None)

    await dispatch(db, resumes(answer))
    assert [row["state"] for row in told(dsn)] == ["completed", "failed", "completed"]


HELD = (
    "UPDATE effect_outbox SET state = 'sending', lease_owner = 'other', started_at = now(),"
    " lease_expires_at = now() + interval '1 hour'"
)
UNKNOWN = (
    "UPDATE effect_outbox SET state = 'unknown', ambiguous_at = now(), lease_owner = NULL,"
    " lease_expires_at = NULL"
)


# An outcome on its way holds up neither the next effect of its draft_key nor the next drafting.
@pytest.mark.parametrize("moves", [[], [HELD], [HELD, UNKNOWN]], ids=["pending", "sending", "unknown"])
async def test_holds_nothing_up(db: Database, dsn: str, drafter_on: Any, moves: list[Any]) -> None:
    make_waiter(dsn, makers.make_run(dsn, state="superseded", version=3))
    await tell(db)
    for move in moves:
        makers.change(dsn, move)
    draft = makers.make_draft(dsn, status="approved", run={"version": 17})
    makers.make_effect(dsn, draft=draft)
    mail = Scripted()
    await dispatch(db, mail)
    assert len(mail.calls) == 1
    makers.make_run(dsn, version=18)
    drafter = drafter_on(db)
    assert await drafter.run_once() == 1
    await drafter.stop()


# Outcomes do not go stale, and one whose sender died after the start is unknown, with its own card for ops.
async def test_neither_stale_nor_lost(db: Database, dsn: str) -> None:
    make_waiter(dsn, makers.make_run(dsn, state="superseded", version=3))
    makers.make_run(dsn, version=17)
    await tell(db)
    makers.change(dsn, "UPDATE effect_outbox SET fresh_until = now() - interval '1 day'")
    assert await withdraw.run_once(withdraw.Withdrawing(db)) == 0
    makers.change(
        dsn,
        "UPDATE effect_outbox SET state = 'sending', started_at = now(), lease_owner = 'gone',"
        " lease_expires_at = now() - interval '1 second'",
    )
    assert await recover.run_once(recover.Recovering(db, "C0OPS")) == 1
    row = told(dsn)[0]
    assert row["state"] == "unknown"
    assert len(makers.rows(dsn, "SELECT FROM cards WHERE effect_id = %(id)s", id=row["effect_id"])) == 1


# The card of an outcome that may not have arrived names the host, offers to send it again, tells no secret.
async def test_card_of_an_unknown(db: Database, dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    make_waiter(dsn, makers.make_run(dsn, state="superseded", version=3))
    makers.make_run(dsn, version=17)
    await tell(db)
    makers.change(dsn, "UPDATE effect_outbox SET not_before = NULL, next_attempt_at = now()")
    await dispatch(db, resumes(Unknown("timeout")), ops_channel=C_OPS)
    await shower().run_once()
    (message,) = slack.state.channel_messages(C_OPS)
    assert "n8n.example" in said(message)
    assert "secret" not in str(message.blocks) + message.text
    assert "stet.unknown.resend" in buttons(message)
