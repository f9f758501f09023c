"""Slack does not say who somebody is or who stands in a group: what is answered then is true all the same.

Not here: deciding, which is refused then (test_buttons), or what is remembered (tests/slack/test_people).
"""

import json

import pytest

from bot.demo.slack_faults import limited, says
from bot.demo.slack_workspace import S_REVIEWERS, U_ADMIN, U_ALICE, U_MEMBER
from tests.doors.slack_world import POLICY, World, doors_on, plain
from tests.makers import make_draft, rows

GROUPS, ACCOUNTS = "usergroups.users.list", "users.info"
TROUBLES = {"fault": says("internal_error"), "limit": limited("30"), "no group": says("no_such_subteam")}
MORE = "I cannot read every group of reviewers just now, so more may wait for you than I can show."
UNREAD = "I cannot read the reviewers' group. Nothing was decided. Please try again."


async def home_of(world: World, user: str) -> str:
    assert (await world.slack.actor.open_home(user)).kept
    await world.doors.settle()
    return plain(json.dumps(world.slack.state.homes[user].content, ensure_ascii=False))


# With a group unread nobody is told that nothing waits for them, or that a key was never seen.
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("user", [U_ALICE, U_MEMBER])
async def test_group_unread(world: World, user: str, trouble: str) -> None:
    draft = make_draft(world.dsn, snapshot={"reviewers": [S_REVIEWERS]})
    world.slack.faults.always(GROUPS, TROUBLES[trouble])
    assert (await world.say(user, "queue")).startswith(MORE)
    assert (await home_of(world, user)).startswith(MORE)
    assert await world.say(user, f"show {draft['key']}") == UNREAD
    assert await world.say(user, "show nothing-like-it") == UNREAD
    world.slack.faults.clear()
    assert MORE not in await world.say(user, "queue")
    assert MORE not in await home_of(world, user)


# What is known without the group stands there all the same, and that there may be more.
async def test_rest_is_shown(world: World) -> None:
    other = POLICY.replace("customer_email", "refund").replace(S_REVIEWERS, U_ALICE)
    async with doors_on(world.db, world.slack, world.woken, policy=POLICY + other) as doors:
        world.doors = doors
        make_draft(world.dsn, snapshot={"reviewers": [U_ALICE]}, run={"kind": "refund", "entity": "order:7"})
        world.slack.faults.always(GROUPS, says("internal_error"))
        for said in (await world.say(U_ALICE, "queue"), await home_of(world, U_ALICE)):
            assert "Waiting for you: 1" in said
            assert "order:7" in said
            assert MORE in said


# Who the admins are is another question than who reviews, and is told apart.
@pytest.mark.parametrize("words", ["kill storm", "resume it is over", "unknown", "rerun x"])
async def test_admins_unread(world: World, words: str) -> None:
    world.slack.faults.always(GROUPS, says("internal_error"))
    said = await world.say(U_ADMIN, words)
    assert said == "I cannot read who the admins are. Nothing was changed. Please try again."
    assert rows(world.dsn, "SELECT open FROM kill_switch") == [{"open": True}]
    assert [line.action for line in await world.chain("system")] == ["refused"]


# Somebody whose account cannot be read is not called a stranger on their Home.
async def test_account_unread(world: World) -> None:
    world.slack.faults.always(ACCOUNTS, says("internal_error"))
    assert await home_of(world, U_ALICE) == (
        "I could not check who you are just now. Nothing was decided. Please try again."
    )
