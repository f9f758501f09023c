"""The far side of the resume connector: an execution that waits in the demo's world.

Not here: how requests fail on their way (far_http has what the two share).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bot.connectors import resume
from bot.connectors.connector import Connector, Effect
from bot.demo import world as far
from bot.demo.world import Fault, status
from bot.demo.world_server import WorldServer, serve_world
from tests.conformance.far import Scene
from tests.conformance.far_http import by_status, faulty, unanswered
from tests.connectors.effects import make_effect, make_kit

FINISHED = '{"message":"The execution \\"17\\" has finished already."}'


@dataclass(slots=True)
class ResumeHarness:
    """The resume connector against an execution that waits in the demo's world."""

    world: WorldServer
    connector: Connector
    can_look_up: bool = False
    target: str = ""

    def effect(self, **policy: Any) -> Effect:
        target = self.target or self.world.url + self.world.world.wait_at(
            "17", token="s3cret", suffix="gate-1"
        )
        return make_effect(target, **{"type": "resume", "response_id": None, "timeout_seconds": 5, **policy})

    def at(self, url: str, **policy: Any) -> Effect:
        return make_effect(url, **{"type": "resume", "response_id": None, "timeout_seconds": 5, **policy})

    def healthy(self) -> None:
        self.world.world.behave()

    def refusing(self) -> None:
        self.world.world.misbehave(far.WAITING, status(403))

    def losing_answers(self) -> None:
        self.world.world.misbehave(far.WAITING, Fault(far.DROP))

    def hanging(self) -> None:
        self.world.world.misbehave(far.WAITING, Fault(far.HANG))

    async def reached(self) -> None:
        await self.world.arrived()

    def away(self) -> None:
        self.target = "http://127.0.0.1:1/webhook-waiting/17/gate-1"  # as above

    def done(self) -> int:
        return len(self.world.world.done())


@asynccontextmanager
async def harness() -> AsyncIterator[ResumeHarness]:
    """A world where an execution waits, and the connector that may reach it."""
    async with serve_world() as world:
        yield ResumeHarness(world, resume.build(make_kit()))


SCENES: dict[str, Scene] = {
    **unanswered(resume.build),
    "sent": faulty(
        status(200, body='{"success":false}', done=True),
        status(204, body="", done=True),
        Fault(far.CUT),  # The execution went on: what it then says is its own affair.
    ),
    "gone": faulty(status(409, body=FINISHED)),
    **by_status((401, 404, 408, 409, 425, 429)),
}
