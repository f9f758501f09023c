"""Targets that always fail or never answer, in front of good ones: each delays only itself.

Not here: what each fault proves (tests/conformance), or the shares of targets (tests/flow/test_lanes).
"""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from bot.demo.world import HOLD, LOOK_UP, Fault, status
from tests.makers import make_effects
from tests.processes import Stage
from tests.watching import Watch, check_promises

GOOD, HANGS, FAILS = "/webhook/good", "/webhook/hangs", "/webhook/fails-"
FAULTS = (status(500), status(429, retry_after="1"), status(404), status(503), Fault("drop_unread"))
GONE = "SELECT count(*) = %(n)s FROM effect_outbox WHERE state = 'completed' AND target LIKE '%%/good'"


async def make(stage: Stage, path: str, count: int, **more: Any) -> list[UUID]:
    """Make approved effects at one path of the far side, newer than all before them."""
    effect = {
        "target": f"{stage.world.url}{path}",
        "lookup": f"{stage.world.url}{LOOK_UP}{{effect_id}}",
        "settle_seconds": 1,
        "timeout_seconds": 30,
    }
    return await asyncio.to_thread(make_effects, stage.dsn, count, effect=effect | more)


# Five that always fail and one that hangs, all older, one row or many of each: the twenty leave at once; the
# failing end as the table of outcomes says, and the hanging one is unknown until a look-up proves it.
@pytest.mark.parametrize("each", [1, 40])
async def test_good_ones_leave(stage: Stage, watch: Watch, each: int) -> None:
    for number, fault in enumerate(FAULTS):
        stage.world.world.misbehave(f"{FAILS}{number}", fault)
        await make(stage, f"{FAILS}{number}", each, attempts=2)
    stage.world.world.misbehave(HANGS, Fault(HOLD))
    hanging = await make(stage, HANGS, each)
    good = await make(stage, GOOD, 20)
    bot = await stage.started()
    await watch.until(GONE, n=20)
    assert {str(effect_id) for effect_id in good} <= set(stage.sent())
    await stage.world.arrived(1, path=HANGS)
    on_the_wire = (
        "SELECT count(*) > 0 FROM effect_outbox WHERE state = 'sending' AND effect_id = ANY(%(ids)s)"
    )
    assert await watch.value(on_the_wire, ids=hanging)
    if each > 1:
        return
    ends = (
        "SELECT array_agg(state ORDER BY target) = %(states)s FROM effect_outbox WHERE target LIKE %(path)s"
    )
    await watch.until(
        ends, path="%/fails-%", states=["unknown", "failed", "failed", "unknown", "unknown"], hurry=True
    )
    await bot.kill()
    stage.world.release()
    await stage.started()
    await watch.bury(bot)
    settled = "SELECT state = 'completed' FROM effect_outbox WHERE effect_id = %(id)s"
    await watch.until(settled, id=hanging[0], hurry=True)
    assert stage.sent().total() == 21
    await check_promises(stage, watch, made=True)
