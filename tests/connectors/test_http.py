"""Tests of the http connector against a real server that misbehaves to order.

Not here: each cause by itself (test_exchange, test_answers).
"""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from bot.connectors.http import HttpConnector
from bot.contracts.outcome import (
    Absent,
    Found,
    LookUpOutcome,
    NoAnswer,
    NotSent,
    Refused,
    SendOutcome,
    Sent,
    Unknown,
)
from bot.demo import world as far
from bot.demo.world import Fault, World, status
from bot.demo.world_server import WorldServer, serve_world
from store.database import Database
from store.errors import NetworkInTransaction
from tests.connectors.effects import (
    EFFECT_ID,
    NOW,
    look_up_at,
    make_effect,
    make_http,
    make_kit,
    resolves_to,
    webhook,
)

HANG_SECONDS = 0.2


async def send(world: WorldServer, http: HttpConnector | None = None, **policy: Any) -> SendOutcome:
    return await (http or make_http()).send(make_effect(webhook(world), **policy))


# A confirmed effect is sent, signed, keyed by its effect_id, and posted as it stands.
async def test_confirmed_effect(world: WorldServer) -> None:
    body = '{"recipient":"ann@example.com","output":{"subject":"Größe 你好"}}'.encode()
    assert await make_http().send(make_effect(webhook(world), body=body)) == Sent("world-1")
    received = world.world.journal[0]
    assert received.signed
    assert received.body.encode() == body
    assert received.headers["idempotency-key"] == str(EFFECT_ID)
    assert received.headers["webhook-id"] == str(EFFECT_ID)
    assert received.headers["webhook-timestamp"] == str(int(NOW))
    assert received.headers["content-type"] == "application/json"
    assert received.headers["content-length"] == str(len(body))
    assert received.headers["user-agent"].startswith("stet/")
    assert received.headers["accept-encoding"] == "identity"
    assert received.headers["connection"] == "close"


# Key and bytes are the same on every try.
async def test_tries_are_alike(world: WorldServer) -> None:
    world.world.misbehave("/", status(429), times=2)
    outcomes = [await send(world) for _ in range(3)]
    assert outcomes == [NotSent("http_429"), NotSent("http_429"), Sent("world-1")]
    assert (
        len(
            {
                (each.body, each.headers["idempotency-key"], each.headers["webhook-id"])
                for each in world.world.journal
            }
        )
        == 1
    )


# Without a secret the request goes out unsigned, rather than signed with nothing.
async def test_without_secret(world: WorldServer) -> None:
    unsigned = HttpConnector(replace(make_kit(), signing_secret=None))
    assert await send(world, unsigned) == Sent("world-1")
    assert "webhook-signature" not in world.world.journal[0].headers


# F031: a redirect is a refusal; the other server sees nothing, neither body nor key.
@pytest.mark.parametrize("code", [300, 301, 302, 303, 304, 307, 308])
async def test_redirect_is_not_followed(code: int, world: WorldServer) -> None:
    async with serve_world() as elsewhere:
        world.world.misbehave("/", status(code, location=webhook(elsewhere)))
        assert await send(world) == Refused("redirect")
        assert elsewhere.connections == 0
    assert len(world.world.journal) == 1


# F030: a 200 that denies is never a success.
@pytest.mark.parametrize(
    "body", ['{"ok":false,"error":"ratelimited"}', '{"success":false}', '[{"ok":false}]']
)
@pytest.mark.parametrize("response_id", [None, "id"])
async def test_denial_in_a_200(body: str, response_id: str | None, world: WorldServer) -> None:
    world.world.misbehave("/", status(200, body=body))
    assert await send(world, response_id=response_id) == Refused("says_false")


# F030: whatever Retry-After says, the wait is bounded and nothing escapes.
@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ({"retry_after": "0"}, 1.0),
        ({"retry_after": "-5"}, None),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 1.0),
        ({"retry_after": "soon"}, None),
        ({}, None),
        ({"retry_after": "99999"}, 3_600.0),
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "9" * 400}, 3_600.0),
        ({"retry_after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
    ],
)
async def test_too_many_requests(header: dict[str, Any], wait: float | None, world: WorldServer) -> None:
    world.world.misbehave("/", status(429, **header))
    assert await send(world) == NotSent("http_429", wait)


