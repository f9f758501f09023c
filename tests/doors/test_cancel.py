"""The Cancel button of an approved card: there until the send has started, answered with what became of it.

Not here: races with the send (tests/flow/test_cancel).
"""

from typing import Any

import pytest

from bot.demo.slack_workspace import U_ALICE, U_BOB, U_MEMBER
from tests.doors.slack_world import World
from tests.doors.test_redraft import show
from tests.flow.screens import buttons, said, seen
from tests.makers import change, make_effect, rows

SEEN_AGAIN = "UPDATE cards SET wanted_version = wanted_version + 1, next_attempt_at = now()"


def element(message: Any, action_id: str) -> dict[str, Any]:
    found = [one for block in message.blocks for one in block.get("elements", []) if isinstance(one, dict)]
    one: dict[str, Any] = next(each for each in found if each.get("action_id") == action_id)
    return one


# An approved card is cancelled by its own button, asked once more; the card then says who did it.
async def test_cancel(world: World) -> None:
    card = world.card({"confirm": "dialog"})
    change(world.dsn, SEEN_AGAIN)
    await show(world)
    assert "confirm" in element(seen(world.slack)[0], "stet.approve")
    await card.click(U_BOB)
    await show(world)
    (message,) = seen(world.slack)
    assert set(buttons(message)) == {"stet.cancel"}
    assert "confirm" in element(message, "stet.cancel")
    await card.click(U_ALICE, "cancel")
    assert await world.heard(U_ALICE) == ["Cancelled. Nothing is sent."]
    assert rows(world.dsn, "SELECT state FROM effect_outbox") == [{"state": "cancelled"}]
    await show(world)
    (message,) = seen(world.slack)
    assert "Cancelled" in said(message)
    assert "Alice" in said(message)
    assert not buttons(message)


# Pressed too late it says so, and changes nothing.
async def test_too_late(world: World) -> None:
    card = world.card(status="approved")
    make_effect(world.dsn, draft=card.draft, state="sending", started=True)
    await card.click(U_ALICE, "cancel")
    assert await world.heard(U_ALICE) == ["Too late to cancel: sending has started."]
    assert rows(world.dsn, "SELECT status FROM drafts") == [{"status": "approved"}]


# A second person hears who cancelled it.
async def test_cancelled_already(world: World) -> None:
    card = world.card(status="approved")
    make_effect(world.dsn, draft=card.draft)
    await card.click(U_ALICE, "cancel")
    await card.click(U_BOB, "cancel")
    assert (await world.heard(U_BOB))[0].startswith(f"Already cancelled by <@{U_ALICE}>")


# Who is no reviewer cancels nothing, and is put on the record.
async def test_strangers(world: World) -> None:
    card = world.card(status="approved")
    make_effect(world.dsn, draft=card.draft)
    await card.click(U_MEMBER, "cancel")
    assert (await world.heard(U_MEMBER))[0].startswith("Only reviewers")
    assert [line.action for line in await world.chain(card.draft["key"])] == ["refused"]
    assert rows(world.dsn, "SELECT status FROM drafts") == [{"status": "approved"}]


# An effect that may be out already has no Cancel, also while it waits to be repeated.
@pytest.mark.parametrize(("more", "there"), [({}, True), ({"attempts": 2, "reason": "http_429"}, True)])
async def test_button(world: World, more: dict[str, Any], *, there: bool) -> None:
    card = world.card(status="approved")
    make_effect(world.dsn, draft=card.draft, **more)
    change(world.dsn, SEEN_AGAIN)
    await show(world)
    assert ("stet.cancel" in buttons(seen(world.slack)[0])) == there
    change(world.dsn, "UPDATE effect_outbox SET ambiguous_at = now()")
    change(world.dsn, SEEN_AGAIN)
    await show(world)
    assert "stet.cancel" not in buttons(seen(world.slack)[0])
