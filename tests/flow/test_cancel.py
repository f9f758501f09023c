"""Cancelling what was approved: it stops everything, or it came too late and says so.

Not here: the button itself (tests/doors/test_cancel).
"""

import asyncio
from dataclasses import replace
from typing import Any, LiteralString

import pytest

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision, Surface
from bot.flow.cancel import Cancelled, cancel
from bot.flow.decide import Decided, decide
from store import audit, cancelling
from store.database import Database
from store.errors import CommitUnknown
from tests.flow.outlets import Scripted, dispatcher
from tests.flow.test_decide import account, click, counters, deciding
from tests.makers import change, make_draft, make_effect, make_run, make_token, rows


def stopping(dsn: str, draft: dict[str, Any], user: str = "U0ALICE") -> Click:
    """A press of Cancel on the card of an approved draft."""
    return click(draft, make_token(dsn, draft, "cancel"), user, decision=Decision.CANCEL)


async def approved(dsn: str, db: Database) -> dict[str, Any]:
    """A draft that Bob approved, as deciding leaves it behind."""
    draft = make_draft(dsn)
    answer = await decide(deciding(db), click(draft, make_token(dsn, draft), "U0BOB"))
    assert isinstance(answer, Decided)
    return draft


def states(dsn: str) -> tuple[str, str, str]:
    """Draft, run and effect."""
    found = rows(
        dsn,
        "SELECT d.status, r.state AS run, e.state AS effect FROM drafts AS d"
        " JOIN workflow_runs AS r ON r.run_id = d.run_id JOIN effect_outbox AS e ON e.draft_id = d.draft_id",
    )[0]
    return found["status"], found["run"], found["effect"]


# Any reviewer of today stops it, with the run and every effect; the record and the history name them.
async def test_cancel(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db)
    assert await cancel(deciding(db), stopping(dsn, draft)) == Cancelled()
    assert states(dsn) == ("cancelled", "cancelled", "cancelled")
    assert rows(dsn, "SELECT finished_at IS NOT NULL AS over FROM workflow_runs") == [{"over": True}]
    decisions = rows(dsn, "SELECT decision, approver_subject FROM approvals ORDER BY consumed_at")
    assert [(one["decision"], one["approver_subject"][-5:]) for one in decisions] == [
        ("approve", "U0BOB"),
        ("cancel", "ALICE"),
    ]
    async with db.connection() as conn:
        chain = await audit.read_chain(conn, draft["key"])
    assert [(line.actor[-5:], line.action) for line in chain] == [
        ("U0BOB", "approved"),
        ("ALICE", "cancelled"),
    ]
    assert not audit.faults_of(chain)
    sink = Scripted()
    one = dispatcher(db, sink)
    await one.run_once()
    await one.quiet()
    assert not sink.calls


# A second press, and anybody else's, hears who cancelled; nothing changes.
async def test_cancelled_once(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db)
    first, second = stopping(dsn, draft), stopping(dsn, draft, "U0BOB")
    assert await cancel(deciding(db), first) == Cancelled()
    for again in (first, second):
        answer = await cancel(deciding(db), again)
        assert isinstance(answer, NotDecided)
        assert (answer.why, answer.by) == (Why.CANCELLED, "slack:T0HOME:U0ALICE")
    vote = await decide(deciding(db), click(draft, make_token(dsn, draft)))
    assert isinstance(vote, NotDecided)
    assert (vote.why, vote.by) == (Why.CANCELLED, "slack:T0HOME:U0ALICE")
    assert counters(dsn) == (2, 1)


