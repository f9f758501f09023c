"""A process dies by SIGKILL at each named checkpoint; a fresh one finishes and every promise was kept.
Not here: two living processes (tests/race) or trouble outside (test_outside).
"""

import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from bot.demo.slack_workspace import C_OPS, U_ADMIN, U_ALICE, U_BOB
from bot.demo.world import DROP, Fault, status
from bot.flow.checkpoints import NAMES
from tests.processes import Bot, Stage, event, key_of, marker
from tests.watching import Watch, check_promises

N = 7
KEY = key_of(N)
SEND = "/webhook/send-mail"
RECORDS = "/records/"
SHOWN = "SELECT count(*) = 1 FROM cards WHERE draft_id IS NOT NULL AND shown_version > 0 AND ts IS NOT NULL"
UNDECIDED = "SELECT count(*) = 1 FROM drafts WHERE status = 'pending'"
TOLD = "SELECT count(*) = 1 FROM effect_outbox WHERE effect_type = 'resume' AND state = 'completed'"
UP_TO_DATE = "SELECT bool_and(shown_version = wanted_version) FROM cards"
REDRAFTED = "SELECT bool_and(outcome = 'done') AND count(*) = 1 FROM redrafts"
CANCELLABLE = """
SELECT bool_and(shown_version = wanted_version) AND bool_and(decision = 'approve')
  FROM cards JOIN approvals USING (draft_id)
"""
COMPLETED = "SELECT count(*) = 1 FROM workflow_runs WHERE state = 'completed'"


@dataclass(frozen=True, slots=True)
class Trial:
    """What leads to a point's death, and what must be found on the far side once all is over."""

    drive: Callable[[Stage, Watch, Bot], Awaitable[None]]
    drafted: bool = True
    probed: bool = False
    asked: int = 0
    answered: int = 200  # What upstream hears when it delivers the event again.


async def post(stage: Stage, watch: Watch, bot: Bot) -> None:
    await stage.post(bot, event(N, draft=TRIALS[bot.dies_at].drafted))


async def approve(stage: Stage, watch: Watch, bot: Bot) -> None:
    await post(stage, watch, bot)
    await watch.until(SHOWN)
    await stage.click(bot, KEY)


async def lose_answer(stage: Stage, watch: Watch, bot: Bot) -> None:
    stage.world.world.misbehave(SEND, Fault(DROP), times=1)
    await approve(stage, watch, bot)
    await watch.until("SELECT count(*) = 1 FROM effect_outbox WHERE state = 'unknown'")
    await watch.hurry()


async def expire(stage: Stage, watch: Watch, bot: Bot) -> None:
    await post(stage, watch, bot)
    await watch.until(SHOWN)
    await watch.change("UPDATE drafts SET expires_at = now()")
    await watch.hurry()


async def pull(stage: Stage, watch: Watch, bot: Bot) -> None:
    await post(stage, watch, bot)
    await watch.until(SHOWN)
    await stage.actor(bot).slash(U_ADMIN, "kill mail storm")


async def wait_for_it(stage: Stage, watch: Watch, bot: Bot) -> None:
    """An execution waits upstream for what becomes of the event."""
    path = stage.world.world.wait_at("17", suffix="gate-1")
    await stage.post(bot, event(N, draft=True) | {"resume_url": stage.world.url + path})
    await watch.until(SHOWN)
    await stage.click(bot, KEY)


async def edit(stage: Stage, watch: Watch, bot: Bot) -> None:
    await post(stage, watch, bot)
    await watch.until(SHOWN)
    await stage.click(bot, KEY, "stet.edit", user=U_BOB)
    await stage.actor(bot).submit(U_BOB, {"stet.edit.body": f"It ships on Tuesday. {marker(N)}"})


async def redraft(stage: Stage, watch: Watch, bot: Bot) -> None:
    await post(stage, watch, bot)
    await watch.until(SHOWN)
    await stage.click(bot, KEY, "stet.redraft")
    await stage.actor(bot).submit(U_ALICE, {"stet.answer": "Shorter, please"})


async def cancel(stage: Stage, watch: Watch, bot: Bot) -> None:
    """Approved while the switch is closed, so that nothing has started."""
    await pull(stage, watch, bot)
    await stage.click(bot, KEY)
    await watch.until(CANCELLABLE)
    await stage.click(bot, KEY, "stet.cancel")


