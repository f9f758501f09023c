"""What an HTTP answer, or the lack of one, means for an effect: one table, and the reading of answers.

Not here: making the request (exchange), or what waiting executions answer (resume). docs/ prints OUTCOMES.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any

from bot.connectors.exchange import Answered
from bot.contracts.outcome import NotSent, Refused, SendOutcome, Sent, Unknown
from bot.policy.requests import Success

PROVIDER_ID_CHARS = 255  # What providers use stays far below; a longer one is cut, it is evidence for people.
RETRY_AFTER_FLOOR_SECONDS = 1.0  # SPEC section 4: 0 or a date gone by must not make a tight loop,
RETRY_AFTER_CAP_SECONDS = 3_600.0  # nor may a target park an effect for a day.


@dataclass(frozen=True, slots=True)
class Row:
    """One cause, the outcome it comes to, and why."""

    cause: str
    outcome: type[Sent] | type[NotSent] | type[Refused] | type[Unknown]
    why: str
    reason: str | None = None  # where it is not the cause itself
    asked: bool = True  # False: the target had no part in it


# No final status came back.
UNANSWERED: tuple[Row, ...] = (
    # Nothing was tried.
    Row("bad_url", Refused, "the address is not a plain http or https URL", asked=False),
    Row("host_not_allowed", Refused, "EFFECT_ALLOWED_HOSTS does not list the host", asked=False),
    Row(
        "address_not_allowed",
        Refused,
        "it leads to an address that EFFECT_ALLOWED_HOSTS does not list",
        asked=False,
    ),
    # Nothing left us.
    Row("crowded", NotSent, "too many requests are open to this target; the time was up before ours began"),
    Row("dns_failed", NotSent, "the name has no address"),
    Row("connection_refused", NotSent, "nobody listens there"),
    Row("connect_failed", NotSent, "no connection came about"),
    Row("connect_timeout", NotSent, "no connection in time: not one byte of the request was written"),
    Row("tls_failed", NotSent, "no handshake: not one byte of the request was written"),
    # It may have left, and no status came back.
    Row("timeout", Unknown, "no complete answer in time; n8n goes on working when we hang up"),
    Row("cut", Unknown, "the connection ended without an HTTP answer, after the request may have left"),
)
OUTCOMES: tuple[Row, ...] = (
    Row(
        "variable_not_set",
        Refused,
        "a variable that `headers` or `client_certificate` names is not usable",
        asked=False,
    ),
    *UNANSWERED,
    Row("sent", Sent, "2xx that does not say false, with the id where response_id names one"),
    Row("says_false", Refused, "2xx with ok or success false"),
    Row("no_response_id", Unknown, "2xx without the id at response_id: started, perhaps, but not done"),
    Row("not_confirmed", Unknown, "2xx that does not say what `success` asks for"),
    Row("body_too_large", Unknown, "2xx with more body than we read: it may say false"),
    Row("body_encoded", Unknown, "2xx with an encoding that was not asked for: it may say false"),
    Row("body_timeout", Unknown, "2xx whose body did not end in time: it may say false"),
    Row("body_cut", Unknown, "2xx whose body was cut: it may say false"),
    Row("http_3xx", Refused, "never followed: nobody approved the new place", "redirect"),
    Row("http_404", NotSent, "an n8n webhook answers 404 while it is being published; attempts bound it"),
    Row("http_408", Unknown, "a gateway may say so after passing the request on"),
    Row("http_409", Refused, "in conflict there; with a lookup, what that finds decides"),
    Row("http_425", NotSent, "RFC 8470: the server was unwilling to process it yet"),
    Row("http_429", NotSent, "RFC 6585: not processed, too many requests"),
    Row("http_4xx", Refused, "the target has read it and will not do it"),
    Row("http_5xx", Unknown, "the target failed somewhere between nothing and everything"),
)
Table = Mapping[str, Row]
_WORDS = MappingProxyType({Sent: "sent", NotSent: "not sent", Refused: "failed", Unknown: "unknown"})


def by_cause(rows: Iterable[Row]) -> Table:
    """A table by its causes, for `settle`."""
    return MappingProxyType({row.cause: row for row in rows})


_TABLE = by_cause(OUTCOMES)


def write_outcomes(rows: Iterable[Row]) -> str:
    """A connector's table as docs/operating.md prints it."""
    lines = (f"| `{row.reason or row.cause}` | {_WORDS[row.outcome]} | {row.why} |" for row in rows)
    return "\n".join(["| reason | then | because |", "|---|---|---|", *lines])


