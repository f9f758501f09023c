"""Deciding: one click, one decision, by whom it may be.

Not here: Slack's payloads (tests/doors) or cards (tests/flow/test_show).
"""

import asyncio
import json
from collections.abc import Mapping
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision, Surface
from bot.contracts.outcome import NotSent, Sent
from bot.flow.decide import Decided, Deciding, decide
from bot.policy.people import Person
from bot.policy.requests import compile_body
from bot.slack.people import unknown_person
from store import audit, showing
from store.database import Database
from tests.flow.outlets import Scripted, dispatch, make_due
from tests.makers import SNAPSHOT, change, make_draft, make_run, make_token, rows

HOME = "T0HOME"


def account(user: str, team: str = HOME, **flags: bool) -> Person:
    """A full member, unless flags say otherwise."""
    facts: dict[str, Any] = {
        "is_restricted": False,
        "is_ultra_restricted": False,
        "is_stranger": False,
        "deleted": False,
        "is_bot": False,
        "known": True,
    } | flags
    return Person(team_id=team, user_id=user, enterprise_user_id=None, **facts)


class Book:
    """Accounts and groups as Slack would tell them."""

    def __init__(self, *people: Person, groups: Mapping[str, frozenset[str] | None] | None = None) -> None:
        self.people = {(p.team_id, p.user_id): p for p in people}
        self.groups = groups or {}

    async def person(self, team_id: str | None, user_id: str) -> Person:
        return self.people.get((team_id or "", user_id), unknown_person(team_id or "", user_id))

    async def members(self, group_ids: list[str]) -> Mapping[str, frozenset[str] | None]:
        return {group: self.groups.get(group) for group in group_ids}


def deciding(
    db: Database, *people: Person, reviewers: tuple[str, ...] = ("U0ALICE", "U0BOB"), **kind: Any
) -> Deciding:
    """Everything deciding needs, with Alice and Bob as reviewers."""
    today = SimpleNamespace(reviewers=reviewers, regulated=False, qualified=(), **kind)
    known = people or (account("U0ALICE"), account("U0BOB"), account("U0MALLORY"))
    return Deciding(db, Book(*known), SimpleNamespace(kinds={"customer_email": today}), lambda: HOME)


def click(draft: dict[str, Any], token: str, user: str = "U0ALICE", **more: Any) -> Click:
    """A click on the card of a draft."""
    facts: dict[str, Any] = {
        "token": token,
        "revision": 1,
        "decision": Decision.APPROVE,
        "team_id": HOME,
        "user_id": user,
        "surface": Surface.MESSAGE,
        "channel": draft["channel"],
        "ts": draft["ts"],
    }
    return Click(**(facts | more))


def counters(dsn: str) -> tuple[int, int]:
    """Decisions recorded and effects written."""
    decided = rows(dsn, "SELECT count(*) AS n FROM approvals WHERE consumed_at IS NOT NULL")[0]["n"]
    return decided, rows(dsn, "SELECT count(*) AS n FROM effect_outbox")[0]["n"]


