"""The doors in Socket Mode alone: no address, envelopes that come twice, several processes, a stop.

Not here: what both ways promise (test_both_ways), or lines that break (tests/slack/test_socket).
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest_asyncio

from bot.demo.slack_faults import hanging
from bot.demo.slack_payloads import HONEST, click_payload, sign_interaction
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import C_REVIEW, U_ALICE, U_BOB
from bot.slack.line import Envelope
from bot.wiring import SHUTDOWN_SECONDS
from store.database import Database
from tests.doors.slack_world import World, doors_on


@pytest_asyncio.fixture
async def wired(dsn: str, db: Database) -> AsyncIterator[World]:
    """One process of ours in Socket Mode."""
    async with SlackStandIn(rate_factor=None) as slack:
        async with doors_on(db, slack, [], by_socket=True) as doors:
            yield World(dsn, db, slack, doors)


def click(world: World, ts: str) -> Any:
    """The request of one click on a card's Approve, as it would be signed."""
    message = world.slack.state.messages[C_REVIEW][ts]
    return sign_interaction(
        world.slack.state, click_payload(world.slack.state, U_ALICE, message, "stet.approve", HONEST), HONEST
    )


# A request to the address of HTTP finds nobody, however well it is signed.
async def test_no_address(wired: World) -> None:
    card = wired.card()
    request = click(wired, card.draft["ts"])
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.post(
            wired.slack.actor.events_url, content=request.body, headers=dict(request.headers)
        )
    assert answer.status_code == 404
    assert wired.counters() == (0, 0)


# The same envelope twice decides once, and the person hears of the first.
async def test_same_envelope_twice(wired: World) -> None:
    card = wired.card()
    acks = await wired.slack.socket.deliver(click(wired, card.draft["ts"]), times=2)
    assert acks == [None, None]
    assert wired.counters() == (1, 1)
    [note] = await wired.heard(U_ALICE)
    assert note.startswith("Already approved by <@U0ALICE>")


# Two processes on one app token share the clicks; whichever gets one, one decides.
async def test_two_processes(wired: World, dsn: str) -> None:
    other = Database(dsn)
    await other.open()
    async with doors_on(other, wired.slack, [], by_socket=True):
        await wired.slack.socket.wait_for_lines(2)
        card = wired.card()
        replies = await asyncio.gather(*(card.click((U_ALICE, U_BOB)[n % 2]) for n in range(8)))
        assert all(reply.kept for reply in replies)
        assert wired.counters() == (1, 1)
    await wired.slack.socket.wait_for_lines(1)
    await other.close()
    another = wired.card(run={"entity": "customer:43"})
    assert (await another.click(U_BOB)).kept
    assert wired.counters() == (2, 2)


# A process that stops answers the click in hand first, and then says goodbye to Slack.
async def test_stop_answers_what_is_in_hand(wired: World) -> None:
    card = wired.card()
    asked = wired.slack.faults.order("users.info", hanging())
    clicked = asyncio.create_task(card.click(U_ALICE))
    await asked.reached.wait()
    stopped = asyncio.create_task(wired.doors.hang_up(SHUTDOWN_SECONDS))
    await asyncio.sleep(0)
    asked.release.set()
    assert (await clicked).kept
    await stopped
    assert wired.counters() == (1, 1)
    await wired.slack.socket.wait_for_lines(0)
    assert not wired.doors.reachable()


# An envelope that carries no object is acknowledged and forgotten.
async def test_no_object(wired: World) -> None:
    assert wired.doors.socket is not None
    payloads: tuple[Any, ...] = (None, [], "x", 7)
    for payload in payloads:
        assert await wired.doors.socket._take(Envelope("interactive", payload)) is None
