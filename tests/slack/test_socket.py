"""Lines of Socket Mode: opened, replaced, lost and found again, against the stand-in's side of it.

Not here: what becomes of an envelope (tests/doors/test_both_ways).
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.demo.slack_faults import Fault, dropped, limited, says, server_error
from bot.demo.slack_payloads import Signed
from bot.demo.slack_server import SlackStandIn
from bot.slack.client import SlackClient
from bot.slack.line import CROWDED, Envelope
from bot.slack.socket import Socket, is_slack_socket

QUICK = (0.0,)


class Taker:
    """Answers every envelope with what it carried; with `hold` set, not before it is let go."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.reached = asyncio.Event()
        self.let_go = asyncio.Event()
        self.let_go.set()

    async def take(self, envelope: Envelope) -> Mapping[str, Any] | None:
        self.taken.append(envelope.payload)
        self.reached.set()
        await self.let_go.wait()
        return {"heard": envelope.payload["n"]}


@asynccontextmanager
async def socket_to(
    slack: SlackStandIn, taker: Taker | None = None, *, token: str = "", **more: Any
) -> AsyncIterator[Socket]:
    """A started socket."""
    client = SlackClient(token or slack.state.workspace.app_token, base_url=slack.api_url)
    socket = Socket(client, (taker or Taker()).take, **{"pauses_seconds": QUICK} | more)
    await socket.start()
    try:
        yield socket
    finally:
        await socket.stop(5)


def envelope(n: int) -> Signed:
    """An event's request with a number in it."""
    return Signed(f"n={n}".encode(), {"content-type": "application/x-www-form-urlencoded"})


# A line is opened, and each envelope answered on it with what the door said.
async def test_answers(slack: SlackStandIn) -> None:
    taker = Taker()
    async with socket_to(slack, taker) as socket:
        assert socket.connected()
        assert socket.fault is None
        answers = await asyncio.gather(*(slack.socket.deliver(envelope(n)) for n in range(20)))
        assert answers == [[{"heard": str(n)}] for n in range(20)]
    assert not socket.connected()
    await slack.socket.wait_for_lines(0)


# One envelope that takes long holds up no other.
async def test_side_by_side(slack: SlackStandIn) -> None:
    taker = Taker()
    taker.let_go.clear()
    async with socket_to(slack, taker):
        slow = asyncio.create_task(slack.socket.deliver(envelope(1)))
        await taker.reached.wait()
        taker.reached.clear()
        other = asyncio.create_task(slack.socket.deliver(envelope(2)))
        await taker.reached.wait()
        taker.let_go.set()
        assert await slow == [{"heard": "1"}]
        assert await other == [{"heard": "2"}]


# Asked to leave, the next line is opened first; the old one is heard until Slack closes it.
@pytest.mark.parametrize("reason", ["warning", "refresh_requested", "link_disabled", "some_new_word"])
async def test_refresh(slack: SlackStandIn, reason: str) -> None:
    taker = Taker()
    async with socket_to(slack, taker) as socket:
        old = await slack.socket.ask_to_leave(reason)
        await slack.socket.wait_for(opened=2)
        assert len(slack.socket.links) == 2
        assert socket.connected()
        await asyncio.gather(*(slack.socket.deliver(envelope(n)) for n in range(4)))
        assert sorted(each["n"] for each in taker.taken) == ["0", "1", "2", "3"]
        await slack.socket.close(old)
        await slack.socket.wait_for_lines(1)
        assert await slack.socket.deliver(envelope(9)) == [{"heard": "9"}]


# What is in hand when the line is replaced is answered on the old line.
async def test_answer_after_refresh(slack: SlackStandIn) -> None:
    taker = Taker()
    taker.let_go.clear()
    async with socket_to(slack, taker):
        delivered = asyncio.create_task(slack.socket.deliver(envelope(1)))
        await taker.reached.wait()
        await slack.socket.ask_to_leave()
        await slack.socket.wait_for(opened=2)
        taker.let_go.set()
        assert await delivered == [{"heard": "1"}]


# A line that is closed or cut is opened again, time after time.
@pytest.mark.parametrize("how", ["closed", "cut"])
async def test_reconnects(slack: SlackStandIn, how: str) -> None:
    async with socket_to(slack):
        for n in range(3):
            if how == "closed":
                await slack.socket.close(slack.socket.links[0])
            else:
                slack.socket.cut()
            await slack.socket.wait_for(opened=n + 2)
        await slack.socket.wait_for_lines(1)
        assert await slack.socket.deliver(envelope(1)) == [{"heard": "1"}]


# A line that looks open and hears nothing is found out by its missing pong, and replaced.
async def test_ghost(slack: SlackStandIn) -> None:
    async with socket_to(slack, heartbeat_seconds=0.05):
        slack.socket.links[0].ghost = True
        await slack.socket.wait_for(opened=2)
        await slack.socket.wait_for_lines(1)
        assert await slack.socket.deliver(envelope(1)) == [{"heard": "1"}]


# Whatever befalls the asking for an address, it is asked again until there is a line.
@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (says("internal_error"), "internal_error"),
        (says("some_new_error"), "some_new_error"),
        (server_error(), "http_500"),
        (dropped(after_work=False), "cut"),
        (Fault(status=200, body=b'{"ok": true, "url": "ws://evil.example/"}'), "unreadable"),
        (Fault(status=200, body=b'{"ok": true}'), "unreadable"),
    ],
)
async def test_asks_again(
    slack: SlackStandIn, fault: Fault, word: str, caplog: pytest.LogCaptureFixture
) -> None:
    slack.faults.order("apps.connections.open", fault)
    async with socket_to(slack) as socket:
        await slack.socket.wait_for(opened=1)
        assert await slack.socket.deliver(envelope(1)) == [{"heard": "1"}]
        assert socket.connected()
    assert word in [getattr(record, "reason", None) for record in caplog.records]


