"""One harness a connector: how to build it against a far side that obeys orders.

Not here: what every connector must do (test_connectors). A new connector brings its harness here.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from bot.connectors.connector import Connector, Effect
from bot.connectors.resume import build as build_resume
from bot.demo import world as far
from bot.demo.world import Fault, status
from bot.demo.world_server import WorldServer, serve_world
from tests.connectors.effects import look_up_at, make_effect, make_http, make_kit, webhook

HANG_SECONDS = 0.2


class Harness(Protocol):
    """A connector, an effect for it, and a far side with five manners."""

    connector: Connector
    can_look_up: bool

    def effect(self, **policy: Any) -> Effect:
        """An effect that this connector performs."""

    def healthy(self) -> None:
        """From now on the far side confirms."""

    def refusing(self) -> None:
        """From now on it says a plain no."""

    def losing_answers(self) -> None:
        """From now on it does the work and drops the line."""

    def hanging(self) -> None:
        """From now on it does the work and never answers."""

    async def reached(self) -> None:
        """Wait until something has arrived over there."""

    def away(self) -> None:
        """From now on the effects made go where nobody listens."""

    def done(self) -> int:
        """How often the work was done over there."""


@dataclass(slots=True)
class HttpHarness:
    """The http connector against the demo's world."""

    world: WorldServer
    connector: Connector
    can_look_up: bool = True
    target: str = ""

    def effect(self, **policy: Any) -> Effect:
        target = self.target or webhook(self.world)
        return make_effect(target, **{"lookup": look_up_at(self.world), "timeout_seconds": 5, **policy})

    def healthy(self) -> None:
        self.world.world.behave()

    def refusing(self) -> None:
        self.world.world.misbehave(far.WEBHOOK + "send-mail", status(403))

    def losing_answers(self) -> None:
        self.world.world.misbehave(far.WEBHOOK + "send-mail", Fault(far.DROP))

    def hanging(self) -> None:
        self.world.world.misbehave(far.WEBHOOK + "send-mail", Fault(far.HANG))

    async def reached(self) -> None:
        await self.world.arrived()

    def away(self) -> None:
        self.target = "http://127.0.0.1:1/"  # port 1: below what the kernel hands out, and nobody's

    def done(self) -> int:
        return len(self.world.world.done())


@asynccontextmanager
async def http_harness() -> AsyncIterator[Harness]:
    """A world and the connector that may reach it."""
    async with serve_world() as world:
        yield HttpHarness(world, make_http())


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
async def resume_harness() -> AsyncIterator[Harness]:
    """A world where an execution waits, and the connector that may reach it."""
    async with serve_world() as world:
        yield ResumeHarness(world, build_resume(make_kit()))


HARNESSES: dict[str, Callable[[], AbstractAsyncContextManager[Harness]]] = {
    "http": http_harness,
    "resume": resume_harness,
}