def settle(
    cause: str, table: Table = _TABLE, *, reason: str | None = None, retry_after_seconds: float | None = None
) -> SendOutcome:
    """The outcome of a cause other than `sent`; a cause that the table lacks is Unknown."""
    row = table.get(cause)
    word = reason or (row.reason if row and row.reason else cause)
    match row.outcome if row else Unknown:
        case kind if kind is NotSent:
            return NotSent(word, retry_after_seconds, asked=row is None or row.asked)
        case kind if kind is Refused:
            return Refused(word, asked=row is None or row.asked)
        case _:
            return Unknown(word)


def judge(
    answer: Answered, *, response_id: str | None, now: float, success: Sequence[Success] = ()
) -> SendOutcome:
    """What an answer means. `now`, in seconds since 1970, turns a date in Retry-After into a wait."""
    if is_success(answer):
        return _judge_success(answer, response_id, success)
    return judge_status(answer, now=now)


def is_success(answer: Answered) -> bool:
    """Whether the status is a 2xx."""
    return 200 <= answer.status < 300  # noqa: PLR2004


def judge_status(answer: Answered, table: Table = _TABLE, *, now: float) -> SendOutcome:
    """What a status other than 2xx means by a table that has its families."""
    exact = f"http_{answer.status}"
    if exact in table:
        wait = retry_after_seconds(answer.headers.get("retry-after"), now=now)
        return settle(exact, table, retry_after_seconds=wait)
    family = f"http_{answer.status // 100}xx"
    return settle(family, table, reason=None if family == "http_3xx" else exact)


def _judge_success(answer: Answered, response_id: str | None, success: Sequence[Success]) -> SendOutcome:
    if answer.flaw is not None:
        return settle(answer.flaw)
    document = read_json(answer.body)
    if says_false(document):
        return settle("says_false")
    if not all(is_same(value_at(document, rule.path), rule.equals) for rule in success):
        return settle("not_confirmed")
    provider_id = id_at(document, response_id)
    if response_id is not None and provider_id is None:
        return settle("no_response_id")
    return Sent(provider_id)


def is_same(found: object, wanted: object) -> bool:
    """Whether a JSON value is the wanted one; true is not 1, and 1 is 1.0."""
    return isinstance(found, bool) is isinstance(wanted, bool) and found == wanted


def read_json(body: bytes) -> Any:  # noqa: ANN401 - JSON is anything
    """The body as JSON, or None where it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def says_false(document: object, *, also: str | None = None) -> bool:
    """Whether an answer denies success: `ok` or `success` is false, also as text (n8n expressions make text).

    A list of one is looked into: n8n's "All Incoming Items" wraps its answer so. `also` names one word more.
    """
    if isinstance(document, list) and len(document) == 1:
        return says_false(document[0], also=also)
    if not isinstance(document, dict):
        return False
    return any(_is_false(document.get(name)) for name in ("ok", "success", also))


def _is_false(said: object) -> bool:
    return said is False or (isinstance(said, str) and said.strip().lower() == "false")


def id_at(document: object, path: str | None) -> str | None:
    """The provider's id at a dotted path (`data.0.id`), made safe to store and show, or None."""
    found = None if path is None else value_at(document, path)
    if isinstance(found, bool) or not isinstance(found, str | int):
        return None
    return clean_id(str(found))


def value_at(document: object, path: str) -> object:
    """What stands at a dotted path (`data.0.id`), or None."""
    for step in path.split("."):
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and re.fullmatch(r"[0-9]{1,6}", step) and int(step) < len(document):
            document = document[int(step)]
        else:
            return None
    return document


def clean_id(text: str) -> str | None:
    """Text without control, format and surrogate characters, at most 255 long; None if nothing is left."""
    kept = (char for char in text[: 4 * PROVIDER_ID_CHARS] if char == " " or _is_visible(char))
    return "".join(kept).strip()[:PROVIDER_ID_CHARS] or None


def _is_visible(char: str) -> bool:
    return unicodedata.category(char)[0] not in "CZ"


def retry_after_seconds(header: str | None, *, now: float) -> float | None:
    """The wait that Retry-After asks for, within floor and cap (RFC 9110, 10.2.3); None if it says none.

    Of several seconds, as proxies add them, the longest counts.
    """
    text = (header or "").strip()
    if re.fullmatch(r"[0-9]+(?:\s*,\s*[0-9]+)*", text, re.ASCII):
        said = (number.strip().lstrip("0") for number in text.split(","))
        wait = max(float(number or 0) if len(number) <= 12 else RETRY_AFTER_CAP_SECONDS for number in said)  # noqa: PLR2004 - more is the cap too
    else:
        try:
            when = parsedate_to_datetime(text)
            wait = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(wait, RETRY_AFTER_FLOOR_SECONDS), RETRY_AFTER_CAP_SECONDS)