# Cancel against the start of the send, fifty times: either nothing leaves and it is said, or it is too late.
@pytest.mark.parametrize("round_", range(50))
async def test_cancel_against_start(dsn: str, db: Database, round_: int) -> None:
    draft = await approved(dsn, db)
    sink = Scripted()
    one = dispatcher(db, sink)
    wanted = stopping(dsn, draft)

    async def send() -> None:
        await one.run_once()
        await one.quiet()

    async def stop() -> Cancelled | NotDecided:
        for _ in range(round_ % 5):  # Not always first: the steps of a send are met one after the other.
            await asyncio.sleep(0)
        return await cancel(deciding(db), wanted)

    both = [send(), stop()]
    answers = await asyncio.gather(*(both if round_ % 2 else reversed(both)))
    (answer,) = [each for each in answers if each is not None]
    if answer == Cancelled():
        assert not sink.calls
        assert states(dsn) == ("cancelled", "cancelled", "cancelled")
    else:
        assert answer == NotDecided(Why.STARTED)
        assert len(sink.calls) == 1
        assert states(dsn) == ("sent", "completed", "completed")
    actions = [row["action"] for row in rows(dsn, "SELECT action FROM audit_log ORDER BY seq")]
    assert ("cancelled" in actions) == (answer == Cancelled())


CLAIM: LiteralString = (
    "UPDATE effect_outbox SET state = 'sending', lease_owner = 'x',"
    " lease_expires_at = now() + interval '1 minute'"
)
START: LiteralString = "UPDATE effect_outbox SET started_at = now(), attempts = 1"
END: LiteralString = "UPDATE effect_outbox SET lease_owner = NULL, lease_expires_at = NULL, state = "
BEFORE: dict[str, tuple[LiteralString, ...]] = {
    "pending": (),
    "claimed": (CLAIM,),
    "proven not sent before": ("UPDATE effect_outbox SET attempts = 2, reason = 'http_429'",),
    "with a lease that ran out": (CLAIM, "UPDATE effect_outbox SET lease_expires_at = now()"),
}
AFTER: dict[str, tuple[LiteralString, ...]] = {
    "started": (CLAIM, START),
    "unknown": (CLAIM, START, END + "'unknown', ambiguous_at = now()"),
    "tried, perhaps out": ("UPDATE effect_outbox SET ambiguous_at = now(), attempts = 1",),
    "completed": (CLAIM, START, END + "'completed'"),
}


# Until the send has started it can be cancelled, claimed or not.
@pytest.mark.parametrize("case", BEFORE)
async def test_not_started(dsn: str, db: Database, case: str) -> None:
    draft = await approved(dsn, db)
    for statement in BEFORE[case]:
        change(dsn, statement)
    assert await cancel(deciding(db), stopping(dsn, draft)) == Cancelled()
    assert states(dsn) == ("cancelled", "cancelled", "cancelled")


# Once a send may have begun nobody calls it cancelled, whatever came of it.
@pytest.mark.parametrize("case", AFTER)
async def test_too_late(dsn: str, db: Database, case: str) -> None:
    draft = await approved(dsn, db)
    for statement in AFTER[case]:
        change(dsn, statement)
    before = states(dsn)
    assert await cancel(deciding(db), stopping(dsn, draft)) == NotDecided(Why.STARTED)
    assert states(dsn) == before


# All of its effects or none: one that has started keeps the others too.
async def test_all_or_nothing(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db)
    make_effect(dsn, draft=draft, target="https://n8n.example/other", state="sending", started=True)
    assert await cancel(deciding(db), stopping(dsn, draft)) == NotDecided(Why.STARTED)
    found = rows(dsn, "SELECT state FROM effect_outbox ORDER BY state")
    assert [one["state"] for one in found] == ["pending", "sending"]
    assert rows(dsn, "SELECT status FROM drafts") == [{"status": "approved"}]


# What tells the outcome upstream is no part of it, and is not cancelled.
async def test_resume_stays(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db)
    resume = make_effect(dsn, draft=draft, effect_type="resume", target="https://n8n.example/wait")
    assert await cancel(deciding(db), stopping(dsn, draft)) == Cancelled()
    left = rows(dsn, "SELECT state FROM effect_outbox WHERE effect_id = %(id)s", id=resume)
    assert left == [{"state": "pending"}]


# A draft that was withdrawn or expired meanwhile is not cancelled.
@pytest.mark.parametrize("status", ["pending", "rejected", "expired", "failed"])
async def test_moved(dsn: str, db: Database, status: str) -> None:
    draft = make_draft(dsn, status=status)
    assert await cancel(deciding(db), stopping(dsn, draft)) == NotDecided(Why.EFFECT_MOVED)
    assert rows(dsn, "SELECT status FROM drafts") == [{"status": status}]


