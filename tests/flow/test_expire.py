"""The clock: what nobody decides in time expires, once, and is never called rejected.

Not here: what an expired card looks like (tests/cards).
"""

import asyncio
from typing import Any

import psycopg
import pytest

from bot.contracts.answer import NotDecided, Why
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import C_REVIEW
from bot.flow import expire
from bot.flow.decide import Decided, decide
from bot.flow.expire import Expiring
from store import audit
from store.database import Database
from store.errors import DatabaseBusy
from tests.flow.screens import NewShower, buttons, said
from tests.flow.test_decide import click, counters, deciding
from tests.makers import change, make_draft, make_run, make_token, rows


def states(dsn: str) -> tuple[str, str]:
    return (
        rows(dsn, "SELECT status FROM drafts")[0]["status"],
        rows(dsn, "SELECT state FROM workflow_runs")[0]["state"],
    )


# A draft past its time ends with its run, question and wish; the record says expired, and nothing was sent.
async def test_overdue_draft_expires(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, expires_in_seconds=-1)
    change(
        dsn,
        "INSERT INTO redrafts (redraft_id, draft_id, revision, requested_by)"
        " SELECT gen_random_uuid(), draft_id, 1, 'slack:T0STET:U0BOB' FROM drafts",
    )
    assert await expire.run_once(Expiring(db)) == 1
    assert await expire.run_once(Expiring(db)) == 0
    assert states(dsn) == ("expired", "expired")
    question = rows(dsn, "SELECT end_reason, ended_at, consumed_at FROM approvals")[0]
    assert question["end_reason"] == "expired"
    assert question["ended_at"] is not None
    assert counters(dsn) == (0, 0)
    assert rows(dsn, "SELECT outcome FROM redrafts") == [{"outcome": "expired"}]
    assert rows(dsn, "SELECT wanted_version FROM cards") == [{"wanted_version": 2}]
    async with db.connection() as conn:
        chain = await audit.read_chain(conn, draft["key"])
    assert [line.action for line in chain] == ["expired"]
    assert not audit.faults_of(chain)


# F022: with the sweep off a late click is told so; after one sweep the card says it too, and has no buttons.
async def test_late_click_and_one_sweep(
    dsn: str, db: Database, slack: SlackStandIn, shower: NewShower
) -> None:
    draft = make_draft(dsn)
    change(dsn, "UPDATE cards SET ts = NULL, shown_version = 0")
    one = shower()
    await one.run_once()
    (message,) = slack.state.channel_messages(C_REVIEW)
    assert buttons(message)
    token = make_token(dsn, draft)
    change(dsn, "UPDATE drafts SET expires_at = now() - interval '1 second'")
    late = await decide(deciding(db), click(draft, token, ts=message.ts))
    assert isinstance(late, NotDecided)
    assert late.why == Why.EXPIRED
    await expire.run_once(Expiring(db))
    await one.run_once()
    assert not buttons(message)
    assert "Expired" in said(message)
    again = await decide(deciding(db), click(draft, token, ts=message.ts))
    assert isinstance(again, NotDecided)
    assert again.why == Why.EXPIRED
    assert counters(dsn) == (0, 0)
    actions = [row["action"] for row in rows(dsn, "SELECT action FROM audit_log ORDER BY seq")]
    assert actions == ["refused", "expired", "refused"]


# What still has time, or is no longer pending, is left alone.
@pytest.mark.parametrize("status", ["approved", "rejected", "sent"])
async def test_others_stay(dsn: str, db: Database, status: str) -> None:
    make_draft(dsn, status=status, expires_in_seconds=-1)
    make_draft(dsn, run={"entity": "customer:1"}, expires_in_seconds=60)
    assert await expire.run_once(Expiring(db)) == 0
    assert not rows(dsn, "SELECT action FROM audit_log")


# A draft that a newer event blocks expires too, and the newer run goes on.
async def test_blocked_draft_expires(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, expires_in_seconds=-1)
    newer = make_run(dsn, version=18)
    assert await expire.run_once(Expiring(db)) == 1
    found = {row["run_id"]: row["state"] for row in rows(dsn, "SELECT run_id, state FROM workflow_runs")}
    assert found == {draft["run_id"]: "expired", newer: "received"}


