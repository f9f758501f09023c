"""Tests of the slack_message connector against the Slack stand-in.

Not here: each answer of Slack by itself (tests/slack).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from bot.connectors import slack_message
from bot.connectors.connector import Effect, Kit
from bot.connectors.slack_message import SlackMessageConnector, build
from bot.contracts.outcome import Absent, Found, NoAnswer, NotSent, Refused, SendOutcome, Sent, Unknown
from bot.demo import slack_faults as fault
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message
from bot.demo.slack_workspace import (
    C_ARCHIVED,
    C_NOT_JOINED,
    C_REVIEW,
    C_SHARED,
    ENTERPRISE_USER,
    U_ALICE,
    U_GONE,
)
from bot.slack.client import SlackClient
from store.ids import new_id
from tests.connectors.effects import make_effect, slept

POST = "chat.postMessage"
HOSTILE = "<!channel> *now* <https://evil.example|here> @alice & `x`\n:tada: <@U0ALICE>"


@pytest.fixture
async def slack() -> AsyncIterator[SlackStandIn]:
    async with SlackStandIn(rate_factor=None) as stand_in:
        yield stand_in


@pytest.fixture
async def connector(slack: SlackStandIn) -> AsyncIterator[SlackMessageConnector]:
    client = SlackClient(slack.state.workspace.token, base_url=slack.api_url)
    await client.open()
    yield build(Kit(slack=client))
    await client.close()


def effect(
    output: Any = None, *, recipient: str | None = None, target: str = C_REVIEW, **policy: Any
) -> Effect:
    said = {"text": "It ships Monday."} if output is None else output
    body = json.dumps({"output": said}).encode()
    made = make_effect(target, effect_id=new_id(), body=body, **{"type": "slack_message"} | policy)
    return Effect(**{name: getattr(made, name) for name in Effect.__slots__} | {"recipient": recipient})


def posted(slack: SlackStandIn) -> list[Message]:
    return slack.state.channel_messages(C_REVIEW)


def literal(message: Message) -> str:
    """The text of a message that is one block of literal text."""
    (block,) = message.blocks or []
    (section,) = block["elements"]
    assert {element["type"] for element in section["elements"]} == {"text"}
    return "".join(element["text"] for element in section["elements"])


# A message is posted once, marked by its effect, and named by its ts.
async def test_posted(slack: SlackStandIn, connector: SlackMessageConnector) -> None:
    made = effect()
    outcome = await connector.send(made)
    (message,) = posted(slack)
    assert outcome == Sent(message.ts)
    assert literal(message) == "It ships Monday."
    assert message.metadata == {
        "event_type": "stet_effect",
        "event_payload": {"effect": str(made.effect_id)},
    }
    assert slack.journal.of(POST)[0].arguments["unfurl_links"] is False


# The recipient goes before the target.
async def test_recipient_first(slack: SlackStandIn, connector: SlackMessageConnector) -> None:
    assert isinstance(await connector.send(effect(recipient=C_REVIEW, target=C_ARCHIVED)), Sent)
    assert len(posted(slack)) == 1


# What was approved is literal text: it mentions nobody, hides no link and formats nothing.
@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"text": HOSTILE}, HOSTILE),
        ({"subject": "News", "body": HOSTILE}, f"News\n\n{HOSTILE}"),
        ({"body": "alone", "subject": 3}, "alone"),
        ({"text": "ä" * 7000}, "ä" * 7000),
    ],
)
async def test_literal(
    slack: SlackStandIn, connector: SlackMessageConnector, output: Any, expected: str
) -> None:
    assert isinstance(await connector.send(effect(output)), Sent)
    (message,) = posted(slack)
    assert literal(message) == expected
    assert "<" not in message.text
    assert len(message.text) <= 600 * 5


# What no message can be made of is refused before Slack is asked.
@pytest.mark.parametrize("output", [{}, {"text": " "}, {"text": 3}, [], {"subject": "only"}])
async def test_no_text(slack: SlackStandIn, connector: SlackMessageConnector, output: Any) -> None:
    assert await connector.send(effect(output)) == Refused("no_text")
    assert slack.journal.calls == []


# Only a Slack id is a place to post to.
@pytest.mark.parametrize("target", ["", "#general", "general", "amy@example.com"])
async def test_bad_channel(slack: SlackStandIn, connector: SlackMessageConnector, target: str) -> None:
    assert await connector.send(effect(target=target)) == Refused("bad_channel")
    assert slack.journal.calls == []


# A channel that another company reads gets nothing, nor does one that is closed to us; Slack's word says why.
@pytest.mark.parametrize(
    ("channel", "reason"),
    [
        (C_SHARED, "shared_channel"),
        (C_ARCHIVED, "is_archived"),
        (C_NOT_JOINED, "not_in_channel"),
        ("C0NOWHERE", "channel_not_found"),
    ],
)
async def test_closed_channels(
    slack: SlackStandIn, connector: SlackMessageConnector, channel: str, reason: str
) -> None:
    assert await connector.send(effect(target=channel)) == Refused(reason)


# Each answer of Slack to the post.
@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (fault.limited("7"), NotSent("limited", 7.0)),
        (fault.says("external_channel_migrating"), NotSent("external_channel_migrating")),
        (fault.says("restricted_action"), Refused("restricted_action")),
        (fault.says("invalid_auth"), Refused("invalid_auth")),
        (fault.says("internal_error", after_work=True), Unknown("internal_error")),
        (fault.says("fatal_error"), Unknown("fatal_error")),
        (fault.server_error(503, after_work=True), Unknown("http_503")),
        (fault.dropped(after_work=True), Unknown("cut")),
        (fault.dropped(after_work=False), Unknown("cut")),
        (fault.Fault(status=200, body=b"not json"), Unknown("unreadable")),
    ],
)
async def test_answers(
    slack: SlackStandIn, connector: SlackMessageConnector, trouble: fault.Fault, expected: SendOutcome
) -> None:
    slack.faults.order(POST, trouble)
    assert await connector.send(effect()) == expected
    assert slack.journal.count(POST) == 1


# As long as Slack does not say what the channel is, nothing is posted, and that is proven.
@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (fault.limited("7"), NotSent("limited", 7.0)),
        (fault.server_error(500), NotSent("not_looked")),
        (fault.dropped(after_work=True), NotSent("not_looked")),
        (fault.Fault(status=200, body=b"not json"), NotSent("not_looked")),
    ],
)
async def test_not_looked(
    slack: SlackStandIn, connector: SlackMessageConnector, trouble: fault.Fault, expected: SendOutcome
) -> None:
    slack.faults.order("conversations.info", trouble)
    assert await connector.send(effect()) == expected
    assert slack.journal.count(POST) == 0


# What takes Slack's messages without having its channels (a gateway, say) is posted to all the same.
@pytest.mark.parametrize(
    "answer",
    [
        fault.says("unknown_method"),
        fault.Fault(status=404, body=b"no such page"),
        fault.Fault(status=200, body=b'{"ok":true}'),
    ],
)
async def test_no_channels(
    slack: SlackStandIn, connector: SlackMessageConnector, answer: fault.Fault
) -> None:
    slack.faults.order("conversations.info", answer)
    assert isinstance(await connector.send(effect()), Sent)
    assert slack.journal.count(POST) == 1


# A post whose answer was lost is found by its mark, and only that one.
async def test_found_again(slack: SlackStandIn, connector: SlackMessageConnector) -> None:
    await connector.send(effect())
    lost = effect()
    assert await connector.look_up(lost) == Absent()
    slack.faults.order(POST, fault.dropped(after_work=True))
    assert await connector.send(lost) == Unknown("cut")
    assert await connector.look_up(lost) == Found(posted(slack)[-1].ts)


# It is looked for since the decision by the database's clock: that of the process that made it may be ahead.
async def test_found_whatever_the_clocks(slack: SlackStandIn, connector: SlackMessageConnector) -> None:
    ahead = UUID("7fffffff-ffff-7fff-bfff-ffffffffffff")
    lost = replace(effect(), effect_id=ahead, created_at=datetime.now(UTC))
    slack.faults.order(POST, fault.dropped(after_work=True))
    assert await connector.send(lost) == Unknown("cut")
    assert await connector.look_up(lost) == Found(posted(slack)[-1].ts)


# So is one to a person, by their id or by our conversation's; whether that is shared nobody needs to ask.
@pytest.mark.parametrize("where", [U_ALICE, ENTERPRISE_USER, "D0ALICE"])
async def test_person_found_again(slack: SlackStandIn, connector: SlackMessageConnector, where: str) -> None:
    slack.state.workspace.conversation_with(slack.state.workspace.users[U_ALICE])
    lost = effect(recipient=where)
    assert await connector.look_up(lost) == Absent()
    slack.faults.order(POST, fault.dropped(after_work=True))
    assert await connector.send(lost) == Unknown("cut")
    assert isinstance(await connector.send(effect(recipient=where)), Sent)
    first, _ = slack.state.channel_messages("D0GRID" if where == ENTERPRISE_USER else "D0ALICE")
    assert await connector.look_up(lost) == Found(first.ts)
    assert slack.journal.of("conversations.info") == []


# A person whom the app may not write to gets nothing, and Slack's word says why.
@pytest.mark.parametrize(
    ("person", "tab", "reason"),
    [
        ("U0NOBODY", True, "channel_not_found"),
        (U_GONE, True, "channel_not_found"),
        (U_ALICE, False, "messages_tab_disabled"),
    ],
)
async def test_closed_to_us(
    slack: SlackStandIn, connector: SlackMessageConnector, person: str, tab: bool, reason: str
) -> None:
    slack.state.workspace.messages_tab_enabled = tab
    assert await connector.send(effect(recipient=person)) == Refused(reason)


# A look-up that Slack does not answer says nothing.
async def test_no_answer(slack: SlackStandIn, connector: SlackMessageConnector) -> None:
    slack.faults.always("conversations.history", fault.server_error(500))
    assert await connector.look_up(effect()) == NoAnswer("http_500")
    assert await connector.look_up(effect(recipient=U_ALICE)) == NoAnswer("http_500")


# Nor does one to a person with whom our conversation is not named by Slack.
@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (fault.limited("7"), "limited"),
        (fault.says("missing_scope"), "missing_scope"),
        (fault.says("user_disabled"), "user_disabled"),
        (fault.server_error(502), "http_502"),
        (fault.dropped(after_work=True), "cut"),
        (fault.Fault(status=200, body=b"not json"), "unreadable"),
        (fault.Fault(status=200, body=b'{"ok":true}'), "unreadable"),
        (fault.Fault(status=200, body=b'{"ok":true,"channel":"D0ALICE"}'), "unreadable"),
        (fault.Fault(status=200, body=b'{"ok":true,"channel":{"id":"general"}}'), "unreadable"),
    ],
)
async def test_no_conversation(
    slack: SlackStandIn, connector: SlackMessageConnector, trouble: fault.Fault, reason: str
) -> None:
    lost = effect(recipient=U_ALICE)
    assert isinstance(await connector.send(lost), Sent)
    slack.faults.order("conversations.open", trouble)
    assert await connector.look_up(lost) == NoAnswer(reason)
    assert slack.journal.of("conversations.history") == []
    assert isinstance(await connector.look_up(lost), Found)


# Slack falling silent costs the policy's timeout and no more.
async def test_silent(slack: SlackStandIn, connector: SlackMessageConnector) -> None:
    slack.faults.order(POST, fault.hanging(after_work=True))
    async with asyncio.timeout(60):
        assert await connector.send(effect(timeout_seconds=1)) == Unknown("timeout")


# A machine that slept before it posts nothing when it wakes: others have been at it since.
async def test_slept(
    slack: SlackStandIn, connector: SlackMessageConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slack_message, "elapsed_seconds", slept(3600))
    assert await connector.send(effect(timeout_seconds=60)) == NotSent("late")
    assert posted(slack) == []


# Without a client there is no message.
async def test_not_set() -> None:
    assert await build(Kit()).send(effect()) == Refused("slack_not_set")
    assert not build(Kit()).idempotent(effect(idempotent=True))
