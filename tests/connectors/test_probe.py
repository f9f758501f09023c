"""Asking for a record right before a send, against a real server.

Not here: what a probe may say (tests/policy/test_ahead) or what follows (tests/flow/test_checking).
"""

from typing import Any

import pytest

from bot.connectors.probe import build_prober
from bot.contracts.outcome import Changed, ProbeOutcome, Unchanged, Unclear
from bot.demo import world as far
from bot.demo.world import Fault, status
from bot.demo.world_server import WorldServer
from bot.policy.ahead import Probe
from store.database import Database
from store.errors import NetworkInTransaction
from tests.connectors.effects import EFFECT_ID, make_effect, make_kit, resolves_to

HANG_SECONDS = 1.0  # Long enough to get as far as the hang on a busy machine.
SHORT = 'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"version": 17}'


def make_probe(url: str, **more: Any) -> Probe:
    probe = Probe(url=url + "/records/{entity}", version="version")
    return probe.model_copy(update=more)


async def ask(world: WorldServer, *versions: int, allowed: str = "127.0.0.1", **more: Any) -> ProbeOutcome:
    prober = build_prober(make_kit(allowed))
    return await prober.ask(make_effect("x"), make_probe(world.url, **more), versions or (17,))


# One signed GET, which changes nothing over there.
async def test_asks_once(world: WorldServer) -> None:
    world.world.misbehave("/", status(200, body='{"version": 17}'))
    assert await ask(world) == Unchanged()
    (asked,) = world.world.journal
    assert (asked.method, asked.path, asked.body) == ("GET", "/records/customer%3A42", "")
    assert asked.signed
    assert asked.headers["webhook-id"] == str(EFFECT_ID)


# The version decides: the draft's, a newer one, or something that cannot be.
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"version": 17}', Unchanged()),
        ('{"version": "17"}', Unchanged()),
        ('{"version": "0017"}', Unchanged()),
        ('{"version": 18}', Changed(18)),
        ('{"version": "9223372036854775807"}', Changed(2**63 - 1)),
        ('{"version": 16}', Unclear("old_version")),
        ('{"version": 17.0}', Unclear("no_version")),
        ('{"version": true}', Unclear("no_version")),
        ('{"version": -17}', Unclear("no_version")),
        ('{"version": "17a"}', Unclear("no_version")),
        ('{"version": "9999999999999999999"}', Unclear("no_version")),
        ('{"version": null}', Unclear("no_version")),
        ('{"ok": false, "version": 17}', Unclear("says_false")),
        ("{}", Unclear("no_version")),
        ("[]", Unclear("no_version")),
        ("<html>17</html>", Unclear("no_version")),
        ("", Unclear("no_version")),
        ("[" * 100_000, Unclear("no_version")),
    ],
)
async def test_version(body: str, expected: ProbeOutcome, world: WorldServer) -> None:
    world.world.misbehave("/", status(200, body=body))
    assert await ask(world) == expected


# An approval that was given in knowledge of a newer version stands at that one too.
async def test_version_known_at_the_decision(world: WorldServer) -> None:
    world.world.misbehave("/", status(200, body='{"version": 18}'))
    assert await ask(world, 17, 18) == Unchanged()
    world.world.behave()
    world.world.misbehave("/", status(200, body='{"version": 19}'))
    assert await ask(world, 17, 18) == Changed(19)


# A value that means "still open"; true is not 1, and nothing is not a value.
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"version": 17, "status": "open"}', Unchanged()),
        ('{"version": 17, "status": 1}', Unchanged()),
        ('{"version": 17, "status": true}', Changed(None)),
        ('{"version": 17, "status": "closed"}', Changed(None)),
        ('{"version": 17, "status": null}', Unclear("no_value")),
        ('{"version": 17}', Unclear("no_value")),
        ('{"version": 18, "status": "open"}', Changed(18)),
    ],
)
async def test_value(body: str, expected: ProbeOutcome, world: WorldServer) -> None:
    world.world.misbehave("/", status(200, body=body))
    assert await ask(world, path="status", open=("open", 1)) == expected


# Whatever is not a whole 200 says nothing, and nothing is followed.
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (status(204, body=""), "http_204"),
        (status(301, location="http://127.0.0.1:1/"), "redirect"),
        (status(401), "http_401"),
        (status(404), "http_404"),
        (status(429, retry_after="1"), "http_429"),
        (status(500), "http_500"),
        (status(200, body='{"version": 17}' + " " * 300_000), "body_too_large"),
        (status(200, body='{"version": 17}', content_encoding="gzip"), "body_encoded"),
        (Fault(far.RUBBISH, body=SHORT), "body_cut"),
        (Fault(far.DROP), "cut"),
        (Fault(far.RESET), "cut"),
        (Fault(far.RUBBISH), "cut"),
        (Fault(far.HANG), "timeout"),
    ],
)
async def test_fault(fault: Fault, expected: str, world: WorldServer) -> None:
    world.world.misbehave("/", fault)
    seconds = HANG_SECONDS if fault.kind == far.HANG else 5
    assert await ask(world, timeout_seconds=seconds) == Unclear(expected)


# Only allowed hosts are asked, at allowed addresses, and nothing an entity says leads elsewhere.
async def test_reach(world: WorldServer) -> None:
    assert await ask(world, allowed="crm.example") == Unclear("host_not_allowed")
    inside = build_prober(make_kit("crm.example", resolve=resolves_to(["169.254.169.254"])))
    probe = make_probe("http://crm.example")
    assert await inside.ask(make_effect("x"), probe, (17,)) == Unclear("address_not_allowed")
    assert world.connections == 0


# No record is asked for inside a transaction.
async def test_not_inside_a_transaction(db: Database, world: WorldServer) -> None:
    async with db.transaction():
        with pytest.raises(NetworkInTransaction):
            await ask(world)
    assert world.connections == 0