# Many at once go in one sweep, each on its own chain.
async def test_many_expire_together(dsn: str, db: Database) -> None:
    for n in range(12):
        make_draft(dsn, run={"entity": f"customer:{n}"}, expires_in_seconds=-n - 1)
    assert await expire.run_once(Expiring(db)) == 12
    assert len(rows(dsn, "SELECT chain FROM audit_log WHERE seq = 1 AND action = 'expired'")) == 12


# Two sweeps at once expire each draft once.
async def test_two_sweeps(dsn: str, db: Database) -> None:
    for n in range(6):
        make_draft(dsn, run={"entity": f"customer:{n}"}, expires_in_seconds=-1)
    done = await asyncio.gather(*(expire.run_once(Expiring(db)) for _ in range(3)))
    assert sum(done) == 6
    assert len(rows(dsn, "SELECT chain FROM audit_log")) == 6


# Sweep against click around the deadline: each round ends in exactly one of decided and expired.
@pytest.mark.parametrize("round_", range(20))
async def test_sweep_against_click(dsn: str, db: Database, round_: int) -> None:
    draft = make_draft(dsn, expires_in_seconds=0.002 * round_)
    token = make_token(dsn, draft)
    answer, _, _ = await asyncio.gather(
        decide(deciding(db), click(draft, token)),
        expire.run_once(Expiring(db)),
        expire.run_once(Expiring(db)),
    )
    change(dsn, "UPDATE drafts SET expires_at = now() - interval '1 second'")
    await expire.run_once(Expiring(db))
    decided, effects = counters(dsn)
    expired = rows(dsn, "SELECT action FROM audit_log WHERE action = 'expired'")
    if isinstance(answer, Decided):
        assert (decided, effects, len(expired)) == (1, 1, 0)
        assert states(dsn) == ("approved", "approved")
    else:
        assert answer.why == Why.EXPIRED
        assert (decided, effects, len(expired)) == (0, 0, 1)
        assert states(dsn) == ("expired", "expired")


# A draft that got a new term while the sweep waited for its head stays open.
async def test_new_term_behind_the_lock(dsn: str, db: Database) -> None:
    make_draft(dsn, expires_in_seconds=-1)
    async with await psycopg.AsyncConnection.connect(dsn) as other:
        await other.execute("SELECT FROM draft_heads FOR UPDATE")
        sweeping = asyncio.create_task(expire.run_once(Expiring(db)))
        await waiting_for_a_lock(dsn, sweeping)
        await other.execute("UPDATE drafts SET expires_at = now() + interval '1 hour'")
        await other.commit()
    assert await sweeping == 0
    assert states(dsn) == ("pending", "awaiting_human")


# A click that waits for the sweep's lock past the deadline is refused: time is read under the lock.
async def test_click_behind_the_sweep(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    token = make_token(dsn, draft)
    async with await psycopg.AsyncConnection.connect(dsn) as other:
        await other.execute("SELECT FROM draft_heads FOR UPDATE")
        clicking = asyncio.create_task(decide(deciding(db), click(draft, token)))
        await waiting_for_a_lock(dsn, clicking)
        await other.execute("UPDATE drafts SET expires_at = now()")
        await other.commit()
    answer = await clicking
    assert isinstance(answer, NotDecided)
    assert answer.why == Why.EXPIRED
    assert counters(dsn) == (0, 0)


async def waiting_for_a_lock(dsn: str, task: "asyncio.Task[Any]") -> None:
    """Return once somebody stands before a lock."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as watch:
        while True:
            cursor = await watch.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            found = await cursor.fetchone()
            if found and found[0]:
                return
            await asyncio.wait({task}, timeout=0.01)


# A head that somebody holds for long changes nothing and is said to be busy; the next sweep comes again.
async def test_held_head(dsn: str, db: Database) -> None:
    make_draft(dsn, expires_in_seconds=-1)
    async with await psycopg.AsyncConnection.connect(dsn) as other:
        await other.execute("SELECT FROM draft_heads FOR UPDATE")
        with pytest.raises(DatabaseBusy):
            await expire.run_once(Expiring(db))
        await other.rollback()
    assert states(dsn) == ("pending", "awaiting_human")
    assert await expire.run_once(Expiring(db)) == 1
