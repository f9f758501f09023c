"""Headers with secrets, client certificates and success rules, on real requests; and what is never told.

Not here: which names may be used (tests/policy/test_requests).
"""

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from bot.connectors.dress import CertificateUnusable, Wardrobe, same_host
from bot.connectors.probe import build_prober
from bot.contracts.outcome import NoAnswer, Refused, SendOutcome, Sent, Unchanged, Unclear, Unknown
from bot.demo.world import status
from bot.demo.world_server import WorldServer
from bot.examination.named import find_named_problems
from bot.policy.ahead import Probe
from bot.policy.kinds import load_policy
from bot.policy.requests import Success
from bot.variables import Variables
from tests.connectors.effects import (
    EFFECT_ID,
    look_up_at,
    make_effect,
    make_http,
    make_kit,
    resolves_to,
    webhook,
)
from tests.policy.samples import policy_text

TLS = Path(__file__).parent / "tls"
SECRET = "s3cr3t-value"
HEADERS: dict[str, Any] = {"headers": {"X-Api-Key": "CRM_API_KEY", "Authorization": "CRM_AUTH"}}
SET = Variables({"CRM_API_KEY": SECRET, "CRM_AUTH": f"Bearer {SECRET}2"})


# The headers go with the effect and with its look-up at the same host, and Stet's own stay as they are.
async def test_headers(world: WorldServer) -> None:
    http = make_http(variables=SET)
    effect = make_effect(webhook(world), lookup=look_up_at(world), **HEADERS)
    assert await http.send(effect) == Sent("world-1")
    await http.look_up(effect)
    for received in world.world.journal:
        assert received.headers["x-api-key"] == SECRET
        assert received.headers["authorization"] == f"Bearer {SECRET}2"
        assert received.headers["webhook-id"] == str(EFFECT_ID)
        assert received.signed
    assert world.world.journal[0].headers["idempotency-key"] == str(EFFECT_ID)


# A look-up at another host gets none of them.
async def test_look_up_elsewhere(world: WorldServer) -> None:
    http = make_http("127.0.0.1, sink.test", variables=SET, resolve=resolves_to(["127.0.0.1"]))
    lookup = f"http://sink.test:{world.port}/webhook/sent/{{effect_id}}"
    await http.look_up(make_effect(webhook(world), lookup=lookup, **HEADERS))
    assert "x-api-key" not in world.world.journal[0].headers
    assert not same_host("https://a.example/x", "https://a.example:444/x")
    assert same_host("https://a.example/x", "https://a.example/y?z")


# A variable that is gone, or cannot be a header, stops the send before anything is connected.
@pytest.mark.parametrize("value", [None, "", " x", "x ", "a\r\nHost: evil.example", "a\tb", "ä", "\x7f"])
async def test_unusable_variable(value: str | None, world: WorldServer) -> None:
    values = {"CRM_AUTH": "x"} | ({} if value is None else {"CRM_API_KEY": value})
    http = make_http(variables=Variables(values))
    effect = make_effect(webhook(world), lookup=look_up_at(world), **HEADERS)
    assert await http.send(effect) == Refused("variable_not_set")
    assert await http.look_up(effect) == NoAnswer("variable_not_set")
    assert world.connections == 0


# Stet's own settings go to no target, whoever names them.
async def test_own_settings(world: WorldServer) -> None:
    own = Variables({"SLACK_BOT_TOKEN": "xoxb-1"})
    assert own.get("SLACK_BOT_TOKEN") is None
    http = make_http(variables=own)
    effect = make_effect(webhook(world), headers={"X-A": "SLACK_BOT_TOKEN"})
    assert await http.send(effect) == Refused("variable_not_set")


# The values are in no repr, log or outcome; an id by which a target echoes one is stored without it.
async def test_nothing_is_told(world: WorldServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    http = make_http(variables=SET)
    world.world.misbehave("/", status(200, body=f'{{"id": "for {SECRET}", "ok": true}}'))
    outcome = await http.send(make_effect(webhook(world), **HEADERS))
    assert outcome == Sent("for [hidden]")
    dress = Wardrobe(SET).dress(HEADERS["headers"])
    told = repr((outcome, SET, dress, http, make_kit(variables=SET), make_effect("x", **HEADERS)))
    assert SECRET not in told + caplog.text


# A 2xx counts as done only if it says all that the policy asks for; else nobody knows.
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"id": "a", "state": "queued", "errors": 0}', Sent("a")),
        ('{"id": "a", "state": "queued", "errors": 0.0}', Sent("a")),
        ('{"id": "a", "state": "queued", "errors": false}', Unknown("not_confirmed")),
        ('{"id": "a", "state": "queued", "errors": 1}', Unknown("not_confirmed")),
        ('{"id": "a", "state": "failed", "errors": 0}', Unknown("not_confirmed")),
        ('{"id": "a"}', Unknown("not_confirmed")),
        ("", Unknown("not_confirmed")),
        ('{"ok": false, "state": "queued", "errors": 0}', Refused("says_false")),
        ('{"state": "queued", "errors": 0}', Unknown("no_response_id")),
    ],
)
async def test_success(body: str, expected: SendOutcome, world: WorldServer) -> None:
    world.world.misbehave("/", status(200, body=body))
    rules = (Success(path="state", equals="queued"), Success(path="errors", equals=0))
    assert await make_http().send(make_effect(webhook(world), success=rules)) == expected