# The button of an approval that was withdrawn does not stop a later one.
async def test_old_approval(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db)
    old = stopping(dsn, draft)
    change(
        dsn,
        "INSERT INTO approvals (approval_id, draft_id, revision, run_id, quorum, opened_at)"
        " SELECT gen_random_uuid(), draft_id, revision, run_id, 1, clock_timestamp() FROM drafts",
    )
    assert await cancel(deciding(db), old) == NotDecided(Why.EFFECT_MOVED)
    assert states(dsn) == ("approved", "approved", "pending")


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "no reviewer": ({"user_id": "U0MALLORY"}, "not_reviewer"),
    "somebody unknown": ({"user_id": "U0NOBODY"}, "unknown"),
    "another team": ({"team_id": "T0OTHER"}, "unknown"),
    "another message": ({"ts": "1700000000.999999"}, Why.WRONG_SURFACE),
    "another channel": ({"channel": "C0OTHER"}, Why.WRONG_SURFACE),
    "as if from a view": ({"surface": Surface.VIEW}, Why.WRONG_SURFACE),
    "another revision": ({"revision": 2}, Why.NEWER_REVISION),
    "a token that was never ours": ({"token": "x" * 43}, Why.UNKNOWN_BUTTON),
}


# Whatever is not a reviewer's press on the very card stops nothing.
@pytest.mark.parametrize("case", REFUSALS)
async def test_refused(dsn: str, db: Database, case: str) -> None:
    changed, why = REFUSALS[case]
    draft = await approved(dsn, db)
    answer = await cancel(deciding(db), replace(stopping(dsn, draft), **changed))
    assert answer == NotDecided(why)
    assert states(dsn) == ("approved", "approved", "pending")


# The token of another button stops nothing.
async def test_other_tokens(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db)
    for decision in ("approve", "reject", "read", "edit"):
        token = make_token(dsn, draft, decision)
        answer = await cancel(deciding(db), click(draft, token, decision=Decision.CANCEL))
        assert answer == NotDecided(Why.WRONG_SURFACE)
    assert states(dsn) == ("approved", "approved", "pending")


# Today's reviewers may, also who came after the draft was opened; whose account is gone may not.
async def test_who_may(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db)
    gone = deciding(db, account("U0ALICE", deleted=True))
    assert await cancel(gone, stopping(dsn, draft)) == NotDecided("deactivated")
    new = deciding(db, account("U0CAROL"), reviewers=("U0CAROL",))
    assert await cancel(new, stopping(dsn, draft)) == NotDecided("unknown")
    assert await cancel(new, stopping(dsn, draft, "U0CAROL")) == Cancelled()


# A commit whose answer was lost is read again: whoever cancelled hears so, else that it is not known.
@pytest.mark.parametrize("committed", [True, False])
async def test_lost_commit(
    dsn: str, db: Database, monkeypatch: pytest.MonkeyPatch, *, committed: bool
) -> None:
    draft = await approved(dsn, db)
    wanted = stopping(dsn, draft)
    whole = cancelling.cancel_draft

    async def lose(conn: Any, given: Any) -> None:
        if committed:
            await whole(conn, given)
            await conn.execute("COMMIT")
        raise CommitUnknown("the connection broke while committing")

    monkeypatch.setattr(cancelling, "cancel_draft", lose)
    monkeypatch.setattr("bot.flow.judging.Progress.committing", True)
    answer = await cancel(deciding(db), wanted)
    assert answer == (Cancelled() if committed else NotDecided(Why.NOT_KNOWN_YET))


# A newer event that was accepted before has withdrawn the approval: there is nothing to cancel any more.
async def test_newer_event(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db)
    make_run(dsn, version=18)
    change(dsn, "UPDATE effect_outbox SET state = 'cancelled'")
    change(dsn, "UPDATE drafts SET status = 'pending', approval_id = gen_random_uuid()")
    assert await cancel(deciding(db), stopping(dsn, draft)) == NotDecided(Why.EFFECT_MOVED)