async def check(stage: Stage, watch: Watch, bot: Bot) -> None:
    """Its record is looked at before it is sent, and first says what the point needs."""
    changed = status(200, body='{"version": 2}')
    first = {"dispatch.after_hold": status(503), "dispatch.after_take_back": changed}
    if bot.dies_at in first:
        stage.world.world.misbehave(RECORDS, first[bot.dies_at], times=1)
    stage.world.world.misbehave(RECORDS, status(200, body='{"version": 1}'))
    await approve(stage, watch, bot)


CHECKED = Trial(check, probed=True)


async def undo(stage: Stage, watch: Watch, bot: Bot) -> None:
    """Delivered, shown as that, and taken back."""
    await approve(stage, watch, bot)
    await watch.until(COMPLETED, hurry=True)
    await watch.until(UP_TO_DATE, hurry=True)
    await stage.click(bot, KEY, "stet.undo")


MODEL = Trial(post, drafted=False, asked=1)
REDRAFT = Trial(redraft, asked=1)
TRIALS = {
    "receive.before_commit": Trial(post, answered=202),
    "receive.after_commit": Trial(post),
    "draft.after_claim": MODEL,
    "draft.before_model": MODEL,
    "draft.after_model": Trial(post, drafted=False, asked=2),  # Its answer died with it.
    "draft.after_answer_stored": MODEL,
    "draft.before_open_commit": MODEL,
    "draft.after_open_commit": MODEL,
    "show.after_claim": Trial(post),
    "show.before_post": Trial(post),
    "show.after_post": Trial(post),
    "show.after_shown": Trial(post),
    "decide.before_commit": Trial(approve),
    "decide.after_commit": Trial(approve),
    "edit.before_commit": Trial(edit),
    "edit.after_commit": Trial(edit),
    "redraft.after_ask_commit": REDRAFT,
    "redraft.after_claim": REDRAFT,
    "redraft.after_model": Trial(redraft, asked=2),  # Its answer died with it.
    "redraft.after_answer_stored": REDRAFT,
    "redraft.before_commit": REDRAFT,
    "redraft.after_commit": REDRAFT,
    "cancel.before_commit": Trial(cancel),
    "cancel.after_commit": Trial(cancel),
    "undo.before_commit": Trial(undo),
    "undo.after_commit": Trial(undo),
    "expire.after_commit": Trial(expire),
    "dispatch.after_claim": Trial(approve),
    "dispatch.after_probe": CHECKED,
    "dispatch.after_hold": CHECKED,
    "dispatch.after_take_back": CHECKED,
    "dispatch.after_start": Trial(approve),
    "dispatch.before_record": Trial(approve),
    "dispatch.after_record": Trial(approve),
    "announce.before_commit": Trial(wait_for_it),
    "announce.after_commit": Trial(wait_for_it),
    "reconcile.after_look_up": Trial(lose_answer),
    "reconcile.after_record": Trial(lose_answer),
    "switch.after_commit": Trial(pull),
}


# Every point has its trial; a new one without is noticed here.
def test_every_checkpoint_is_tried() -> None:
    assert set(TRIALS) == set(NAMES)


# Whatever step a process dies in: the event is kept, one card, one decision, one send, a record that holds.
@pytest.mark.parametrize("point", TRIALS)
async def test_killed_at(stage: Stage, watch: Watch, point: str) -> None:
    trial = TRIALS[point]
    if trial.probed:
        probe = f'probe = {{ url = "{stage.world.url}{RECORDS}{{entity}}", version = "version" }}'
        stage.change_policy({'settle = "1s"': f'settle = "1s"\n{probe}'})
    victim = await stage.started(point)
    await trial.drive(stage, watch, victim)
    assert await victim.over() == -signal.SIGKILL
    bot = await stage.started()
    await watch.bury(victim)
    again = await stage.post(bot, event(N, draft=trial.drafted))
    assert again is not None
    assert again.status_code == trial.answered
    if point == "expire.after_commit":
        await see_expired(stage, watch, bot)
    elif point.startswith("cancel."):
        await see_cancelled(stage, watch, bot)
    elif point.startswith("undo."):
        await see_undone(stage, watch, bot)
    else:
        await see_through(stage, watch, bot, point)
    assert stage.asked(N) == trial.asked
    assert len(stage.cards(KEY)) == 1
    assert await watch.value("SELECT count(*) FROM workflow_runs") == 1
    assert await watch.value("SELECT duplicates FROM seen_events") <= 1
    await check_promises(stage, watch)


