"""What can go wrong while a draft is made: one exception class a row of the retry matrix (SPEC 6).
Not here: how often each is tried again (bot/policy/retries), what a run becomes after it (bot/flow/draft).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import ClassVar, Final

from bot.policy.limits import RETRY_AFTER_CAP_SECONDS, RETRY_AFTER_FLOOR_SECONDS
from bot.policy.retries import Fault, Row, row_of

# A 429 without a usable header: limits are mostly counted by the minute, and nobody is kept waiting.
RETRY_AFTER_UNKNOWN_SECONDS: Final = 30.0

_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
_STABLE_WORD = re.compile(r"[a-z0-9_]{1,64}")


@dataclass(frozen=True, slots=True)
class Spent:
    """What an answer or a failed try has cost: tokens as the endpoint counted them, turns, requests sent."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    turns: int = 0
    requests: int = 0


class DraftFault(Exception):
    """A draft could not be made; `word` names the row of the matrix, `detail` the reason in one stable word.

    Neither text nor repr ever holds what the model, the event or the endpoint said. `hints` may: they are the
    sentences of the repair turn, for the model alone, and must not be logged.
    """

    word: ClassVar[Fault]

    def __init__(
        self,
        detail: str,
        *,
        retry_after_seconds: float | None = None,
        status: int | None = None,
        hints: tuple[str, ...] = (),
    ) -> None:
        if not _STABLE_WORD.fullmatch(detail):
            raise ValueError("the detail of a fault is one stable word, never text from outside")
        super().__init__(f"{self.word}: {detail}")
        self.detail = detail
        self.retry_after_seconds = retry_after_seconds
        self.status = status
        self.hints = hints
        self.spent = Spent()

    @property
    def row(self) -> Row:
        """What the matrix says happens now."""
        return row_of(self.word)


class NotDelivered(DraftFault):
    """The request did not reach the model: refused connection, DNS, TLS, 408, 425."""

    word = Fault.NOT_DELIVERED


class TimedOut(DraftFault):
    """No complete answer within the kind's timeout, a total deadline."""

    word = Fault.TIMEOUT


class Throttled(DraftFault):
    """429: the endpoint asks for patience; `retry_after_seconds` is always set."""

    word = Fault.THROTTLED


class QuotaGone(DraftFault):
    """429 with the code of a used-up account: waiting does not help."""

    word = Fault.QUOTA_GONE


class ProviderFault(DraftFault):
    """The endpoint failed: 5xx, a cut answer, an error inside a 200, no choices, no JSON in the body."""

    word = Fault.PROVIDER_FAULT


class Misconfigured(DraftFault):
    """The endpoint, the model's name, the key or the kind's schema is wrong: a person must mend it."""

    word = Fault.MISCONFIGURED


class NotJson(DraftFault):
    """The answer is not exactly one JSON object: prose, several, cut, empty, too large, not strict."""

    word = Fault.NOT_JSON


class WrongJson(DraftFault):
    """The answer is one JSON object and violates the kind's output schema."""

    word = Fault.WRONG_JSON


class SoftFailure(DraftFault):
    """The answer fits the schema and breaks a hard rule of the kind, or could not be sent as it is."""

    word = Fault.SOFT_FAILURE


class Refused(DraftFault):
    """The model or its content filter declined; asking again would be arguing."""

    word = Fault.REFUSED


class LostLease(DraftFault):
    """The run is no longer ours: stop, write nothing."""

    word = Fault.LOST_LEASE


class BudgetUsedUp(DraftFault):
    """The day's tokens, of the kind or of all kinds, are used up."""

    word = Fault.BUDGET


FAULTS: tuple[type[DraftFault], ...] = (
    NotDelivered,
    TimedOut,
    Throttled,
    QuotaGone,
    ProviderFault,
    Misconfigured,
    NotJson,
    WrongJson,
    SoftFailure,
    Refused,
    LostLease,
    BudgetUsedUp,
)


def fault_of_status(status: int, body: object, *, retry_after_seconds: float | None) -> DraftFault:
    """Name the row of the matrix for an HTTP status other than 2xx; `body` is the parsed error, if any."""
    detail = f"http_{status}"
    codes = _codes(body)
    if status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY):
        return NotDelivered(detail, status=status, retry_after_seconds=retry_after_seconds)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        if codes & _QUOTA_CODES:
            return QuotaGone("insufficient_quota", status=status)
        wait = RETRY_AFTER_UNKNOWN_SECONDS if retry_after_seconds is None else retry_after_seconds
        return Throttled(detail, status=status, retry_after_seconds=wait)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status < HTTPStatus.MULTIPLE_CHOICES:
        return ProviderFault(detail, status=status, retry_after_seconds=retry_after_seconds)
    if status < HTTPStatus.BAD_REQUEST:
        return Misconfigured("redirect", status=status)
    if codes & _FILTER_CODES:
        return Refused("content_filter", status=status)
    return Misconfigured(detail, status=status)


def names_response_format(status: int, text: str) -> bool:
    """Whether an error says that the endpoint does not take our response_format (SPEC 6, misconfigured)."""
    return status in (400, 422, 500) and "response_format" in text.casefold()


def read_retry_after(header: str | None, *, now: float) -> float | None:
    """Seconds to wait by a Retry-After header (RFC 9110, 10.2.3: seconds or a date), floored and capped.

    None means that there is no header or that it cannot be read. `now` is a Unix time in seconds.
    """
    text = (header or "").strip()
    if re.fullmatch(r"[+-]?[0-9]{1,300}(\.[0-9]{1,20})?", text):
        return _bounded(float(text))
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError, TypeError):
        return None
    # A date without a zone is read as UTC: HTTP dates are always GMT.
    moment = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return _bounded(moment.timestamp() - now)


def _bounded(seconds: float) -> float:
    return float(min(max(seconds, RETRY_AFTER_FLOOR_SECONDS), RETRY_AFTER_CAP_SECONDS))


def _codes(body: object) -> frozenset[str]:
    """The `code` and `type` words of an error body, nested under `error` or not."""
    if not isinstance(body, Mapping):
        return frozenset()
    inner = body.get("error")
    places = (body, inner) if isinstance(inner, Mapping) else (body,)
    words = (place.get(name) for place in places for name in ("code", "type"))
    return frozenset(word for word in words if isinstance(word, str))
