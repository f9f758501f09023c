"""Each way in which Slack can answer, and that no call is ever sent twice."""

import logging
import socket
from contextlib import suppress

import pytest

from bot.demo import slack_faults as fault
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import C_ARCHIVED, C_NOT_JOINED, C_PRIVATE, C_REVIEW, C_SHARED, U_ALICE
from bot.slack.answer import (
    SlackAnswer,
    SlackLimited,
    SlackNotDelivered,
    SlackOk,
    SlackRefused,
    SlackUnknown,
    read_answer,
    retry_after,
)
from bot.slack.client import SlackClient
from bot.slack.marks import Marks
from store import database
from store.errors import NetworkInTransaction

MARKS = Marks("stet_card", {"draft": "ab12", "revision": 3})
BLOCKS = [{"type": "section", "text": {"type": "plain_text", "text": "hello"}}]
MODAL = {"type": "modal", "title": {"type": "plain_text", "text": "Reason"}, "blocks": BLOCKS}


async def post(client: SlackClient) -> SlackAnswer:
    return await client.post(C_REVIEW, text="hello", blocks=BLOCKS, marks=MARKS)


# A post arrives whole: text, blocks and metadata, with link previews off.
async def test_post_arrives_whole(slack: SlackStandIn, client: SlackClient) -> None:
    answer = await post(client)
    assert isinstance(answer, SlackOk)
    message = slack.state.messages[C_REVIEW][answer.data["ts"]]
    assert (message.text, message.metadata) == ("hello", MARKS.as_slack())
    sent = slack.journal.of("chat.postMessage")[0].arguments
    assert sent["unfurl_links"] is False
    assert sent["unfurl_media"] is False


# What the token may do is read from the answer's header, for the doctor.
async def test_scopes_are_read(slack: SlackStandIn, client: SlackClient) -> None:
    answer = await client.auth_test()
    assert isinstance(answer, SlackOk)
    assert answer.scopes == slack.state.workspace.scopes


# Whatever befalls a post, one request leaves us, and the value says what is known about it.
@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (fault.limited("7"), SlackLimited(7.0)),
        (fault.says("ratelimited"), SlackLimited(10.0)),
        (fault.says("rate_limited"), SlackLimited(10.0)),
        (fault.server_error(500), SlackUnknown("http_500")),
        (fault.server_error(503, after_work=True), SlackUnknown("http_503")),
        (fault.says("internal_error", after_work=True), SlackUnknown("internal_error")),
        (fault.says("fatal_error"), SlackUnknown("fatal_error")),
        (fault.dropped(after_work=False), SlackUnknown("cut")),
        (fault.dropped(after_work=True), SlackUnknown("cut")),
        (fault.says("is_archived"), SlackRefused("is_archived")),
        (fault.Fault(status=200, body=b"not json"), SlackUnknown("unreadable")),
        (fault.Fault(status=200, body=b"[1]"), SlackUnknown("unreadable")),
        (fault.Fault(status=403, body=b"no"), SlackRefused("http_403")),
    ],
)
async def test_one_request_whatever_happens(
    slack: SlackStandIn, client: SlackClient, trouble: fault.Fault, expected: SlackAnswer
) -> None:
    slack.faults.order("chat.postMessage", trouble)
    assert await post(client) == expected
    assert slack.journal.count("chat.postMessage") == 1


# A server that does not answer in time leaves the post unknown, and it is not sent again.
async def test_no_answer_in_time(slack: SlackStandIn, client: SlackClient) -> None:
    hanging = slack.faults.order("chat.postMessage", fault.hanging(after_work=True))
    assert await post(client.within(0.05)) == SlackUnknown("timeout")
    hanging.release.set()
    await slack.journal.wait_for("chat.postMessage")
    assert slack.journal.count("chat.postMessage") == 1
    assert len(slack.state.channel_messages(C_REVIEW)) == 1


# A refused connection proves that nothing was delivered.
async def test_refused_connection() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/api/"
        client = SlackClient("xoxb-1", base_url=address)
        assert await post(client) == SlackNotDelivered("connection_refused")


# Slack's own error words come through for every channel that cannot be written to.
@pytest.mark.parametrize(
    ("channel", "error"),
    [
        (C_ARCHIVED, "is_archived"),
        (C_NOT_JOINED, "not_in_channel"),
        (C_PRIVATE, "channel_not_found"),
        ("C0NOWHERE", "channel_not_found"),
    ],
)
async def test_channels_that_cannot_be_written(client: SlackClient, channel: str, error: str) -> None:
    assert await client.post(channel, text="hello") == SlackRefused(error)


# A wrong token and a missing scope are told apart, and the scope is named.
async def test_token_and_scope(slack: SlackStandIn, client: SlackClient) -> None:
    slack.state.workspace.scopes.discard("chat:write")
    answer = await post(client)
    assert answer == SlackRefused("missing_scope", needed=("chat:write",))
    stranger = SlackClient("xoxb-wrong", base_url=slack.api_url)
    assert await post(stranger) == SlackRefused("invalid_auth")


# A refused block list says where the fault is, and nothing of what stood there.
async def test_refused_blocks_say_where(client: SlackClient) -> None:
    blocks = [{"type": "header", "text": {"type": "plain_text", "text": "secret " * 40}}]
    answer = await client.post(C_REVIEW, text="hello", blocks=blocks)
    assert answer == SlackRefused("invalid_blocks", where=("/blocks/0/text/text",))


