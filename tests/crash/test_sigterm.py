"""A process that is told to stop leaves in order: what is in hand is answered, what is not done given back.
Not here: processes that get no time for it (test_checkpoints).
"""

import asyncio
import signal

import psycopg
import pytest

from bot.demo.model_script import HANG, Step
from bot.demo.slack_faults import hanging
from bot.demo.world import HOLD, Fault
from tests.makers import make_effects
from tests.processes import CAMPAIGN, Stage, event, key_of
from tests.watching import Watch, check_promises

SEND = "/webhook/send-mail"
STOP_SECONDS = 12  # 8 s for sends, and what it takes to record them; Docker's ten are raised in compose.yaml.
SHOWN = "SELECT count(*) = 1 FROM cards WHERE draft_id IS NOT NULL AND shown_version > 0 AND ts IS NOT NULL"
HEAD = "SELECT FROM draft_heads WHERE draft_key = (SELECT draft_key FROM drafts) FOR UPDATE"
WAITING = """SELECT count(*) = 2 FROM pg_stat_activity
              WHERE datname = current_database() AND wait_event_type = 'Lock'"""


# Nothing to do: a stop is quick and clean, and as a user starts it, without any help of ours.
async def test_idle(stage: Stage, watch: Watch) -> None:
    bot = await stage.started()
    bot.signal(signal.SIGTERM)
    assert await bot.over() == 0
    assert not bot.faults()


# A model that hangs holds up no stop: its run is due again at once, and the try is not counted.
async def test_model_call_is_aborted(stage: Stage, watch: Watch) -> None:
    stage.model.script.then(Step(how=HANG))
    bot = await stage.started()
    await stage.post(bot, event(1))
    await stage.model.script.arrived(1)
    async with asyncio.timeout(STOP_SECONDS):
        bot.signal(signal.SIGTERM)
        assert await bot.over() == 0
    (run,) = await watch.rows(
        "SELECT state, failure, attempts, takeovers, next_attempt_at <= now() AS due FROM workflow_runs"
    )
    stopped = {"state": "failed_retryable", "failure": "stopped", "attempts": 0, "takeovers": 0, "due": True}
    assert run == stopped
    await stage.started()
    await watch.until(SHOWN)
    assert stage.asked(1) == 2
    await check_promises(stage, watch)


# Sends on the wire get their grace: who answers in it is completed, and what was not started goes back.
async def test_sends_that_end_in_time(stage: Stage, watch: Watch) -> None:
    stage.world.world.misbehave(SEND, Fault(HOLD))
    bot = await stage.started()
    effect = {"target": f"{stage.world.url}{SEND}", "timeout_seconds": 60}
    await asyncio.to_thread(make_effects, stage.dsn, 40, effect=effect)
    await watch.nudge()
    await stage.world.arrived(16, path=SEND)
    bot.signal(signal.SIGTERM)
    await bot.said("stopping")
    stage.world.release()
    assert await bot.over() == 0
    states = "SELECT state, count(*)::int AS n FROM effect_outbox GROUP BY 1"
    assert {row["state"]: row["n"] for row in await watch.rows(states)} == {"completed": 16, "pending": 24}
    stage.world.world.behave()
    await stage.started()
    await watch.until("SELECT count(*) = 40 FROM effect_outbox WHERE state = 'completed'", hurry=True)
    assert len(stage.sent()) == stage.sent().total() == 40
    await check_promises(stage, watch, made=True)


# A send that outlasts the grace is called unknown, on a card for ops, within the time that a stop may take.
@pytest.mark.skipif(not CAMPAIGN, reason="it waits the whole grace, as test_slack_hangs does")
async def test_send_that_does_not_end(stage: Stage, watch: Watch) -> None:
    stage.world.world.misbehave(SEND, Fault(HOLD))
    bot = await stage.started()
    effect = {"target": f"{stage.world.url}{SEND}", "timeout_seconds": 60}
    await asyncio.to_thread(make_effects, stage.dsn, 1, effect=effect)
    await watch.nudge()
    await stage.world.arrived(1, path=SEND)
    async with asyncio.timeout(STOP_SECONDS):
        bot.signal(signal.SIGTERM)
        assert await bot.over() == 0
    (effect_row,) = await watch.rows("SELECT state, reason, lease_owner FROM effect_outbox")
    assert effect_row == {"state": "unknown", "reason": "stopped", "lease_owner": None}
    await check_promises(stage, watch, made=True)


# A click and an event that wait for a lock when the stop comes are answered, and the answers are true.
async def test_what_is_in_hand_is_answered(stage: Stage, watch: Watch) -> None:
    bot = await stage.started()
    await stage.post(bot, event(1, draft=True))
    await watch.until(SHOWN)
    async with await psycopg.AsyncConnection.connect(stage.dsn) as holding:
        await holding.execute(HEAD)
        clicking = asyncio.create_task(stage.click(bot, key_of(1)))
        posting = asyncio.create_task(stage.post(bot, event(1, draft=True, version=2)))
        await watch.until(WAITING)
        bot.signal(signal.SIGTERM)
        await stage.refused(bot)
        await holding.rollback()
    click, posted = await clicking, await posting
    assert click.kept
    assert posted is not None
    assert posted.status_code == 202
    assert await bot.over() == 0
    states = {
        row["v"]: row["state"]
        for row in await watch.rows("SELECT source_version AS v, state FROM workflow_runs")
    }
    assert states[2] in {"received", "failed_retryable", "processing", "awaiting_human"}
    await check_promises(stage, watch)


# Slack hangs, and so does a sink: a stop waits for neither longer than it may, and both are looked for later.
async def test_slack_hangs(stage: Stage, watch: Watch) -> None:
    fault = stage.slack.faults.order("chat.postMessage", hanging(after_work=True))
    stage.world.world.misbehave(SEND, Fault(HOLD))
    bot = await stage.started()
    await stage.post(bot, event(1, draft=True))
    await fault.reached.wait()
    effect = {"target": f"{stage.world.url}{SEND}", "timeout_seconds": 60}
    await asyncio.to_thread(make_effects, stage.dsn, 1, effect=effect)
    await watch.nudge("dispatch")
    await stage.world.arrived(1, path=SEND)
    async with asyncio.timeout(STOP_SECONDS):
        bot.signal(signal.SIGTERM)
        assert await bot.over() == 0
    stage.slack.faults.clear()
    assert await watch.value("SELECT reason FROM effect_outbox") == "stopped"
    await stage.started()
    await watch.bury(bot)
    await watch.until(SHOWN.replace("= 1", ">= 1"), hurry=True)
    assert len(stage.cards(key_of(1))) == 1
    await check_promises(stage, watch, made=True)
