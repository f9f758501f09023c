"""Looks for a message of ours by its metadata, after a post whose answer was lost.

Whether anything is posted again is decided by whoever asked.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bot.contracts.outcome import Absent, Found, LookUpOutcome, NoAnswer
from bot.slack.answer import SlackLimited, SlackNotDelivered, SlackOk, SlackRefused, SlackUnknown
from bot.slack.client import Marks, SlackClient

PAGES: Final = 10  # 2,000 messages since the post: a channel that busy needs a person, not more reading.


async def find_marked(
    client: SlackClient, channel: str, marks: Marks, *, oldest: str, thread_ts: str | None = None
) -> LookUpOutcome:
    """Found(ts) of the message with exactly these marks, Absent if every page since `oldest` was read.

    Anything short of that is NoAnswer. With `thread_ts` the thread is read, for a channel's history leaves
    out replies (docs, conversations.history). Slack says nothing about how soon a post shows up: Absent right
    after a post proves nothing.
    """
    cursor: str | None = None
    for _ in range(PAGES):
        answer = (
            await client.history(channel, oldest=oldest, cursor=cursor)
            if thread_ts is None
            else await client.replies(channel, thread_ts, oldest=oldest, cursor=cursor)
        )
        match answer:
            case SlackOk(data=page):
                found = _marked(page.get("messages"), marks)
                cursor = _next_cursor(page)
                if found is not None or not cursor:
                    return Absent() if found is None else Found(found)
            case SlackLimited():
                return NoAnswer("limited")
            case SlackRefused(error=word) | SlackNotDelivered(reason=word) | SlackUnknown(reason=word):
                return NoAnswer(word)
    return NoAnswer("too_many_messages")


def _marked(messages: object, marks: Marks) -> str | None:
    wanted = marks.as_slack()
    for message in messages if isinstance(messages, Sequence) else ():
        if isinstance(message, Mapping) and message.get("metadata") == wanted:
            return str(message["ts"])
    return None


def _next_cursor(page: Mapping[str, Any]) -> str | None:
    metadata = page.get("response_metadata")
    cursor = metadata.get("next_cursor") if isinstance(metadata, Mapping) else None
    return cursor if isinstance(cursor, str) and cursor else None
