"""Votes that come together: each is what it would have been alone.
Not here: who may vote and what a vote does (test_decide).
"""

import asyncio
from typing import Any

import psycopg

from bot.contracts.answer import NotDecided, Why
from bot.contracts.click import Decision
from bot.flow.decide import Decided, decide
from store.database import Database
from tests.flow.test_decide import click, counters, deciding
from tests.makers import make_draft, make_token, rows


def question(dsn: str, number: int, **more: Any) -> tuple[dict[str, Any], str]:
    draft = make_draft(dsn, run={"entity": f"customer:{number}"}, **more)
    return draft, make_token(dsn, draft)


def written(dsn: str) -> int:
    return len(rows(dsn, "SELECT FROM audit_log WHERE action IN ('approved', 'rejected')"))


# Thirty clicks on thirty cards at once decide them all, each with its effect and its line in the record.
async def test_many_at_once(dsn: str, db: Database) -> None:
    deps = deciding(db)
    asked = [question(dsn, number) for number in range(30)]
    answers = await asyncio.gather(*(decide(deps, click(*one)) for one in asked))
    assert all(isinstance(answer, Decided) and answer.voted.reached for answer in answers)
    assert [answer.voted.draft_id for answer in answers if isinstance(answer, Decided)] == [
        draft["draft_id"] for draft, _ in asked
    ]
    assert counters(dsn) == (30, 30)
    assert written(dsn) == 30


# A card that was decided meanwhile does not undo its neighbours, and its own click is told.
async def test_one_that_lost_does_not_undo_the_others(dsn: str, db: Database) -> None:
    deps = deciding(db)
    asked = [question(dsn, number) for number in range(6)]
    reject = make_token(dsn, asked[3][0], "reject")
    clicks = [click(draft, token, "U0BOB") for draft, token in asked]
    first = click(asked[3][0], reject, decision=Decision.REJECT, reason="no")
    answers = await asyncio.gather(decide(deps, first), *(decide(deps, each) for each in clicks))
    decided = [answer for answer in answers if isinstance(answer, Decided)]
    refused = [answer for answer in answers if isinstance(answer, NotDecided)]
    assert len(decided) == 6
    assert [answer.why for answer in refused] in ([Why.REJECTED], [Why.APPROVED])
    assert written(dsn) == 6


# A head that somebody else holds delays its own click alone.
async def test_a_held_head_holds_up_nobody_else(dsn: str, db: Database) -> None:
    deps = deciding(db)
    asked = [question(dsn, number) for number in range(8)]
    held = asked[2][0]
    with psycopg.connect(dsn) as other:
        other.execute("SELECT FROM draft_heads WHERE draft_key = %s FOR UPDATE", (held["draft_key"],))
        tasks = [asyncio.create_task(decide(deps, click(*one))) for one in asked]
        free = [task for place, task in enumerate(tasks) if place != 2]
        answers = await asyncio.gather(*free)
        assert all(isinstance(answer, Decided) for answer in answers)
        assert not tasks[2].done()
        other.rollback()
    assert isinstance(await tasks[2], Decided)


# Whoever stops waiting before the commit has decided nothing, and those who came with them have.
async def test_one_that_gave_up_undoes_its_vote_alone(dsn: str, db: Database) -> None:
    deps = deciding(db)
    asked = [question(dsn, number) for number in range(8)]
    held = asked[5][0]
    with psycopg.connect(dsn) as other:
        other.execute("SELECT FROM draft_heads WHERE draft_key = %s FOR UPDATE", (held["draft_key"],))
        tasks = [asyncio.create_task(decide(deps, click(*one))) for one in asked]
        await asyncio.gather(*(task for place, task in enumerate(tasks) if place != 5))
        tasks[5].cancel()
        await asyncio.wait([tasks[5]])
        other.rollback()
    assert tasks[5].cancelled()
    status = rows(dsn, "SELECT draft_id FROM drafts WHERE status = 'pending'")
    assert [row["draft_id"] for row in status] == [held["draft_id"]]
