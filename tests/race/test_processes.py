"""Two whole `serve` processes on one database: they share the work, and nothing is done twice.
Not here: a process that dies or stands still (test_processes_lost), single steps that race (neighbours).
"""

import asyncio
from collections import Counter

import pytest

from bot.demo.model_script import HOLD, Step, fail
from bot.demo.slack_workspace import C_REVIEW, U_ALICE, U_BOB, U_CAROL
from bot.demo.world import HOLD as HOLD_SEND
from bot.demo.world import Fault
from bot.doors.modals import REASON_BLOCK
from tests.makers import make_effects
from tests.processes import CAMPAIGN, Stage, event, key_of
from tests.race.barrier import AT_THE_CLAIM, together
from tests.watching import Watch, check_promises

SEND = "/webhook/send-mail"
ALL_SHOWN = """SELECT count(*) = %(n)s FROM cards
                WHERE draft_id IS NOT NULL AND shown_version > 0 AND ts IS NOT NULL"""
SAME_KEY = """UPDATE effect_outbox SET draft_key = (
    SELECT draft_key FROM effect_outbox WHERE effect_id = %(first)s) WHERE effect_id = ANY(%(ids)s)"""
WORTH_ONE = """INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)
    SELECT draft_id, 1, run_id, '{"amount": 1}', '', 'model' FROM effect_outbox"""
CAP = """UPDATE kind_limits SET full_until = NULL, full_why = NULL,
    value_path = CASE %(limit)s WHEN 'cap_value_day' THEN '{output,amount}'::text[] END,
    cap_hour = CASE %(limit)s WHEN 'cap_hour' THEN %(n)s END::integer,
    cap_day = CASE %(limit)s WHEN 'cap_day' THEN %(n)s END::integer,
    cap_value_day = CASE %(limit)s WHEN 'cap_value_day' THEN %(n)s END::integer"""
MANY = 400 if CAMPAIGN else 100
ROUNDS = 50 if CAMPAIGN else 6


# F001, F002: ten and a hundred deliveries while the model thinks make one run, model request and card; all
# others are duplicates, and none waits for the model.
@pytest.mark.parametrize("deliveries", [10, 100])
async def test_one_key_many_deliveries(stage: Stage, watch: Watch, deliveries: int) -> None:
    stage.model.script.then(Step(how=HOLD))
    bots = [await stage.started(), await stage.started()]
    posts = [stage.post(bots[n % 2], event(1)) for n in range(deliveries)]
    answers = [answer for answer in await asyncio.gather(*posts) if answer is not None]
    assert Counter(answer.status_code for answer in answers) == {202: 1, 200: deliveries - 1}
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    await stage.model.script.arrived(1)
    stage.model.script.release()
    await watch.until(ALL_SHOWN, n=1)
    await watch.until("SELECT duplicates = %(n)s FROM seen_events", n=deliveries - 1)
    counted = "SELECT sum(n)::int FROM event_counters WHERE status = 'duplicate'"
    assert await watch.value(counted) == deliveries - 1
    assert stage.asked(1) == 1
    assert len(stage.cards(key_of(1))) == 1
    await check_promises(stage, watch)


# F024: two or four processes and 200 approved effects at a slow sink: all of them work, each effect leaves
# once, in one try.
@pytest.mark.parametrize("processes", [2, 4])
async def test_outbox_is_shared(stage: Stage, watch: Watch, processes: int) -> None:
    stage.world.world.misbehave(SEND, Fault(HOLD_SEND))
    for _ in range(processes):
        await stage.started()
    effect = {"target": f"{stage.world.url}{SEND}"}
    await asyncio.to_thread(make_effects, stage.dsn, 200, effect=effect, targets=4)
    await watch.nudge()
    all_work = "SELECT count(DISTINCT lease_owner) = %(n)s FROM effect_outbox WHERE state = 'sending'"
    await watch.until(all_work, n=processes)
    for count in range(1, 201):
        await stage.world.arrived(count)
        stage.world.release()
    await watch.until("SELECT count(*) = 200 FROM effect_outbox WHERE state = 'completed'")
    assert await watch.value("SELECT max(attempts) FROM effect_outbox") == 1
    assert len(stage.sent()) == stage.sent().total() == 200
    await check_promises(stage, watch, made=True)


# F024: four processes and many effects of each of twenty draft_keys: those of one key leave one after the
# other, the oldest first, whichever process sends them.
async def test_order_is_kept(stage: Stage, watch: Watch) -> None:
    for _ in range(4):
        await stage.started()
    soon = await watch.value("SELECT now() + interval '1 hour' AS at")
    effect = {"target": f"{stage.world.url}{SEND}"}
    made = await asyncio.to_thread(
        make_effects, stage.dsn, MANY, effect=effect, targets=7, next_attempt_at=soon
    )
    for first in range(20):
        await watch.change(SAME_KEY, first=made[first], ids=made[first::20])
    await watch.change("UPDATE effect_outbox SET next_attempt_at = now()")
    await watch.nudge("dispatch")
    await watch.until("SELECT count(*) = %(n)s FROM effect_outbox WHERE state = 'completed'", n=MANY)
    left = [str(each.effect_id) for each in stage.world.world.journal]
    for first in range(20):
        of_key = [str(effect_id) for effect_id in made[first::20]]
        assert [effect_id for effect_id in left if effect_id in of_key] == of_key
    assert len(left) == stage.sent().total() == MANY
    await check_promises(stage, watch, made=True)


