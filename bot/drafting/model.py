"""The model asked: one draft, with the tries of the matrix and at most two repairs; the only user of openai.
Not here: what is said (prompt), how it is read (reply, extract, check), leases and storage (bot/flow/draft).

Plain asyncio: the caller may renew a lease beside it, and may cancel it at any point (SIGTERM).
"""

import asyncio
import json
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self
from urllib.parse import urlsplit

import openai

from bot.drafting.ask import TOTAL_SECONDS, Answer, Ask, Endpoint, Pace
from bot.drafting.check import check_output
from bot.drafting.extract import visible_text
from bot.drafting.faults import (
    DraftFault,
    Misconfigured,
    NotDelivered,
    ProviderFault,
    Spent,
    TimedOut,
    fault_of_status,
    names_response_format,
    read_retry_after,
)
from bot.drafting.prompt import (
    Message,
    first_messages,
    prompt_version,
    repair_messages,
    response_format,
)
from bot.drafting.reply import Reply, read_models, read_reply, take_object
from bot.policy.limits import MAX_REPAIRS
from bot.policy.retries import MATRIX
from store.database import outside_transaction

__all__ = ["Answer", "Ask", "Endpoint", "ModelClient", "Pace", "longest_wait_seconds"]

NO_KEY: Final = "unset"  # The client wants some key; an endpoint of one's own may want none.
CONNECT_SECONDS: Final = 5.0  # of the timeout; a connection not made by then was not delivered
# By name: the HTTP library under openai is its own affair, and only these say that nothing left us.
_NOTHING_LEFT: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"})
_OPENAI_HOST: Final = "api.openai.com"


class _Raw(Protocol):
    """What the client hands out when asked for the reply as it came."""

    @property
    def content(self) -> bytes: ...


class _FormatRefused(Exception):
    """The endpoint does not take our response_format."""


