"""The connector for `effect.type = "slack_message"`: one message to a channel or a person.

Not here: the cards of our own (bot/flow/show). What was approved is drawn as literal text, never as mrkdwn.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from bot.connectors.answers import Row, by_cause, clean_id, settle
from bot.connectors.connector import Effect, Kit, made_at
from bot.contracts.outcome import LookUpOutcome, NoAnswer, NotSent, Refused, SendOutcome, Sent, Unknown
from bot.policy.elapsed import elapsed_seconds
from bot.policy.sendable import message_field
from bot.policy.values import is_channel_or_user
from bot.slack.answer import SlackAnswer, SlackLimited, SlackNotDelivered, SlackOk, SlackRefused, SlackUnknown
from bot.slack.client import Block, SlackClient
from bot.slack.find import find_marked
from bot.slack.marks import Marks
from store.database import outside_transaction

EFFECT_TYPE = "slack_message"

ELEMENT_CHARACTERS: Final = 2_900  # Slack gives no limit for a rich text element; a section may have 3,000.
FALLBACK_CHARACTERS: Final = 600  # Shown in notifications only, where a phone shows some 200.
SKEW_SECONDS: Final = 300  # Between our clock and Slack's, which names messages by time.
_PEOPLE: Final = ("U", "W")
_NO_CHANNELS: Final = (*_PEOPLE, "D")  # A person, or our own conversation with one: nobody can share that.

OUTCOMES: tuple[Row, ...] = (
    # Nothing was posted.
    Row("slack_not_set", Refused, "there is no Slack client", asked=False),
    Row("bad_channel", Refused, "neither recipient nor target is a Slack channel or user id", asked=False),
    Row("no_text", Refused, "the output has neither a text nor a body", asked=False),
    Row("shared_channel", Refused, "people of another company read that channel", asked=False),
    Row("not_delivered", NotSent, "no connection to Slack came about", "(what it was)"),
    Row("late", NotSent, "the time was up before the message was posted: the machine slept", asked=False),
    Row("limited", NotSent, "Slack: too many calls; not before Retry-After"),
    Row("not_looked", NotSent, "Slack did not say what the channel is, so nothing was posted"),
    # Slack's own words for "not now"; it says so before it does anything.
    Row("external_channel_migrating", NotSent, "the channel is being moved to another workspace"),
    Row("team_added_to_org", NotSent, "the workspace is joining an organisation"),
    Row("accesslimited", NotSent, "access is limited just now"),
    Row("sent", Sent, "ok, with the message's ts"),
    Row("refused", Refused, "ok false: Slack's own word is the reason", "(Slack's word)"),
    Row("no_ts", Unknown, "ok, and no ts: nobody can say which message it is"),
    Row(
        "unsure", Unknown, "timeout, cut, 5xx, internal_error, fatal_error: it may be posted", "(what it was)"
    ),
)
_TABLE = by_cause(OUTCOMES)
# What answers so is no Slack, but something that takes its messages: no other company reads along there.
_NO_SUCH_METHOD: Final = frozenset({"unknown_method", "http_404", "http_405"})
_NOT_NOW: Final = frozenset({"external_channel_migrating", "team_added_to_org", "accesslimited"})


class SlackMessageConnector:
    """Posts a message whose metadata is the effect_id, by which it is found again."""

    effect_type = EFFECT_TYPE

    def __init__(self, slack: SlackClient | None) -> None:
        self._slack = slack

    def idempotent(self, effect: Effect) -> bool:
        """Never: Slack posts a repeated message twice."""
        return False

    async def send(self, effect: Effect) -> SendOutcome:
        """Post once, unless the channel is shared with another company."""
        outside_transaction()
        channel, text = _channel(effect), _text(effect.body)
        if self._slack is None:
            return settle("slack_not_set", _TABLE)
        if channel is None or text is None:
            return settle("bad_channel" if channel is None else "no_text", _TABLE)
        ends = elapsed_seconds() + effect.policy.timeout_seconds
        if not channel.startswith(_NO_CHANNELS):
            asked = await self._slack.within(effect.policy.timeout_seconds).conversation(channel)
            hindrance = _judge_channel(asked)
            if hindrance is not None:
                return hindrance
        if elapsed_seconds() > ends:
            return settle("late", _TABLE)
        slack = self._slack.within(ends - elapsed_seconds())
        return _judge_post(
            await slack.post(channel, text=_fallback(text), blocks=[_draw(text)], marks=_marks(effect))
        )

    async def look_up(self, effect: Effect) -> LookUpOutcome:
        """Read the channel since the decision; of a person, our conversation with them."""
        outside_transaction()
        channel = _channel(effect)
        if self._slack is None or channel is None:
            return NoAnswer("no_lookup")
        slack = self._slack.within(effect.policy.timeout_seconds)
        if channel.startswith(_PEOPLE):
            opened = _read_conversation(await slack.open_conversation(channel))
            if isinstance(opened, NoAnswer):
                return opened
            channel = opened
        oldest = f"{made_at(effect).timestamp() - SKEW_SECONDS:.6f}"
        return await find_marked(slack, channel, _marks(effect), oldest=oldest)


def build(kit: Kit) -> SlackMessageConnector:
    """The connector, over the one Slack client there is."""
    return SlackMessageConnector(kit.slack)


def _marks(effect: Effect) -> Marks:
    return Marks("stet_effect", {"effect": str(effect.effect_id)})


def _channel(effect: Effect) -> str | None:
    """Where it goes: the recipient if there is one, else the policy's target."""
    channel = effect.recipient or effect.target
    return channel if is_channel_or_user(channel) else None


