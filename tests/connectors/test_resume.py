"""Tests of the resume connector against n8n's answers as they were measured.

Not here: who is told and when (tests/flow/test_announce), each way of not getting an answer (test_exchange).
"""

import asyncio
from typing import Any

import pytest

from bot.connectors.connector import Effect
from bot.connectors.resume import ResumeConnector, build
from bot.contracts.outcome import NoAnswer, NotSent, Refused, SendOutcome, Sent, Unknown
from bot.demo import world as far
from bot.demo.world import Fault, status
from bot.demo.world_server import WorldServer
from tests.connectors.effects import EFFECT_ID, make_effect, make_kit

HANG_SECONDS = 0.2
BODY = b'{"outcome":"sent"}'


def make_resume(allowed: str = "127.0.0.1") -> ResumeConnector:
    return build(make_kit(allowed))


def effect(target: str, **policy: Any) -> Effect:
    return make_effect(target, body=BODY, **{"type": "resume", "response_id": None, **policy})


async def resume(world: WorldServer, path: str, **policy: Any) -> SendOutcome:
    return await make_resume().send(effect(world.url + path, **policy))


# A waiting execution goes on, once, with the bytes as they are, signed and named by its effect.
async def test_waiting(world: WorldServer) -> None:
    path = world.world.wait_at("17", token="s3cret", suffix="gate-1")
    assert await resume(world, path) == Sent(None)
    received = world.world.journal[0]
    assert (received.method, received.path) == ("POST", path)
    assert received.body.encode() == BODY
    assert received.headers["content-type"] == "application/json"
    assert received.headers["idempotency-key"] == str(EFFECT_ID)
    assert received.signed


# Before the Wait node is reached it is too early, and worth another try; afterwards nobody is there any more.
@pytest.mark.parametrize(
    ("state", "expected"), [("running", NotSent("http_409")), ("finished", Refused("gone"))]
)
async def test_not_waiting(world: WorldServer, state: str, expected: SendOutcome) -> None:
    assert await resume(world, world.world.wait_at("17", state=state)) == expected
    assert world.world.done() == ()


# A wrong token is refused, and the execution waits on.
async def test_wrong_token(world: WorldServer) -> None:
    path = world.world.wait_at("17", token="s3cret")
    assert await resume(world, path.replace("s3cret", "guess")) == Refused("http_401")
    assert await resume(world, path) == Sent(None)


# An unknown execution, a wrong suffix and a used one are all 404: not yet, or no more; the attempts decide.
async def test_not_registered(world: WorldServer) -> None:
    path = world.world.wait_at("17", suffix="gate-1")
    assert await resume(world, "/webhook-waiting/99") == NotSent("http_404")
    assert await resume(world, path + "0") == NotSent("http_404")
    assert await resume(world, path) == Sent(None)
    assert await resume(world, path) == NotSent("http_404")
    assert len(world.world.done()) == 1


FINISHED = '{"message":"The execution \\"17\\" has finished with error."}'


# Each other answer that n8n and what stands before it can give.
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (status(200, body='{"success":false,"ok":false}'), Sent(None)),  # The execution's own affair.
        (status(201, body="not json"), Sent(None)),
        (status(204, body=""), Sent(None)),
        (status(409, body=FINISHED), Refused("gone")),
        (status(409, body='{"message":"in conflict"}'), NotSent("http_409")),
        (status(301, location="http://127.0.0.1:1/"), Refused("redirect")),
        (status(400), Refused("http_400")),
        (status(403), Refused("http_403")),
        (status(404), NotSent("http_404")),
        (status(408), Unknown("http_408")),
        (status(410), Refused("http_410")),
        (status(425), NotSent("http_425")),
        (status(429, retry_after="7"), NotSent("http_429", 7.0)),
        (status(500), Unknown("http_500")),
        (status(503), Unknown("http_503")),
        (Fault(far.DROP), Unknown("cut")),
        (Fault(far.DROP_UNREAD), Unknown("cut")),
        (Fault(far.RUBBISH), Unknown("cut")),
    ],
)
async def test_answers(world: WorldServer, fault: Fault, expected: SendOutcome) -> None:
    path = world.world.wait_at("17")
    world.world.misbehave(far.WAITING, fault)
    assert await resume(world, path) == expected


# No answer in time leaves it open whether the execution went on.
async def test_hanging(world: WorldServer) -> None:
    path = world.world.wait_at("17")
    world.world.misbehave(far.WAITING, Fault(far.HANG))
    async with asyncio.timeout(60):
        assert await resume(world, path, timeout_seconds=HANG_SECONDS) == Unknown("timeout")


# The list of allowed hosts holds here too, at the time of the call.
async def test_not_allowed(world: WorldServer) -> None:
    path = world.world.wait_at("17")
    refused = await make_resume("n8n.example").send(effect(world.url + path))
    assert refused == Refused("host_not_allowed")
    assert await make_resume().send(effect("")) == Refused("bad_url")
    assert world.connections == 0


# Only a suffix of its own makes a repeat safe: without one it would open the execution's next gate.
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/webhook-waiting/17/gate-1?signature=x", True),
        ("/n8n/webhook-waiting/17/gate-1/", True),
        ("/webhook-waiting/17?signature=x", False),
        ("/webhook-waiting/17/?signature=x/y", False),
        ("/webhook-waiting?x=webhook-waiting/17/gate-1", False),
        ("/webhook/17/gate-1", False),
        ("", False),
    ],
)
def test_idempotent(path: str, expected: bool) -> None:
    assert make_resume().idempotent(effect(f"https://n8n.example{path}")) is expected


# Nobody can be asked what became of it.
async def test_no_look_up() -> None:
    assert await make_resume().look_up(effect("https://n8n.example/webhook-waiting/17")) == NoAnswer(
        "no_lookup"
    )
