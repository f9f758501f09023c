"""Look-ups as the doctor tries them: one that finds what never was is wrong, silence is not.

Not here: what a look-up's answer means for an effect (tests/connectors).
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bot.connectors.connector import Kit
from bot.connectors.http import build
from bot.connectors.reach import Reach
from bot.demo import world as far
from bot.demo.world import Fault, World, status
from bot.demo.world_server import WorldServer, serve_world
from bot.examination.look_ups import examine_look_ups
from bot.policy.kinds import load_policy

POLICY = """
[kinds.mail]
gate = "approve_first"
sources = ["n8n"]
channel = "C0REVIEW"
reviewers = ["U0ALICE"]
prompt = "Answer. {payload}"
[kinds.mail.output]
type = "object"
[kinds.mail.effect]
type = "http"
target = "TARGET/webhook/send-mail"
lookup = "TARGET/webhook/sent/{effect_id}"
timeout = "1s"
"""


MEND = "it finds an effect that never was: let it answer 404 for an id that it does not know"


@pytest_asyncio.fixture
async def world() -> AsyncIterator[WorldServer]:
    async with serve_world(World()) as server:
        yield server


# One that knows nothing of it is well, one that finds it is not, and one that cannot be asked may yet be.
@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (None, "ok     kinds.mail.effect.lookup: does not find what never was"),
        (
            status(200, body='{"id":"1"}'),
            f"wrong  kinds.mail.effect.lookup: {MEND}",
        ),
        (status(503), "ok     kinds.mail.effect.lookup: cannot be tried from here (http_503)"),
        (Fault(far.HANG), "ok     kinds.mail.effect.lookup: cannot be tried from here (timeout)"),
        (
            status(200, body='{"message":"Workflow was started"}'),
            "ok     kinds.mail.effect.lookup: cannot be tried from here (no_proof)",
        ),
    ],
)
async def test_look_ups(world: WorldServer, fault: Fault | None, line: str) -> None:
    if fault is not None:
        world.world.misbehave("/webhook/sent/", fault)
    policy = load_policy(POLICY.replace("TARGET", world.url))
    connector = build(Kit(reach=Reach.parse(f"127.0.0.1:{world.port}")))
    assert [str(one) async for one in examine_look_ups({"http": connector}, policy)] == [line]
    assert [one.method for one in world.world.journal] == ["GET"]


# What EFFECT_ALLOWED_HOSTS keeps back is said elsewhere; without a lookup there is nothing to say.
@pytest.mark.parametrize("text", [POLICY, POLICY.replace("lookup =", "# lookup =")])
async def test_nothing_to_say(world: WorldServer, text: str) -> None:
    policy = load_policy(text.replace("TARGET", world.url))
    assert [one async for one in examine_look_ups({"http": build(Kit())}, policy)] == []
    assert not world.world.journal