# Of several headers, as proxies add them, the longest wait counts.
async def test_several_retry_after(world: WorldServer) -> None:
    head = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 5\r\nRetry-After: 60\r\nRetry-After: 7\r\n\r\n"
    world.world.misbehave("/", Fault(far.RUBBISH, body=head))
    assert await send(world) == NotSent("http_429", 60.0)


# Each way to go wrong comes to what it proves: sent, not sent, refused, or nothing at all.
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (status(400), Refused("http_400")),
        (status(401), Refused("http_401")),
        (status(403, body="Authorization data is wrong!"), Refused("http_403")),
        (status(404), NotSent("http_404")),
        (status(408), Unknown("http_408")),
        (status(409), Refused("http_409")),
        (status(413), Refused("http_413")),
        (status(422), Refused("http_422")),
        (status(425), NotSent("http_425")),
        (status(500, body='{"message":"Error in workflow"}'), Unknown("http_500")),
        (status(502, body="<html>"), Unknown("http_502")),
        (status(503, retry_after="5"), Unknown("http_503")),
        (status(200, body='{"message":"Workflow was started"}'), Unknown("no_response_id")),
        (status(200, body=""), Unknown("no_response_id")),
        (status(204, body=""), Unknown("no_response_id")),
        (status(200, body="x" * 300_000), Unknown("body_too_large")),
        (status(200, body="[" * 100_000), Unknown("no_response_id")),
        (Fault(far.CUT), Unknown("body_cut")),
        (Fault(far.DROP), Unknown("cut")),
        (Fault(far.DROP_UNREAD), Unknown("cut")),
        (Fault(far.RUBBISH), Unknown("cut")),
    ],
)
async def test_fault(fault: Fault, expected: SendOutcome, world: WorldServer) -> None:
    world.world.misbehave("/", fault)
    assert await send(world) == expected


# F025: an accepted request whose answer never comes is unknown at our deadline, and was done once.
async def test_hanging_answer(world: WorldServer) -> None:
    world.world.misbehave("/", Fault(far.HANG))
    assert await send(world, timeout_seconds=HANG_SECONDS) == Unknown("timeout")
    assert len(world.world.done()) == 1


# A slow answer within the deadline is an answer.
async def test_slow_answer(world: WorldServer) -> None:
    world.world.misbehave("/", Fault(far.HOLD))
    sending = asyncio.create_task(send(world))
    await world.arrived()
    world.release()
    assert await sending == Sent("world-1")


# Without response_id any 2xx that does not say false completes.
@pytest.mark.parametrize("code", [200, 201, 202, 204])
async def test_without_response_id(code: int, world: WorldServer) -> None:
    world.world.misbehave("/", status(code, body="" if code == 204 else '{"message":"Workflow was started"}'))
    assert await send(world, response_id=None) == Sent(None)


# A target that is not allowed, at all or at its address, is refused before anything is connected.
@pytest.mark.parametrize(
    ("allowed", "expected"),
    [("", "host_not_allowed"), ("127.0.0.1:1", "host_not_allowed"), ("*.example", "host_not_allowed")],
)
async def test_target_not_allowed(allowed: str, expected: str, world: WorldServer) -> None:
    assert await send(world, make_http(allowed)) == Refused(expected)
    inside = make_http("n8n.example", resolve=resolves_to(["127.0.0.1"]))
    target = f"http://n8n.example:{world.port}/webhook/x"
    assert await inside.send(make_effect(target)) == Refused("address_not_allowed")
    assert world.connections == 0


# A look-up finds what was done, though its answer was lost.
async def test_look_up_finds(world: WorldServer) -> None:
    world.world.misbehave("/webhook/send-mail", Fault(far.DROP))
    effect = make_effect(webhook(world), lookup=look_up_at(world))
    http = make_http()
    assert await http.look_up(effect) == Absent()
    assert await http.send(effect) == Unknown("cut")
    assert await http.look_up(effect) == Found("world-1")
    asked = world.world.journal[-1]
    assert (asked.method, asked.path, asked.body) == ("GET", f"/webhook/sent/{EFFECT_ID}", "")
    assert asked.signed
    assert "content-length" not in asked.headers


