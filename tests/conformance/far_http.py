"""The far side of the http connector: the demo's world, and how each row of the table comes about there.

Not here: what follows from an outcome (tests/flow).
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from bot.connectors import exchange, http
from bot.connectors.connector import Connector, Effect, perform
from bot.connectors.exchange import BODY_BYTES
from bot.contracts.outcome import SendOutcome
from bot.demo import world as far
from bot.demo.world import Fault, status
from bot.demo.world_server import WorldServer, serve_world
from bot.policy.requests import Success
from tests.conformance.far import BRIEF_SECONDS, HANG_SECONDS, Scene, closed_port
from tests.connectors.effects import look_up_at, make_effect, make_http, make_kit, resolves_to, webhook

UPLOAD = b"x" * 16_000_000  # More than the kernel's buffers take.
HTML: dict[str, Any] = {"content_type": "text/html"}


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

    def at(self, url: str, **policy: Any) -> Effect:
        return make_effect(url, **{"timeout_seconds": 5, **policy})

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
async def harness() -> AsyncIterator[HttpHarness]:
    """A world and the connector that may reach it."""
    async with serve_world() as world:
        yield HttpHarness(world, make_http())


def raw(head: str, body: str = "") -> Fault:
    """The very bytes of an answer."""
    return Fault(far.RUBBISH, body=f"{head}\r\n\r\n{body}")


def faulty(*faults: Fault, **policy: Any) -> Scene:
    """One effect a fault, for whichever harness has a world."""

    async def scene(harness: Any) -> list[SendOutcome]:
        outcomes = []
        for each in faults:
            harness.world.world.behave()
            harness.world.world.misbehave("/", each)
            effect = harness.effect(**{"lookup": None, **policy})
            outcomes.append(await perform(harness.connector, effect))
        return outcomes

    return scene


def aimed(build: Any, *urls: str, allowed: str = "127.0.0.1", **changes: Any) -> Scene:
    """One effect a URL, from a connector with another kit."""

    async def scene(harness: Any) -> list[SendOutcome]:
        connector = build(make_kit(allowed, **changes))
        port = harness.world.port
        effects = [harness.at(url.replace("PORT", str(port))) for url in urls]
        return [await perform(connector, effect) for effect in effects]

    return scene


def statuses(codes: Sequence[int], **more: Any) -> Scene:
    """Answers with these statuses; those that may have no body have none."""
    empty = (204, 304)
    blank: dict[str, Any] = {"body": ""}
    return faulty(*(status(code, **(blank if code in empty else {}), **more) for code in codes))


async def crowded(harness: Any) -> list[SendOutcome]:
    """Another request holds the only place."""
    with mock.patch.object(exchange, "IN_FLIGHT", 1):
        harness.world.world.misbehave("/", Fault(far.HOLD, done=False), times=1)
        held = asyncio.create_task(perform(harness.connector, harness.effect(timeout_seconds=30)))
        await harness.world.arrived()
        outcome = await perform(harness.connector, harness.effect(timeout_seconds=BRIEF_SECONDS))
        held.cancel()
        await asyncio.wait([held])
    return [outcome]


def connect_timeout(build: Any) -> Scene:
    """A resolver that never answers, and a peer that never shakes hands."""

    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async def scene(harness: Any) -> list[SendOutcome]:
        harness.world.hang_before_accept()
        deaf = build(make_kit("sink.test", resolve=never))
        brief = {"timeout_seconds": BRIEF_SECONDS}
        secure = harness.at(f"https://127.0.0.1:{harness.world.port}/", **brief)
        return [
            await perform(deaf, harness.at("http://sink.test/", **brief)),
            await perform(harness.connector, secure),
        ]

    return scene


async def nobody_listens(harness: Any) -> list[SendOutcome]:
    """A port that is taken, and where nobody listens."""
    with closed_port() as port:
        return [await perform(harness.connector, harness.at(f"http://127.0.0.1:{port}/"))]


async def unset(harness: Any) -> list[SendOutcome]:
    """A header, and a certificate, whose variables nobody set."""
    pair = {"client_certificate": "NOT_SET", "client_key": "NOT_SET"}
    extras: list[dict[str, Any]] = [{"headers": {"X-Api-Key": "NOT_SET"}}, pair]
    return [await perform(harness.connector, harness.effect(**extra)) for extra in extras]


async def no_tls(harness: Any) -> list[SendOutcome]:
    """A peer that does not speak TLS, and one that hangs up."""
    outcomes = []
    for fault in (Fault(far.RUBBISH), Fault(far.DROP_UNREAD)):
        harness.world.world.misbehave("/", fault)
        outcomes.append(
            await perform(harness.connector, harness.at(f"https://127.0.0.1:{harness.world.port}/"))
        )
    return outcomes


async def silence(harness: Any) -> list[SendOutcome]:
    """No answer to a request that was read; one that nobody reads; one that is stuck in its upload."""
    brief: dict[str, Any] = {"timeout_seconds": HANG_SECONDS}
    harness.world.world.misbehave("/", Fault(far.HANG))
    outcomes = [await perform(harness.connector, harness.effect(**brief))]
    harness.world.hang_before_accept()
    outcomes.append(await perform(harness.connector, harness.effect(**brief)))
    stuck = make_effect(harness.effect().target, body=UPLOAD, type=harness.connector.effect_type, **brief)
    return [*outcomes, await perform(harness.connector, stuck)]


def unanswered(build: Any) -> dict[str, Scene]:
    """The rows that all HTTP connectors share: no final status came back."""
    inside = resolves_to(["127.0.0.1"])
    return {
        "bad_url": aimed(build, "", "ftp://127.0.0.1/", "http://user:word@127.0.0.1/", "http://127.0.0.1 /"),
        "host_not_allowed": aimed(build, "http://127.0.0.1:PORT/", allowed="n8n.example"),
        "address_not_allowed": aimed(
            build, "http://n8n.example:PORT/", allowed="n8n.example", resolve=inside
        ),
        "crowded": crowded,
        "dns_failed": aimed(build, "http://sink.test/", allowed="sink.test", resolve=resolves_to([])),
        "connection_refused": nobody_listens,
        # An address of the link without the link's name: the kernel has no way there.
        "connect_failed": aimed(
            build, "http://sink.test/", allowed="sink.test, fe80::1", resolve=resolves_to(["fe80::1"])
        ),
        "connect_timeout": connect_timeout(build),
        "tls_failed": no_tls,
        "timeout": silence,
        "cut": faulty(
            Fault(far.DROP),
            Fault(far.DROP_UNREAD),
            Fault(far.RESET),
            Fault(far.RUBBISH),
            Fault(far.RUBBISH, body="HTTP/1.1 20"),
            Fault(far.RUBBISH, body="HTTP/1.1 200 OK\r\nContent-Le"),
            raw("HTTP/1.1 100 Continue"),
            raw("HTTP/1.1 101 Switching Protocols"),
        ),
    }


def by_status(special: Sequence[int]) -> dict[str, Scene]:
    """One row a special status, and each family without them."""
    rows = {f"http_{code}": statuses([code]) for code in special}
    families = {3: range(300, 309), 4: range(400, 500), 5: range(500, 600)}
    for digit, codes in families.items():
        rows[f"http_{digit}xx"] = statuses(
            [code for code in codes if code not in special], location="http://127.0.0.1:1/", retry_after="5"
        )
    return rows


SCENES: dict[str, Scene] = {
    **unanswered(http.build),
    "sent": faulty(*(status(code, body='{"id":"m-1"}', done=True) for code in (200, 201, 202, 299))),
    "says_false": faulty(
        status(200, body='{"ok":false,"id":"a"}'), status(202, body='[{"success":"false"}]')
    ),
    "variable_not_set": unset,
    "not_confirmed": faulty(
        *(status(200, body=body) for body in ('{"id":"a"}', '{"id":"a","state":"failed"}', "")),
        success=(Success(path="state", equals="queued"),),
    ),
    "no_response_id": faulty(
        status(204, body=""),
        status(200, body='{"message":"Workflow was started"}'),
        status(200, body="<html>all is well</html>", **HTML),
        status(200, body="[" * 100_000),
        raw("HTTP/1.1 200 OK\r\nContent-Length: 0"),
    ),
    "body_too_large": faulty(status(200, body='{"id":"a"}' + " " * BODY_BYTES)),
    "body_encoded": faulty(status(200, content_encoding="gzip"), status(200, content_encoding="br")),
    "body_timeout": faulty(Fault(far.STALL), timeout_seconds=HANG_SECONDS),
    "body_cut": faulty(Fault(far.CUT), raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", '5\r\n{"id"')),
    **by_status((404, 408, 409, 425, 429)),
}
