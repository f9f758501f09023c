"""Acts as a person in the pretend workspace: clicks, types, commands, opens the Home; does what follows.

The payloads are built in `slack_payloads`; what the bot does through the Web API is in `slack_web_api`.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from bot.demo.slack_chat import check_message_blocks
from bot.demo.slack_method import Refusal
from bot.demo.slack_payloads import (
    HONEST,
    Forge,
    Signed,
    click_payload,
    closed_payload,
    command_form,
    home_event,
    press_payload,
    sign_event,
    sign_form,
    sign_interaction,
    submission_payload,
)
from bot.demo.slack_socket import SlackSocket
from bot.demo.slack_state import Message, SlackState, View
from bot.demo.slack_typing import CannotDo, type_into
from bot.demo.slack_views import checked_view, push
from bot.demo.slack_workspace import C_REVIEW

ANSWER_SECONDS: Final = (
    3.0  # Slack waits so long for interactions and commands, then tells the person it failed.
)
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class Reply:
    """What the bot answered. `status` is 0 if it answered not at all in time; `request` can be sent again."""

    status: int
    body: bytes
    seconds: float
    request: Signed = field(repr=False)

    @property
    def kept(self) -> bool:
        """Whether Slack was content: a 2xx within three seconds. Else the person sees an error."""
        return 200 <= self.status < 300  # noqa: PLR2004 - the 2xx

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON
        """The body, if it is JSON; None for an empty one."""
        return json.loads(self.body) if self.body else None


class SlackActor:
    """Every person of the workspace. `events_url` is the bot's `/slack/events`; or `socket` is used."""

    def __init__(
        self,
        state: SlackState,
        response_base: str,
        *,
        events_url: str = "",
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.state = state
        self.events_url = events_url
        self.socket: SlackSocket | None = None
        self._answer_seconds = answer_seconds
        self._response_base = response_base
        self._http = httpx2.AsyncClient(timeout=answer_seconds, trust_env=False)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def click(
        self, user: str, channel: str, ts: str, button: str | int = 0, forge: Forge = HONEST
    ) -> Reply:
        """Press a button on a message: the n-th from the top, or the one with this action id."""
        payload = click_payload(self.state, user, self._message(user, channel, ts), button, forge)
        payload["response_url"] = self._response_url(user, channel, ts)
        return await self.send(sign_interaction(self.state, payload, forge))

    async def press(self, user: str, button: str | int = 0, forge: Forge = HONEST) -> Reply:
        """Press a button in the modal that the person has open."""
        payload = press_payload(self.state, user, self.top_view(user), button, forge)
        return await self.send(sign_interaction(self.state, payload, forge))

    async def press_home(self, user: str, button: str | int = 0, forge: Forge = HONEST) -> Reply:
        """Press a button on the person's App Home."""
        home = self.state.homes.get(user)
        if home is None:
            raise CannotDo("this Home was never published")
        return await self.send(
            sign_interaction(self.state, press_payload(self.state, user, home, button, forge), forge)
        )

    async def submit(
        self,
        user: str,
        values: Mapping[str, Any] | None = None,
        *,
        checked: bool = True,
        forge: Forge = HONEST,
    ) -> Reply:
        """Fill in the open modal (by block_id or action_id) and send it.

        What the bot answers is done as Slack does it: close, errors, update, push or clear. Raises CannotDo
        if the window would not let the person send it; `checked=False` sends all the same.
        """
        view = self.top_view(user)
        view.typed = type_into(view.content, values or {}, checked=checked)
        payload = submission_payload(self.state, user, view, forge)
        reply = await self.send(sign_interaction(self.state, payload, forge))
        self._follow(view, reply)
        return reply

    async def dismiss(self, user: str, forge: Forge = HONEST) -> Reply | None:
        """Close the open modal without sending it; the bot hears of it only if it asked to."""
        view = self.top_view(user)
        self._pop(view)
        if not view.content.get("notify_on_close"):
            return None
        payload = closed_payload(self.state, user, view, forge)
        return await self.send(sign_interaction(self.state, payload, forge))

    async def slash(
        self,
        user: str,
        text: str,
        *,
        command: str = "/stet",
        channel: str = C_REVIEW,
        forge: Forge = HONEST,
    ) -> Reply:
        """Type a slash command; what comes back is whispered to the person, or said in the channel."""
        form = command_form(self.state, user, channel, command, text)
        form["response_url"] = self._response_url(user, channel, None)
        reply = await self.send(sign_form(self.state, form, forge))
        if reply.kept and reply.body.strip():
            self._say(user, channel, reply)
        return reply

    async def open_home(self, user: str, forge: Forge = HONEST) -> Reply:
        """Open the bot's App Home."""
        return await self.send(sign_event(self.state, home_event(self.state, user), forge))

    async def send(self, request: Signed, headers: Mapping[str, str] | None = None) -> Reply:
        """Put one request on the wire: a fresh one, or the same bytes again."""
        started = time.monotonic()
        if self.socket is not None:
            return await self._send_by_socket(self.socket, request, started)
        try:
            answer = await self._http.post(
                self.events_url, content=request.body, headers={**request.headers, **(headers or {})}
            )
        except httpx2.HTTPError:
            return Reply(0, b"", time.monotonic() - started, request)
        return Reply(answer.status_code, answer.content, time.monotonic() - started, request)

    async def _send_by_socket(self, link: SlackSocket, request: Signed, started: float) -> Reply:
        """No signature there: Slack knows its own line. An envelope that is not answered is status 0."""
        try:
            async with asyncio.timeout(self._answer_seconds):
                [answer] = await link.deliver(request)
        except (TimeoutError, ConnectionError):
            return Reply(0, b"", time.monotonic() - started, request)
        body = b"" if answer is None else json.dumps(answer).encode()
        return Reply(_OK, body, time.monotonic() - started, request)

    def top_view(self, user: str) -> View:
        """The modal a person has before them; raises CannotDo if there is none."""
        view = self.state.view_on_top(user)
        if view is None:
            raise CannotDo("no modal is open")
        return view

    def _message(self, user: str, channel: str, ts: str) -> Message:
        whispered = [message for message in self.state.ephemerals_of(user) if message.ts == ts]
        message = self.state.messages.get(channel, {}).get(ts) or (whispered[0] if whispered else None)
        if message is None:
            raise CannotDo(f"no such message: {channel} {ts}")
        return message

    def _response_url(self, user: str, channel: str, ts: str | None) -> str:
        return f"{self._response_base}{self.state.new_response(user, channel, ts)}"

    def _say(self, user: str, channel: str, reply: Reply) -> None:
        """The body of an answer to a command: plain text, or a message as JSON."""
        try:
            said = reply.json
        except ValueError:
            said = {"text": reply.body.decode()}
        if not isinstance(said, dict):
            said = {"text": str(said)}
        public = said.get("response_type") == "in_channel"
        blocks = check_message_blocks(said.get("blocks"))
        self.state.add(
            Message(
                channel=channel,
                ts=self.state.new_ts(),
                text=said.get("text") or "",
                blocks=blocks,
                only_for=None if public else user,
            )
        )

    def _follow(self, view: View, reply: Reply) -> None:
        """Do what the bot answered to a submission; anything Slack cannot use leaves the modal as it is."""
        if reply.status != _OK:
            view.errors = {"": "We had some trouble connecting. Try again?"}
            return self.state.changed()
        answer = reply.json or {}
        match answer.get("response_action"):
            case None:
                self._pop(view)
            case "clear":
                self.state.open_views.pop(view.user, None)
            case "errors":
                view.errors = _known_errors(view, answer.get("errors"))
            case "update":
                self.state.replace_view(view, checked_view(self.state, answer.get("view"), "modal", view))
            case "push":
                push(self.state, view, checked_view(self.state, answer.get("view"), "modal"))
            case other:
                raise Refusal(f"unknown response_action {other}")
        return self.state.changed()

    def _pop(self, view: View) -> None:
        stack = self.state.open_views.get(view.user, [])
        if view.id in stack:
            stack.remove(view.id)
        if not stack or view.content.get("clear_on_close"):
            self.state.open_views.pop(view.user, None)
        self.state.changed()


def _known_errors(view: View, errors: object) -> dict[str, str]:
    """Errors may only stand at input blocks of the view (docs, modals)."""
    inputs = {block["block_id"] for block in view.content["blocks"] if block["type"] == "input"}
    if not isinstance(errors, dict) or not errors or errors.keys() - inputs:
        raise Refusal("errors must name input blocks of the view")
    return {str(block_id): str(sentence) for block_id, sentence in errors.items()}
