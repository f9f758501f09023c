"""The queue card's button over real requests: it opens the next in line, which is decided there.

Not here: who is next (tests/flow/test_next) or who gets a card (tests/flow/test_places).
"""

from typing import Any

from bot.cards import queue
from bot.demo.slack_state import Message
from bot.demo.slack_workspace import C_REVIEW, S_REVIEWERS, U_ALICE, U_BOB, U_GUEST, U_MEMBER
from tests.doors.slack_world import World, plain
from tests.makers import change, make_waiting, rows

NEXT = "stet.queue.next"


def in_line(world: World, count: int, **snapshot: Any) -> str:
    """Drafts that wait, and the queue card before people; give its ts."""
    make_waiting(world.dsn, count, snapshot={"reviewers": [S_REVIEWERS]} | snapshot)
    ts = world.slack.state.new_ts()
    blocks = queue.render(queue.QueueView(count, 1))
    world.slack.state.add(Message(C_REVIEW, ts, "queue", blocks=blocks))
    return ts


# Review next opens the first, Skip shows another in its place, Approve there decides and wakes what follows.
async def test_review_next(world: World) -> None:
    ts = in_line(world, 3)
    actor = world.slack.actor
    assert (await actor.click(U_ALICE, C_REVIEW, ts, NEXT)).kept
    assert "customer_email:0000" in plain(world.window(U_ALICE))
    assert (await actor.press(U_ALICE, NEXT)).kept
    await world.doors.settle()
    assert "customer_email:0001" in plain(world.window(U_ALICE))
    assert (await actor.press(U_ALICE, "stet.approve")).kept
    await world.doors.settle()
    assert plain(world.window(U_ALICE)).endswith("Approved.")
    assert world.counters() == (1, 1)
    assert rows(world.dsn, "SELECT entity FROM drafts WHERE status = 'approved'") == [
        {"entity": "customer_email:0001"}
    ]
    assert "places" in world.woken


# Reject asks why on top of the modal, and ends there.
async def test_reject_in_line(world: World) -> None:
    ts = in_line(world, 1)
    actor = world.slack.actor
    await actor.click(U_ALICE, C_REVIEW, ts, NEXT)
    await actor.press(U_ALICE, "stet.reject")
    await actor.submit(U_ALICE, {"stet.answer": "Wrong tone"})
    assert world.counters() == (1, 0)
    assert rows(world.dsn, "SELECT status FROM drafts") == [{"status": "rejected"}]


# Edit in line asks on top of the modal, and makes the next revision of the draft that was shown.
async def test_edit_in_line(world: World) -> None:
    ts = in_line(world, 2)
    actor = world.slack.actor
    await actor.click(U_ALICE, C_REVIEW, ts, NEXT)
    await actor.press(U_ALICE, "stet.edit")
    assert len(world.slack.state.open_views[U_ALICE]) == 2
    await actor.submit(U_ALICE, {"stet.edit.body": "It ships Friday."})
    assert rows(world.dsn, "SELECT entity FROM drafts WHERE revision = 2") == [
        {"entity": "customer_email:0000"}
    ]


# Two people who open the same draft decide it once; the other hears whose decision it was.
async def test_two_reviewers(world: World) -> None:
    ts = in_line(world, 1)
    actor = world.slack.actor
    for user in (U_ALICE, U_BOB):
        await actor.click(user, C_REVIEW, ts, NEXT)
    for user in (U_ALICE, U_BOB):
        await actor.press(user, "stet.approve")
    await world.doors.settle()
    assert world.counters() == (1, 1)
    assert "Already approved by" in plain(world.window(U_BOB))


# Whoever may not review sees nothing, hears why, and goes on the record.
async def test_others_see_nothing(world: World) -> None:
    ts = in_line(world, 1)
    for user, why in ((U_MEMBER, "Only reviewers"), (U_GUEST, "Guests may not")):
        assert (await world.slack.actor.click(user, C_REVIEW, ts, NEXT)).kept
        assert (await world.heard(user))[-1].startswith(why)
        assert world.slack.state.view_on_top(user) is None
    assert [line.action for line in await world.chain("system")] == ["refused", "refused"]


# With nobody left in line the person hears so, and Skip on the last one says it in the modal.
async def test_end_of_line(world: World) -> None:
    ts = in_line(world, 1)
    actor = world.slack.actor
    await actor.click(U_ALICE, C_REVIEW, ts, NEXT)
    await actor.press(U_ALICE, NEXT)
    await world.doors.settle()
    assert plain(world.window(U_ALICE)).endswith("Nothing more waits here for you.")
    change(world.dsn, "UPDATE cards SET waits_until = NULL")
    await actor.click(U_BOB, C_REVIEW, ts, NEXT)
    assert await world.heard(U_BOB) == ["Nothing more waits here for you."]


# A long draft in line can be passed over on each of its parts.
async def test_skip_on_every_part(world: World) -> None:
    ts = in_line(world, 2)
    change(
        world.dsn,
        "UPDATE revisions SET body = jsonb_build_object('subject', 'Long', 'body', repeat('word ', 7000))",
    )
    actor = world.slack.actor
    await actor.click(U_ALICE, C_REVIEW, ts, NEXT)
    for part in ("2", "1", "2"):
        assert NEXT in world.window(U_ALICE)
        await actor.press(U_ALICE, f"stet.read.part.{part}")
        await world.doors.settle()
        assert f"Part {part} of 2" in plain(world.window(U_ALICE))
    assert NEXT in world.window(U_ALICE)
    await actor.press(U_ALICE, NEXT)
    await world.doors.settle()
    assert "customer_email:0001" in plain(world.window(U_ALICE))
