"""Two `serve` processes, one of which dies, freezes or outlasts its lease; and the switch under load.
Not here: two that are well (test_processes), or every point where one may die (tests/crash).
"""

import asyncio
import signal
from typing import Any, LiteralString

import psycopg

from bot.demo.slack_workspace import U_ADMIN
from bot.demo.world import HOLD, Fault
from tests.makers import make_effects
from tests.processes import Bot, Stage
from tests.watching import Watch, check_promises

SEND = "/webhook/send-mail"
COMPLETED = "SELECT count(*) = %(n)s FROM effect_outbox WHERE state = 'completed'"
FEWEST = """SELECT lease_owner FROM effect_outbox WHERE state = 'sending'
             GROUP BY 1 ORDER BY count(*) LIMIT 1"""
RUN_OUT = "UPDATE effect_outbox SET lease_expires_at = now() WHERE state = 'sending'"


async def make(stage: Stage, count: int, **more: Any) -> None:
    """Make approved effects at the sink, which can be asked about them."""
    effect = {
        "target": f"{stage.world.url}{SEND}",
        "lookup": f"{stage.world.url}{SEND.rpartition('/')[0]}/sent/{{effect_id}}",
        "settle_seconds": 1,
        "timeout_seconds": more.pop("timeout_seconds", 30),
    }
    await asyncio.to_thread(make_effects, stage.dsn, count, effect=effect, **more)


async def two(stage: Stage) -> tuple[Bot, Bot]:
    """Start two processes that have looked around once."""
    return await stage.started(), await stage.started()


# One of two dies with sends on the wire: the other finishes all, and proves those of the dead by look-up.
async def test_one_of_two_dies(stage: Stage, watch: Watch) -> None:
    stage.world.world.misbehave(SEND, Fault(HOLD))
    bots = await two(stage)
    await make(stage, 20)
    await watch.nudge()
    await watch.until("SELECT count(DISTINCT lease_owner) = 2 FROM effect_outbox WHERE state = 'sending'")
    await stage.world.arrived(20)
    # Each effect that it holds will be a card for ops, one a second: the one with fewer is seen through soon.
    holder = await watch.value(FEWEST)
    (dying,) = [bot for bot in bots if f":{bot.pid}:" in holder]
    await dying.kill()
    stage.world.world.behave()
    stage.world.release()
    await watch.bury(dying)
    await watch.until(
        "SELECT count(*) = 20 FROM effect_outbox WHERE state IN ('completed', 'unknown')", hurry=True
    )
    await watch.until(
        "SELECT count(*) = 0 FROM effect_outbox WHERE state = 'unknown' AND effect_id::text = ANY(%(known)s)",
        hurry=True,
        known=list(stage.sent()),
    )
    cards = "SELECT count(*) = 0 FROM cards WHERE effect_id IS NOT NULL AND shown_version < wanted_version"
    await watch.until(cards, hurry=True)
    # What had been started and never arrived is for a person to say.
    lost = await watch.value("SELECT count(*) FROM effect_outbox WHERE state = 'unknown'")
    assert len(stage.sent()) == stage.sent().total() == 20 - lost
    assert len([card for card in stage.ops() if "stet.unknown.resend" in str(card.blocks)]) == lost
    await check_promises(stage, watch, made=True)


# F026: a living send outlasts its lease: it is called unknown, sent by nobody else, and its answer believed.
async def test_slow_but_living(stage: Stage, watch: Watch) -> None:
    stage.world.world.misbehave(SEND, Fault(HOLD))
    stage.world.world.misbehave("/webhook/sent/", Fault("status", status=500, done=False))
    await two(stage)
    await make(stage, 1)
    await watch.nudge()
    await stage.world.arrived(1, path=SEND)
    await watch.change(RUN_OUT)
    await watch.nudge("recover")
    await watch.until("SELECT count(*) = 1 FROM effect_outbox WHERE state = 'unknown'")
    stage.world.release()
    await watch.until("SELECT count(*) = 1 FROM effect_evidence WHERE answer = 'sent'", hurry=True)
    await watch.until(COMPLETED, hurry=True, n=1)
    assert await watch.value("SELECT provider_id FROM effect_outbox") == "world-1"
    assert stage.sent().total() == 1
    await check_promises(stage, watch, made=True)


# F026: a sender frozen in its call wakes up after another process has settled it, and changes nothing.
async def test_frozen_while_sending(stage: Stage, watch: Watch) -> None:
    stage.world.world.misbehave(SEND, Fault(HOLD))
    frozen = await stage.started()
    await make(stage, 3)
    await watch.nudge()
    await stage.world.arrived(3, path=SEND)
    frozen.signal(signal.SIGSTOP)
    await stage.started()
    await watch.change(RUN_OUT)
    await watch.until(COMPLETED, hurry=True, n=3)
    versions = "SELECT effect_id, version, state FROM effect_outbox ORDER BY 1"
    before = await watch.rows(versions)
    stage.world.release()
    frozen.signal(signal.SIGCONT)
    await watch.until("SELECT count(*) = 3 FROM effect_evidence", hurry=True)
    assert await watch.rows(versions) == before
    assert stage.sent().total() == 3
    await check_promises(stage, watch, made=True)