# Slack being nowhere to be found at the start is no end of it: the line is opened once it is there.
async def test_nobody_there(slack: SlackStandIn) -> None:
    there = slack.state.socket_url
    slack.state.socket_url = "ws://127.0.0.1:9/link/"  # The discard port: nobody listens.
    async with socket_to(slack) as socket:
        assert not socket.connected()
        assert socket.fault == "no_line"
        slack.state.socket_url = there
        await slack.socket.wait_for(opened=1)


# Told to wait, it waits as long as Slack said and does not ask meanwhile.
async def test_limited(slack: SlackStandIn) -> None:
    slack.faults.order("apps.connections.open", limited("600"))
    async with socket_to(slack) as socket:
        assert socket.fault == "limited"
        await asyncio.sleep(0)
        assert slack.journal.count("apps.connections.open") == 1


# A token that will never do is told at the start, by Slack's own word.
@pytest.mark.parametrize(
    ("wrong", "word"), [("xapp-other", "invalid_auth"), ("bot", "not_allowed_token_type")]
)
async def test_hopeless(slack: SlackStandIn, wrong: str, word: str) -> None:
    token = slack.state.workspace.token if wrong == "bot" else wrong
    socket = Socket(SlackClient(token, base_url=slack.api_url), Taker().take)
    assert await socket.start() == word
    await socket.stop(1)


# Pauses grow with each failure in a row, and a line that does not hold is one.
async def test_pauses_grow(slack: SlackStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    rest = asyncio.sleep

    async def wait(seconds: float) -> None:
        waited.append(seconds)
        await rest(0)

    monkeypatch.setattr("bot.slack.socket.sleep", wait)
    for nth in (2, 3):
        slack.faults.order("apps.connections.open", says("internal_error"), nth=nth)
    async with socket_to(slack, pauses_seconds=(0.0, 1.0, 10.0)):
        slack.socket.cut()
        await slack.socket.wait_for(opened=2)
        slack.socket.cut()
        await slack.socket.wait_for(opened=3)
    first, second, third, fourth = waited
    assert first == 0.0
    assert 0.5 <= second <= 1.0
    assert all(5.0 <= each <= 10.0 for each in (third, fourth))


# Nothing that Slack could say on a line ends it.
async def test_noise(slack: SlackStandIn) -> None:
    async with socket_to(slack):
        wire = slack.socket.links[0].wire
        for text in ("", "{", "[]", "null", '"x"', "{}", '{"type": 1}', '{"type": "interactive"}'):
            await wire.send_str(text)
        assert await slack.socket.deliver(envelope(1)) == [{"heard": "1"}]
        assert slack.socket.opened == 1


# Lines that are counted and not ours are warned of: clicks vanish in them.
async def test_crowded(slack: SlackStandIn, caplog: pytest.LogCaptureFixture) -> None:
    async with socket_to(slack):
        await slack.socket.links[0].say(type="hello", num_connections=CROWDED + 1)
        await slack.socket.deliver(envelope(1))
    assert [record.count for record in caplog.records if hasattr(record, "count")] == [CROWDED + 1]


# An answer whose line was cut meanwhile is lost, and nothing else.
async def test_line_cut_in_hand(slack: SlackStandIn) -> None:
    taker = Taker()
    taker.let_go.clear()
    async with socket_to(slack, taker):
        lost = asyncio.create_task(slack.socket.deliver(envelope(1)))
        await taker.reached.wait()
        slack.socket.cut()
        await slack.socket.wait_for(opened=2)
        taker.let_go.set()
        assert await slack.socket.deliver(envelope(2)) == [{"heard": "2"}]
        lost.cancel()


# Neither the ticket of a line nor what came by it is logged, nor does it stand in a repr.
async def test_nothing_is_told(slack: SlackStandIn, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    there = slack.state.socket_url
    slack.state.socket_url = "ws://127.0.0.1:9/link/"
    async with socket_to(slack):
        slack.state.socket_url = there
        await slack.socket.wait_for(opened=1)
        await slack.socket.deliver(envelope(77777))
    said = json.dumps([record.getMessage() for record in caplog.records if record.name.startswith("bot.")])
    assert "ticket" not in said
    assert "77777" not in said + repr(Envelope("interactive", {"n": 77777}))


# A ticket is told to an encrypted address only, or beside a stand-in on this machine.
@pytest.mark.parametrize(
    ("url", "base", "fit"),
    [
        ("wss://wss-primary.slack.com/link/?ticket=1", "https://slack.com/api/", True),
        ("ws://wss-primary.slack.com/link/?ticket=1", "https://slack.com/api/", False),
        ("ws://127.0.0.1:1/link/", "https://slack.com/api/", False),
        ("ws://127.0.0.1:1/link/", "http://127.0.0.1:2/api/", True),
        ("ws://evil.example/link/", "http://127.0.0.1:2/api/", False),
        ("https://slack.com/", "https://slack.com/api/", False),
        ("", "https://slack.com/api/", False),
    ],
)
def test_addresses(url: str, base: str, fit: bool) -> None:
    assert is_slack_socket(url, base) == fit
