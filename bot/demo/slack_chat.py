"""The stand-in's chat.* methods, with Slack's limits and error words.

Source: Slack's pages of chat.postMessage, chat.update, chat.postEphemeral and chat.delete.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from bot.demo.slack_blocks import TEXT_BUDGET, check_blocks
from bot.demo.slack_method import Arguments, Method, Refusal, find_channel, find_user, invalid, structured
from bot.demo.slack_state import Message, SlackState, name_blocks
from bot.demo.slack_workspace import U_STET, Channel

POST_CUT: Final = 40_000  # Longer text of a post is cut without a word (docs, chat.postMessage).
UPDATE_LONGEST: Final = 4_000
METADATA_BYTES: Final = 8_000  # `metadata_too_large` exists, no number is given: this one is a guess.
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


def post_message(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """chat.postMessage; a person in place of a channel is our conversation with them."""
    channel = _writable(state, {**arguments} | _addressed(state, str(arguments["channel"])))
    thread_ts = arguments.get("thread_ts")
    if thread_ts is not None and thread_ts not in state.messages.get(channel.id, {}):
        raise Refusal("thread_not_found")
    text, blocks = _content(arguments)
    message = state.add(
        Message(
            channel=channel.id,
            ts=state.new_ts(),
            text=text[:POST_CUT],
            blocks=blocks,
            metadata=_metadata(arguments),
            thread_ts=thread_ts,
        )
    )
    return {"channel": channel.id, "ts": message.ts, "message": message.as_slack()}


def update(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """chat.update: blocks go if text comes alone, metadata stays unless given, `{}` takes it away."""
    channel = find_channel(state, arguments)
    if channel.is_archived:
        raise Refusal("is_inactive")
    message = _own(state, channel, arguments, "cant_update_message")
    metadata = _metadata(arguments)
    if "text" in arguments or "blocks" in arguments or metadata is None:
        text, blocks = _content(arguments)
        if len(text) > UPDATE_LONGEST:
            raise Refusal("msg_too_long")
        message.text = text if "text" in arguments else message.text
        message.blocks = blocks
        message.edited = None if blocks else {"user": U_STET, "ts": state.new_ts()}
    if metadata is not None:
        message.metadata = metadata or None
    message.revisions += 1
    state.changed()
    return {"channel": channel.id, "ts": message.ts, "text": message.text, "message": message.as_slack()}


def post_ephemeral(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """chat.postEphemeral: 4,000 bytes of text."""
    channel = _writable(state, arguments)
    if not state.workspace.is_in(str(arguments["user"]), channel.id):
        raise Refusal("user_not_in_channel")
    text, blocks = _content(arguments)
    if len(text.encode()) > UPDATE_LONGEST:
        raise Refusal("msg_too_long")
    ts = state.new_ts()
    thread_ts = arguments.get("thread_ts")
    state.add(Message(channel.id, ts, text, blocks=blocks, only_for=arguments["user"], thread_ts=thread_ts))
    return {"message_ts": ts}


def delete(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """chat.delete."""
    channel = find_channel(state, arguments)
    message = _own(state, channel, arguments, "cant_delete_message")
    del state.messages[channel.id][message.ts]
    state.changed()
    return {"channel": channel.id, "ts": message.ts}


def check_message_blocks(blocks: object) -> list[dict[str, Any]] | None:
    """Blocks with their ids, or the refusal that Slack would give."""
    if blocks is None:
        return None
    if not isinstance(blocks, list):
        raise Refusal("invalid_blocks_format")
    sheet = check_blocks(blocks)
    if sheet.problems:
        one_table = any("only_one_table_allowed" in line for line in sheet.problems)
        raise invalid("only_one_table_allowed" if one_table else "invalid_blocks", sheet.problems)
    if sheet.characters > TEXT_BUDGET:
        raise Refusal("msg_blocks_too_long")
    return name_blocks(blocks)


def _content(arguments: Arguments) -> tuple[str, list[dict[str, Any]] | None]:
    text = arguments.get("text") or ""
    if not isinstance(text, str):
        raise Refusal("invalid_arguments")
    blocks = check_message_blocks(structured(arguments, "blocks", "invalid_blocks_format"))
    if not text.strip() and not blocks:
        raise Refusal("no_text")
    return text, blocks or None


def _metadata(arguments: Arguments) -> dict[str, Any] | None:
    """Flat values under plain names (docs, designing metadata event schemas); `{}` is allowed on update."""
    metadata = structured(arguments, "metadata", "invalid_metadata_format")
    if metadata is None or metadata == {}:
        return None if metadata is None else {}
    if not isinstance(metadata, dict) or metadata.keys() - {"event_type", "event_payload", "entities"}:
        raise Refusal("invalid_metadata_format")
    payload = metadata.get("event_payload")
    names = [metadata.get("event_type"), *(payload if isinstance(payload, Mapping) else [None])]
    if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
        raise Refusal("invalid_metadata_format")
    if not all(isinstance(value, str | int | float | bool) for value in metadata["event_payload"].values()):
        raise Refusal("invalid_metadata_schema")
    if len(json.dumps(metadata).encode()) > METADATA_BYTES:
        raise Refusal("metadata_too_large")
    return metadata


def _writable(state: SlackState, arguments: Arguments) -> Channel:
    channel = find_channel(state, arguments)
    if channel.is_archived:
        raise Refusal("is_archived")
    if not channel.is_member:
        raise Refusal("not_in_channel")
    return channel


def _addressed(state: SlackState, channel: str) -> dict[str, str]:
    """The channel of a post: for a person's id that of our conversation; nobody else's exists for us."""
    if channel.startswith(("U", "W")):
        try:
            user = find_user(state, channel)
        except Refusal:
            raise Refusal("channel_not_found") from None
        if user.deleted or user.is_bot:
            raise Refusal("channel_not_found")
        channel = state.workspace.conversation_with(user).id
    if channel.startswith("D") and not state.workspace.messages_tab_enabled:
        raise Refusal("messages_tab_disabled")
    return {"channel": channel}


def _own(state: SlackState, channel: Channel, arguments: Arguments, error: str) -> Message:
    message = state.messages.get(channel.id, {}).get(str(arguments["ts"]))
    if message is None:
        raise Refusal("message_not_found")
    if message.user != U_STET:
        raise Refusal(error)
    return message


_CONTENT: Final = ("text", "blocks", "attachments", "parse", "link_names", "markdown_text")
CHAT_METHODS: Final = (
    Method(
        "chat.postMessage",
        post_message,
        "chat:write",
        ("channel",),
        (
            *_CONTENT,
            "metadata",
            "thread_ts",
            "reply_broadcast",
            "unfurl_links",
            "unfurl_media",
            "mrkdwn",
            "username",
            "icon_emoji",
            "icon_url",
        ),
    ),
    Method(
        "chat.update", update, "chat:write", ("channel", "ts"), (*_CONTENT, "metadata", "reply_broadcast")
    ),
    Method("chat.postEphemeral", post_ephemeral, "chat:write", ("channel", "user"), (*_CONTENT, "thread_ts")),
    Method("chat.delete", delete, "chat:write", ("channel", "ts")),
)