AT_THE_LOCK: LiteralString = """
    SELECT count(*) = 1 FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
     WHERE l.locktype = 'advisory' AND NOT l.granted AND a.datname = current_database()"""
HELD: LiteralString = "SELECT pg_advisory_xact_lock(1467416578)"  # As a kill holds it: no start gets by.


# F027: frozen between claim and start, its lease gone: what another process sent is not started again.
async def test_frozen_before_the_start(stage: Stage, watch: Watch) -> None:
    frozen = await stage.started()
    async with await psycopg.AsyncConnection.connect(stage.dsn) as holding:
        await holding.execute(HELD)
        await make(stage, 3)
        await watch.nudge("dispatch")
        await watch.until("SELECT count(*) = 3 FROM effect_outbox WHERE state = 'sending'")
        frozen.signal(signal.SIGSTOP)
        await watch.change(RUN_OUT)
        await holding.commit()
    await stage.started()
    await watch.until(COMPLETED, hurry=True, n=3)
    frozen.signal(signal.SIGCONT)
    await make(stage, 1)
    await watch.until(COMPLETED, hurry=True, n=4)
    frozen.signal(signal.SIGTERM)
    assert await frozen.over() == 0
    assert stage.sent().total() == 4
    await check_promises(stage, watch, made=True)


# Killed between claim and start with every place of a target taken: the places come back with the lease, and
# what had them leaves once.
async def test_places_of_the_dead(stage: Stage, watch: Watch) -> None:
    stage.limit("concurrency = 2")
    dying = await stage.started(kill_at="dispatch.after_claim")
    await make(stage, 6)
    await watch.nudge("dispatch")
    await dying.over()
    held = "SELECT count(*)::int FROM effect_outbox WHERE state = 'sending' AND started_at IS NULL"
    assert await watch.value(held) == 2
    await stage.started()
    await watch.nudge("dispatch")
    assert await watch.value(held) == 2
    assert not stage.sent()
    await watch.bury(dying)
    await watch.until(COMPLETED, hurry=True, n=6)
    assert await watch.value("SELECT max(attempts) FROM effect_outbox") == 1
    assert stage.sent().total() == 6
    await check_promises(stage, watch, made=True)


# F029: kill while sends are on the wire: those are told truly, nothing else starts; resume sends each once.
async def test_kill_under_load(stage: Stage, watch: Watch) -> None:
    stage.world.world.misbehave(SEND, Fault(HOLD))
    bot, other = await two(stage)
    await make(stage, 50)
    await make(stage, 5, not_before=await watch.value("SELECT now() + interval '1 hour' AS at"))
    await watch.nudge()
    await stage.world.arrived(3, path=SEND)
    reply = await stage.actor(bot).slash(U_ADMIN, "kill mail storm")
    assert reply.kept
    started = await watch.value("SELECT count(*) FROM effect_outbox WHERE started_at IS NOT NULL")
    late = "SELECT count(*) FROM effect_outbox AS e, kill_switch AS k WHERE e.started_at > k.changed_at"
    await stage.world.arrived(started, path=SEND)
    stage.world.world.behave()
    stage.world.release()
    await watch.change("UPDATE effect_outbox SET not_before = now() WHERE not_before IS NOT NULL")
    await watch.until("SELECT count(*) = 0 FROM effect_outbox WHERE state = 'sending'", hurry=True)
    assert stage.sent().total() == started < 50
    assert await watch.value(late) == 0
    assert await watch.value("SELECT count(*) FROM effect_outbox WHERE state = 'pending'") == 55 - started
    assert (await stage.actor(other).slash(U_ADMIN, "resume the storm is over")).kept
    await watch.until(COMPLETED, hurry=True, n=55)
    assert len(stage.sent()) == stage.sent().total() == 55
    await check_promises(stage, watch, made=True)


# F029: a process frozen in the very transaction that starts a send cannot hold up a kill.
async def test_kill_past_a_frozen_start(stage: Stage, watch: Watch) -> None:
    frozen, bot = await two(stage)
    async with await psycopg.AsyncConnection.connect(stage.dsn) as holding:
        await holding.execute(HELD)
        await frozen_at_the_lock(stage, watch, frozen, bot)
        await holding.commit()
    reply = await stage.actor(bot).slash(U_ADMIN, "kill mail storm")
    assert reply.kept
    await watch.until("SELECT NOT open FROM kill_switch WHERE scope = 'all'")
    frozen.signal(signal.SIGCONT)
    frozen.signal(signal.SIGTERM)
    assert await frozen.over() == 0
    assert not stage.sent()
    assert await watch.value("SELECT started_at FROM effect_outbox") is None
    await check_promises(stage, watch, made=True)


async def frozen_at_the_lock(stage: Stage, watch: Watch, frozen: Bot, other: Bot) -> None:
    """Freeze a process that is about to start an effect, which no other was there to take."""
    other.signal(signal.SIGSTOP)
    await make(stage, 1)
    await watch.nudge("dispatch")
    await watch.until(AT_THE_LOCK)
    frozen.signal(signal.SIGSTOP)
    other.signal(signal.SIGCONT)