@dataclass(slots=True)
class _Count:
    """The running cost of one `ask`."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    turns: int = 0
    requests: int = 0

    def add(self, reply: Reply) -> None:
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens

    def spent(self) -> Spent:
        return Spent(self.prompt_tokens, self.completion_tokens, self.turns, self.requests)


def longest_wait_seconds(timeout_seconds: float) -> float:
    """The published bound: no `ask` takes longer than this, whatever the endpoint does.

    Every turn may need all tries, and one request of the whole `ask` may be repeated without response_format.
    """
    one_turn = max(row.tries * timeout_seconds + 1.5 * sum(row.waits_seconds) for row in MATRIX)
    return min((1 + MAX_REPAIRS) * one_turn + timeout_seconds, TOTAL_SECONDS)


class ModelClient:
    """Asks one endpoint. Holds a connection pool: close it with `aclose`, or use it as `async with`."""

    def __init__(self, endpoint: Endpoint, *, pace: Pace | None = None) -> None:
        self._endpoint = endpoint
        self._pace = pace or Pace()
        self._without_format: set[str] = set()
        host = urlsplit(endpoint.base_url).hostname
        # OpenAI's newer models refuse max_tokens; compatible servers know nothing else.
        self._limit_name = "max_completion_tokens" if host == _OPENAI_HOST else "max_tokens"
        # Its debug lines hold whole requests; event content is in no log of ours (SPEC 11).
        logging.getLogger("openai").setLevel(logging.WARNING)
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.api_key or "none",  # local servers take any
            base_url=endpoint.base_url,
            max_retries=0,  # one matrix, no stacked retries
            # A redirect would carry the key and the event to another host.
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def ask(self, request: Ask) -> Answer:
        """Make one draft: ask, extract, check, and repair at most twice.

        Raises:
            DraftFault: the row of the matrix that ended it; `spent` holds what it has cost.
            NetworkInTransaction: a database transaction is open here.

        """
        outside_transaction()
        count = _Count()
        try:
            async with asyncio.timeout(request.total_seconds):
                return await self._converse(request, count)
        except TimeoutError as late:
            fault = TimedOut("total")
            fault.spent = count.spent()
            raise fault from late
        except DraftFault as fault:
            fault.spent = count.spent()
            raise

    async def list_models(self, *, timeout_seconds: float) -> tuple[str, ...]:
        """Ask which models there are: what doctor tries. Some endpoints do not know the question (404).

        Raises:
            DraftFault: as `ask`; an answer of another shape is an empty list.

        """
        outside_transaction()
        call = self._client.models.with_raw_response.list(timeout=_timeout(timeout_seconds))
        return read_models(await self._finish(call, timeout_seconds))

    async def _converse(self, request: Ask, count: _Count) -> Answer:
        first = first_messages(request.prompt, request.output, request.payload, redraft=request.redraft)
        messages = first
        while True:
            count.turns += 1
            reply = await self._send_with_tries(request, messages, count)
            try:
                output = take_object(reply)
                verdict = check_output(
                    output,
                    schema=request.output,
                    rules=request.rules,
                    payload=request.payload,
                    sends=request.sends,
                )
            except DraftFault as fault:
                if count.turns > fault.row.repairs:
                    raise
                # Only the last refused answer is shown: the conversation stays as short as the first repair.
                messages = [*first, *repair_messages(visible_text(reply.text), fault.hints)]
                continue
            return Answer(
                output=output,
                model=reply.model or request.model or self._endpoint.model,
                fingerprint=reply.fingerprint,
                prompt_version=prompt_version(request.prompt),
                prompt_tokens=count.prompt_tokens,
                completion_tokens=count.completion_tokens,
                turns=count.turns,
                requests=count.requests,
                verdict=verdict,
            )

    async def _send_with_tries(self, request: Ask, messages: list[Message], count: _Count) -> Reply:
        tried = 0
        while True:
            tried += 1
            try:
                reply = await self._send_or_without_format(request, messages, count)
            except DraftFault as fault:
                if tried >= fault.row.tries:
                    raise
                wait = fault.row.waits_seconds[tried - 1]
            else:
                count.add(reply)
                return reply
            # Up to a half more, so that many runs do not come back at the same moment.
            await self._pace.sleep(wait * (1 + self._pace.chance() / 2))

    async def _send_or_without_format(self, request: Ask, messages: list[Message], count: _Count) -> Reply:
        model = request.model or self._endpoint.model
        if model in self._without_format:
            return await self._send(request, messages, count)
        wanted = response_format(request.kind, request.output)
        try:
            return await self._send(request, messages, count, response_format=wanted)
        except _FormatRefused:
            self._without_format.add(model)
        try:
            return await self._send(request, messages, count)
        except Misconfigured:
            # Refused all the same: the format was not what it minded.
            self._without_format.discard(model)
            raise

    async def _send(
        self, request: Ask, messages: list[Message], count: _Count, **more: dict[str, Any]
    ) -> Reply:
        """Send one request and read its reply; `more` are further members of the body."""
        body: dict[str, Any] = {
            "model": request.model or self._endpoint.model,
            "messages": messages,
            self._limit_name: request.max_tokens,
            **more,
        }
        count.requests += 1
        timeout = _timeout(request.timeout_seconds)
        create = self._client.chat.completions.with_raw_response.create(**body, timeout=timeout)
        raw = await self._finish(create, request.timeout_seconds, with_format="response_format" in more)
        return read_reply(raw)

    async def _finish(
        self, call: Awaitable[_Raw], timeout_seconds: float, *, with_format: bool = False
    ) -> bytes:
        """Await a call within its total deadline, and name what went wrong."""
        try:
            # The client's own timeout is one a read, so a dripping answer would never end: ours is the total.
            async with asyncio.timeout(timeout_seconds):
                response = await call
        except openai.APIStatusError as error:
            # Without the cause: its text quotes the endpoint, which may quote us.
            if with_format and names_response_format(error.status_code, error.response.text):
                raise _FormatRefused from None
            raise self._fault_of(error) from None
        except (TimeoutError, openai.APIConnectionError) as error:
            raise _fault_of_connection(error) from error.__cause__
        return bytes(response.content)

    def _fault_of(self, error: openai.APIStatusError) -> DraftFault:
        wait = read_retry_after(error.response.headers.get("retry-after"), now=self._pace.now())
        try:
            parsed = json.loads(error.response.content)
        except (ValueError, RecursionError):
            parsed = None
        return fault_of_status(error.status_code, parsed, retry_after_seconds=wait)


def _timeout(seconds: float) -> openai.Timeout:
    return openai.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))


def _fault_of_connection(error: Exception) -> DraftFault:
    if type(error.__cause__).__name__ in _NOTHING_LEFT:
        return NotDelivered("connection_failed")
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return TimedOut("deadline")
    return ProviderFault("connection_cut")
