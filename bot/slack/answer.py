"""What Slack can answer to a call, as values, and how an HTTP answer becomes one of them.

The call itself is in `client`; what follows from an answer is decided by whoever called.
"""

import errno
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError

# Slack says both of these; the second is older (docs, chat.postMessage).
LIMITED_ERRORS: Final = frozenset({"ratelimited", "rate_limited"})
# "Some aspect of the operation may have succeeded": every method's page says so of the first two. The other
# two mean that Slack itself was not well or did not read us whole; neither proves that nothing happened.
UNSURE_ERRORS: Final = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})

MINIMUM_WAIT_SECONDS: Final = 1.0  # A Retry-After of 0 or less must not become a tight loop.
MAXIMUM_WAIT_SECONDS: Final = 3600.0  # Nothing of ours may sleep longer than an hour on somebody else's word.
DEFAULT_WAIT_SECONDS: Final = 10.0  # For a header that is missing or unreadable; 1 to 30 is usual.

_WORD: Final = re.compile(r"[A-Za-z0-9_.\-]{1,80}")
_SCOPE: Final = re.compile(r"[a-z][a-z.:_]{0,63}")
_POINTER: Final = re.compile(r"json-pointer:(/[A-Za-z0-9_/]{1,120})")
_SERVER_FAULT: Final = 500
_TOO_MANY: Final = 429
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class SlackOk:
    """Slack did it. `data` is the whole answer and stays out of `repr`; `scopes` is what the token may do."""

    data: Mapping[str, Any] = field(repr=False)
    scopes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SlackLimited:
    """Too many calls: nothing was done, and none may follow before so many seconds."""

    retry_after_seconds: float


@dataclass(frozen=True, slots=True)
class SlackRefused:
    """Slack says no, and did nothing. `error` is Slack's own word.

    `needed` names missing scopes; `where` points at the parts of blocks or views that were refused.
    """

    error: str
    needed: tuple[str, ...] = ()
    where: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SlackNotDelivered:
    """No connection was ever made (refused, DNS, TLS, proxy): proven that Slack saw nothing."""

    reason: str


@dataclass(frozen=True, slots=True)
class SlackUnknown:
    """Slack may have done it: after a writing call, look before calling again; after a reading one, ask."""

    reason: str


SlackAnswer = SlackOk | SlackLimited | SlackRefused | SlackNotDelivered | SlackUnknown


def read_answer(status: int, headers: Mapping[str, str], data: object) -> SlackAnswer:
    """Turn status, headers and parsed body into a value; a body that is not Slack's proves nothing."""
    headers = {name.lower(): value for name, value in headers.items()}
    body = data if isinstance(data, Mapping) else {}
    error = _word(body.get("error"))
    if status == _TOO_MANY or error in LIMITED_ERRORS:
        return SlackLimited(retry_after(headers))
    if status >= _SERVER_FAULT:
        return SlackUnknown(f"http_{status}")
    if status == _OK and body.get("ok") is True:
        return SlackOk(body, _scopes(headers.get("x-oauth-scopes", "")))
    if error in UNSURE_ERRORS:
        return SlackUnknown(error)
    if error and body.get("ok") is False:
        return SlackRefused(error, _scope_words(body.get("needed")), _pointers(body))
    return SlackUnknown("unreadable") if status == _OK else SlackRefused(f"http_{status}")


def read_hook_answer(status: int, headers: Mapping[str, str], text: str) -> SlackAnswer:
    """The same for a response address, which says a bare `ok` where a method says it in JSON."""
    try:
        body = json.loads(text)
    except ValueError:
        body = {"ok": True} if text.strip() == "ok" else None
    return read_answer(status, headers, body)


# What the SDK and aiohttp let escape; the last three when a body is JSON but no object.
FAULTS: Final = (SlackApiError, aiohttp.ClientError, OSError, AttributeError, TypeError, ValueError)


def read_fault(fault: Exception) -> SlackAnswer:
    """Turn one of FAULTS into a value. Only a connection that was never made proves that nothing arrived."""
    match fault:
        case SlackApiError(response=aiohttp.ClientResponse() as response):  # The body was no JSON.
            return read_answer(response.status, response.headers, None)
        case SlackApiError(response=response):
            return read_answer(response.status_code, response.headers, response.data)
        case aiohttp.ClientConnectorDNSError():
            return SlackNotDelivered("dns")
        case aiohttp.ClientSSLError():
            return SlackNotDelivered("tls")
        case aiohttp.ClientConnectorError(os_error=cause):
            refused = cause.errno == errno.ECONNREFUSED
            return SlackNotDelivered("connection_refused" if refused else "no_connection")
        case aiohttp.ClientHttpProxyError():
            return SlackNotDelivered("proxy")
        case aiohttp.ClientError() | OSError():
            return SlackUnknown("cut")
        case _:
            return SlackUnknown("unreadable")


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that Slack asks us to wait, kept between our floor and cap; it sends whole seconds only."""
    text = headers.get("retry-after", "").strip()
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        return DEFAULT_WAIT_SECONDS
    return min(max(float(text), MINIMUM_WAIT_SECONDS), MAXIMUM_WAIT_SECONDS)


def _word(value: object) -> str:
    """Slack's error word, or a word of ours: text from outside must not travel in an error."""
    if not isinstance(value, str) or not value:
        return ""
    return value if _WORD.fullmatch(value) else "unreadable_error"


def _scopes(text: str) -> frozenset[str]:
    return frozenset(_scope_words(text))


def _scope_words(text: object) -> tuple[str, ...]:
    words = text.split(",") if isinstance(text, str) else []
    return tuple(word.strip() for word in words if _SCOPE.fullmatch(word.strip()))


def _pointers(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Where the complaint is, without what stood there."""
    metadata = body.get("response_metadata")
    messages = metadata.get("messages") if isinstance(metadata, Mapping) else None
    lines = [line for line in messages if isinstance(line, str)] if isinstance(messages, list) else []
    return tuple(found for line in lines[:20] for found in _POINTER.findall(line))