async def see_expired(stage: Stage, watch: Watch, bot: Bot) -> None:
    await watch.until(UP_TO_DATE, hurry=True)
    assert await watch.value("SELECT state FROM workflow_runs") == "expired"
    assert "stet.approve" not in str(stage.cards(KEY)[0].blocks)
    assert not stage.sent()


async def see_cancelled(stage: Stage, watch: Watch, bot: Bot) -> None:
    """Cancelled before or after: whoever clicks again hears so, and nothing leaves when sending goes on."""
    await stage.click(bot, KEY, "stet.cancel")
    assert (await stage.actor(bot).slash(U_ADMIN, "resume the storm is over")).kept
    await watch.until("SELECT count(*) = 1 FROM workflow_runs WHERE state = 'cancelled'")
    await watch.until(UP_TO_DATE, hurry=True)
    assert await watch.value("SELECT count(*) FROM approvals WHERE decision = 'cancel'") == 1
    assert await watch.value("SELECT count(*) FROM audit_log WHERE action = 'cancelled'") == 1
    assert not stage.sent()


async def see_undone(stage: Stage, watch: Watch, bot: Bot) -> None:
    """Asked for before or after, whoever presses again: taken back once, and sent once before that."""
    await watch.until(UP_TO_DATE, hurry=True)
    if not await watch.value("SELECT count(*) FROM effect_outbox WHERE undo_of IS NOT NULL"):
        await stage.click(bot, KEY, "stet.undo")
    undone = "SELECT count(*) = 1 FROM effect_outbox WHERE undo_of IS NOT NULL AND state = 'completed'"
    await watch.until(undone, hurry=True)
    await watch.until(UP_TO_DATE, hurry=True)
    assert await watch.value(COMPLETED)
    assert await watch.value("SELECT count(*) FROM audit_log WHERE action = 'undo_asked'") == 1
    assert sorted(stage.sent().values()) == [1, 1]
    assert "stet.undo" not in str(stage.cards(KEY)[0].blocks)


async def see_through(stage: Stage, watch: Watch, bot: Bot, point: str) -> None:
    await watch.until(SHOWN, hurry=True)
    if point == "dispatch.after_take_back":
        await watch.until(UP_TO_DATE, hurry=True)
    if point.startswith("redraft."):
        await watch.until(REDRAFTED, hurry=True)
    if point.startswith(("edit.", "redraft.")):
        await watch.until(UP_TO_DATE, hurry=True)
    if point == "switch.after_commit":
        await see_closed(stage, watch, bot)
    elif await watch.value(UNDECIDED):
        assert (await stage.click(bot, KEY)).kept
    if point == "dispatch.after_start":
        await see_unknown(stage, watch, bot)
    await watch.until(COMPLETED, hurry=True)
    await watch.until(UP_TO_DATE, hurry=True)
    if point.startswith("announce."):
        await watch.until(TOLD, hurry=True)
        assert sorted(stage.sent().values()) == [1, 1]
        return
    assert list(stage.sent().values()) == [1]


async def see_closed(stage: Stage, watch: Watch, bot: Bot) -> None:
    """The kill whose answer was lost holds, until somebody resumes."""
    assert not await watch.value("SELECT open FROM kill_switch WHERE scope = 'all'")
    assert (await stage.click(bot, KEY)).kept
    await watch.hurry()
    assert (await stage.actor(bot).slash(U_ADMIN, "resume the storm is over")).kept
    assert await watch.value("SELECT started_at FROM effect_outbox") is None
    await watch.hurry()


async def see_unknown(stage: Stage, watch: Watch, bot: Bot) -> None:
    """It was started, so nobody knows; the look-up proves nothing, and only a person sends it again."""
    asked = "SELECT count(*) = 1 FROM effect_look_ups WHERE last_answer = 'absent'"
    await watch.until(asked, hurry=True)
    effect = "SELECT count(*) = 1 FROM cards WHERE effect_id IS NOT NULL AND shown_version = wanted_version"
    await watch.until(effect, hurry=True)
    assert await watch.value("SELECT state FROM effect_outbox") == "unknown"
    assert not stage.sent()
    (card,) = [each for each in stage.ops() if "stet.unknown.resend" in str(each.blocks)]
    assert (await stage.actor(bot).click(U_ADMIN, C_OPS, card.ts, "stet.unknown.resend")).kept
