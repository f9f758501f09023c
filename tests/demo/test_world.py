"""Tests of the stand-in for the outside world: its journal, its faults, its waiting executions.

Not here: what our connectors make of it (tests/connectors).
"""

import asyncio
import json
from pathlib import Path

import httpx2
import pytest

from bot.demo import world as far
from bot.demo.world import Fault, World, status
from bot.demo.world_server import WorldServer, serve_world


async def post(server: WorldServer, path: str, key: str = "e-1", **document: object) -> httpx2.Response:
    return await order(server, path, document, key=key)


async def order(server: WorldServer, path: str, document: object, *, key: str = "e-1") -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False) as client:
        return await client.post(server.url + path, json=document, headers={"idempotency-key": key})


async def get(server: WorldServer, path: str) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False) as client:
        return await client.get(server.url + path)


# A webhook does its work, gives an id, and the look-up knows it from then on.
async def test_webhook_and_look_up() -> None:
    async with serve_world() as server:
        assert (await get(server, "/webhook/sent/e-1")).status_code == 404
        assert (await post(server, "/webhook/send-mail")).json() == {"id": "world-1"}
        assert (await get(server, "/webhook/sent/e-1")).json() == {"id": "world-1"}
        assert [(each.method, each.done) for each in server.world.journal] == [
            ("GET", False),
            ("POST", True),
            ("GET", False),
        ]


# Every delivery counts as work, unless this world deduplicates on the key.
@pytest.mark.parametrize(("deduplicates", "expected"), [(False, 2), (True, 1)])
async def test_repeats(deduplicates: bool, expected: int) -> None:
    async with serve_world(World(deduplicates=deduplicates)) as server:
        ids = {(await post(server, "/webhook/x")).json()["id"] for _ in range(2)}
        assert ids == {"world-1"}
        assert len(server.world.done("e-1")) == expected


# The journal file holds each request as soon as it is received, for readers that outlive us.
async def test_journal_file(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    async with serve_world(World(journal_file=file)) as server:
        server.world.misbehave("/", Fault(far.DROP))
        with pytest.raises(httpx2.RemoteProtocolError):
            await post(server, "/webhook/x", to="ann")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["effect_id"], line["done"], json.loads(line["body"])) for line in lines] == [
        ("e-1", True, {"to": "ann"})
    ]


# Faults come in the order they were queued, as often as asked, for the longest path that matches.
async def test_order_of_faults() -> None:
    async with serve_world() as server:
        server.world.misbehave("/webhook/", status(500))
        server.world.misbehave("/webhook/slow", status(429, retry_after="7"), times=2)
        codes = [(await post(server, "/webhook/slow")).status_code for _ in range(3)]
        assert codes == [429, 429, 500]
        server.world.behave()
        assert (await post(server, "/webhook/slow")).status_code == 200


# A fault of an unknown kind is refused when it is ordered, not when it is met.
def test_unknown_fault() -> None:
    with pytest.raises(ValueError, match="no such fault"):
        World().misbehave("/", Fault("martian"))


# A held request is answered once released.
async def test_held_request() -> None:
    async with serve_world() as server:
        server.world.misbehave("/", Fault(far.HOLD), times=1)
        asking = asyncio.create_task(post(server, "/webhook/x"))
        await server.arrived()
        assert not asking.done()
        server.release()
        assert (await asking).status_code == 200


# A server that accepts nothing takes up again where it stopped.
async def test_accepting_again() -> None:
    async with serve_world() as server:
        server.hang_before_accept()
        asking = asyncio.create_task(post(server, "/webhook/x"))
        server.release()
        assert (await asking).status_code == 200


# A waiting execution answers as n8n's Wait node: 409 until reached, 200 once, then 409 finished.
async def test_waiting_execution() -> None:
    async with serve_world() as server:
        path = server.world.wait_at("77", state="running", token="t")
        early = await post(server, path)
        assert (early.status_code, "is running already" in early.text) == (409, True)
        server.world.wait_at("77", token="t")
        assert (await post(server, "/webhook-waiting/77?signature=wrong")).status_code == 401
        assert (await post(server, path)).status_code == 200
        late = await post(server, path)
        assert (late.status_code, "has finished already" in late.text) == (409, True)
        assert (await post(server, "/webhook-waiting/78")).status_code == 404
        assert len(server.world.done()) == 1


# A suffix opens its own gate once: another gate's suffix, or a used one, is not registered.
async def test_suffix_opens_its_gate_once() -> None:
    async with serve_world() as server:
        path = server.world.wait_at("77", suffix="gate-1", token="t")
        assert path == "/webhook-waiting/77/gate-1?signature=t"
        assert (await post(server, "/webhook-waiting/77/gate-2?signature=t")).status_code == 404
        assert (await post(server, path)).status_code == 200
        assert (await post(server, path)).status_code == 404


# Another process orders the same by HTTP.
async def test_control() -> None:
    async with serve_world() as server:
        fault = {"path": "/webhook/", "kind": "status", "status": 503, "times": 1, "done": False}
        assert (await order(server, "/control/faults", fault)).status_code == 200
        assert (await post(server, "/webhook/x")).status_code == 503
        wait = await post(server, "/control/wait", execution="9", state="waiting")
        assert wait.json() == {"path": "/webhook-waiting/9"}
        journal = (await get(server, "/control/journal")).json()["received"]
        assert [each["path"] for each in journal] == ["/webhook/x"]
        for path in ("/control/release", "/control/behave"):
            assert (await post(server, path)).status_code == 200
        assert (await post(server, "/control/martian")).status_code == 404


# Only a signature over these very bytes, id and time counts.
async def test_signature_is_checked() -> None:
    async with serve_world(World(signing_secret="whsec_YQ==")) as server:
        await post(server, "/webhook/x")
        assert server.world.journal[0].signed is False
