"""Looks for a message of ours by its metadata, after a post whose answer was lost.

Whether anything is posted again is decided by whoever asked.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bot.contracts.outcome import Absent, Found, LookUpOutcome, NoAnswer
from bot.slack.answer import SlackLimited, SlackNotDelivered, SlackOk, SlackRefused, SlackUnknown
from bot.slack.client import SlackClient
from bot.slack.marks import Marks

PAGES: Final = 10  # 2,000 messages since the post: a channel that busy needs a person, not more reading.


async def find_marked(
    client: SlackClient, channel: str, marks: Marks, *, oldest: str, thread_ts: str | None = None
) -> LookUpOutcome:
    """Found(ts) of the message with exactly these marks, Absent if every page since `oldest` was read.

    Another app may have copied the message, marks and all: one of our own goes before such a copy.
    Anything short of that is NoAnswer. With `thread_ts` the thread is read, for a channel's history leaves
    out replies (docs, conversations.history). Slack says nothing about how soon a post shows up: Absent right
    after a post proves nothing.
    """
    cursor: str | None = None
    copied: str | None = None
    for _ in range(PAGES):
        answer = (
            await client.history(channel, oldest=oldest, cursor=cursor)
            if thread_ts is None
            else await client.replies(channel, thread_ts, oldest=oldest, cursor=cursor)
        )
        match answer:
            case SlackOk(data=page):
                for message in _marked(page.get("messages"), marks):
                    ts = str(message["ts"])
                    if client.bot_id in (None, message.get("bot_id")):
                        return Found(ts)
                    copied = ts
                cursor = _next_cursor(page)
                if not cursor:
                    return Absent() if copied is None else Found(copied)
            case SlackLimited():
                return NoAnswer("limited")
            case SlackRefused(error=word) | SlackNotDelivered(reason=word) | SlackUnknown(reason=word):
                return NoAnswer(word)
    return NoAnswer("too_many_messages")


def _marked(messages: object, marks: Marks) -> list[Mapping[str, Any]]:
    wanted = marks.as_slack()
    found = messages if isinstance(messages, Sequence) else ()
    return [one for one in found if isinstance(one, Mapping) and one.get("metadata") == wanted]


def _next_cursor(page: Mapping[str, Any]) -> str | None:
    metadata = page.get("response_metadata")
    cursor = metadata.get("next_cursor") if isinstance(metadata, Mapping) else None
    return cursor if isinstance(cursor, str) and cursor else None
