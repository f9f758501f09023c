"""Each person is answered in the language of their Slack; channels hear LANGUAGE.

Not here: the sentences and how they are drawn (tests/cards).
"""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from bot.cards.words import language_of
from bot.demo.slack_faults import hanging
from bot.demo.slack_payloads import Forge
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import U_ADMIN, U_ALICE, U_BOB, U_GUEST
from store.database import Database
from tests.doors.slack_world import World, doors_on, plain


@pytest_asyncio.fixture
async def mixed(dsn: str, db: Database) -> AsyncIterator[World]:
    """A workspace whose channels are told things in English, and in which some people read Chinese."""
    async with SlackStandIn(rate_factor=None) as slack:
        users = slack.state.workspace.users
        users[U_ALICE].locale = users[U_GUEST].locale = users[U_ADMIN].locale = "zh-CN"
        users[U_BOB].locale = "en-GB"
        async with doors_on(db, slack, []) as doors:
            yield World(dsn, db, slack, doors)


# Two people press the same dead button; each hears why in their own language.
async def test_each_in_their_own(mixed: World) -> None:
    card = mixed.card()
    await card.click(U_GUEST)
    assert await mixed.heard(U_GUEST) == ["访客不能审批，本次操作未生效。"]
    await card.click(U_BOB)
    await card.click(U_BOB)
    await card.click(U_ALICE)
    [english] = await mixed.heard(U_BOB)
    [chinese] = await mixed.heard(U_ALICE)
    assert english.startswith("Already approved by <@U0BOB>, ")
    assert chinese.startswith("已由 <@U0BOB> 批准，")


# Windows, what is wrong in them, and commands speak it too.
async def test_windows_and_commands(mixed: World) -> None:
    card = mixed.card()
    await card.reject(U_ALICE, " ")
    assert "驳回这份草稿" in mixed.window(U_ALICE)
    assert list(mixed.slack.actor.top_view(U_ALICE).errors.values()) == ["请填写驳回原因。"]
    await mixed.slack.actor.dismiss(U_ALICE)
    await card.click(U_ALICE, "read")
    await mixed.slack.actor.press(U_ALICE, "stet.approve")
    await mixed.doors.settle()
    assert "已批准。" in plain(mixed.window(U_ALICE))
    assert "正常发出" in await mixed.say(U_ADMIN, "status")
    assert (await mixed.say(U_ADMIN, "kill storm")).startswith("🔴 已停止：all。")


# A Home is its owner's alone, and speaks as they do.
async def test_home(mixed: World) -> None:
    mixed.card()
    for user, words in ((U_ALICE, "等待您审批：1"), (U_BOB, "Waiting for you: 1")):
        await mixed.slack.actor.open_home(user)
        await mixed.doors.settle()
        assert words in plain(json.dumps(mixed.slack.state.homes[user].content))


# While Slack does not say who somebody is, LANGUAGE is spoken, and the click is answered in time.
async def test_slow(mixed: World) -> None:
    card = mixed.card()
    mixed.slack.faults.always("users.info", hanging())
    assert (await card.click(U_ALICE)).kept
    mixed.slack.faults.clear()
    [note] = await mixed.heard(U_ALICE)
    assert note.startswith("I could not check who you are just now.")


# Whoever was seen before is spoken to in their language even where nothing could be read.
async def test_unreadable(mixed: World) -> None:
    card = mixed.card()
    await card.click(U_GUEST)
    await card.click(U_GUEST, forge=Forge(change=lambda payload: payload.pop("container") and None))
    assert (await mixed.heard(U_GUEST))[-1] == "这个按钮已失效，请使用频道中的卡片。"


# The language is asked once with the account: no call more than deciding needs.
async def test_no_further_call(mixed: World) -> None:
    await mixed.card().click(U_ALICE)
    assert mixed.slack.journal.count("users.info") == 1
    [call] = mixed.slack.journal.of("users.info")
    assert call.arguments["include_locale"] == "true"


# With LANGUAGE=zh-CN whoever has another Slack language hears Chinese, as the channels do.
@pytest.mark.parametrize(
    ("locale", "language"),
    [
        ("zh-CN", "zh-CN"),
        ("en-US", "en"),
        ("en-GB", "en"),
        ("en", "en"),
        ("de-DE", "zh-CN"),
        ("zh-TW", "zh-CN"),
        ("", "zh-CN"),
        (None, "zh-CN"),
    ],
)
def test_language_of(locale: str | None, language: str) -> None:
    assert language_of(locale, "zh-CN") == language
