"""Tests of how far a request got: what a failure proves depends on the moment.

Not here: what follows for an effect (test_http).
"""

import asyncio
import logging
import socket

import pytest

from bot.connectors import exchange as exchange_module
from bot.connectors.exchange import BODY_BYTES, Answered, Call, Exchange, Failed
from bot.connectors.reach import Reach
from bot.demo import world as far
from bot.demo.world import Fault, status
from bot.demo.world_server import WorldServer
from tests.connectors.effects import slept, webhook

LOCAL = Reach.parse("127.0.0.1, sink.test")
HANG_SECONDS = 0.2


def post(url: str, body: bytes = b"{}") -> Call:
    return Call("POST", url, {"content-type": "application/json"}, body)


def free_port() -> int:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


# Nobody listens: proven by the refusal itself.
async def test_refused_connection() -> None:
    answer = await Exchange(LOCAL).call(post(f"http://127.0.0.1:{free_port()}/"), within_seconds=5)
    assert answer == Failed("connection_refused")


# A resolver that never answers, and a peer that never shakes hands, have seen no byte of the request.
async def test_deadline_before_the_request_left(world: WorldServer) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    deaf = Exchange(LOCAL, resolve=resolve)
    assert await deaf.call(post("http://sink.test/"), within_seconds=HANG_SECONDS) == Failed(
        "connect_timeout"
    )
    world.hang_before_accept()
    secure = f"https://127.0.0.1:{world.port}/"
    answer = await Exchange(LOCAL).call(post(secure), within_seconds=HANG_SECONDS)
    assert answer == Failed("connect_timeout")


# A machine that slept while it connected sends nothing when it wakes: others have been at it since.
async def test_slept_before_the_request_left(world: WorldServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_module, "elapsed_seconds", slept(3600))
    answer = await Exchange(LOCAL).call(post(webhook(world)), within_seconds=60)
    assert answer == Failed("connect_timeout")
    assert not world.world.journal
    monkeypatch.setattr(exchange_module, "elapsed_seconds", slept(59))
    assert isinstance(await Exchange(LOCAL).call(post(webhook(world)), within_seconds=60), Answered)


# A peer that does not speak TLS has seen no byte of the request either.
async def test_failed_handshake(world: WorldServer) -> None:
    world.world.misbehave("/", Fault(far.RUBBISH))
    answer = await Exchange(LOCAL).call(post(f"https://127.0.0.1:{world.port}/"), within_seconds=5)
    assert answer == Failed("tls_failed")
    assert world.world.journal == ()


# Once a byte may have left, a deadline proves nothing: not accepted, not answered, or stuck in the upload.
@pytest.mark.parametrize("size", [2, 16_000_000])
async def test_deadline_after_the_request_may_have_left(size: int, world: WorldServer) -> None:
    world.hang_before_accept()
    call = post(webhook(world), b"x" * size)
    assert await Exchange(LOCAL).call(call, within_seconds=HANG_SECONDS) == Failed("timeout")


# A line that dies after the request may have left proves nothing, whether it was read or not.
@pytest.mark.parametrize("kind", [far.DROP, far.DROP_UNREAD, far.RUBBISH])
async def test_line_that_dies(kind: str, world: WorldServer) -> None:
    world.world.misbehave("/", Fault(kind))
    assert await Exchange(LOCAL).call(post(webhook(world)), within_seconds=5) == Failed("cut")


# A status that came counts even where its body does not end.
async def test_status_survives_a_cut_body(world: WorldServer) -> None:
    world.world.misbehave("/", Fault(far.CUT))
    answer = await Exchange(LOCAL).call(post(webhook(world)), within_seconds=5)
    assert isinstance(answer, Answered)
    assert (answer.status, answer.flaw) == (200, "body_cut")


# A body is read up to its bound and no further.
async def test_body_is_bounded(world: WorldServer) -> None:
    world.world.misbehave("/", status(200, body="x" * BODY_BYTES), times=1)
    world.world.misbehave("/", status(200, body="x" * (BODY_BYTES + 1)), times=1)
    exchange = Exchange(LOCAL)
    whole = await exchange.call(post(webhook(world)), within_seconds=5)
    assert isinstance(whole, Answered)
    assert (len(whole.body), whole.flaw) == (BODY_BYTES, None)
    over = await exchange.call(post(webhook(world)), within_seconds=5)
    assert isinstance(over, Answered)
    assert over.flaw == "body_too_large"


# An answer that is encoded unasked (a decompression bomb, say) is not read.
async def test_encoded_body_is_not_read(world: WorldServer) -> None:
    world.world.misbehave("/", status(200, content_encoding="gzip"))
    answer = await Exchange(LOCAL).call(post(webhook(world)), within_seconds=5)
    assert isinstance(answer, Answered)
    assert answer.flaw == "body_encoded"


# A target that hangs takes its own places only; who got none has proof that nothing left.
async def test_hanging_target_is_held_apart(world: WorldServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_module, "IN_FLIGHT", 1)
    world.world.misbehave("/", Fault(far.HOLD), times=1)
    exchange = Exchange(LOCAL)
    held = asyncio.create_task(exchange.call(post(webhook(world)), within_seconds=30))
    await world.arrived()
    assert await exchange.call(post(webhook(world)), within_seconds=HANG_SECONDS) == Failed("crowded")
    elsewhere = await exchange.call(post(f"http://127.0.0.1:{free_port()}/"), within_seconds=5)
    assert elsewhere == Failed("connection_refused")
    world.release()
    assert isinstance(await held, Answered)
    assert len(world.world.journal) == 1
    assert not exchange._places


# Every request has a connection of its own.
async def test_no_connection_is_kept(world: WorldServer) -> None:
    exchange = Exchange(LOCAL)
    for _ in range(3):
        await exchange.call(post(webhook(world)), within_seconds=5)
    assert world.connections == 3


# A cancelled call passes the cancellation on; what had left has left.
async def test_cancellation_passes_through(world: WorldServer) -> None:
    world.world.misbehave("/", Fault(far.HANG))
    task = asyncio.create_task(Exchange(LOCAL).call(post(webhook(world)), within_seconds=30))
    await world.arrived()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# An address may hold a secret: neither path nor host of a target reaches the log, at any level.
async def test_addresses_stay_out_of_the_log(world: WorldServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    exchange = Exchange(Reach.parse("127.0.0.1, mark2.test"))
    for url in (f"http://127.0.0.1:{free_port()}/MARK2", f"{world.url}/webhook/MARK2", "http://mark2.test/"):
        await exchange.call(post(url), within_seconds=5)
    assert "mark2" not in caplog.text.lower()