# Three processes at one cap of effects or of their worth, raised step by step: what left never passes it, and
# all that it allows leaves.
@pytest.mark.parametrize("limit", ["cap_hour", "cap_day", "cap_value_day"])
async def test_caps_are_shared(stage: Stage, watch: Watch, limit: str) -> None:
    stage.limit("cap_day = 7")
    for _ in range(3):
        await stage.started()
    effect = {"target": f"{stage.world.url}{SEND}"}
    later = await watch.value("SELECT now() + interval '1 hour' AS at")
    await asyncio.to_thread(make_effects, stage.dsn, 60, effect=effect, targets=6, next_attempt_at=later)
    await watch.change(WORTH_ONE)
    for cap in (7, 8, 21, 22, 60):
        await watch.change(CAP, limit=limit, n=cap)
        await watch.change("UPDATE effect_outbox SET next_attempt_at = now() WHERE state = 'pending'")
        await together(stage.dsn, AT_THE_CLAIM, watch.nudge("dispatch"), waiting=3)
        await watch.until("SELECT count(*) = %(n)s FROM effect_outbox WHERE state = 'completed'", n=cap)
        assert stage.sent().total() == cap
    assert len(stage.sent()) == 60
    await check_promises(stage, watch, made=True)


# F017: impatient clicks of three people over both processes make one decision and one send; all are answered.
async def test_clicks_at_both(stage: Stage, watch: Watch) -> None:
    bots = [await stage.started(), await stage.started()]
    await stage.post(bots[0], event(1, draft=True))
    await watch.until(ALL_SHOWN, n=1)
    people = (U_ALICE, U_BOB, U_CAROL)
    clicks = [stage.click(bots[n % 2], key_of(1), user=people[n % 3]) for n in range(20)]
    replies = await asyncio.gather(*clicks)
    assert all(reply.kept for reply in replies)
    await watch.until("SELECT count(*) = 1 FROM effect_outbox WHERE state = 'completed'")
    assert await watch.value("SELECT count(*) FROM votes") == 1
    assert stage.sent().total() == 1
    await check_promises(stage, watch)


# F018: approve here and reject there at the same instant: exactly one counts, and nothing rejected is sent.
async def test_approve_against_reject(stage: Stage, watch: Watch) -> None:
    stage.change_policy({"quorum = 1\n": f"quorum = 1\nmax_open_cards = {ROUNDS}\n"})
    bots = [await stage.started(), await stage.started()]
    for number in range(ROUNDS):
        await stage.post(bots[number % 2], event(number, draft=True))
    await watch.until(ALL_SHOWN, n=ROUNDS, hurry=True)
    for number in range(ROUNDS):
        there, here = stage.actor(bots[number % 2]), bots[(number + 1) % 2]
        (card,) = stage.cards(key_of(number))
        assert (await there.click(U_BOB, C_REVIEW, card.ts, "stet.reject")).kept
        rejecting = there.submit(U_BOB, {REASON_BLOCK: "Not like this."})
        replies = await asyncio.gather(rejecting, stage.click(here, key_of(number)))
        assert all(reply.kept for reply in replies)
    await watch.until("SELECT count(*) = 0 FROM drafts WHERE status IN ('pending', 'approved')", hurry=True)
    decided = await watch.rows("SELECT draft_id, decision FROM approvals WHERE consumed_at IS NOT NULL")
    assert len(decided) == len({row["draft_id"] for row in decided}) == ROUNDS
    approved = sum(row["decision"] == "approve" for row in decided)
    assert await watch.value("SELECT count(*) FROM effect_outbox") == approved == stage.sent().total()
    lines = "SELECT count(*) FROM audit_log WHERE action IN ('approved', 'rejected')"
    assert await watch.value(lines) == ROUNDS
    await check_promises(stage, watch)


# F024: an occasion that both processes meet is told once: a conflict seen everywhere, a model that refuses.
async def test_alerts_fire_once(stage: Stage, watch: Watch) -> None:
    stage.model.script.always(fail(401))
    bots = [await stage.started(), await stage.started()]
    other = event(1) | {"entity": "customer:other"}
    await stage.post(bots[0], event(1))
    answers = await asyncio.gather(*(stage.post(bots[n % 2], other) for n in range(10)))
    assert {answer.status_code for answer in answers if answer is not None} == {409}
    await asyncio.gather(*(stage.post(bots[n % 2], event(n)) for n in range(2, 6)))
    await watch.until("SELECT count(*) = 6 FROM alerts WHERE sent_at IS NOT NULL", hurry=True)
    names = await watch.rows("SELECT name, count(*)::int AS n FROM alerts GROUP BY 1")
    assert {row["name"]: row["n"] for row in names} == {"payload_conflict": 1, "drafting_failed": 5}
    assert len(stage.ops()) == 6
    await check_promises(stage, watch)
