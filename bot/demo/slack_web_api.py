"""The stand-in's HTTP side towards the bot: the Web API and the response addresses.

What each method does is in `slack_chat`, `slack_views` and `slack_read`; `slack_server` opens the socket.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.demo.slack_chat import CHAT_METHODS, check_message_blocks
from bot.demo.slack_faults import Call, Fault, Faults, Journal
from bot.demo.slack_method import Arguments, Method, Refusal
from bot.demo.slack_rates import Rates
from bot.demo.slack_read import READ_METHODS
from bot.demo.slack_socket import SOCKET_METHODS
from bot.demo.slack_state import Message, ResponseAddress, SlackState
from bot.demo.slack_views import VIEW_METHODS
from bot.demo.slack_workspace import U_STET

METHODS: Final = {
    method.name: method for method in (*CHAT_METHODS, *VIEW_METHODS, *READ_METHODS, *SOCKET_METHODS)
}
RESPONSE_URL: Final = "response_url"
"""The name under which posts to response addresses stand in journal and faults."""
_OK: Final = 200
_TOO_MANY: Final = 429


class SlackWebApi:
    """Answers requests from the state, unless a fault was ordered."""

    def __init__(
        self, state: SlackState, rates: Rates, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.state = state
        self.rates = rates
        self.faults = Faults()
        self.journal = Journal()
        self._monotonic = monotonic

    async def call(self, request: Request) -> Response:
        """POST or GET /api/{method}."""
        name = request.path_params["method"]
        method = METHODS.get(name)
        if method is None:
            return self._say({"ok": False, "error": "unknown_method", "req_method": name})
        return await self._meet(name, request, lambda body: self._answer(method, request, body))

    async def respond(self, request: Request) -> Response:
        """POST /response/{name}: five uses in half an hour."""
        address = self.state.responses.get(request.path_params["name"])
        return await self._meet(RESPONSE_URL, request, lambda body: self._take_response(address, body))

    async def _meet(
        self, name: str, request: Request, work: Callable[[bytes], tuple[Arguments, Response]]
    ) -> Response:
        """Do the work, with whatever trouble was ordered around it."""
        fault = self.faults.next(name) or Fault()
        if fault.drop and not fault.after_work and not fault.hang:
            return self._cut(name, request, {})
        body = await request.body()
        done = work(body) if fault.after_work else None
        if fault.hang:
            fault.reached.set()
            await fault.release.wait()
        arguments, answer = done or ({}, None)
        if fault.drop:
            return self._cut(name, request, arguments)
        if fault.status or fault.error:
            answer = self._trouble(fault)
        elif answer is None:
            arguments, answer = work(body)
        self.journal.note(Call(name, arguments, self._monotonic(), _outcome(answer)))
        return answer

    def _answer(self, method: Method, request: Request, body: bytes) -> tuple[Arguments, Response]:
        arguments: dict[str, Any] = {}
        try:
            arguments = read_arguments(method, request, body)
            self._check_token(method, request, arguments)
            channel = arguments.get("channel")
            wait = self.rates.refuse(method.name, channel, self._monotonic())
            if wait:
                return arguments, self._trouble(
                    Fault(status=_TOO_MANY, error="ratelimited", retry_after=str(wait))
                )
            method.check(self.state, arguments)
            return arguments, self._say({"ok": True, **method.work(self.state, arguments)})
        except Refusal as refusal:
            return arguments, self._say({"ok": False, "error": refusal.error, **refusal.more})

    def _check_token(self, method: Method, request: Request, arguments: dict[str, Any]) -> None:
        """The token comes in the header or in a form, never in an address."""
        in_form = "" if request.method == "GET" else arguments.pop("token", "")
        given = request.headers.get("authorization", "").removeprefix("Bearer ") or in_form
        if not given:
            raise Refusal("not_authed")
        workspace = self.state.workspace
        wanted, other = workspace.token, workspace.app_token
        if method in SOCKET_METHODS:
            wanted, other = other, wanted
        if given != wanted:
            raise Refusal("not_allowed_token_type" if given == other else "invalid_auth")

    def _take_response(self, address: ResponseAddress | None, body: bytes) -> tuple[Arguments, Response]:
        try:
            said = json.loads(body)
        except ValueError:
            return {}, self._say({"ok": False, "error": "invalid_payload"}, status=400)
        if address is None or self.state.now() > address.expires_at:
            return said, self._say({"ok": False, "error": "expired_url"}, status=404)
        if address.uses_left == 0:
            return said, self._say({"ok": False, "error": "used_url"}, status=404)
        address.uses_left -= 1
        try:
            apply_response(self.state, address, said)
        except Refusal as refusal:
            return said, self._say({"ok": False, "error": refusal.error, **refusal.more}, status=400)
        return said, self._say({"ok": True})

    def _say(self, body: Mapping[str, Any], *, status: int = _OK) -> Response:
        scopes = ",".join(sorted(self.state.workspace.scopes))
        return JSONResponse(dict(body), status_code=status, headers={"x-oauth-scopes": scopes})

    def _trouble(self, fault: Fault) -> Response:
        headers = {} if fault.retry_after is None else {"retry-after": fault.retry_after}
        if fault.body is not None:
            media_type = "application/json" if fault.body.startswith((b"{", b"[")) else "text/html"
            return Response(fault.body, fault.status, headers=headers, media_type=media_type)
        error = {"ok": False, "error": fault.error or "internal_error"}
        return JSONResponse(error, status_code=fault.status or _OK, headers=headers)

    def _cut(self, name: str, request: Request, arguments: Arguments) -> Response:
        """Pull the plug: no answer, no goodbye. What is returned goes nowhere."""
        self.journal.note(Call(name, arguments, self._monotonic(), "dropped"))
        cast("asyncio.Transport", request.scope["state"]["transport"]).abort()  # put there by `slack_server`
        return Response(status_code=500)


def read_arguments(method: Method, request: Request, body: bytes) -> dict[str, Any]:
    """Arguments from a JSON body, a form, or, for methods that read, the query."""
    if request.method == "GET":
        if not method.reads:
            raise Refusal("invalid_post_type")
        return dict(request.query_params)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        try:
            arguments = json.loads(body or b"{}")
        except ValueError:
            raise Refusal("invalid_json") from None
        if not isinstance(arguments, dict):
            raise Refusal("json_not_object")
        return arguments
    if kind == "application/x-www-form-urlencoded":
        return dict(parse_qsl(body.decode(), keep_blank_values=True))
    raise Refusal("invalid_post_type" if kind else "missing_post_type")


def apply_response(state: SlackState, address: ResponseAddress, said: Mapping[str, Any]) -> None:
    """What a message to a response address does: replace or delete the original, or say something."""
    original = state.messages.get(address.channel, {}).get(address.ts or "")
    if said.get("delete_original"):
        state.messages.get(address.channel, {}).pop(address.ts or "", None)
        state.ephemerals = [message for message in state.ephemerals if message.ts != address.ts]
        return state.changed()
    text, blocks = said.get("text") or "", check_message_blocks(said.get("blocks"))
    if not text and not blocks:
        raise Refusal("no_text")
    if said.get("replace_original"):
        whispered = [message for message in state.ephemerals if message.ts == address.ts]
        for message in whispered or ([original] if original else []):
            message.text, message.blocks = text, blocks
            message.revisions += 1
        return state.changed()
    public = said.get("response_type") == "in_channel"
    state.add(
        Message(
            channel=address.channel,
            ts=state.new_ts(),
            text=text,
            user=U_STET,
            blocks=blocks,
            thread_ts=said.get("thread_ts"),
            only_for=None if public else address.user,
        )
    )
    return None


def _outcome(answer: Response) -> str:
    """The word in the journal: ok, Slack's error, or http_ and the status."""
    try:
        body = json.loads(bytes(answer.body))
    except ValueError:
        return f"http_{answer.status_code}"
    if not isinstance(body, dict):
        return "unreadable"
    return "ok" if body.get("ok") else str(body.get("error"))
