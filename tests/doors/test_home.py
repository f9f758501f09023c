"""App Home over real requests: drawn when opened, decided on, paged, and kept true while it is open.

Not here: how it looks (tests/cards/test_home) or `/stet queue` (test_commands).
"""

import json
from typing import Any

import pytest

from bot.contracts.click import decode_value
from bot.demo.slack_faults import limited, says
from bot.demo.slack_workspace import S_REVIEWERS, TEAM, U_ADMIN, U_ALICE, U_BOB, U_GUEST, U_MEMBER, U_STRANGER
from bot.policy.tokens import hash_token
from tests.doors.slack_world import World, plain
from tests.makers import change, insert_vote, make_draft, make_effect, make_waiting, rows

PUBLISH = "views.publish"
REVIEWED = {"reviewers": [S_REVIEWERS]}
DRAFTED = REVIEWED | {"redrafts": 3, "prompt_version": "x"}


async def open_home(world: World, user: str = U_ALICE) -> str:
    """Open the Home; give all that stands on it."""
    assert (await world.slack.actor.open_home(user)).kept
    await world.doors.settle()
    return read(world, user)


def read(world: World, user: str = U_ALICE) -> str:
    return plain(json.dumps(world.slack.state.homes[user].content, ensure_ascii=False))


def actions(world: World, user: str = U_ALICE) -> list[str]:
    """The buttons of a Home, from top to bottom."""
    blocks = world.slack.state.homes[user].content["blocks"]
    found = [element for block in blocks for element in block.get("elements", [])]
    return [one["action_id"] for one in found if one.get("type") == "button"]


async def press(world: World, button: str | int, user: str = U_ALICE) -> None:
    assert (await world.slack.actor.press_home(user, button)).kept
    await world.doors.settle()


def make_due(world: World) -> None:
    change(world.dsn, "UPDATE homes SET next_check_at = now() - interval '1 second'")


# What waits stands there oldest first with its buttons; each token is one Home's, for one answer.
async def test_what_waits(world: World) -> None:
    make_draft(world.dsn, snapshot=REVIEWED, run={"entity": "customer:new"})
    make_draft(world.dsn, snapshot=REVIEWED, run={"entity": "customer:old"})
    change(world.dsn, "UPDATE drafts SET opened_at = now() - interval '1 day' WHERE entity = 'customer:old'")
    said = await open_home(world)
    assert "Waiting for you: 2" in said
    assert said.index("customer:old") < said.index("customer:new")
    assert "It ships Monday." in said
    assert "amy@example.test" in said
    assert actions(world) == ["stet.approve", "stet.reject", "stet.edit"] * 2
    stored = rows(world.dsn, "SELECT surface, holder, card_id, decision FROM approval_tokens")
    assert {(row["surface"], row["holder"], row["card_id"]) for row in stored} == {
        ("home", f"slack:{TEAM}:{U_ALICE}", None)
    }
    assert sorted(row["decision"] for row in stored) == sorted(["approve", "edit", "reject"] * 2)


# Approve on the Home decides as on the card, with the hash of what stood there, and says what became of it.
async def test_approve(world: World) -> None:
    make_draft(world.dsn, snapshot=REVIEWED)
    await open_home(world)
    await press(world, "stet.approve")
    assert world.counters() == (1, 1)
    assert plain(world.window(U_ALICE)).endswith("Approved.")
    assert rows(world.dsn, "SELECT shown_hash FROM approvals")[0]["shown_hash"] != "0" * 64
    said = read(world)
    assert "No draft waits for you." in said
    assert "You approved Customer email · customer:42" in said
    assert "Approved, waiting to be sent" in said


# Reject asks why, and the whole draft can be read and decided in a modal.
async def test_reject_and_read(world: World) -> None:
    make_draft(world.dsn, snapshot=REVIEWED)
    make_draft(
        world.dsn, snapshot=REVIEWED, run={"entity": "customer:43"}, body={"body": "One.\nTwo.\nThree."}
    )
    await open_home(world)
    assert actions(world) == [
        "stet.approve",
        "stet.reject",
        "stet.edit",
        "stet.read",
        "stet.reject",
        "stet.edit",
    ]
    await press(world, "stet.reject")
    await world.slack.actor.submit(U_ALICE, {"stet.answer": "No"})
    await press(world, "stet.read")
    assert "Three." in world.window(U_ALICE)
    await world.slack.actor.press(U_ALICE, "stet.approve")
    assert rows(world.dsn, "SELECT entity, status FROM drafts ORDER BY entity") == [
        {"entity": "customer:42", "status": "rejected"},
        {"entity": "customer:43", "status": "approved"},
    ]


