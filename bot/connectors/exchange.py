"""One HTTP request to one target: what was answered, or how far it got.

Not here: what an answer means for an effect (answers) or what is sent (http, resume).
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import httpcore2

from bot.connectors.dial import GuardedBackend, NotPermitted, NotResolved, Resolve, resolve_host
from bot.connectors.reach import Blocked, Reach, Target
from bot.policy.elapsed import elapsed_seconds

BODY_BYTES = 256 * 1024  # As much as we take ourselves at intake; an n8n node may answer with all its items.
IN_FLIGHT = 32  # Requests open to one target at once: it must not hold all our sockets when it hangs.
USER_AGENT = "stet/0.1"

# Their debug lines hold addresses and response headers; an address may be a secret (a webhook's path).
logging.getLogger("httpcore2").setLevel(logging.WARNING)


_NETWORK_FAULTS = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError, ssl.SSLError)


@dataclass(frozen=True, slots=True)
class Call:
    """One request; the URL has not been checked yet."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)  # with a certificate of our own


@dataclass(frozen=True, slots=True)
class Answered:
    """A status came back. `flaw` says why the body cannot be relied on: the status still can."""

    status: int
    headers: Mapping[str, str] = field(repr=False)  # names in lower case
    body: bytes = field(default=b"", repr=False)
    flaw: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """No status came back; `cause` names a row of answers.OUTCOMES: whether it may have left us."""

    cause: str


@dataclass(slots=True)
class _Progress:
    """How far one request got: it decides what a failure proves. `ends` is when its time is over."""

    ends: float
    step: str = "waiting"
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Told by httpcore2 at each step."""
        if event == "connection.connect_tcp.started":
            self.step = "connecting"
        elif event == "connection.start_tls.started":
            self.step = "securing"
        elif event == "http11.send_request_headers.started":
            if elapsed_seconds() > self.ends:
                raise TimeoutError  # The machine slept: whoever gave us the time has given us up by now.
            self.step = "sending"  # from here on a byte may have left

    def answered(self, flaw: str | None = None) -> Answered:
        """The answer as far as it came."""
        assert self.status is not None  # noqa: S101 - callers ask only once there is one
        return Answered(self.status, self.headers, bytes(self.body), flaw)

    def failed(self, cause: str) -> Answered | Failed:
        """What a failure comes to: after the status it is a flaw, before it the end."""
        return Failed(cause) if self.status is None else self.answered(f"body_{cause}")


class Exchange:
    """Makes requests to allowed targets; never follows a redirect, knows no proxy, keeps no connection.

    A kept connection that the other side has just closed fails exactly as one whose answer was lost, and a
    person would have to settle each such effect: a fresh connection costs a round trip and is never ambiguous
    before its first byte.
    """

    def __init__(
        self, reach: Reach, *, resolve: Resolve = resolve_host, tls: ssl.SSLContext | None = None
    ) -> None:
        self._reach = reach
        self._resolve = resolve
        self._tls = tls or system_trust()
        self._places: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def call(self, call: Call, *, within_seconds: float) -> Answered | Failed:
        """Make one request under one deadline for all of it. Raises nothing that the network can cause."""
        target = self._reach.check_url(call.url)
        if isinstance(target, Blocked):
            return Failed(target.reason)
        progress = _Progress(elapsed_seconds() + within_seconds)
        try:
            async with asyncio.timeout(within_seconds), self._place(target):
                return await self._converse(call, target, progress)
        except TimeoutError:
            return progress.failed(_late(progress))
        except NotResolved:
            return Failed("dns_failed")
        except NotPermitted:
            return Failed("address_not_allowed")
        except _NETWORK_FAULTS as error:
            return progress.failed(_broken(progress, error))

    async def _converse(self, call: Call, target: Target, progress: _Progress) -> Answered:
        async with self._connection(target, call.tls or self._tls) as connection:
            response = await connection.handle_async_request(self._request(call, target, progress))
            for raw_name, raw_value in response.headers:  # of one name: a list (RFC 9110, 5.3)
                name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
                progress.headers[name] = (
                    f"{progress.headers[name]}, {value}" if name in progress.headers else value
                )
            progress.status = response.status
            assert not isinstance(response.stream, bytes)  # noqa: S101 - httpcore2 streams what it receives
            return await _read_body(response, progress)

    def _request(self, call: Call, target: Target, progress: _Progress) -> httpcore2.Request:
        headers = {
            "host": target.authority,
            "user-agent": USER_AGENT,
            "accept": "application/json",
            "accept-encoding": "identity",
            "connection": "close",
            **call.headers,
        }
        if call.method != "GET":
            headers["content-length"] = str(len(call.body))
        return httpcore2.Request(
            call.method,
            httpcore2.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path),
            headers=list(headers.items()),
            content=call.body,
            extensions={"trace": progress.trace},
        )

    @asynccontextmanager
    async def _connection(
        self, target: Target, tls: ssl.SSLContext
    ) -> AsyncIterator[httpcore2.AsyncHTTPConnection]:
        backend = GuardedBackend(self._reach, self._resolve)
        connection = httpcore2.AsyncHTTPConnection(
            httpcore2.Origin(target.scheme.encode(), target.host.encode(), target.port),
            ssl_context=tls,
            network_backend=backend,
        )
        try:
            yield connection
        finally:
            await connection.aclose()
            await backend.close()

    def _place(self, target: Target) -> asyncio.Semaphore:
        """One of the places for this target; the entry goes when nobody uses it."""
        return self._places.setdefault(target.authority, asyncio.Semaphore(IN_FLIGHT))


@cache
def system_trust() -> ssl.SSLContext:
    """The system's authorities; reading them costs 30 ms and some megabytes, so all exchanges share one."""
    return ssl.create_default_context()


async def _read_body(response: httpcore2.Response, progress: _Progress) -> Answered:
    async for part in response.aiter_stream():
        progress.body += part[: BODY_BYTES - len(progress.body) + 1]
        if len(progress.body) > BODY_BYTES:
            return progress.answered("body_too_large")
    encoding = progress.headers.get("content-encoding", "identity").strip().lower()
    return progress.answered(None if encoding in ("", "identity") else "body_encoded")


def _late(progress: _Progress) -> str:
    match progress.step:
        case "waiting":
            return "crowded"
        case "connecting" | "securing":
            return "connect_timeout"
        case _:
            return "timeout"


def _broken(progress: _Progress, error: Exception) -> str:
    match progress.step:
        case "waiting" | "connecting":
            return _not_connected(error)
        case "securing":
            return "tls_failed"
        case _:
            return "cut"


def _not_connected(error: Exception) -> str:
    """Tell a refusal from other ways of not connecting: the first is the plainest proof there is."""
    if isinstance(error, httpcore2.ConnectTimeout):
        return "connect_timeout"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return "connection_refused"
        cause = cause.__cause__ or cause.__context__
    return "connect_failed"
