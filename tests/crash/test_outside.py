"""Slack, the model and the provider refuse, fail, cut the line or hang: what is said afterwards is true.
Not here: trouble of our own (test_checkpoints, test_sigterm) or of the database (test_database).
"""

from collections.abc import Callable, Iterable

import pytest

from bot.demo.model_script import DROP as DROP_MODEL
from bot.demo.model_script import HANG as HANG_MODEL
from bot.demo.model_script import Step, fail
from bot.demo.slack_faults import Fault as SlackFault
from bot.demo.slack_faults import dropped, hanging, limited, says, server_error
from bot.demo.world import DROP, HANG, Fault, status
from tests.processes import CAMPAIGN, Stage, event, key_of
from tests.watching import Watch, check_promises

SEND = "/webhook/send-mail"
SHOWN = """SELECT count(*) = %(n)s AND bool_and(shown_version = wanted_version AND ts IS NOT NULL)
             FROM cards WHERE draft_id IS NOT NULL"""
MODEL_FAULTS = {
    "limited": (fail(429, retry_after="1"), 1),
    "fails": (fail(500), 3),
    "drops": (Step(how=DROP_MODEL), 3),
    "hangs": (Step(how=HANG_MODEL), 2),
}
SLACK_FAULTS: dict[str, Callable[[], SlackFault]] = {
    "limited": limited,
    "fails": server_error,
    "fails after the work": lambda: server_error(after_work=True),
    "internal error after the work": lambda: says("internal_error", after_work=True),
    "drops unread": lambda: dropped(after_work=False),
    "drops after the work": lambda: dropped(after_work=True),
    "hangs after the work": lambda: hanging(after_work=True),
}
# What the sink does, what the effect is then, and how it ends.
SENDS = {
    "limited": (status(429, retry_after="1"), "pending", "completed"),
    "fails": (status(500), "unknown", "unknown"),
    "fails after the work": (status(500, done=True), "unknown", "completed"),
    "drops after the work": (Fault(DROP), "unknown", "completed"),
    "hangs after the work": (Fault(HANG), "unknown", "completed"),
}


def short(troubles: Iterable[str], *kept: str) -> list[str]:
    """All of them for `make crash`; else a few, without those that take a whole deadline or backoff."""
    return [each for each in troubles if CAMPAIGN or each in kept]


# A model in trouble is asked as often as the matrix says, the run waits, and the next try makes the one card.
@pytest.mark.parametrize("trouble", short(MODEL_FAULTS, "limited"))
async def test_model_in_trouble(stage: Stage, watch: Watch, trouble: str) -> None:
    step, tries = MODEL_FAULTS[trouble]
    stage.model.script.then(*[step] * tries)
    bot = await stage.started()
    await stage.post(bot, event(1))
    await watch.until("SELECT count(*) = 1 FROM workflow_runs WHERE state = 'failed_retryable'")
    assert stage.asked(1) == tries
    counted = 0 if trouble == "limited" else 1
    assert await watch.value("SELECT attempts FROM workflow_runs") == counted
    await watch.until(SHOWN, hurry=True, n=1)
    assert stage.asked(1) == tries + 1
    assert len(stage.cards(key_of(1))) == 1
    await check_promises(stage, watch)


# Slack in trouble with a card's first post: the decision can still be made, and there is never a second card.
@pytest.mark.parametrize("trouble", short(SLACK_FAULTS, "limited", "drops after the work"))
async def test_slack_in_trouble(stage: Stage, watch: Watch, trouble: str) -> None:
    stage.slack.faults.order("chat.postMessage", SLACK_FAULTS[trouble]())
    bot = await stage.started()
    await stage.post(bot, event(1, draft=True))
    await watch.until(SHOWN, hurry=True, n=1)
    assert len(stage.cards(key_of(1))) == 1
    assert (await stage.click(bot, key_of(1))).kept
    stage.slack.faults.order("chat.update", SLACK_FAULTS[trouble]())
    await watch.until("SELECT count(*) = 1 FROM effect_outbox WHERE state = 'completed'", hurry=True)
    await watch.until(SHOWN, hurry=True, n=1)
    assert len(stage.cards(key_of(1))) == 1
    assert "stet.approve" not in str(stage.cards(key_of(1))[0].blocks)
    stage.slack.faults.clear()
    await check_promises(stage, watch)


# A provider in trouble: unknown is called unknown and never sent again by itself; a look-up may prove it.
@pytest.mark.parametrize("trouble", short(SENDS, "limited", "fails", "drops after the work"))
async def test_provider_in_trouble(stage: Stage, watch: Watch, trouble: str) -> None:
    fault, first, last = SENDS[trouble]
    stage.world.world.misbehave(SEND, fault, times=1)
    bot = await stage.started()
    await stage.post(bot, event(1, draft=True))
    await watch.until(SHOWN, n=1)
    assert (await stage.click(bot, key_of(1))).kept
    await watch.until(
        "SELECT count(*) = 1 FROM effect_outbox WHERE state = %(first)s AND attempts = 1", first=first
    )
    if last == "unknown":
        asked = "SELECT count(*) = 1 FROM effect_look_ups WHERE asked >= 2 AND last_answer = 'absent'"
        await watch.until(asked, hurry=True)
    await watch.until("SELECT state = %(last)s FROM effect_outbox", hurry=True, last=last)
    await watch.until(SHOWN, hurry=True, n=1)
    assert stage.sent().total() == (last == "completed")
    sends = [each for each in stage.world.world.journal if each.path == SEND]
    assert len(sends) == (2 if first == "pending" else 1)
    assert len({each.effect_id for each in sends}) == 1
    await check_promises(stage, watch)