def _text(body: bytes) -> str | None:
    """What was approved: the output's `text`, else its `body` under its `subject`."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    output = document.get("output") if isinstance(document, dict) else None
    if not isinstance(output, dict):
        return None
    name = message_field(output)
    text, title = output.get(name), output.get("subject") if name == "body" else None
    if not isinstance(text, str) or not text.strip():
        return None
    return f"{title}\n\n{text}" if isinstance(title, str) and title.strip() else text


def _draw(text: str) -> Block:
    """Literal text: nothing in it is a mention, a link or a format."""
    pieces = [text[at : at + ELEMENT_CHARACTERS] for at in range(0, len(text), ELEMENT_CHARACTERS)]
    elements = [{"type": "text", "text": piece} for piece in pieces]
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}


def _fallback(text: str) -> str:
    """What a notification shows; this one is mrkdwn, so it is escaped as Slack asks (docs, formatting)."""
    cut = text[:FALLBACK_CHARACTERS]
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _judge_channel(answer: SlackAnswer) -> SendOutcome | None:
    """What hinders posting there; None: nothing."""
    match answer:
        case SlackOk(data=data):
            facts: Any = data.get("channel")
            if not isinstance(facts, Mapping):
                return None
            is_shared = facts.get("is_ext_shared") or facts.get("is_pending_ext_shared")
            return settle("shared_channel", _TABLE) if is_shared else None
        case SlackUnknown():
            return settle("not_looked", _TABLE)
        case SlackRefused(error=word) if word in _NO_SUCH_METHOD:
            return None
        case _:
            return _judge_post(answer)


def _read_conversation(answer: SlackAnswer) -> str | NoAnswer:
    """Name our conversation with a person (docs, conversations.open), or say why it is not known."""
    match answer:
        case SlackOk(data=data):
            opened: Any = data.get("channel")
            name = opened.get("id") if isinstance(opened, Mapping) else None
            return name if isinstance(name, str) and is_channel_or_user(name) else NoAnswer("unreadable")
        case SlackLimited():
            return NoAnswer("limited")
        case SlackRefused(error=word) | SlackNotDelivered(reason=word) | SlackUnknown(reason=word):
            return NoAnswer(word)


def _judge_post(answer: SlackAnswer) -> SendOutcome:
    match answer:
        case SlackOk(data=data):
            ts = data.get("ts")
            provider_id = clean_id(ts) if isinstance(ts, str) else None
            return settle("no_ts", _TABLE) if provider_id is None else Sent(provider_id)
        case SlackLimited(retry_after_seconds=seconds):
            return settle("limited", _TABLE, retry_after_seconds=seconds)
        case SlackNotDelivered(reason=reason):
            return settle("not_delivered", _TABLE, reason=reason)
        case SlackRefused(error=word):
            return settle(word, _TABLE) if word in _NOT_NOW else settle("refused", _TABLE, reason=word)
        case SlackUnknown(reason=reason):
            return settle("unsure", _TABLE, reason=reason)
