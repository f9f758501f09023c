"""The one holder of a Slack client: every call we make to Slack, each sent once and answered by a value.

How fast calls may follow each other is in `pace`; nothing here tries again, waits or decides.
"""

import asyncio
import copy
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse
from slack_sdk.webhook import WebhookResponse
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.slack.answer import (
    FAULTS,
    SlackAnswer,
    SlackOk,
    SlackUnknown,
    read_answer,
    read_fault,
    read_hook_answer,
)
from bot.slack.marks import Marks
from store.database import outside_transaction

Block = Mapping[str, Any]

DEADLINE_SECONDS: Final = 10.0  # A card worker can wait so long; what takes Slack longer is an outage.
HISTORY_PAGE: Final = 200  # Slack advises at most 200 and allows 999 (docs, conversations.history).


class SlackClient:
    """Calls Slack as our bot. Each method sends exactly one request and returns a SlackAnswer.

    Every method raises NetworkInTransaction inside a database transaction, and nothing else.
    """

    def __init__(
        self,
        token: str,
        *,
        base_url: str = AsyncWebClient.BASE_URL,
        deadline_seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self.sdk = AsyncWebClient(
            token=token,
            base_url=base_url,
            retry_handlers=[],  # The SDK's default resends a post whose answer was lost: two cards.
            logger=_quiet_logger(),
        )
        """For Bolt, which wants the SDK's own client; nobody else calls it."""
        if is_loopback(base_url):
            self.sdk.proxy = None  # The SDK ignores NO_PROXY, and a stand-in is never behind a proxy.
        self._deadline_seconds = deadline_seconds
        self._whoami: dict[str, Any] = {}  # Shared by copies.

    @property
    def bot_id(self) -> str | None:
        """Our bot as messages name their author, once Slack has told by `auth_test`."""
        found = self._whoami.get("bot_id")
        return found if isinstance(found, str) else None

    def within(self, seconds: float) -> "SlackClient":
        """The same client, same connections, with another deadline: for calls made while a person waits."""
        hurried = copy.copy(self)
        hurried._deadline_seconds = seconds  # noqa: SLF001 - a copy of ourselves
        return hurried

    async def open(self) -> None:
        """Open the shared connections; without it each call makes its own."""
        if self.sdk.session is None:
            self.sdk.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))

    async def close(self) -> None:
        """Close the shared connections."""
        if self.sdk.session is not None:
            await self.sdk.session.close()
            self.sdk.session = None

    async def post(
        self,
        channel: str,
        *,
        text: str,
        blocks: Sequence[Block] | None = None,
        marks: Marks | None = None,
        thread_ts: str | None = None,
    ) -> SlackAnswer:
        """Post one message. `text` is mrkdwn: escape it. `data["ts"]` names the message."""
        return await self._write(
            "chat.postMessage",
            channel=channel,
            text=text,
            blocks=blocks,
            metadata=marks.as_slack() if marks else None,
            thread_ts=thread_ts,
            unfurl_links=False,
            unfurl_media=False,
        )

    async def update(
        self, channel: str, ts: str, *, text: str, blocks: Sequence[Block], marks: Marks | None = None
    ) -> SlackAnswer:
        """Replace a message of ours. Marks that are not given stay as they were (docs, chat.update)."""
        return await self._write(
            "chat.update",
            channel=channel,
            ts=ts,
            text=text,
            blocks=blocks,
            metadata=marks.as_slack() if marks else None,
        )

    async def ephemeral(
        self,
        channel: str,
        user: str,
        *,
        text: str,
        blocks: Sequence[Block] | None = None,
        thread_ts: str | None = None,
    ) -> SlackAnswer:
        """Tell one person something in a channel; Slack does not promise that it arrives."""
        return await self._write(
            "chat.postEphemeral", channel=channel, user=user, text=text, blocks=blocks, thread_ts=thread_ts
        )

    async def respond(
        self, response_url: str, *, text: str, blocks: Sequence[Block] | None = None, replace: bool = False
    ) -> SlackAnswer:
        """Answer an interaction at its own address, only the person sees it; five times in half an hour.

        It works where the bot may not post. With `replace` the message that was clicked is replaced instead.
        """
        hook = AsyncWebhookClient(
            response_url,
            session=self.sdk.session,
            proxy=self.sdk.proxy,
            logger=self.sdk.logger,
            retry_handlers=[],
        )
        body = {"text": text, "blocks": blocks, "replace_original": replace, "response_type": "ephemeral"}
        said = {name: value for name, value in body.items() if value is not None}
        return await self._once(lambda: hook.send_dict(said))

    async def open_view(self, trigger_id: str, view: Mapping[str, Any]) -> SlackAnswer:
        """Open a modal; the trigger lives 3 s and works once."""
        return await self._write("views.open", trigger_id=trigger_id, view=view)

    async def push_view(self, trigger_id: str, view: Mapping[str, Any]) -> SlackAnswer:
        """Put a modal on top of the open one; three at most."""
        return await self._write("views.push", trigger_id=trigger_id, view=view)

    async def update_view(
        self, view_id: str, view: Mapping[str, Any], *, view_hash: str | None = None
    ) -> SlackAnswer:
        """Replace an open modal; with a hash, only if it is still the one with that hash."""
        return await self._write("views.update", view_id=view_id, view=view, hash=view_hash)

    async def publish_home(
        self, user: str, view: Mapping[str, Any], *, view_hash: str | None = None
    ) -> SlackAnswer:
        """Replace one person's App Home."""
        return await self._write("views.publish", user_id=user, view=view, hash=view_hash)

    async def history(
        self, channel: str, *, oldest: str | None = None, latest: str | None = None, cursor: str | None = None
    ) -> SlackAnswer:
        """One page of a channel's messages with their whole metadata, newest first, no thread replies."""
        return await self._read(
            "conversations.history",
            channel=channel,
            oldest=oldest,
            latest=latest,
            cursor=cursor,
            limit=HISTORY_PAGE,
            inclusive=True,
            include_all_metadata=True,  # Without it only the event type comes back.
        )

    async def replies(
        self, channel: str, ts: str, *, oldest: str | None = None, cursor: str | None = None
    ) -> SlackAnswer:
        """One page of a thread with its whole metadata, oldest first, the parent among them."""
        return await self._read(
            "conversations.replies",
            channel=channel,
            ts=ts,
            oldest=oldest,
            cursor=cursor,
            limit=HISTORY_PAGE,
            inclusive=True,
            include_all_metadata=True,
        )

    async def user_info(self, user: str) -> SlackAnswer:
        """One person's account, with the language of their Slack; `data["user"]`."""
        return await self._read("users.info", user=user, include_locale=True)

    async def group_members(self, group: str) -> SlackAnswer:
        """The user ids of one user group; `data["users"]`, disabled groups refused by Slack."""
        return await self._read("usergroups.users.list", usergroup=group)

    async def groups(self) -> SlackAnswer:
        """Every user group that is not disabled, with its name; `data["usergroups"]`."""
        return await self._read("usergroups.list")

    async def conversation(self, channel: str) -> SlackAnswer:
        """What a channel is: archived, shared with another company, ours to post in; `data["channel"]`."""
        return await self._read("conversations.info", channel=channel)

    async def open_conversation(self, user: str) -> SlackAnswer:
        """Our conversation with one person, made if there is none yet; `data["channel"]["id"]`."""
        return await self._write("conversations.open", users=user)

    async def open_socket(self) -> SlackAnswer:
        """Ask, by an app-level token, for the address of a new line of Socket Mode: `data["url"]`."""
        return await self._write("apps.connections.open")

    async def auth_test(self) -> SlackAnswer:
        """Who we are, and `scopes`."""
        answer = await self._write("auth.test")
        if isinstance(answer, SlackOk):
            self._whoami |= answer.data
        return answer

    async def _write(self, method: str, **arguments: Any) -> SlackAnswer:  # noqa: ANN401 - whatever Slack takes
        body = {name: value for name, value in arguments.items() if value is not None}
        return await self._call(method, json=body)

    async def _read(self, method: str, **arguments: Any) -> SlackAnswer:  # noqa: ANN401 - whatever Slack takes
        """A form by POST, which every method takes: aiohttp sends a GET again when the line breaks."""
        form = {name: _form_value(value) for name, value in arguments.items() if value is not None}
        return await self._call(method, data=form)

    async def _call(self, method: str, **how: Any) -> SlackAnswer:  # noqa: ANN401 - handed to the SDK as it is
        return await self._once(lambda: self.sdk.api_call(method, **how))

    async def _once(self, send: Callable[[], Awaitable[AsyncSlackResponse | WebhookResponse]]) -> SlackAnswer:
        """One request under one deadline. The SDK's exceptions carry whole answers: none leaves here."""
        outside_transaction()
        try:
            async with asyncio.timeout(self._deadline_seconds):
                response = await send()
        except TimeoutError:
            return SlackUnknown("timeout")
        except FAULTS as fault:
            return read_fault(fault)
        if isinstance(response, WebhookResponse):
            return read_hook_answer(response.status_code, response.headers, response.body)
        return read_answer(response.status_code, response.headers, response.data)


def _form_value(value: str | int | bool) -> str:  # noqa: FBT001 - the value itself, no switch
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quiet_logger() -> logging.Logger:
    """The SDK logs whole requests at DEBUG, button values included; this logger never gets so low."""
    logger = logging.getLogger("stet.slack.sdk")
    logger.setLevel(logging.WARNING)
    return logger


def is_loopback(base_url: str) -> bool:
    """Whether an address is on this machine: a stand-in, not Slack."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
