"""Editing against everything that happens at the same moment: one of them wins, the other hears of it.

Not here: forms and their errors (tests/doors/test_edit, tests/policy/test_editing).
"""

import asyncio
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision, Surface
from bot.flow.decide import Decided, Deciding, decide
from bot.flow.edit import Edited, Fault, Unchanged, Unfit, edit
from bot.policy.clauses import EffectPolicy
from store import audit, drafts
from store.database import Database
from store.errors import CommitUnknown
from tests.flow.test_decide import HOME, account, click, counters, deciding
from tests.makers import change, insert_vote, make_draft, make_run, make_token, rows


def editing(db: Database, *people: Any, **kind: Any) -> Deciding:
    return deciding(db, *people, **{"rules": (), "sends": ()} | kind)


def saving(dsn: str, draft: dict[str, Any], user: str = "U0ALICE") -> Click:
    """One person's save of a form of their own."""
    token = make_token(dsn, draft, "edit", surface="view", card_id=None, holder=f"slack:{HOME}:{user}")
    facts: dict[str, Any] = {"surface": Surface.VIEW, "channel": None, "ts": None}
    return click(draft, token, user, decision=Decision.EDIT, **facts)


def bodies(dsn: str) -> list[dict[str, Any]]:
    return [row["body"] for row in rows(dsn, "SELECT body FROM revisions ORDER BY revision")]


# Two editors at once: one revision is made, and whoever was slower hears that there is a newer one.
@pytest.mark.parametrize("round_", range(10))
async def test_two_editors(dsn: str, db: Database, round_: int) -> None:
    draft = make_draft(dsn)
    deps = editing(db)
    answers = await asyncio.gather(
        *(
            edit(deps, saving(dsn, draft, user), {"body": f"By {user}"})
            for user in ("U0ALICE", "U0BOB")[:: -1 if round_ % 2 else 1]
        )
    )
    won = [answer for answer in answers if isinstance(answer, Edited)]
    lost = [answer for answer in answers if isinstance(answer, NotDecided)]
    assert won == [Edited(2)]
    assert [answer.why for answer in lost] == [Why.NEWER_REVISION]
    (made,) = rows(dsn, "SELECT author, body FROM revisions WHERE revision = 2")
    assert made["author"].endswith(made["body"]["body"].removeprefix("By "))
    assert rows(dsn, "SELECT count(*) AS n FROM approvals WHERE ended_at IS NULL") == [{"n": 1}]


# An edit and an approval at the same instant: the approval releases what was on its card, or nothing at all.
@pytest.mark.parametrize("round_", range(20))
async def test_edit_against_approve(dsn: str, db: Database, round_: int) -> None:
    draft = make_draft(dsn)
    deps = editing(db)
    both = [
        edit(deps, saving(dsn, draft), {"body": "Another text."}),
        decide(deps, click(draft, make_token(dsn, draft), "U0BOB")),
    ]
    answers = await asyncio.gather(*(both if round_ % 2 else reversed(both)))
    edited = any(isinstance(answer, Edited) for answer in answers)
    decided = any(isinstance(answer, Decided) for answer in answers)
    assert edited != decided
    (lost,) = [answer for answer in answers if isinstance(answer, NotDecided)]
    assert lost.why == (Why.NEWER_REVISION if edited else Why.APPROVED)
    assert counters(dsn) == ((0, 0) if edited else (1, 1))
    if decided:
        assert b"It ships Monday." in rows(dsn, "SELECT body FROM effect_payloads")[0]["body"]