# Edit and Redraft on the Home open their windows there and count as on the card.
async def test_edit_and_redraft(world: World) -> None:
    make_draft(world.dsn, snapshot=DRAFTED, run={"entity": "customer:a"})
    await open_home(world)
    assert actions(world) == ["stet.approve", "stet.reject", "stet.edit", "stet.redraft"]
    await press(world, "stet.edit")
    await world.slack.actor.submit(U_ALICE, {"stet.edit.body": "It ships Friday."})
    assert "revision 2" in plain(world.window(U_ALICE))
    assert rows(world.dsn, "SELECT revision, author FROM revisions ORDER BY revision")[1] == {
        "revision": 2,
        "author": f"slack:{TEAM}:{U_ALICE}",
    }
    await world.slack.actor.dismiss(U_ALICE)
    assert "It ships Friday." in await open_home(world)
    await press(world, "stet.redraft")
    await world.slack.actor.submit(U_ALICE, {"stet.answer": "Friendlier"})
    assert rows(world.dsn, "SELECT wish, revision FROM redrafts") == [{"wish": "Friendlier", "revision": 2}]


# A draft that nobody may edit, and that was made upstream, has neither button.
async def test_neither_edit_nor_redraft(world: World) -> None:
    make_draft(world.dsn, snapshot=REVIEWED | {"editable": []})
    await open_home(world)
    assert actions(world) == ["stet.approve", "stet.reject"]


# The buttons of one person's Home are nobody else's, and of no other surface.
async def test_buttons_are_one_persons(world: World) -> None:
    make_draft(world.dsn, snapshot=REVIEWED)
    await open_home(world)
    homes = world.slack.state.homes
    homes[U_BOB] = world.slack.state.new_view(U_BOB, homes[U_ALICE].content)
    await press(world, "stet.approve", U_BOB)
    assert world.counters() == (0, 0)
    assert "belongs to another message" in world.window(U_BOB)


# With no window to be had, what came of a press on the Home stands above it, whatever redraws it meanwhile,
# and is gone when the person opens it again.
@pytest.mark.parametrize("button", ["stet.approve", "stet.reject"])
async def test_no_window(world: World, button: str) -> None:
    draft = make_draft(world.dsn, snapshot=REVIEWED)
    await open_home(world)
    change(world.dsn, "UPDATE drafts SET expires_at = now() WHERE draft_id = %(id)s", id=draft["draft_id"])
    world.slack.faults.always("views.open", says("expired_trigger_id"))
    await press(world, button)
    assert read(world).startswith("Too late: this draft expired")
    await world.doors.homes.run_once()
    make_due(world)
    await world.doors.homes.run_once()
    assert read(world).startswith("Too late: this draft expired")
    assert not (await open_home(world)).startswith("Too late: this draft expired")


# Only kinds that somebody may review, and only what they have not answered, waits for them.
async def test_only_what_is_theirs(world: World) -> None:
    draft = make_draft(world.dsn, snapshot=REVIEWED)
    make_draft(world.dsn, run={"kind": "other", "entity": "customer:9"})
    assert "No draft waits for you." in await open_home(world, U_MEMBER)
    assert "Waiting for you: 1" in await open_home(world)
    change(
        world.dsn,
        "INSERT INTO votes (approval_id, subject, decision, counted_as, shown_hash)"
        " VALUES (%(id)s, %(who)s, 'approve', 'x', '')",
        id=draft["approval_id"],
        who=f"slack:{TEAM}:{U_ALICE}",
    )
    assert "No draft waits for you." in await open_home(world)
    for outsider in (U_GUEST, U_STRANGER):  # Slack does not say the team of who opens a Home.
        assert "Only full members" in await open_home(world, outsider)
    assert U_GUEST not in {row["user_id"] for row in rows(world.dsn, "SELECT user_id FROM homes")}


# Drafts behind the queue card wait on the Home as well; its pages turn, and stay where they were turned to.
async def test_pages(world: World) -> None:
    make_waiting(world.dsn, 10, snapshot=REVIEWED)
    said = await open_home(world)
    assert "Waiting for you: 10" in said
    assert "page 1 of 2" in said
    assert "stet.home.page.2" in actions(world)
    await press(world, "stet.home.page.2")
    assert "page 2 of 2" in read(world)
    assert actions(world).count("stet.approve") == 2
    await press(world, "stet.approve")
    assert "page 2 of 2" in read(world)
    assert "Waiting for you: 9" in read(world)
    assert "page 1 of 2" in await open_home(world)


# While it is open a Home is published again when something of it changes, and not when nothing does.
async def test_kept_true(world: World) -> None:
    await open_home(world)
    make_due(world)
    assert await world.doors.homes.run_once() == 0
    make_draft(world.dsn, snapshot=REVIEWED)
    assert await world.doors.homes.run_once() == 0
    make_due(world)
    assert await world.doors.homes.run_once() == 1
    assert "Waiting for you: 1" in read(world)
    make_due(world)
    assert await world.doors.homes.run_once() == 0
    assert world.slack.journal.count(PUBLISH) == 2