# An edit keeps the metadata that the post gave, and shows no "edited" label when it has blocks.
async def test_update_keeps_metadata(slack: SlackStandIn, client: SlackClient) -> None:
    posted = await post(client)
    assert isinstance(posted, SlackOk)
    answer = await client.update(C_REVIEW, posted.data["ts"], text="new", blocks=BLOCKS)
    assert isinstance(answer, SlackOk)
    message = slack.state.messages[C_REVIEW][posted.data["ts"]]
    assert (message.text, message.metadata, message.edited) == ("new", MARKS.as_slack(), None)
    assert await client.update(C_REVIEW, "1.000001", text="new", blocks=BLOCKS) == SlackRefused(
        "message_not_found"
    )


# Ephemerals, modals and Homes reach the one person they are for.
async def test_what_one_person_sees(slack: SlackStandIn, client: SlackClient) -> None:
    assert isinstance(await client.ephemeral(C_REVIEW, U_ALICE, text="only you"), SlackOk)
    assert [message.text for message in slack.state.ephemerals_of(U_ALICE)] == ["only you"]
    trigger = slack.state.new_trigger(U_ALICE)
    assert isinstance(await client.open_view(trigger, MODAL), SlackOk)
    assert await client.open_view(trigger, MODAL) == SlackRefused("exchanged_trigger_id")
    view = slack.actor.top_view(U_ALICE)
    assert isinstance(await client.update_view(view.id, MODAL, view_hash=view.hash), SlackOk)
    assert await client.update_view(view.id, MODAL, view_hash="old") == SlackRefused("hash_conflict")
    second = slack.state.new_trigger(U_ALICE, view.id)
    assert isinstance(await client.push_view(second, MODAL), SlackOk)
    assert isinstance(await client.publish_home(U_ALICE, {"type": "home", "blocks": BLOCKS}), SlackOk)
    assert slack.state.homes[U_ALICE].content["blocks"][0]["type"] == "section"


# An answer at an interaction's own address reaches the person alone, five times, and is never sent twice.
async def test_respond(slack: SlackStandIn, client: SlackClient) -> None:
    name = slack.state.new_response(U_ALICE, C_REVIEW, None)
    address = f"{slack.url}/response/{name}"
    slack.faults.order("response_url", fault.dropped(after_work=True))
    slack.faults.order("response_url", fault.Fault(status=200, body=b"ok"), nth=2)
    answers = [await client.respond(address, text="too late", blocks=BLOCKS) for _ in range(7)]
    assert answers[0] == SlackUnknown("cut")
    assert [isinstance(answer, SlackOk) for answer in answers[1:]] == [True] * 5 + [False]
    assert answers[6] == SlackRefused("used_url")
    assert [message.text for message in slack.state.ephemerals_of(U_ALICE)] == ["too late"] * 5


# History and thread come with whole metadata; a channel tells whether another company reads along.
async def test_reading(client: SlackClient) -> None:
    posted = await post(client)
    assert isinstance(posted, SlackOk)
    ts = posted.data["ts"]
    await client.post(C_REVIEW, text="reply", thread_ts=ts)
    history, thread = await client.history(C_REVIEW), await client.replies(C_REVIEW, ts)
    assert isinstance(history, SlackOk)
    assert isinstance(thread, SlackOk)
    assert [message["metadata"] for message in history.data["messages"]] == [MARKS.as_slack()]
    assert [message["text"] for message in thread.data["messages"]] == ["hello", "reply"]
    shared = await client.conversation(C_SHARED)
    assert isinstance(shared, SlackOk)
    assert shared.data["channel"]["is_ext_shared"] is True


# Inside a database transaction no call leaves.
async def test_no_call_inside_a_transaction(slack: SlackStandIn, client: SlackClient) -> None:
    mark = database._in_transaction.set(True)
    try:
        with pytest.raises(NetworkInTransaction):
            await post(client)
    finally:
        database._in_transaction.reset(mark)
    assert slack.journal.calls == []


# Neither token nor text nor button value is in any log line or repr, at any level.
async def test_nothing_leaks(
    slack: SlackStandIn, client: SlackClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    button = {"type": "button", "text": {"type": "plain_text", "text": "ok"}, "value": "MARK3"}
    blocks = [{"type": "actions", "elements": [button]}]
    slack.faults.order("chat.postMessage", fault.server_error(), nth=2)
    slack.faults.order("chat.postMessage", fault.says("invalid_blocks"), nth=3)
    answers = [await client.post(C_REVIEW, text="MARK2", blocks=blocks) for _ in range(3)]
    with suppress(ValueError):
        Marks("stet_card", {"text": "MARK4 with spaces"})
    everything = caplog.text + repr(answers) + repr(client) + repr(client.sdk)
    assert "MARK" not in everything
    assert slack.state.workspace.token not in everything


# Metadata that looks like text, or has a name Slack refuses, is a mistake of ours.
@pytest.mark.parametrize(
    ("event_type", "values"),
    [("stet_card", {"text": "Dear Amy"}), ("Stet", {}), ("stet_card", {"Draft": "a"})],
)
def test_marks_are_opaque(event_type: str, values: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="metadata"):
        Marks(event_type, values)


# A Retry-After of any kind ends between our floor and our cap.
@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 1), ("-5", 1), ("30", 30), ("99999", 3600), ("soon", 10), ("", 10), ("Wed, 21 Oct 2015", 10)],
)
def test_retry_after(text: str, seconds: float) -> None:
    assert retry_after({"retry-after": text}) == seconds


# An error that is no word of Slack's does not travel on.
def test_strange_error_is_not_repeated() -> None:
    answer = read_answer(200, {}, {"ok": False, "error": "<script> customer text"})
    assert answer == SlackRefused("unreadable_error")
