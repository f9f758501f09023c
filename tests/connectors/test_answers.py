"""Tests of what an HTTP answer means: the table, ids, denials, Retry-After.

Not here: answers that come over a real socket (test_http).
"""

import json

import pytest

from bot.connectors.answers import (
    OUTCOMES,
    clean_id,
    id_at,
    judge,
    read_json,
    retry_after_seconds,
    says_false,
    settle,
)
from bot.connectors.exchange import Answered
from bot.contracts.outcome import NotSent, Refused, SendOutcome, Sent, Unknown

NOW = 1_800_000_000.0
NOTHING_LEFT = {
    "crowded",
    "dns_failed",
    "connection_refused",
    "connect_failed",
    "connect_timeout",
    "tls_failed",
}
NOT_PROCESSED = {"http_404", "http_425", "http_429"}


# Every cause comes to the outcome its row names, with a short word of ours for a reason.
@pytest.mark.parametrize(
    "row", [row for row in OUTCOMES if row.outcome is not Sent], ids=lambda row: row.cause
)
def test_row_of_the_table(row: object) -> None:
    outcome = settle(row.cause)  # type: ignore[attr-defined]
    assert type(outcome) is row.outcome  # type: ignore[attr-defined]
    assert outcome.reason == (row.reason or row.cause)  # type: ignore[attr-defined, union-attr]


# Only what provably left nothing behind may be sent again by a machine.
def test_only_proven_causes_are_not_sent() -> None:
    assert {row.cause for row in OUTCOMES if row.outcome is NotSent} == NOTHING_LEFT | NOT_PROCESSED


# The table says each cause once.
def test_causes_are_unique() -> None:
    assert len({row.cause for row in OUTCOMES}) == len(OUTCOMES)


# A cause that the table lacks is unknown, never a guess.
def test_cause_without_row() -> None:
    assert settle("martian") == Unknown("martian")


# Every status there can be has an outcome, and 2xx is the only way to be sent.
@pytest.mark.parametrize("status", range(100, 1000))
def test_every_status(status: int) -> None:
    outcome = judge(Answered(status, {}, b'{"id": "a"}'), response_id="id", now=NOW)
    assert isinstance(outcome, Sent) is (200 <= status < 300)
    if status >= 500 or status < 200:
        assert outcome == Unknown(f"http_{status}")


# Statuses that are not like their family.
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (301, Refused("redirect")),
        (302, Refused("redirect")),
        (304, Refused("redirect")),
        (400, Refused("http_400")),
        (403, Refused("http_403")),
        (404, NotSent("http_404")),
        (408, Unknown("http_408")),
        (409, Refused("http_409")),
        (410, Refused("http_410")),
        (422, Refused("http_422")),
        (425, NotSent("http_425")),
        (429, NotSent("http_429")),
        (500, Unknown("http_500")),
        (503, Unknown("http_503")),
    ],
)
def test_status(status: int, expected: SendOutcome) -> None:
    assert judge(Answered(status, {}), response_id=None, now=NOW) == expected