# Whoever opened theirs long ago is left alone until they open it again.
async def test_left_alone(world: World) -> None:
    await open_home(world)
    change(world.dsn, "UPDATE homes SET opened_at = now() - interval '61 minutes'")
    make_draft(world.dsn, snapshot=REVIEWED)
    make_due(world)
    assert await world.doors.homes.run_once() == 0
    assert rows(world.dsn, "SELECT * FROM homes") == []
    assert "Waiting for you: 1" in await open_home(world)


# A drawing older than what was published meanwhile is refused by Slack, and made again from the truth.
async def test_hash_conflict(world: World) -> None:
    await open_home(world)
    make_draft(world.dsn, snapshot=REVIEWED)
    change(world.dsn, "UPDATE homes SET view_hash = 'outdated'")
    make_due(world)
    assert await world.doors.homes.run_once() == 1
    assert "No draft waits for you." in read(world)
    make_due(world)
    assert await world.doors.homes.run_once() == 1
    assert "Waiting for you: 1" in read(world)


# What Slack does not take now is published at a later look.
@pytest.mark.parametrize("trouble", [limited("1"), says("internal_error")], ids=["limited", "internal_error"])
async def test_trouble(world: World, trouble: Any) -> None:
    make_draft(world.dsn, snapshot=REVIEWED)
    world.slack.faults.order(PUBLISH, trouble)
    assert (await world.slack.actor.open_home(U_ALICE)).kept
    await world.doors.settle()
    assert world.slack.state.homes == {}
    world.doors.homes._deps.pace._held_until.clear()
    make_due(world)
    assert await world.doors.homes.run_once() == 1
    assert "Waiting for you: 1" in read(world)


# Buttons of drawings that were replaced a while ago leave the database, those of the last one stay.
async def test_old_buttons_go(world: World) -> None:
    make_draft(world.dsn, snapshot=REVIEWED)
    await open_home(world)
    change(world.dsn, "UPDATE approval_tokens SET minted_at = now() - interval '11 minutes'")
    await open_home(world)
    assert rows(world.dsn, "SELECT count(*) AS n FROM approval_tokens") == [{"n": 3}]
    blocks = world.slack.state.homes[U_ALICE].content["blocks"]
    values = [one["value"] for block in blocks if block["type"] == "actions" for one in block["elements"]]
    kept = {row["token_hash"] for row in rows(world.dsn, "SELECT token_hash FROM approval_tokens")}
    assert {hash_token(found.token) for each in values if (found := decode_value(each))} == kept


# Admins see the switch with its scopes, unknown effects with their buttons, and the week; others do not.
async def test_admin(world: World) -> None:
    effect_id = make_effect(world.dsn, state="unknown")
    sent = make_draft(world.dsn, status="sent", run={"entity": "customer:1"})
    insert_vote(world.dsn, sent, subject=f"slack:{TEAM}:{U_ADMIN}")
    change(
        world.dsn,
        "INSERT INTO event_counters (day, source, kind, status, n)"
        " VALUES (current_date, 'n8n', 'customer_email', 'accepted', 7),"
        " (current_date - 9, 'n8n', 'x', 'accepted', 5)",
    )
    change(
        world.dsn,
        "INSERT INTO kill_switch (scope, open, changed_by, reason)"
        " VALUES ('effect:http', false, 'slack:T0STET:U0BOB', '<!channel> stop')",
    )
    said = await open_home(world, U_ADMIN)
    assert "effect:http" in said
    assert "<!channel> stop" in said
    assert "Events: 7" in said
    assert "Approved: 1" in said
    assert "sent: 1" in said
    assert "You approved Customer email · customer:1" in said
    await press(world, "stet.unknown.delivered", U_ADMIN)
    [effect] = rows(world.dsn, "SELECT state FROM effect_outbox WHERE effect_id = %(id)s", id=effect_id)
    assert effect["state"] == "completed"
    assert "sent: 0" in read(world, U_ADMIN)
    assert "Events" not in await open_home(world)


# With the database away the person reads so.
async def test_database_away(world: World) -> None:
    await world.db.close()
    assert "The database is away." in await open_home(world)


# Text from outside mentions nobody and links nowhere on the Home.
async def test_hostile(world: World) -> None:
    text = "<!channel> <@U0BOB> <https://evil.example|click>"
    make_draft(world.dsn, snapshot=REVIEWED, run={"entity": text}, body={"subject": text})
    await open_home(world)
    drawn = json.dumps(world.slack.state.homes[U_ALICE].content)
    assert "mrkdwn" not in drawn
    assert '"link"' not in drawn
    assert text in read(world)
