"""What the Slack doors promise, once over HTTP and once by Socket Mode: the same app, the same answers.

Not here: each button, modal and command by itself (their own files), or lines that break (tests/slack).
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bot.demo.slack_faults import hanging
from bot.demo.slack_payloads import Forge
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import U_ADMIN, U_ALICE, U_BOB, U_GUEST
from store.database import Database
from tests.doors.slack_world import World, doors_on
from tests.makers import rows


@pytest_asyncio.fixture(params=["http", "socket"])
async def either(request: pytest.FixtureRequest, dsn: str, db: Database) -> AsyncIterator[World]:
    """One process of ours that Slack reaches in one of two ways."""
    woken: list[str] = []
    async with SlackStandIn(rate_factor=None) as slack:
        async with doors_on(db, slack, woken, by_socket=request.param == "socket") as doors:
            yield World(dsn, db, slack, doors, woken)


# Ten clicks of two people make one decision; the others hear whose it was.
async def test_one_decision(either: World) -> None:
    card = either.card()
    replies = await asyncio.gather(*(card.click((U_ALICE, U_BOB)[n % 2]) for n in range(10)))
    assert all(reply.kept for reply in replies)
    assert either.counters() == (1, 1)
    notes = [*await either.heard(U_ALICE), *await either.heard(U_BOB)]
    assert len(notes) == 9
    assert all(note.startswith("Already approved by <@U0") for note in notes)
    assert {"show", "dispatch"} <= set(either.woken)


# A rejection is asked why in a window, and what is missing is said in it.
async def test_reject(either: World) -> None:
    card = either.card()
    await card.reject(U_ALICE, " ")
    assert either.slack.actor.top_view(U_ALICE).errors
    await either.slack.actor.submit(U_ALICE, {"stet.answer": "Wrong amount"})
    assert either.slack.state.view_on_top(U_ALICE) is None
    assert either.counters() == (1, 0)
    assert rows(either.dsn, "SELECT state FROM workflow_runs") == [{"state": "rejected"}]


# The whole draft is read in a window and approved there.
async def test_read_and_approve(either: World) -> None:
    card = either.card()
    await card.click(U_ALICE, "read")
    await either.slack.actor.press(U_ALICE, "stet.approve")
    await either.doors.settle()
    assert "Approved." in either.window(U_ALICE)
    assert either.counters() == (1, 1)


# Who may not decide hears why, and nothing changes.
async def test_guest(either: World) -> None:
    card = either.card()
    assert (await card.click(U_GUEST)).kept
    assert await either.heard(U_GUEST) == ["Guests may not decide. Nothing was decided."]
    assert either.counters() == (0, 0)


# A command is answered to the caller alone.
async def test_command(either: World) -> None:
    assert "Sending is on." in await either.say(U_ADMIN, "status")
    assert (await either.say(U_ADMIN, "kill storm")).startswith("🔴 Stopped: all.")


# Opening the Home draws it.
async def test_home(either: World) -> None:
    assert (await either.slack.actor.open_home(U_ALICE)).kept
    await either.doors.settle()
    assert U_ALICE in either.slack.state.homes


# What has no shape that Slack documents is answered, and changes nothing.
@pytest.mark.parametrize("part", ["container", "actions", "user", "type"])
async def test_strange_shapes(either: World, part: str) -> None:
    card = either.card()
    reply = await card.click(U_ALICE, forge=Forge(change=lambda payload: payload.pop(part) and None))
    assert reply.kept
    assert either.counters() == (0, 0)


# While Slack does not say who somebody is, their click is answered in time and decides nothing.
async def test_slack_is_slow(either: World) -> None:
    card = either.card()
    either.slack.faults.always("users.info", hanging())
    reply = await card.click(U_ALICE)
    assert reply.kept
    either.slack.faults.clear()
    assert await either.heard(U_ALICE) == [
        "I could not check who you are just now. Nothing was decided. Please try again."
    ]
    assert either.counters() == (0, 0)
