"""Makes effects, kits and connectors for tests of this room and of conformance.

Not here: the far side (bot/demo/world).
"""

from collections.abc import Callable
from itertools import chain, repeat
from typing import Any
from uuid import UUID

from bot.connectors.connector import Effect, Kit
from bot.connectors.http import HttpConnector, build
from bot.connectors.reach import Reach
from bot.demo.world_server import WorldServer
from bot.policy.kinds import EffectPolicy

EFFECT_ID = UUID("019adca0-0000-7000-8000-000000000042")
SECRET = b"a secret whose bytes are text!!!"
SIGNING_SECRET = "whsec_YSBzZWNyZXQgd2hvc2UgYnl0ZXMgYXJlIHRleHQhISE="
NOW = 1_800_000_000.0
POLICY: dict[str, Any] = {
    "type": "http",
    "target": "",
    "recipient": None,
    "response_id": "id",
    "lookup": None,
    "settle_seconds": 60,
    "timeout_seconds": 10,
    "attempts": 5,
    "idempotent": False,
    "success": (),
    "headers": {},
}


def make_policy(**changes: Any) -> EffectPolicy:
    """A policy as it is after loading; not validated again: a timeout may be part of a second."""
    return EffectPolicy.model_construct(**{**POLICY, **changes})


def make_effect(
    target: str, *, effect_id: UUID = EFFECT_ID, body: bytes = b'{"to":"ann@example.com"}', **policy: Any
) -> Effect:
    """An effect for `target`; what is left goes into its policy."""
    return Effect(
        effect_id=effect_id,
        key="n8n:customer_email:ticket-1",
        kind="customer_email",
        entity="customer:42",
        revision=1,
        effect_type=policy.get("type", "http"),
        target=target,
        recipient="ann@example.com",
        body=body,
        policy=make_policy(target=target, **policy),
    )


def make_kit(allowed: str = "127.0.0.1", **changes: Any) -> Kit:
    """A kit whose clock stands still."""
    return Kit(reach=Reach.parse(allowed), signing_secret=SECRET, clock=lambda: NOW, **changes)


def make_http(allowed: str = "127.0.0.1", **changes: Any) -> HttpConnector:
    """The http connector over such a kit."""
    return build(make_kit(allowed, **changes))


def webhook(server: WorldServer, path: str = "/webhook/send-mail") -> str:
    """A target at the stand-in world."""
    return server.url + path


def look_up_at(server: WorldServer) -> str:
    """The world's look-up address, as policy.toml writes it."""
    return server.url + "/webhook/sent/{effect_id}"


def resolves_to(*answers: list[str]) -> Callable[[str, int], Any]:
    """A resolver that gives one answer after another, the last one for ever."""
    left = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


def slept(seconds: float) -> Callable[[], float]:
    """A clock of elapsed time by which the machine slept so long after its first reading."""
    readings = chain([0.0], repeat(seconds))
    return lambda: next(readings)
