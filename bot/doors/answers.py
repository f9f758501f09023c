"""How every door of ours answers over HTTP: JSON objects, problems, a request id; and how it reads a body.

Not here: what is answered when (intake, runs, health) or who is asking (senders).
"""

import asyncio
import itertools
import logging
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.contracts.fields import FieldError
from bot.contracts.problem import Problem, ProblemType, make_problem
from bot.policy.limits import UNAVAILABLE_RETRY_AFTER_SECONDS

log = logging.getLogger(__name__)

Header = tuple[bytes, bytes]

_JSON: Final[Header] = (b"content-type", b"application/json")
_NO_STORE: Final[Header] = (b"cache-control", b"no-store")  # Runs and drafts are nobody's to keep on the way.
BODY_SECONDS: Final = 10.0  # For 2 MiB at most; n8n's and Slack's come in one piece.
_BROKEN: Final = "Something broke here, so it is not known what was done: send it again, unchanged."
_LATE: Final = "Send the whole body at once: this one was not complete after ten seconds."
_PROCESS: Final = os.urandom(6).hex()
_numbers = itertools.count(1)


class Refused(Exception):
    """Carries a refusal and its extra headers from where it is found to where it is sent."""

    def __init__(self, problem: Problem, *headers: Header) -> None:
        super().__init__(problem.type)
        self.problem = problem
        self.headers = headers


class BodyTooLarge(Exception):
    """More came than is taken; the rest is not read."""


class SenderGone(Exception):
    """The connection ended before the body did."""


def new_request_id() -> str:
    """Name one request, uniquely over processes and restarts, for its answer and our log."""
    return f"{_PROCESS}-{next(_numbers):x}"


def read_headers(scope: Scope) -> dict[str, str]:
    """Give the headers by lower-case name; of one that is sent twice the last counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


async def read_body(receive: Receive, headers: Mapping[str, str], most: int) -> bytes:
    """Read a request's body, stopping as soon as it is longer than `most` bytes.

    Raises:
        BodyTooLarge: it says so itself, or it turned out so.
        SenderGone: it never came whole.
        Refused: it did not come whole in time, and holds its connection no longer.

    """
    declared = headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > len(str(most)) or int(declared) > most):
        raise BodyTooLarge
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _read_parts(receive, most)
    except TimeoutError:
        problem = Problem(ProblemType.INVALID_EVENT.value, 408, "The body did not come in time", _LATE)
        raise Refused(problem, (b"connection", b"close")) from None


async def _read_parts(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise SenderGone
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise BodyTooLarge
        if not message.get("more_body", False):
            return b"".join([*parts, part]) if parts else part
        parts.append(part)


async def send_bytes(
    scope: Scope, send: Send, *, status: int, body: bytes, headers: Iterable[Header]
) -> None:
    """Send a whole answer; to HEAD the same without the body."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    content = b"" if scope["method"] == "HEAD" else body
    await send({"type": "http.response.body", "body": content})


async def send_json(
    scope: Scope, send: Send, *, status: int, body: Mapping[str, Any], request_id: str
) -> None:
    """Send one JSON object."""
    headers = (_JSON, _NO_STORE, (b"x-request-id", request_id.encode()))
    await send_bytes(scope, send, status=status, body=orjson.dumps(body), headers=headers)


async def send_refusal(scope: Scope, send: Send, refused: Refused, *, request_id: str) -> None:
    """Send the members of RFC 9457 as plain JSON: n8n does not parse the problem media type."""
    headers = (_JSON, _NO_STORE, (b"x-request-id", request_id.encode()), *refused.headers)
    body = orjson.dumps(refused.problem.body(request_id))
    await send_bytes(scope, send, status=refused.problem.status, body=body, headers=headers)


def retry_after(seconds: int) -> Header:
    """Say when to come again; whoever honours it is spared a refusal."""
    return (b"retry-after", str(seconds).encode())


def refuse_method(allowed: str) -> Refused:
    """Refuse a method: nothing redirects, and no GET changes anything."""
    detail = f"Send {allowed} to this address."
    problem = Problem(ProblemType.NOT_FOUND.value, 405, "There is no such method here", detail)
    return Refused(problem, (b"allow", allowed.encode()))


def refuse_fields(errors: tuple[FieldError, ...]) -> Refused:
    """Refuse content, with every wrong field and the first one in the sentence n8n shows."""
    first = f"{errors[0].field} {errors[0].message}"
    more = f" ({len(errors) - 1} more in errors)" if len(errors) > 1 else ""
    return Refused(make_problem(ProblemType.INVALID_EVENT, f"{first}{more}.", errors))


class Contained:
    """A door whose own faults are answered as such: 503, for whether anything was done is not known.

    The server would answer with a bare 500 in plain text.
    """

    def __init__(self, door: ASGIApp) -> None:
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; what escapes before the answer began becomes the answer."""
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._door(scope, receive, sending)
        except Exception as fault:
            if begun:
                raise
            request_id = new_request_id()
            log.error(  # noqa: TRY400 - its class only: the text may hold the request
                "a request failed", extra={"fault": type(fault).__name__, "request_id": request_id}
            )
            problem = make_problem(ProblemType.UNAVAILABLE, _BROKEN)
            refused = Refused(problem, retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS))
            await send_refusal(scope, send, refused, request_id=request_id)


class NotFound:
    """The answer where there is nothing; wiring makes it the router's default."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 404 to anything over HTTP, and close anything else."""
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        problem = make_problem(ProblemType.NOT_FOUND, "There is nothing at this address: see /openapi.json.")
        await send_refusal(scope, send, Refused(problem), request_id=new_request_id())
