"""Tests of resolving, checking and connecting to the address that was checked.

Not here: which address may be reached (test_reach).
"""

import asyncio
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.connectors.exchange import Answered, Call, Exchange, Failed
from bot.connectors.reach import Reach, Target
from bot.demo.world_server import WorldServer
from tests.connectors.effects import resolves_to
from tests.connectors.test_reach import ODD_SPELLINGS

TLS = Path(__file__).parent / "tls"
POST = {"content-type": "application/json"}


def call(url: str) -> Call:
    return Call("POST", url, POST, b"{}")


# No odd spelling reaches a server of this machine, though the resolver would lead every name there.
@pytest.mark.parametrize("url", ODD_SPELLINGS)
async def test_odd_spelling_reaches_nobody(url: str, world: WorldServer) -> None:
    reach = Reach.parse("n8n.example, localhost, *.example")
    aimed = url.replace("/", f":{world.port}/", 3) if url.count("/") == 3 else url
    for each in (url, aimed):
        exchange = Exchange(reach, resolve=resolves_to(["127.0.0.1"]))
        assert isinstance(await exchange.call(call(each), within_seconds=1), Failed)
    assert world.connections == 0


# A name that turns to an inside address after it was checked once is checked again, and not connected to.
@pytest.mark.parametrize("inside", ["127.0.0.1", "::1", "169.254.169.254", "::ffff:127.0.0.1", "0.0.0.0"])  # noqa: S104
async def test_name_that_changes_its_answer(inside: str, world: WorldServer) -> None:
    reach = Reach.parse(f"n8n.example, 127.0.0.2:{world.port}")
    exchange = Exchange(reach, resolve=resolves_to(["127.0.0.2"], [inside]))
    url = f"http://n8n.example:{world.port}/webhook/x"
    assert isinstance(reach.check_url(url), Target)
    # The first answer is listed, but nobody listens there; the second must not even be tried.
    assert await exchange.call(call(url), within_seconds=30) == Failed("connection_refused")
    assert await exchange.call(call(url), within_seconds=30) == Failed("address_not_allowed")
    assert world.connections == 0


# The resolver is asked once a connection, so that no second answer can slip in between check and connect.
async def test_resolver_is_asked_once(world: WorldServer) -> None:
    asked: list[tuple[str, int]] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append((host, port))
        return ["127.0.0.1"]

    exchange = Exchange(Reach.parse("sink.test"), resolve=resolve)
    answer = await exchange.call(call(f"http://sink.test:{world.port}/webhook/x"), within_seconds=5)
    assert isinstance(answer, Answered)
    assert asked == [("sink.test", world.port)]
    assert world.world.journal[0].headers["host"] == f"sink.test:{world.port}"


# One inside address among the candidates refuses them all, whichever comes first.
@pytest.mark.parametrize(
    "addresses", [["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"], ["8.8.8.8", "fe80::1%eth0"]]
)
async def test_one_bad_candidate_refuses_all(addresses: list[str], world: WorldServer) -> None:
    exchange = Exchange(Reach.parse("n8n.example"), resolve=resolves_to(addresses))
    answer = await exchange.call(call(f"http://n8n.example:{world.port}/webhook/x"), within_seconds=1)
    assert answer in (Failed("address_not_allowed"), Failed("dns_failed"))
    assert world.connections == 0


# The next candidate is tried when the first does not answer.
async def test_next_candidate(world: WorldServer) -> None:
    exchange = Exchange(Reach.parse("sink.test"), resolve=resolves_to(["127.0.0.2", "127.0.0.1"]))
    answer = await exchange.call(call(f"http://sink.test:{world.port}/webhook/x"), within_seconds=5)
    assert isinstance(answer, Answered)


# A name without an address is told from other failures.
async def test_name_without_address() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    for resolver in (resolve, resolves_to([])):
        exchange = Exchange(Reach.parse("n8n.example"), resolve=resolver)
        assert await exchange.call(call("http://n8n.example/"), within_seconds=1) == Failed("dns_failed")


# The system's own resolver serves where none is injected.
async def test_system_resolver(world: WorldServer) -> None:
    answer = await Exchange(Reach.parse("localhost")).call(
        call(f"http://localhost:{world.port}/webhook/x"), within_seconds=5
    )
    assert isinstance(answer, Answered)


# Proxies of the environment are not asked: they would resolve and connect unchecked.
async def test_no_proxy_from_the_environment(world: WorldServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    answer = await Exchange(Reach.parse("127.0.0.1")).call(call(f"{world.url}/webhook/x"), within_seconds=5)
    assert isinstance(answer, Answered)


# Over TLS we connect to the checked address, and name and verify the host.
@pytest.mark.parametrize(
    ("host", "expected"),
    [("sink.test", Answered(200, {"content-length": "2"}, b"{}")), ("other.test", Failed("tls_failed"))],
)
async def test_tls_names_and_verifies_the_host(host: str, expected: Answered | Failed) -> None:
    named: list[str | None] = []
    certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.load_cert_chain(TLS / "sink.pem", TLS / "sink.key")
    certificate.sni_callback = lambda _, name, __: named.append(name)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=certificate)
    async with server:
        port = server.sockets[0].getsockname()[1]
        trusting = ssl.create_default_context(cafile=TLS / "authority.pem")
        exchange = Exchange(Reach.parse(host), resolve=resolves_to(["127.0.0.1"]), tls=trusting)
        assert await exchange.call(call(f"https://{host}:{port}/"), within_seconds=5) == expected
    assert named == [host]
