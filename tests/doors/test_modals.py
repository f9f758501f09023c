"""Submitted modals: a rejection needs its reason, and what was typed is never lost.

Not here: pressing buttons (test_buttons) or drawing modals (tests/cards).
"""

import json
from typing import Any

import pytest

from bot.demo.slack_payloads import Forge
from bot.demo.slack_workspace import OTHER_TEAM, U_ALICE, U_BOB, U_GRID
from tests.doors.slack_world import CardBefore, World, plain
from tests.makers import change, make_run, rows

REASON = "stet.reject.input"


async def submit(world: World, user: str, reason: str, **forged: Any) -> dict[str, Any] | None:
    """Send the open modal as a client without checks would."""
    forge = Forge(**forged)
    reply = await world.slack.actor.submit(user, {"stet.answer": reason}, checked=False, forge=forge)
    assert reply.status == 200
    answer: dict[str, Any] | None = reply.json
    return answer


@pytest.fixture
async def asked(world: World) -> CardBefore:
    """Alice has the window before her that asks why."""
    card = world.card()
    await card.click(U_ALICE, "reject")
    return card


# A rejection with a reason ends the run, stands on the record, and closes every window.
async def test_reject(world: World, asked: CardBefore) -> None:
    assert await submit(world, U_ALICE, "  Too late,\nsorry \x00 ") == {"response_action": "clear"}
    [approval] = rows(world.dsn, "SELECT decision, reason, approver_subject FROM approvals")
    assert approval == {
        "decision": "reject",
        "reason": "Too late,\nsorry",
        "approver_subject": f"slack:T0STET:{U_ALICE}",
    }
    assert rows(world.dsn, "SELECT state FROM workflow_runs") == [{"state": "rejected"}]
    assert world.counters() == (1, 0)
    assert "show" in world.woken


# A reason that nobody can see, and one that is too long, stay in the window with a sentence at the field.
@pytest.mark.parametrize("reason", ["", "   \n\t", "\u00a0\u2003", "\u200b\u2060", "\u3164", "x" * 1001])
async def test_no_reason(world: World, asked: CardBefore, reason: str) -> None:
    answer = await submit(world, U_ALICE, reason)
    assert answer is not None
    assert answer["response_action"] == "errors"
    assert set(answer["errors"]) == {REASON}
    assert world.counters() == (0, 0)
    assert world.slack.state.view_on_top(U_ALICE) is not None


# Overtaken by somebody else's decision the window says whose, and keeps what was typed.
async def test_overtaken_by_a_decision(world: World, asked: CardBefore) -> None:
    await asked.click(U_BOB)
    answer = await submit(world, U_ALICE, "My long and careful reason")
    assert answer is not None
    assert answer["response_action"] == "update"
    said = plain(world.window(U_ALICE))
    assert "Already approved by" in said
    assert "What you typed was not used." in said
    assert "My long and careful reason" in said
    assert world.counters() == (1, 1)


# Overtaken by a newer event it says so, too.
async def test_overtaken_by_an_event(world: World, asked: CardBefore) -> None:
    make_run(world.dsn, version=18)
    await submit(world, U_ALICE, "Why not")
    said = plain(world.window(U_ALICE))
    assert "A newer draft is coming" in said
    assert "Why not" in said
    assert world.counters() == (0, 0)


# The window decides once, however often its bytes arrive.
async def test_replayed(world: World, asked: CardBefore) -> None:
    reply = await world.slack.actor.submit(U_ALICE, {"stet.answer": "No"})
    again = await world.slack.actor.send(reply.request)
    assert again.status == 200
    assert "Already rejected by" in plain(json.dumps(again.json))
    assert world.counters() == (1, 0)


# The read modal's Reject asks in a window of its own, on top, and its answer closes both.
async def test_reject_after_reading(world: World) -> None:
    card = world.card()
    await card.click(U_ALICE, "read")
    await world.slack.actor.press(U_ALICE, "stet.reject")
    assert len(world.slack.state.open_views[U_ALICE]) == 2
    assert await submit(world, U_ALICE, "Wrong tone") == {"response_action": "clear"}
    assert world.slack.state.view_on_top(U_ALICE) is None
    assert world.counters() == (1, 0)