# A 2xx completes only if it does not say false and brings the id that the policy asks for.
@pytest.mark.parametrize(
    ("body", "response_id", "expected"),
    [
        (b'{"id": "m-1"}', "id", Sent("m-1")),
        (b'{"id": 17}', "id", Sent("17")),
        (b'{"data": [{"id": "m-2"}]}', "data.0.id", Sent("m-2")),
        (b'[{"id": "m-3"}]', "0.id", Sent("m-3")),
        (b'\xef\xbb\xbf{"id": "m-4"}', "id", Sent("m-4")),
        (b'{"message": "Workflow was started"}', "id", Unknown("no_response_id")),
        (b"", "id", Unknown("no_response_id")),
        (b"<html>ok</html>", "id", Unknown("no_response_id")),
        (b'{"id": ""}', "id", Unknown("no_response_id")),
        (b'{"id": null}', "id", Unknown("no_response_id")),
        (b'{"id": true}', "id", Unknown("no_response_id")),
        (b'{"id": {"a": 1}}', "id", Unknown("no_response_id")),
        (b'{"id": "\\u0000\\u200b"}', "id", Unknown("no_response_id")),
        (b'{"message": "Workflow was started"}', None, Sent(None)),
        (b"", None, Sent(None)),
        (b"ok", None, Sent(None)),
        (b"\xff\xfe\xfa", None, Sent(None)),
        (b'{"ok": false, "error": "ratelimited"}', None, Refused("says_false")),
        (b'{"ok": false, "id": "m-5"}', "id", Refused("says_false")),
        (b'{"success": false}', "id", Refused("says_false")),
        (b'{"success": "False"}', None, Refused("says_false")),
        (b'[{"ok": false}]', None, Refused("says_false")),
        (b'{"ok": true, "success": false}', None, Refused("says_false")),
    ],
)
def test_success(body: bytes, response_id: str | None, expected: SendOutcome) -> None:
    assert judge(Answered(200, {}, body), response_id=response_id, now=NOW) == expected


# A 2xx whose body cannot be relied on may say false.
@pytest.mark.parametrize("flaw", ["body_cut", "body_timeout", "body_too_large", "body_encoded"])
def test_success_with_a_flaw(flaw: str) -> None:
    answer = Answered(200, {}, b'{"id": "a"}', flaw)
    assert judge(answer, response_id=None, now=NOW) == Unknown(flaw)


# Whatever Retry-After says, the wait stays within floor and cap, and rubbish asks for none.
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("0", 1.0),
        ("1", 1.0),
        ("30", 30.0),
        (" 30 ", 30.0),
        ("99999", 3_600.0),
        ("9" * 400, 3_600.0),
        ("0" * 400 + "7", 7.0),
        ("5, 60", 60.0),
        ("5,0, 3", 5.0),
        ("5, soon", None),
        ("Fri, 15 Jan 2027 08:00:30 GMT, Fri, 15 Jan 2027 08:00:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 1.0),
        ("Fri, 15 Jan 2027 08:00:30 GMT", 30.0),
        ("Fri, 15 Jan 2027 08:00:30 -0000", 30.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3_600.0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
        ("", None),
        (None, None),
        ("Wed, 99 Foo 2015 99:99:99 GMT", None),
    ],
)
def test_retry_after(header: str | None, expected: float | None) -> None:
    assert retry_after_seconds(header, now=NOW) == expected


# A provider's id is stored and shown: it is short and holds nothing that nobody sees.
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain-1", "plain-1"),
        ("with space", "with space"),
        ("a\r\nb\x00c\x1b[31m", "abc[31m"),
        ("safe\u202egnp", "safegnp"),
        ("lone\ud800", "lone"),
        ("  ", None),
        ("x" * 1_000_000, "x" * 255),
        ("编号-1", "编号-1"),
    ],
)
def test_clean_id(text: str, expected: str | None) -> None:
    assert clean_id(text) == expected


# Paths that lead nowhere are no id, and no exception.
@pytest.mark.parametrize("path", ["a", "id.x", "list.9", "list.x", "list.-1", "list.٣", "", ".", "deep.id"])
def test_path_that_leads_nowhere(path: str) -> None:
    assert id_at({"id": "a", "list": ["b"], "deep": None}, path) is None


# JSON that would break a parser is no JSON.
@pytest.mark.parametrize("body", [b"[" * 200_000, b"9" * 10_000, b"\xff", b"", b"{"])
def test_hostile_json(body: bytes) -> None:
    assert read_json(body) is None


# Only false is false: other values leave the word to the status.
@pytest.mark.parametrize("value", [True, None, 0, 1, "", "no", [], {}])
def test_other_values_do_not_deny(value: object) -> None:
    assert not says_false(json.loads(json.dumps({"ok": value, "success": value})))
