"""Asking for another draft: a window asks what to change, and the card says that it is being made.

Not here: fulfilling the wish (tests/flow/test_redraft).
"""

import json
from typing import Any

import pytest

from bot.demo.slack_payloads import Forge
from bot.demo.slack_workspace import U_ALICE, U_BOB, U_MEMBER
from bot.flow.naming import Names
from bot.flow.show import Shower, Showing
from bot.slack.client import SlackClient
from bot.slack.pace import Pace
from tests.doors.slack_world import World, plain
from tests.flow.screens import QUICK, buttons, said, seen
from tests.makers import change, make_run, rows

WISH = "stet.redraft.input"
FROZEN = {"prompt_version": "p", "redrafts": 3}
SPENT = (
    "INSERT INTO redrafts (redraft_id, draft_id, revision, requested_by, closed_at, outcome)"
    " SELECT gen_random_uuid(), draft_id, 1, 'x', now(), 'done' FROM drafts, generate_series(1, 3)"
)


async def submit(world: World, user: str, wish: str, **forged: Any) -> dict[str, Any] | None:
    forge = Forge(**forged)
    reply = await world.slack.actor.submit(user, {"stet.answer": wish}, checked=False, forge=forge)
    assert reply.status == 200
    answer: dict[str, Any] | None = reply.json
    return answer


async def show(world: World) -> None:
    """Draw every card that is behind."""
    client = SlackClient(world.slack.state.workspace.token, base_url=world.slack.api_url)
    await client.open()
    pace = Pace(QUICK)
    await Shower(Showing(world.db, "me", client, pace, Names(client, pace), actions_enabled=True)).run_once()
    await client.close()


# A wish is kept as it was said, the worker is woken, and the card says whose wish it is and has no buttons.
async def test_wish(world: World) -> None:
    card = world.card(FROZEN)
    await card.click(U_ALICE, "redraft")
    await submit(world, U_ALICE, "  Friendlier, & <shorter>\nplease ")
    assert "The model is asked for a new draft." in plain(world.window(U_ALICE))
    (kept,) = rows(world.dsn, "SELECT wish, requested_by, closed_at FROM redrafts")
    assert kept["wish"] == "Friendlier, & <shorter>\nplease"
    assert kept["requested_by"] == f"slack:T0STET:{U_ALICE}"
    assert {"show", "redraft"} <= set(world.woken)
    await card.click(U_BOB)
    assert await world.heard(U_BOB) == ["A new draft is being made. Please decide on that one."]
    await show(world)
    (message,) = seen(world.slack)
    assert "Alice" in said(message)
    assert "Friendlier, & <shorter>" in said(message)
    assert not buttons(message)
    assert world.counters() == (0, 0)


# A wish that nobody can see, and one that is too long, stay in the window with a sentence at the field.
@pytest.mark.parametrize("wish", ["", " \n", "\u200b", "x" * 1001])
async def test_no_wish(world: World, wish: str) -> None:
    await world.card(FROZEN).click(U_ALICE, "redraft")
    answer = await submit(world, U_ALICE, wish)
    assert answer is not None
    assert set(answer["errors"]) == {WISH}
    assert not rows(world.dsn, "SELECT 1 FROM redrafts")


# Overtaken by something newer the window says so and keeps the wish.
async def test_overtaken(world: World) -> None:
    await world.card(FROZEN).click(U_ALICE, "redraft")
    make_run(world.dsn, version=18)
    await submit(world, U_ALICE, "My careful wish")
    assert "What you typed was not used." in plain(world.window(U_ALICE))
    assert "My careful wish" in plain(world.window(U_ALICE))
    assert not rows(world.dsn, "SELECT 1 FROM redrafts")


# When the kind's wishes are used up the card has no button, and one that is pressed all the same says so.
async def test_used_up(world: World) -> None:
    card = world.card(FROZEN)
    change(world.dsn, "UPDATE cards SET wanted_version = 2")
    await show(world)
    assert "stet.redraft" in buttons(seen(world.slack)[0])
    change(world.dsn, SPENT)
    await card.click(U_ALICE, "redraft")
    assert (await world.heard(U_ALICE))[0].startswith("No more new drafts for this one.")
    change(world.dsn, "UPDATE cards SET wanted_version = 3, next_attempt_at = now()")
    await show(world)
    assert "stet.redraft" not in buttons(seen(world.slack)[0])
    assert "stet.edit" in buttons(seen(world.slack)[0])


# A kind that is not drafted here has no button for it.
async def test_no_model(world: World) -> None:
    world.card({"prompt_version": None, "redrafts": 3})
    change(world.dsn, "UPDATE cards SET wanted_version = 2")
    await show(world)
    assert "stet.redraft" not in buttons(seen(world.slack)[0])


# After a wish that came to nothing the card has its buttons back, and says so.
async def test_failed_wish(world: World) -> None:
    world.card(FROZEN)
    change(world.dsn, SPENT.replace("'done'", "'failed'"))
    change(world.dsn, "UPDATE cards SET wanted_version = 2")
    await show(world)
    (message,) = seen(world.slack)
    assert "The model could not make another draft." in said(message)
    assert "stet.approve" in buttons(message)


# Whoever may not decide gets no window, and a window that somebody else sends keeps no wish.
async def test_strangers(world: World) -> None:
    card = world.card(FROZEN)
    await card.click(U_MEMBER, "redraft")
    assert world.slack.state.view_on_top(U_MEMBER) is None
    await card.click(U_ALICE, "redraft")
    await submit(world, U_ALICE, "x", change=lambda body: body["user"].update(id=U_BOB))
    assert not rows(world.dsn, "SELECT 1 FROM redrafts")


# The same bytes again keep no second wish, neither at once nor after the first was closed.
async def test_replayed(world: World) -> None:
    await world.card(FROZEN).click(U_ALICE, "redraft")
    reply = await world.slack.actor.submit(U_ALICE, {"stet.answer": "Shorter"})
    again = await world.slack.actor.send(reply.request)
    assert "A new draft is being made" in plain(json.dumps(again.json))
    change(world.dsn, "UPDATE redrafts SET closed_at = now(), outcome = 'failed'")
    later = await world.slack.actor.send(reply.request)
    assert "no longer valid" in plain(json.dumps(later.json))
    assert rows(world.dsn, "SELECT count(*) AS n FROM redrafts") == [{"n": 1}]
