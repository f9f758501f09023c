"""Finding a post again whose answer was lost."""

from bot.contracts.outcome import Absent, Found, NoAnswer
from bot.demo import slack_faults as fault
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message
from bot.demo.slack_workspace import C_NOT_JOINED, C_REVIEW, U_ROBOT
from bot.slack.answer import SlackOk, SlackUnknown
from bot.slack.client import HISTORY_PAGE, SlackClient
from bot.slack.find import find_marked
from bot.slack.marks import Marks

MARKS = Marks("stet_card", {"draft": "ab12", "attempt": "1"})


# A post whose answer was lost is found by its metadata: one request, one card.
async def test_lost_post_is_found(slack: SlackStandIn, client: SlackClient) -> None:
    slack.faults.order("chat.postMessage", fault.dropped(after_work=True))
    assert await client.post(C_REVIEW, text="card", marks=MARKS) == SlackUnknown("cut")
    [message] = slack.state.channel_messages(C_REVIEW)
    assert await find_marked(client, C_REVIEW, MARKS, oldest="0") == Found(message.ts)
    assert slack.journal.count("chat.postMessage") == 1


# A post that never arrived is absent, whatever else is there.
async def test_other_marks_do_not_count(client: SlackClient) -> None:
    await client.post(C_REVIEW, text="card", marks=Marks("stet_card", {"draft": "ab12", "attempt": "2"}))
    await client.post(C_REVIEW, text="card")
    assert await find_marked(client, C_REVIEW, MARKS, oldest="0") == Absent()


# Another app that copied the message with its marks is not taken for us, on whichever page it stands; where
# there is only the copy, ours was there too.
async def test_a_copy_by_another_app(slack: SlackStandIn, client: SlackClient) -> None:
    def copy() -> Message:
        ts = slack.state.new_ts()
        return slack.state.add(Message(C_REVIEW, ts, "card", user=U_ROBOT, metadata=MARKS.as_slack()))

    alone = copy()
    await client.auth_test()
    assert await find_marked(client, C_REVIEW, MARKS, oldest="0") == Found(alone.ts)
    ours = await client.post(C_REVIEW, text="card", marks=MARKS)
    assert isinstance(ours, SlackOk)
    for _ in range(HISTORY_PAGE):
        copy()
    assert await find_marked(client, C_REVIEW, MARKS, oldest="0") == Found(ours.data["ts"])


# The search goes on over pages, and stops at what is older than the post can be.
async def test_search_over_pages(slack: SlackStandIn, client: SlackClient) -> None:
    posted = await client.post(C_REVIEW, text="card", marks=MARKS)
    assert isinstance(posted, SlackOk)
    for _ in range(HISTORY_PAGE + 1):
        await client.post(C_REVIEW, text="noise")
    ts = posted.data["ts"]
    assert await find_marked(client, C_REVIEW, MARKS, oldest=ts) == Found(ts)
    assert slack.journal.count("conversations.history") == 2
    newer = slack.state.new_ts()
    assert await find_marked(client, C_REVIEW, MARKS, oldest=newer) == Absent()


# A reply is found in its thread, where the channel's history does not show it.
async def test_reply_is_found(client: SlackClient) -> None:
    parent = await client.post(C_REVIEW, text="card")
    assert isinstance(parent, SlackOk)
    ts = parent.data["ts"]
    note = await client.post(C_REVIEW, text="note", marks=MARKS, thread_ts=ts)
    assert isinstance(note, SlackOk)
    assert await find_marked(client, C_REVIEW, MARKS, oldest="0") == Absent()
    assert await find_marked(client, C_REVIEW, MARKS, oldest="0", thread_ts=ts) == Found(note.data["ts"])


# A search that Slack refuses or cuts short is no answer, never absent.
async def test_no_answer(slack: SlackStandIn, client: SlackClient) -> None:
    assert await find_marked(client, C_NOT_JOINED, MARKS, oldest="0") == NoAnswer("not_in_channel")
    slack.faults.order("conversations.history", fault.limited())
    assert await find_marked(client, C_REVIEW, MARKS, oldest="0") == NoAnswer("limited")
    slack.faults.order("conversations.history", fault.server_error())
    assert await find_marked(client, C_REVIEW, MARKS, oldest="0") == NoAnswer("http_500")
