"""A process whose host has the wrong time, beside one that is right: deadlines are the database's alone.

Not here: what the doctor says of such a host (tests/test_doctor), or signatures alone (tests/policy).
"""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from bot.demo.slack_workspace import U_ALICE
from bot.demo.world import HOLD, Fault
from tests.makers import make_effects
from tests.processes import Bot, Stage, event, key_of
from tests.watching import Watch, check_promises

SEND = "/webhook/send-mail"
HOUR = 3600
HALF = HOUR // 2
FAST_AND_SLOW = pytest.mark.parametrize("off_seconds", [HOUR, -HOUR])
CARDS = "SELECT count(*) = %(n)s FROM cards WHERE shown_version > 0 AND ts IS NOT NULL"


async def make(stage: Stage, count: int, **more: Any) -> list[UUID]:
    """Make approved effects at the sink."""
    effect = {"target": f"{stage.world.url}{SEND}", "timeout_seconds": 30}
    return await asyncio.to_thread(make_effects, stage.dsn, count, effect=effect, **more)


async def wrong(stage: Stage, off_seconds: int) -> Bot:
    """Start a process with a wrong clock, and see by its own log that it has one."""
    bot = await stage.started_with_clock(off_seconds)
    said = datetime.fromisoformat(bot.lines[0]["timestamp"])
    assert abs((said - datetime.now(UTC)).total_seconds() - off_seconds) < HALF
    return bot


# What is due leaves, what is not due stays, what is stale goes back to review: alone with the wrong clock.
@FAST_AND_SLOW
async def test_due_and_fresh(stage: Stage, watch: Watch, off_seconds: int) -> None:
    await wrong(stage, off_seconds)
    due, later, fresh, stale = await make(
        stage, 4, next_attempt_at=await watch.value("SELECT now() + interval '2 hours' AS at")
    )
    for column, effect_id, seconds in (
        ("not_before", due, -HALF),
        ("not_before", later, HALF),
        ("fresh_until", fresh, HALF),
        ("fresh_until", stale, -HALF),
    ):
        await watch.change(
            "UPDATE effect_outbox SET not_before = CASE WHEN %(column)s = 'not_before' THEN at END,"
            " fresh_until = CASE WHEN %(column)s = 'fresh_until' THEN at END"
            " FROM (SELECT now() + %(seconds)s * interval '1 second' AS at) AS t WHERE effect_id = %(id)s",
            column=column,
            id=effect_id,
            seconds=seconds,
        )
    await watch.change("UPDATE effect_outbox SET next_attempt_at = coalesce(not_before, now())")
    await watch.nudge("dispatch,withdraw")
    ends = "SELECT array_agg(state ORDER BY effect_id) = %(states)s FROM effect_outbox"
    await watch.until(ends, states=["completed", "pending", "completed", "cancelled"])
    assert set(stage.sent()) == {str(due), str(fresh)}
    await check_promises(stage, watch, made=True)


# A send on the wire of the one that is right is not taken for lost by the one that is wrong, until it is.
@FAST_AND_SLOW
async def test_leases(stage: Stage, watch: Watch, off_seconds: int) -> None:
    stage.world.world.misbehave(SEND, Fault(HOLD))
    right = await stage.started()
    living, lost = await make(stage, 2)
    await watch.nudge("dispatch")
    await stage.world.arrived(2, path=SEND)
    await wrong(stage, off_seconds)
    await watch.change("UPDATE effect_outbox SET lease_expires_at = now() WHERE effect_id = %(id)s", id=lost)
    await watch.nudge("recover,dispatch")
    await watch.until("SELECT state = 'unknown' FROM effect_outbox WHERE effect_id = %(id)s", id=lost)
    mine = "SELECT state, lease_owner FROM effect_outbox WHERE effect_id = %(id)s"
    (row,) = await watch.rows(mine, id=living)
    assert row["state"] == "sending"
    assert f":{right.pid}:" in row["lease_owner"]
    stage.world.release()
    await watch.until("SELECT count(*) = 2 FROM effect_outbox WHERE state = 'completed'", hurry=True)
    assert stage.sent() == {str(living): 1, str(lost): 1}
    await check_promises(stage, watch, made=True)


# Questions run out by the database's clock, at the click and in the sweep. A click that reaches the wrong
# host is refused for its signature's time, as Slack's own rule has it; at the right one it counts.
@FAST_AND_SLOW
async def test_questions(stage: Stage, watch: Watch, off_seconds: int) -> None:
    right, off = await stage.started(), await wrong(stage, off_seconds)
    for number in (1, 2):
        answer = await stage.post(off, event(number, draft=True))
        assert answer is not None
        assert answer.status_code == 202
    await watch.until(CARDS, n=2)
    await watch.change(
        "UPDATE drafts SET expires_at = now() + CASE entity WHEN 'customer:1' THEN 1 ELSE -1 END * %(s)s"
        " * interval '1 second'",
        s=HALF,
    )
    await watch.nudge("expire")
    await watch.until("SELECT status = 'expired' FROM drafts WHERE entity = 'customer:2'")
    assert not (await stage.click(off, key_of(1), user=U_ALICE)).kept
    assert await watch.value("SELECT status FROM drafts WHERE entity = 'customer:1'") == "pending"
    assert (await stage.click(right, key_of(1), user=U_ALICE)).kept
    await watch.until("SELECT count(*) = 1 FROM effect_outbox WHERE state = 'completed'")
    assert stage.sent().total() == 1
    await watch.until("SELECT count(*) = 2 FROM cards WHERE shown_version = wanted_version")
    assert all("Expired" in json.dumps(card.blocks) for card in stage.cards(key_of(2)))
    await check_promises(stage, watch)
