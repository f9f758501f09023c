"""Whether a click arrives: the doctor's test card by HTTP and Socket Mode, and what it says if none comes.

Not here: what else the doctor asks of Slack (test_workspace).
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bot.demo.slack_payloads import Forge
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import C_ARCHIVED, C_OPS, U_ALICE
from bot.examination.click import examine_click
from bot.settings import Settings
from tests.doors.slack_world import show

LONG = 60.0
SHORT = 0.05


@pytest_asyncio.fixture
async def slack() -> AsyncIterator[SlackStandIn]:
    async with SlackStandIn(rate_factor=None) as stand_in:
        yield stand_in


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings(slack: SlackStandIn, *, by_socket: bool = False, **more: str) -> Settings:
    """Settings of a process on a free port, which Slack is told of."""
    port = free_port()
    slack.actor.events_url = f"http://127.0.0.1:{port}/slack/events"
    slack.actor.socket = slack.socket if by_socket else None
    values = {
        "SLACK_BOT_TOKEN": slack.state.workspace.token,
        "SLACK_SIGNING_SECRET": slack.state.workspace.signing_secret,
        "SLACK_API_URL": slack.api_url,
        "INTAKE_TOKENS": "n8n:0123456789abcdef",
        "OPS_CHANNEL": C_OPS,
        "PORT": str(port),
    }
    if by_socket:
        values["SLACK_APP_TOKEN"] = slack.state.workspace.app_token
    return Settings.load(values | more, env_file=Path("no.env"))


async def examined(given: Settings, *, seconds: float = LONG) -> tuple[list[str], list[str]]:
    """The findings, and what was said meanwhile."""
    said: list[str] = []
    return [str(each) async for each in examine_click(given, said.append, seconds=seconds)], said


async def posted(slack: SlackStandIn) -> str:
    """The test card, once it is there."""
    await slack.journal.wait_for("chat.postMessage")
    return slack.state.channel_messages(C_OPS)[-1].ts


# The click arrives, the doctor says so, and the card says who pressed and loses its button.
@pytest.mark.parametrize("by_socket", [False, True])
async def test_arrives(slack: SlackStandIn, by_socket: bool) -> None:
    examining = asyncio.create_task(examined(settings(slack, by_socket=by_socket)))
    ts = await posted(slack)
    assert (await slack.actor.click(U_ALICE, C_OPS, ts, "stet.rehearsal")).kept
    findings, said = await examining
    assert findings == ["ok     interactivity: the click arrived"]
    assert said == [f"       press the button in {C_OPS} within 60 s"]
    [card] = slack.state.channel_messages(C_OPS)
    assert card.text == f"✅ The click arrived. It was pressed by <@{U_ALICE}>."
    assert [block["type"] for block in card.blocks or []] == ["rich_text"]


# Nothing comes: the line says what to switch on and where it must lead, and the card says that it is over.
async def test_nothing_comes(slack: SlackStandIn) -> None:
    given = settings(slack, PUBLIC_URL="https://stet.example")
    [line], _ = await examined(given, seconds=SHORT)
    assert line.startswith("wrong  interactivity: no click came: switch on Interactivity")
    assert "https://stet.example/slack/events" in line
    assert f"127.0.0.1:{given.port}" in line
    [card] = slack.state.channel_messages(C_OPS)
    assert card.text.startswith("⌛ No click arrived.")


# By Socket Mode the mend is another one.
async def test_nothing_comes_by_socket(slack: SlackStandIn) -> None:
    [line], _ = await examined(settings(slack, by_socket=True), seconds=SHORT)
    assert "Socket Mode" in line
    assert "Request URL" not in line
    assert slack.socket.links == []


# A click whose signature is not good tells that the signing secret is wrong, and never what it is.
async def test_wrong_secret(slack: SlackStandIn) -> None:
    given = settings(slack, SLACK_SIGNING_SECRET="another-secret")
    examining = asyncio.create_task(examined(given, seconds=1.0))
    ts = await posted(slack)
    assert (await slack.actor.click(U_ALICE, C_OPS, ts, "stet.rehearsal")).status == 401
    [line], _ = await examining
    assert line.startswith("wrong  interactivity: something came whose signature is not good")
    assert "another-secret" not in line


# Whoever presses something else meanwhile hears to try again, and the doctor waits on.
@pytest.mark.parametrize("by_socket", [False, True])
async def test_other_things(slack: SlackStandIn, by_socket: bool) -> None:
    examining = asyncio.create_task(examined(settings(slack, by_socket=by_socket)))
    ts = await posted(slack)
    show(slack, C_OPS, "1.000001", {"stet.approve": "x"})
    assert (await slack.actor.click(U_ALICE, C_OPS, "1.000001", "stet.approve")).kept
    assert (await slack.actor.click(U_ALICE, C_OPS, ts, "stet.rehearsal", Forge(value="old"))).kept
    assert (await slack.actor.slash(U_ALICE, "status")).kept
    assert (await slack.actor.open_home(U_ALICE)).kept
    assert not examining.done()
    await slack.actor.click(U_ALICE, C_OPS, ts, "stet.rehearsal")
    findings, _ = await examining
    assert findings == ["ok     interactivity: the click arrived"]
    heard = [message.text for message in slack.state.ephemerals_of(U_ALICE)]
    assert heard == ["Stet is being tested just now. Please try again in a minute."] * 3


# Without a channel, a card, a port or a line the doctor says which, and waits for nothing.
async def test_cannot_listen(slack: SlackStandIn) -> None:
    given = settings(slack)
    with socket.socket() as taken:
        taken.bind((given.host, given.port))
        taken.listen()
        [line], _ = await examined(given)
    assert line.startswith(f"wrong  interactivity: {given.host}:{given.port} cannot be had")
    [line], _ = await examined(settings(slack, OPS_CHANNEL=C_ARCHIVED))
    assert line == f"wrong  interactivity: the test card was not posted to {C_ARCHIVED} (is_archived)"
    [line], _ = await examined(settings(slack, by_socket=True, SLACK_APP_TOKEN="xapp-wrong"))
    assert line.startswith("wrong  interactivity: no socket to Slack opens (invalid_auth)")
    [line], _ = await examined(settings(slack).model_copy(update={"ops_channel": None}))
    assert line.startswith("wrong  interactivity: OPS_CHANNEL is not set")