# A probe has headers of its own, and holds where one cannot be had.
async def test_probe(world: WorldServer) -> None:
    world.world.misbehave("/", status(200, body='{"v": 17}'))
    probe = Probe(url=world.url + "/{entity}", version="v", headers={"X-Api-Key": "CRM_API_KEY"})
    assert await build_prober(make_kit(variables=SET)).ask(make_effect("x"), probe, (17,)) == Unchanged()
    assert world.world.journal[0].headers["x-api-key"] == SECRET
    bare = build_prober(make_kit())
    assert await bare.ask(make_effect("x"), probe, (17,)) == Unclear("variable_not_set")


KEY = "kinds.customer_email.effect.headers.X-Api-Key"
FILES = Variables({"CRM_CERTIFICATE": str(TLS / "client.pem"), "CRM_KEY": str(TLS / "client.key")})
PAIR: dict[str, Any] = {"client_certificate": "CRM_CERTIFICATE", "client_key": "CRM_KEY"}


# The certificate is shown in the handshake, to a target that asks for one.
async def test_client_certificate() -> None:
    shown: list[Any] = []
    wants = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wants.load_cert_chain(TLS / "sink.pem", TLS / "sink.key")
    wants.load_verify_locations(TLS / "client.pem")
    wants.verify_mode = ssl.CERT_REQUIRED
    wants.maximum_version = ssl.TLSVersion.TLSv1_2  # with 1.3 a refusal comes after the handshake

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shown.append(writer.get_extra_info("peercert"))
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"id":"a"}')
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=wants)
    async with server:
        port = server.sockets[0].getsockname()[1]
        trusting = ssl.create_default_context(cafile=TLS / "authority.pem")
        kit: dict[str, Any] = {"resolve": resolves_to(["127.0.0.1"]), "tls": trusting}
        http = make_http("sink.test", variables=FILES, **kit)
        target = f"https://sink.test:{port}/"
        assert await http.send(make_effect(target, **PAIR)) == Sent("a")
        assert (await http.send(make_effect(target))).reason == "tls_failed"  # type: ignore[union-attr]
    assert len(shown) == 1
    assert shown[0]["subject"]


# Files that are no certificate and key say so at the start, without waiting at a terminal for a password.
@pytest.mark.parametrize(
    ("certificate", "sentence"),
    [
        ("nowhere.pem", "names a file that cannot be read"),
        ("authority.pem", "is no certificate in PEM whose key needs no password"),
    ],
)
def test_unusable_certificate(certificate: str, sentence: str) -> None:
    files = Variables({"CRM_CERTIFICATE": str(TLS / certificate), "CRM_KEY": str(TLS / "sink.key")})
    with pytest.raises(CertificateUnusable, match=sentence):
        Wardrobe(files).certified(("CRM_CERTIFICATE", "CRM_KEY"))


# A variable that cannot be used stops the start with a sentence that names it, its key and the mend.
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, f"CRM_API_KEY is not set, and {KEY} names it: set it"),
        (
            {"CRM_API_KEY": " MARK7"},
            f"CRM_API_KEY ({KEY}) must be visible",
        ),
    ],
)
def test_stops_the_start(values: dict[str, str], sentence: str) -> None:
    effect = '{ type = "http", target = "https://n8n.example/", headers = { X-Api-Key = "CRM_API_KEY" } }'
    policy = load_policy(policy_text(effect=effect))
    (problem,) = find_named_problems(policy, Variables(values))
    assert sentence in str(problem)
    assert "MARK7" not in str(problem)
    own = load_policy(policy_text(effect=effect.replace("CRM_API_KEY", "OPENAI_API_KEY")))
    (problem,) = find_named_problems(own, Variables({"OPENAI_API_KEY": "sk-1"}))
    assert "is Stet's own setting" in str(problem)
    certified = (
        '{ type = "http", target = "https://n8n.example/", client_certificate = "A", client_key = "B" }'
    )
    pair = load_policy(policy_text(effect=certified))
    (problem,) = find_named_problems(pair, Variables({"A": "/nowhere/a", "B": "/nowhere/b"}))
    assert "names a file that cannot be read" in str(problem)