# So do its Edit and Redraft; saved, closing closes what was read too, and unchanged one is back at reading.
async def test_edit_after_reading(world: World) -> None:
    card = world.card({"redrafts": 3, "prompt_version": "x"})
    actor = world.slack.actor
    await card.click(U_ALICE, "read")
    await actor.press(U_ALICE, "stet.edit")
    assert len(world.slack.state.open_views[U_ALICE]) == 2
    await actor.submit(U_ALICE, {})
    await actor.dismiss(U_ALICE)
    assert "It ships Monday." in plain(world.window(U_ALICE))
    await actor.press(U_ALICE, "stet.edit")
    await actor.submit(U_ALICE, {"stet.edit.body": "It ships Friday."})
    assert "revision 2" in plain(world.window(U_ALICE))
    await actor.dismiss(U_ALICE)
    assert world.slack.state.view_on_top(U_ALICE) is None
    assert rows(world.dsn, "SELECT body ->> 'body' AS said FROM revisions WHERE revision = 2") == [
        {"said": "It ships Friday."}
    ]


# Redraft from the read modal asks on top of it, closes it too, and keeps the wish.
async def test_redraft_after_reading(world: World) -> None:
    card = world.card({"redrafts": 3, "prompt_version": "x"})
    actor = world.slack.actor
    await card.click(U_ALICE, "read")
    await actor.press(U_ALICE, "stet.redraft")
    await actor.submit(U_ALICE, {"stet.answer": "Friendlier"})
    await actor.dismiss(U_ALICE)
    assert world.slack.state.view_on_top(U_ALICE) is None
    assert rows(world.dsn, "SELECT wish FROM redrafts") == [{"wish": "Friendlier"}]


# Slack may leave the person's team out: then that of the window's holder counts, if it is the same person.
async def test_without_team(world: World, asked: CardBefore) -> None:
    def without(body: dict[str, Any]) -> None:
        body["user"].pop("team_id")

    assert await submit(world, U_ALICE, "No", change=without) == {"response_action": "clear"}
    assert world.counters() == (1, 0)


# A window that somebody else sends, or the same name from another team, decides nothing.
@pytest.mark.parametrize(
    "change_",
    [
        lambda body: body["user"].update(id=U_BOB),
        lambda body: body["user"].update(team_id=OTHER_TEAM),
        lambda body: (body["user"].update(id=U_BOB), body["user"].pop("team_id")),
        lambda body: body["user"].update(id=U_GRID, team_id=None),
    ],
)
async def test_another_sender(world: World, asked: CardBefore, change_: Any) -> None:
    answer = await submit(world, U_ALICE, "No", change=change_)
    assert answer is not None
    assert answer["response_action"] == "update"
    assert world.counters() == (0, 0)


CHANGES: dict[str, Any] = {
    "no view": lambda body: body.pop("view"),
    "no state": lambda body: body["view"].pop("state"),
    "a state that is a list": lambda body: body["view"]["state"].update(values=[1]),
    "a value that is a number": lambda body: body["view"]["state"]["values"][REASON]["stet.answer"].update(
        value=7
    ),
    "no callback": lambda body: body["view"].pop("callback_id"),
    "another callback": lambda body: body["view"].update(callback_id="stet.edit"),
    "no metadata": lambda body: body["view"].pop("private_metadata"),
    "other metadata": lambda body: body["view"].update(private_metadata="\x00x"),
    "no user": lambda body: body.pop("user"),
}


# A submission of any shape is answered with 200, decides nothing, and loses nothing typed to an error sign.
@pytest.mark.parametrize("name", CHANGES)
async def test_strange_shapes(world: World, asked: CardBefore, name: str) -> None:
    await submit(world, U_ALICE, "No", change=CHANGES[name])
    assert world.counters() == (0, 0)


# The sentence in a modal that only says something needs no answer.
async def test_message(world: World, asked: CardBefore) -> None:
    change(world.dsn, "UPDATE drafts SET expires_at = now() - interval '1 second'")
    await submit(world, U_ALICE, "No")
    assert "Too late" in plain(world.window(U_ALICE))
    assert await submit(world, U_ALICE, "") is None


# A draft that two must approve, confirmed by typing: the first one hears how many there are.
async def test_typed_vote(world: World) -> None:
    card = world.card({"confirm": "typed", "quorum": 2})
    await card.click(U_ALICE)
    await submit(world, U_ALICE, "customer:42")
    assert "Your approval counts: 1 of 2." in plain(world.window(U_ALICE))
    assert world.counters() == (0, 0)