# An approval moves question, draft and run and writes the effect with the bytes of the stored revision.
async def test_approve_writes_everything(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    answer = await decide(deciding(db), click(draft, make_token(dsn, draft)))
    assert isinstance(answer, Decided)
    assert answer.voted.reached
    assert counters(dsn) == (1, 1)
    effect = rows(
        dsn, "SELECT o.*, p.body, p.recipient FROM effect_outbox o JOIN effect_payloads p USING (effect_id)"
    )[0]
    assert b'"It ships Monday."' in effect["body"]
    assert effect["recipient"] == "amy@example.test"
    assert rows(dsn, "SELECT status FROM drafts")[0]["status"] == "approved"
    assert rows(dsn, "SELECT state FROM workflow_runs")[0]["state"] == "approved"
    assert rows(dsn, "SELECT wanted_version FROM cards")[0]["wanted_version"] == 2
    async with db.connection() as conn:
        chain = await audit.read_chain(conn, draft["key"])
    assert [line.action for line in chain] == ["approved"]
    assert not audit.faults_of(chain)


# A kind's own shape is filled at the decision from what was approved, and is the same on every try; the
# record of the send has the hash of the bytes that went.
async def test_body_of_its_own_shape(dsn: str, db: Database) -> None:
    text = "Re {entity}: {output.body}"
    template = compile_body(f'{{"to":"{{recipient}}","mail":{{"text":"{text}"}},"by":"{{approved_by}}"}}')
    shaped = {"effect": SNAPSHOT["effect"] | {"body": template}}
    hostile = 'He said "}, {output.subject}\n'
    draft = make_draft(dsn, snapshot=shaped, body={"subject": "Hi", "body": hostile})
    assert isinstance(await decide(deciding(db), click(draft, make_token(dsn, draft))), Decided)
    sink = Scripted(NotSent("http_429"))
    await dispatch(db, sink)
    make_due(dsn)
    sink.answer = Sent("msg-1")
    await dispatch(db, sink)
    first, second = (call.body for call in sink.calls)
    assert first == second
    run = rows(dsn, "SELECT entity FROM workflow_runs")[0]
    assert json.loads(first) == {
        "to": "amy@example.test",
        "mail": {"text": f"Re {run['entity']}: {hostile}"},
        "by": f"slack:{HOME}:U0ALICE",
    }
    (written,) = rows(dsn, "SELECT body_hash FROM effect_payloads")
    assert written["body_hash"] == sha256(first).hexdigest()
    async with db.connection() as conn:
        chain = await audit.read_chain(conn, draft["key"])
    assert written["body_hash"] in str(chain[-1].detail)


# A rejection ends the run with its reason and writes no effect.
async def test_reject_ends_the_run(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    token = make_token(dsn, draft, "reject")
    answer = await decide(deciding(db), click(draft, token, decision=Decision.REJECT, reason="Too late"))
    assert isinstance(answer, Decided)
    assert counters(dsn) == (1, 0)
    run = rows(dsn, "SELECT state, finished_at FROM workflow_runs")[0]
    assert run["state"] == "rejected"
    assert run["finished_at"] is not None
    assert rows(dsn, "SELECT reason FROM approvals")[0]["reason"] == "Too late"


# Twenty clicks of two approvers at once make one decision and one effect; the others hear who approved.
async def test_twenty_clicks_one_decision(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    token = make_token(dsn, draft)
    deps = deciding(db)
    answers = await asyncio.gather(
        *(decide(deps, click(draft, token, ("U0ALICE", "U0BOB")[n % 2])) for n in range(20))
    )
    assert sum(isinstance(answer, Decided) for answer in answers) == 1
    assert counters(dsn) == (1, 1)
    refused = [answer for answer in answers if isinstance(answer, NotDecided)]
    assert {answer.why for answer in refused} == {Why.APPROVED}
    assert all(answer.by is not None for answer in refused)


# Approve and reject at the same instant: each round ends in exactly one, the loser is told which.
@pytest.mark.parametrize("round_", range(10))
async def test_approve_against_reject(dsn: str, db: Database, round_: int) -> None:
    draft = make_draft(dsn)
    yes, no = make_token(dsn, draft), make_token(dsn, draft, "reject")
    deps = deciding(db)
    answers = await asyncio.gather(
        decide(deps, click(draft, yes)),
        decide(deps, click(draft, no, "U0BOB", decision=Decision.REJECT, reason="No")),
    )
    won = [answer for answer in answers if isinstance(answer, Decided)]
    lost = [answer for answer in answers if isinstance(answer, NotDecided)]
    assert (len(won), len(lost)) == (1, 1)
    assert lost[0].why == (Why.APPROVED if won[0].decision is Decision.APPROVE else Why.REJECTED)
    assert counters(dsn) == (1, 1 if won[0].decision is Decision.APPROVE else 0)


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "another revision in the value": ({"revision": 2}, Why.NEWER_REVISION),
    "another channel": ({"channel": "C0OTHER"}, Why.WRONG_SURFACE),
    "another message": ({"ts": "1700000000.999999"}, Why.WRONG_SURFACE),
    "another surface": ({"surface": Surface.VIEW}, Why.WRONG_SURFACE),
    "an approve token used to reject": ({"decision": Decision.REJECT}, Why.WRONG_SURFACE),
    "somebody unknown": ({"user_id": "U0NOBODY"}, "unknown"),
    "the same id in another team": ({"team_id": "T0OTHER"}, "unknown"),
    "no reviewer": ({"user_id": "U0MALLORY"}, "not_reviewer"),
}


# Whatever is not exactly the right person on the right button of the right card changes nothing.
@pytest.mark.parametrize("case", REFUSALS)
async def test_wrong_clicks_change_nothing(dsn: str, db: Database, case: str) -> None:
    draft = make_draft(dsn)
    change_, why = REFUSALS[case]
    answer = await decide(deciding(db), click(draft, make_token(dsn, draft), **change_))
    assert isinstance(answer, NotDecided)
    assert answer.why == why
    assert counters(dsn) == (0, 0)
    assert rows(dsn, "SELECT status FROM drafts")[0]["status"] == "pending"
    assert [r["action"] for r in rows(dsn, "SELECT action FROM audit_log")] == ["refused"]


ACCOUNTS: dict[str, Any] = {
    "guest": {"is_restricted": True},
    "stranger": {"is_stranger": True},
    "deactivated": {"deleted": True},
    "bot": {"is_bot": True},
    "unknown": {"known": False},
}


# A reviewer's account that is not a living full member decides nothing.
@pytest.mark.parametrize("reason", ACCOUNTS)
async def test_accounts_that_may_not(dsn: str, db: Database, reason: str) -> None:
    draft = make_draft(dsn)
    deps = deciding(db, account("U0ALICE", **ACCOUNTS[reason]))
    answer = await decide(deps, click(draft, make_token(dsn, draft)))
    assert answer == NotDecided(reason)
    assert counters(dsn) == (0, 0)


# Who left today's list, or was never in the snapshot's, may not decide.
@pytest.mark.parametrize(
    ("then", "now"), [(["U0BOB"], ("U0ALICE",)), (["U0ALICE"], ("U0BOB",)), (["U0ALICE"], ())]
)
async def test_both_lists_bind(dsn: str, db: Database, then: list[str], now: tuple[str, ...]) -> None:
    draft = make_draft(dsn, snapshot={"reviewers": then})
    answer = await decide(deciding(db, reviewers=now), click(draft, make_token(dsn, draft)))
    assert isinstance(answer, NotDecided)
    assert counters(dsn) == (0, 0)


# The requester may not approve, whatever the path, and may still reject.
async def test_requester_may_not_approve(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, run={"inputs": {"requested_by": "U0ALICE"}})
    assert await decide(deciding(db), click(draft, make_token(dsn, draft))) == NotDecided("requester")
    token = make_token(dsn, draft, "reject")
    answer = await decide(deciding(db), click(draft, token, decision=Decision.REJECT, reason="No"))
    assert isinstance(answer, Decided)


# The database's clock decides: a draft past its time is refused although no sweep has run.
async def test_expired_by_the_databases_clock(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, expires_in_seconds=-1)
    answer = await decide(deciding(db), click(draft, make_token(dsn, draft)))
    assert isinstance(answer, NotDecided)
    assert answer.why == Why.EXPIRED
    assert counters(dsn) == (0, 0)


# From the moment a newer event is known the older draft is blocked.
async def test_newer_event_blocks(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    token = make_token(dsn, draft)
    make_run(dsn, version=18)
    answer = await decide(deciding(db), click(draft, token))
    assert isinstance(answer, NotDecided)
    assert answer.why == Why.BLOCKED
    assert counters(dsn) == (0, 0)


# A newer event that arrives between the read and the lock wins: the click is told, nothing is written.
async def test_click_waits_for_intakes_lock(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    token = make_token(dsn, draft)
    async with await psycopg.AsyncConnection.connect(dsn) as other:
        await other.execute("UPDATE draft_heads SET source_version = 18")
        clicking = asyncio.create_task(decide(deciding(db), click(draft, token)))
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as watch:
            while not (
                await (await watch.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")).fetchone()
            )[0]:  # type: ignore[index]
                await asyncio.wait({clicking}, timeout=0.01)
        await other.commit()
    answer = await clicking
    assert isinstance(answer, NotDecided)
    assert answer.why == Why.BLOCKED
    assert counters(dsn) == (0, 0)


# A head locked for longer than a click may take: the person hears that nothing was decided, and nothing was.
async def test_held_lock_is_told(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    token = make_token(dsn, draft)
    async with await psycopg.AsyncConnection.connect(dsn) as other:
        await other.execute("SELECT FROM draft_heads FOR UPDATE")
        answer = await decide(deciding(db), click(draft, token))
        assert answer == NotDecided(Why.TOO_SLOW)
        await other.rollback()
    assert counters(dsn) == (0, 0)
    assert isinstance(await decide(deciding(db), click(draft, token)), Decided)


# Two of two: one row a person, a second vote by the same person is none, the second person decides.
async def test_quorum_of_two(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, snapshot={"quorum": 2})
    token = make_token(dsn, draft)
    deps = deciding(db)
    first = await decide(deps, click(draft, token))
    assert isinstance(first, Decided)
    assert not first.voted.reached
    again = await decide(deps, click(draft, token))
    assert isinstance(again, NotDecided)
    assert again.why == Why.ALREADY_VOTED
    assert counters(dsn) == (0, 0)
    second = await decide(deps, click(draft, token, "U0BOB"))
    assert isinstance(second, Decided)
    assert second.voted.reached
    assert counters(dsn) == (1, 1)


# Both voters of a quorum of two at once: neither misses the other's vote.
@pytest.mark.parametrize("round_", range(10))
async def test_quorum_at_once(dsn: str, db: Database, round_: int) -> None:
    draft = make_draft(dsn, snapshot={"quorum": 2})
    token = make_token(dsn, draft)
    deps = deciding(db)
    answers = await asyncio.gather(
        *(decide(deps, click(draft, token, user)) for user in ("U0ALICE", "U0BOB"))
    )
    assert [isinstance(answer, Decided) for answer in answers] == [True, True]
    assert counters(dsn) == (1, 1)


# A vote counts only while its voter is still a reviewer.
async def test_vote_of_someone_who_left(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, snapshot={"quorum": 2, "reviewers": ["U0ALICE", "U0BOB", "U0CAROL"]})
    token = make_token(dsn, draft)
    await decide(deciding(db), click(draft, token))
    people = (account("U0ALICE", deleted=True), account("U0BOB"), account("U0CAROL"))
    deps = deciding(db, *people, reviewers=("U0ALICE", "U0BOB", "U0CAROL"))
    answer = await decide(deps, click(draft, token, "U0BOB"))
    assert isinstance(answer, Decided)
    assert not answer.voted.reached
    assert counters(dsn) == (0, 0)


# Nor does the card name them once it is approved; it names whom the record names. A record whose details were
# erased names nobody any more: then everybody who voted.
async def test_approvers_are_those_who_counted(dsn: str, db: Database) -> None:
    users = ("U0ALICE", "U0BOB", "U0CAROL")
    draft = make_draft(dsn, snapshot={"quorum": 2, "reviewers": list(users)})
    token = make_token(dsn, draft)
    await decide(deciding(db), click(draft, token))
    people = [account(user) for user in users]
    for user in users[1:]:
        answer = await decide(deciding(db, *people, reviewers=users[1:]), click(draft, token, user))
        assert isinstance(answer, Decided)
    assert counters(dsn) == (1, 1)
    bob, carol = (f"slack:{HOME}:{user}" for user in users[1:])
    async with db.connection() as conn:
        (line,) = [one for one in await audit.read_chain(conn, draft["key"]) if one.action == "approved"]
        (card,) = await showing.read_draft_cards(conn, [draft["draft_id"]])
    assert json.loads(line.detail or "")["approvers"] == [bob, carol] == card.approvers
    change(dsn, "DELETE FROM audit_details")
    async with db.connection() as conn:
        (card,) = await showing.read_draft_cards(conn, [draft["draft_id"]])
    assert len(card.approvers) == len(users)


# Votes of two who were not reviewers at the same time count once both are: either of them presses again.
@pytest.mark.parametrize("presses", ["U0ALICE", "U0BOB"])
async def test_vote_of_someone_who_came_back(dsn: str, db: Database, presses: str) -> None:
    draft = make_draft(dsn, snapshot={"quorum": 2})
    token = make_token(dsn, draft)
    await decide(deciding(db), click(draft, token))
    alone = deciding(db, reviewers=("U0BOB",))
    for reached in (True, False):  # The second time it is told apart: it would decide nothing.
        answer = await decide(alone, click(draft, token, "U0BOB"))
        assert isinstance(answer, Decided) is reached
    assert counters(dsn) == (0, 0)
    answer = await decide(deciding(db), click(draft, token, presses))
    assert isinstance(answer, Decided)
    assert answer.voted.reached
    assert counters(dsn) == (1, 1)
    assert len(rows(dsn, "SELECT subject FROM votes")) == 2
    (approval,) = rows(dsn, "SELECT approver_subject, token_hash FROM approvals WHERE decision = 'approve'")
    assert approval["approver_subject"] == f"slack:{HOME}:{presses}"
    async with db.connection() as conn:
        chain = await audit.read_chain(conn, draft["key"])
    assert [line.action for line in chain] == ["voted", "voted", "approved"]
    assert '"votes":2' in (chain[-1].detail or "")


# Whoever voted may still reject, and the record does not count them twice.
async def test_reject_after_a_vote(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, snapshot={"quorum": 2})
    await decide(deciding(db), click(draft, make_token(dsn, draft)))
    token = make_token(dsn, draft, "reject")
    answer = await decide(deciding(db), click(draft, token, decision=Decision.REJECT, reason="no"))
    assert isinstance(answer, Decided)
    async with db.connection() as conn:
        chain = await audit.read_chain(conn, draft["key"])
    assert '"votes":1' in (chain[-1].detail or "")


# A token that was never ours is told apart from one that is over.
async def test_unknown_token(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    assert await decide(deciding(db), click(draft, "x" * 43)) == NotDecided(Why.UNKNOWN_BUTTON)


# After an approval was withdrawn the old token is dead although the draft is pending again.
async def test_token_of_an_ended_question(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    token = make_token(dsn, draft)
    change(dsn, "UPDATE approvals SET ended_at = now(), end_reason = 'withdrawn_newer'")
    change(dsn, "UPDATE drafts SET approval_id = gen_random_uuid()")
    answer = await decide(deciding(db), click(draft, token))
    assert isinstance(answer, NotDecided)
    assert answer.why == Why.ASKED_AGAIN
    assert counters(dsn) == (0, 0)


# A regulated kind is decided by qualified reviewers only.
async def test_regulated_needs_qualified(dsn: str, db: Database) -> None:
    frozen = {"regulated": True, "qualified": ["U0BOB"]}
    draft = make_draft(dsn, snapshot=frozen)
    token = make_token(dsn, draft)
    deps = deciding(db)
    deps.policy.kinds["customer_email"].__dict__.update(regulated=True, qualified=("U0BOB",))
    assert await decide(deps, click(draft, token)) == NotDecided("not_qualified")
    assert isinstance(await decide(deps, click(draft, token, "U0BOB")), Decided)