# A newer event that arrives between the read and the lock wins: the editor hears it, nothing is written.
async def test_newer_event_wins(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    wanted = saving(dsn, draft)
    async with await psycopg.AsyncConnection.connect(dsn) as other:
        await other.execute("UPDATE draft_heads SET source_version = 18")
        saved = asyncio.create_task(edit(editing(db), wanted, {"body": "Mine"}))
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as watch:
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while not (await (await watch.execute(waiting)).fetchone())[0]:  # type: ignore[index]
                await asyncio.wait({saved}, timeout=0.01)
        await other.commit()
    assert await saved == NotDecided(Why.BLOCKED)
    assert len(bodies(dsn)) == 1


# Votes start again: an approval of the words before counts for nothing after them.
async def test_votes_start_again(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, snapshot={"quorum": 2})
    deps = editing(db)
    first = await decide(deps, click(draft, make_token(dsn, draft), "U0BOB"))
    assert isinstance(first, Decided)
    assert await edit(deps, saving(dsn, draft), {"body": "Another."}) == Edited(2)
    (asked,) = rows(dsn, "SELECT * FROM approvals WHERE ended_at IS NULL")
    assert asked["quorum"] == 2
    again = draft | {"approval_id": asked["approval_id"]}
    answer = await decide(deps, click(again, make_token(dsn, again, revision=2), "U0BOB", revision=2))
    assert isinstance(answer, Decided)
    assert (answer.voted.votes, answer.voted.reached) == (1, False)


# A window saves once: the same submission again changes nothing more.
async def test_a_window_saves_once(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    wanted = saving(dsn, draft)
    assert await edit(editing(db), wanted, {"body": "Once."}) == Edited(2)
    again = await edit(editing(db), wanted, {"body": "Twice."})
    assert again == NotDecided(Why.NEWER_REVISION)
    assert [body["body"] for body in bodies(dsn)] == ["It ships Monday.", "Once."]


# Whatever was not touched stays as it was, and saving only that makes no revision.
async def test_unchanged(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    same = {"subject": "About your parcel", "body": "It ships Monday."}
    assert await edit(editing(db), saving(dsn, draft), same) == Unchanged()
    assert await edit(editing(db), saving(dsn, draft), {}) == Unchanged()
    assert rows(dsn, "SELECT wanted_version FROM cards") == [{"wanted_version": 1}]


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "a vote's token": ({"decision": Decision.APPROVE}, Why.WRONG_SURFACE),
    "as if from the message": ({"surface": Surface.MESSAGE, "channel": "C0REVIEW"}, Why.WRONG_SURFACE),
    "another revision": ({"revision": 2}, Why.NEWER_REVISION),
    "another team": ({"team_id": "T0OTHER"}, Why.WRONG_SURFACE),
    "a token that was never ours": ({"token": "x" * 43}, Why.UNKNOWN_BUTTON),
}


# Whatever is not the right person's own window about the open revision changes nothing.
@pytest.mark.parametrize("case", REFUSALS)
async def test_refused(dsn: str, db: Database, case: str) -> None:
    changed, why = REFUSALS[case]
    draft = make_draft(dsn)
    answer = await edit(editing(db), replace(saving(dsn, draft), **changed), {"body": "Mine"})
    assert isinstance(answer, NotDecided)
    assert answer.why == why
    assert len(bodies(dsn)) == 1


# Who is no reviewer any more, or not qualified, saves nothing; whoever asked for the draft may edit it.
async def test_who_may_edit(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, run={"inputs": {"requested_by": "U0ALICE"}})
    gone = editing(db, reviewers=("U0BOB",))
    assert await edit(gone, saving(dsn, draft), {"body": "x"}) == NotDecided("not_reviewer")
    regulated = editing(db)
    regulated.policy.kinds["customer_email"].__dict__.update(regulated=True, qualified=("U0BOB",))
    assert await edit(regulated, saving(dsn, draft), {"body": "x"}) == NotDecided("not_qualified")
    deleted = editing(db, account("U0ALICE", deleted=True))
    assert await edit(deleted, saving(dsn, draft), {"body": "x"}) == NotDecided("deactivated")
    assert await edit(editing(db), saving(dsn, draft), {"body": "x"}) == Edited(2)


# A kind that left the policy is edited by nobody.
async def test_kind_gone(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    deps = editing(db)
    deps.policy.kinds.clear()  # type: ignore[attr-defined]
    assert await edit(deps, saving(dsn, draft), {"body": "x"}) == NotDecided(Why.KIND_GONE)


# The notice of a draft that is older than a failed event stays on it: it is still older after an edit.
async def test_notice_stays(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    change(dsn, "UPDATE drafts SET notice = 'newer_failed'")
    await edit(editing(db), saving(dsn, draft), {"body": "x"})
    assert rows(dsn, "SELECT notice, revision FROM drafts") == [{"notice": "newer_failed", "revision": 2}]


# An older revision's settled history does not stand in the way, and the record holds.
async def test_record(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    insert_vote(dsn, draft, subject=f"slack:{HOME}:U0BOB")
    change(dsn, "UPDATE approvals SET ended_at = now() - interval '1 day' WHERE ended_at IS NOT NULL")
    assert await edit(editing(db), saving(dsn, draft), {"body": "x"}) == Edited(2)
    async with db.connection() as conn:
        chain = await audit.read_chain(conn, draft["key"])
    assert [line.action for line in chain] == ["edited"]
    assert not audit.faults_of(chain)


# A commit whose answer was lost is read again: the editor hears what is so, and only what is theirs.
@pytest.mark.parametrize("committed", [True, False])
async def test_lost_commit(
    dsn: str, db: Database, monkeypatch: pytest.MonkeyPatch, *, committed: bool
) -> None:
    draft = make_draft(dsn)
    wanted = saving(dsn, draft)
    if committed:
        assert await edit(editing(db), wanted, {"body": "x"}) == Edited(2)
        change(dsn, "UPDATE drafts SET approval_id = %(id)s, revision = 1", id=draft["approval_id"])

    async def lose(*_: Any) -> None:
        raise CommitUnknown("the connection broke while committing")

    monkeypatch.setattr(drafts, "write_revision", lose)
    monkeypatch.setattr("bot.flow.judging.Progress.committing", True)
    if committed:
        change(dsn, "UPDATE approvals SET ended_at = NULL WHERE revision = 1")
        change(dsn, "UPDATE approvals SET ended_at = now() WHERE revision = 2")
    answer = await edit(editing(db), wanted, {"body": "y"})
    assert answer == (Edited(2) if committed else NotDecided(Why.NOT_KNOWN_YET))


# Without a change of its run a draft that a newer event blocks is not edited.
async def test_blocked(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    make_run(dsn, version=18)
    assert await edit(editing(db), saving(dsn, draft), {"body": "x"}) == NotDecided(Why.BLOCKED)


# What the kind's connector cannot carry is said of its field, before anybody is asked.
@pytest.mark.parametrize(
    ("typed", "fault"),
    [
        ({"body": "x" * 10_000}, Fault("body", "maxLength", 10_000 - len("About your parcel"))),
        ({"subject": "a\x80b"}, Fault("subject", "one_line")),
    ],
)
async def test_unsendable(dsn: str, db: Database, typed: dict[str, str], fault: Fault) -> None:
    sends = (EffectPolicy(type="slack_message", target="C0REVIEW"),)
    answer = await edit(editing(db, sends=sends), saving(dsn, make_draft(dsn)), typed)
    assert isinstance(answer, Unfit)
    assert answer.faults == (fault,)
