"""POST /slack/events: hands requests to Bolt, and ends what Bolt would choke on.

Not here: what Bolt calls (slack_app); whether a signature is good is checked by Bolt itself.
"""

import json
import logging
from collections.abc import Sequence
from typing import Any, Final

from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bot.contracts.problem import ProblemType, make_problem
from bot.doors.answers import (
    BodyTooLarge,
    Refused,
    SenderGone,
    new_request_id,
    read_body,
    read_headers,
    refuse_method,
    send_bytes,
    send_refusal,
)
from bot.doors.listeners import SIGNED, Handlers, tell_unreadable

PATH: Final = "/slack/events"
MOST_BYTES: Final = 2 * 1024 * 1024  # A view may have 250 kB, and a form triples what is not ASCII.

_FIELD: Final = b"payload="
_LEFT_OUT: Final = "x-slack-bolt-"  # Bolt's own switches between its processes; not to be set from outside.

log = logging.getLogger(__name__)


def routes(app: AsyncApp, handlers: Handlers) -> list[Route]:
    """Mount the app, with and without a slash at the end."""
    door = SlackDoor(app, handlers)
    return [Route(PATH, door), Route(f"{PATH}/", door)]


class SlackDoor:
    """One ASGI application; Bolt's own adapter would raise on bodies that are not text or not JSON."""

    def __init__(self, app: AsyncApp, handlers: Handlers) -> None:
        self._app = app
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            answer = await self._dispatch(await _read(scope, receive))
        except Refused as refusal:
            return await send_refusal(scope, send, refusal, request_id=new_request_id())
        except SenderGone:
            return None
        headers = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in answer.first_headers_without_set_cookie().items()
        ]
        return await send_bytes(scope, send, status=answer.status, body=answer.body.encode(), headers=headers)

    async def _dispatch(self, request: AsyncBoltRequest) -> BoltResponse:
        try:
            return await self._app.async_dispatch(request)
        except Exception as fault:  # noqa: BLE001 - Bolt fell over the shape; its text may hold the body
            log.warning("a request from Slack was not understood", extra={"fault": type(fault).__name__})
            if not request.context.get(SIGNED):
                return BoltResponse(status=400, body="")
            tell_unreadable(self._handlers, request.body)
            return BoltResponse(status=200, body="")


def _request(raw: bytes, headers: dict[str, str | Sequence[str]]) -> AsyncBoltRequest:
    """Make Bolt's request of a body; what buttons and modals send is read for it: its dearest part."""
    payload = read_payload(raw)
    if payload is None:
        return AsyncBoltRequest(body=raw.decode(), headers=headers)
    request = AsyncBoltRequest(body=payload, headers=headers, mode="socket_mode")
    request.raw_body, request.mode = raw.decode(), "http"  # It came by HTTP: its signature is to be checked.
    return request


def read_payload(raw: bytes) -> dict[str, Any] | None:
    """Read a form whose one field `payload` is a JSON object; None for any other body.

    urllib takes a step of Python for each escape. Written as escapes of text, all of them are one step.
    """
    if not raw.startswith(_FIELD) or b"&" in raw or b"\\" in raw:
        return None
    try:
        escaped = raw[len(_FIELD) :].replace(b"+", b" ").replace(b"%", b"\\x")
        payload = json.loads(escaped.decode("unicode_escape").encode("latin-1").decode())
    except ValueError:
        return None
    return payload if isinstance(payload, dict) else None


async def _read(scope: Scope, receive: Receive) -> AsyncBoltRequest:
    if scope["method"] != "POST":
        raise refuse_method("POST")
    headers = {name: value for name, value in read_headers(scope).items() if not name.startswith(_LEFT_OUT)}
    try:
        raw = await read_body(receive, headers, MOST_BYTES)
    except BodyTooLarge:
        raise Refused(make_problem(ProblemType.TOO_LARGE, "Slack sends nothing so large.")) from None
    try:
        return _request(raw, {**headers})
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError, IndexError):
        # Of no shape that Slack sends, so nothing that Slack signed: as any request of somebody else.
        raise Refused(make_problem(ProblemType.UNAUTHORIZED, "Only Slack is answered here.")) from None