# Only 200 and 404 answer a look-up.
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (status(404), Absent()),
        (status(500), NoAnswer("http_500")),
        (status(401), NoAnswer("http_401")),
        (status(204, body=""), NoAnswer("http_204")),
        (status(302, location="http://127.0.0.1:1/"), NoAnswer("redirect")),
        (status(200, body='{"message":"Workflow was started"}'), NoAnswer("no_response_id")),
        (status(200, body='{"ok":false,"id":"x"}'), NoAnswer("says_false")),
        (Fault(far.CUT), NoAnswer("body_cut")),
        (Fault(far.DROP), NoAnswer("cut")),
        (Fault(far.HANG), NoAnswer("timeout")),
    ],
)
async def test_look_up_answers(fault: Fault, expected: LookUpOutcome, world: WorldServer) -> None:
    http = make_http()
    await send(world, http)
    world.world.misbehave("/webhook/sent/", fault)
    effect = make_effect(webhook(world), lookup=look_up_at(world), timeout_seconds=HANG_SECONDS)
    assert await http.look_up(effect) == expected


# Where no id is asked for, a 200 that no look-up gave proves nothing.
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"message":"Workflow was started"}', NoAnswer("no_proof")),
        ("\n<!doctype html><title>Log in</title>", NoAnswer("no_proof")),
        ('{"found":false}', NoAnswer("says_false")),
        ('[{"found":"false"}]', NoAnswer("says_false")),
        ('{"found":true}', Found(None)),
        ('{"message":"sent"}', Found(None)),
        ("", Found(None)),
        ("yes", Found(None)),
    ],
)
async def test_look_up_without_an_id(body: str, expected: LookUpOutcome, world: WorldServer) -> None:
    world.world.misbehave("/webhook/sent/", status(200, body=body))
    effect = make_effect(webhook(world), lookup=look_up_at(world), response_id=None)
    assert await make_http().look_up(effect) == expected


# Without a lookup there is no answer, and without response_id a 200 is found without an id.
async def test_look_up_by_policy(world: WorldServer) -> None:
    http = make_http()
    assert await http.look_up(make_effect(webhook(world))) == NoAnswer("no_lookup")
    await send(world, http)
    found = await http.look_up(make_effect(webhook(world), lookup=look_up_at(world), response_id=None))
    assert found == Found(None)


# A 409 with a lookup is what the look-up says; where that says nothing, nobody knows.
@pytest.mark.parametrize(
    ("done", "trouble", "expected"),
    [
        (True, None, Sent("world-1")),
        (False, None, Refused("http_409")),
        (True, status(500), Unknown("http_409")),
        (True, Fault(far.HANG), Unknown("http_409")),
    ],
)
async def test_conflict(done: bool, trouble: Fault | None, expected: SendOutcome, world: WorldServer) -> None:
    world.world.misbehave("/webhook/send-mail", status(409, done=done))
    if trouble:
        world.world.misbehave("/webhook/sent/", trouble)
    outcome = await send(world, lookup=look_up_at(world), timeout_seconds=HANG_SECONDS * 5)
    assert outcome == expected


# Neither call may be made while a transaction is open.
async def test_not_inside_a_transaction(db: Database, world: WorldServer) -> None:
    http, effect = make_http(), make_effect(webhook(world), lookup=look_up_at(world))
    async with db.transaction():
        with pytest.raises(NetworkInTransaction):
            await http.send(effect)
        with pytest.raises(NetworkInTransaction):
            await http.look_up(effect)
    assert world.connections == 0


# The policy says whether the target deduplicates; with one that does, a repeat is done once.
async def test_idempotent_target() -> None:
    http = make_http()
    async with serve_world(World(deduplicates=True)) as world:
        world.world.misbehave("/", Fault(far.DROP), times=1)
        effect = make_effect(webhook(world), idempotent=True)
        assert http.idempotent(effect)
        assert await http.send(effect) == Unknown("cut")
        assert await http.send(effect) == Sent("world-1")
        assert len(world.world.done()) == 1
    assert not http.idempotent(make_effect("http://127.0.0.1/"))


# What an effect carries, and where to, stays out of its repr.
def test_effect_does_not_show_its_content() -> None:
    shown = repr(make_effect("https://n8n.example/webhook/MARK2", body=json.dumps({"a": "MARK4"}).encode()))
    assert "MARK2" not in shown
    assert "MARK4" not in shown
    assert "ann@example.com" not in shown
