"""The switches of the page that make the model or the outside world misbehave.

Not here: what the stand-ins can do (model_script, world). A mood holds until another is chosen.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from bot.demo.model_script import HANG as MODEL_HANGS
from bot.demo.model_script import MOODS, Script, Step, fail, fenced, refuse, say
from bot.demo.world import DROP, HOLD, LOOK_UP, Fault, World, status
from bot.demo.world_server import WorldServer

SLOW_SECONDS: Final = 4.0  # Under every timeout of the demo's policy, and long enough to be seen.
HEALTHY: Final = "behaves"

MODEL_MOODS: Final[dict[str, tuple[str, Step | None]]] = {
    HEALTHY: ("writes a sensible draft", None),
    "slow": ("answers after a few seconds", MOODS["slow"]),
    "fenced": ("JSON in a code fence, with chatter: taken all the same", fenced()),
    "prose": (
        "prose instead of JSON: asked to repair it twice, then given up",
        say("I will answer on Monday!"),
    ),
    "wrong JSON": ("JSON that breaks the schema: the same", say('{"subject": 7, "tone": "nice"}')),
    "rate limit": (
        "429: tried later, costs no attempt",
        fail(429, code="rate_limit_exceeded", retry_after="5"),
    ),
    "down": ("503: three tries, then again in a minute", fail(503)),
    "refuses": ("declines: ends there, ops is told", refuse()),
    "hangs": ("never answers", Step(how=MODEL_HANGS)),
}
_TARGETS: Final = ("/webhook/send-mail", "/webhook/take-back", "/webhook/refund", "/webhook/crm-note")
_LOOK_UP_DOWN: Final = status(503)
WORLD_MOODS: Final[dict[str, tuple[str, Fault | None, Fault | None]]] = {
    HEALTHY: ("does the work and says so", None, None),
    "slow": ("answers after a few seconds", Fault(HOLD), None),
    "takes it, line drops": ("the look-up finds it: Stet settles it alone", Fault(DROP), None),
    "takes it, all goes silent": ("no answer, no look-up: a person must say", Fault(DROP), _LOOK_UP_DOWN),
    "loses it, line drops": ("not found, which proves nothing: a person says", Fault(DROP, done=False), None),
    "error 500": ("it may have it, it may not: unknown", status(500), None),
    "busy (429)": ("surely not sent: tried again later", status(429, retry_after="3"), None),
    "refuses (422)": ("surely refused: failed, and the card says so", status(422), None),
    "down": ("nobody listens: surely not sent, tried again", None, None),
}


@dataclass(slots=True)
class Moods:
    """Both moods as they stand. `start` and `stop` are for the ticking that ends each slow answer."""

    script: Script
    world_server: WorldServer
    model: str = HEALTHY
    world: str = HEALTHY
    _port: int = 0
    _ticking: asyncio.Task[None] | None = field(default=None, repr=False)

    def set_model(self, mood: str) -> None:
        """Raises KeyError for a mood that does not exist."""
        _, step = MODEL_MOODS[mood]
        self.script.always(step)
        self.script.release()
        self.model = mood

    async def set_world(self, mood: str) -> None:
        """Raises KeyError for a mood that does not exist."""
        _, at_work, at_look_up = WORLD_MOODS[mood]
        world = self.world_server.world
        world.behave()
        if at_work is not None:
            for path in _TARGETS:
                world.misbehave(path, at_work)
        if at_look_up is not None:
            world.misbehave(LOOK_UP, at_look_up)
        if self.world != "down":
            self.world_server.release()
        await self._listen(world, listening=mood != "down")
        self.world = mood

    async def _listen(self, world: World, *, listening: bool) -> None:
        """Close the socket, so that connections are refused, or open it again at the same port."""
        if listening == (self.world != "down"):
            return
        if listening:
            self.world_server = WorldServer(world, "127.0.0.1", self._port)
        else:
            self._port = self.world_server.port
            await self.world_server.close()

    def start(self) -> None:
        """Begin to let slow answers go."""
        self._ticking = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        """Close what this opened."""
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)
        if self.world != "down":
            await self.world_server.close()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(SLOW_SECONDS)
            if self.model == "slow":
                self.script.release()
            if self.world == "slow":
                self.world_server.release()
