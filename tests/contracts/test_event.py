"""Strict reading of an event: what is taken, what is refused, and that everything wrong is named at once.
Not here: who may send it and what its kind asks of it.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.contracts.event import Event, InvalidEvent, Origin, read_event, read_origin

E0 = {
    "event_key": "evt-1001",
    "kind": "customer_email",
    "entity": "cust-77",
    "source_version": 7,
    "payload": {"to": "amy@example.test", "subject": "Late parcel", "text": "Where is it?"},
}


def read(body: dict[str, Any] | bytes, header_key: str | None = None) -> Event:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_event(raw, source="n8n", header_key=header_key)


def wrong_fields(body: dict[str, Any] | bytes, header_key: str | None = None) -> dict[str, str]:
    with pytest.raises(InvalidEvent) as caught:
        read(body, header_key)
    return {error.field: error.message for error in caught.value.errors}


# The smallest event is taken as it stands, with None for all that it leaves out.
def test_smallest_event() -> None:
    event = read(E0)
    assert event == Event(
        source="n8n",
        kind="customer_email",
        event_key="evt-1001",
        entity="cust-77",
        source_version=7,
        payload=E0["payload"],  # type: ignore[arg-type]
    )


# Every optional field arrives unchanged, and null counts as absent.
def test_optional_fields() -> None:
    extra = {
        "record_url": "https://crm.example:8443/t/9?x=1#top",
        "requested_by": "U123",
        "draft": {"subject": "Hi"},
        "resume_url": "http://localhost:5678/webhook-waiting/12?signature=ab",
        "replaces": "evt-0999",
        "reason": "the address was wrong",
    }
    event = read(E0 | extra)
    assert {name: getattr(event, name) for name in extra} == extra
    assert read(E0 | dict.fromkeys(extra)) == read(E0)


# Each required field that is missing or null is named, all in one answer.
@pytest.mark.parametrize("body", [{}, dict.fromkeys(E0)])
def test_missing_fields(body: dict[str, Any]) -> None:
    assert wrong_fields(body) == dict.fromkeys(E0, "is required")


# An unknown field is refused by name, beside every other fault.
def test_all_faults_at_once() -> None:
    body = E0 | {"prio": 1, "kind": "No Kind", "source_version": True, "payload": {"n": 2**53, "t": "a\0b"}}
    assert set(wrong_fields(body)) == {"prio", "kind", "source_version", "payload.n", "payload.t"}


# Absent and stringified-absent keys are refused: otherwise unrelated events would share one key.
@pytest.mark.parametrize(
    "key",
    [None, "", "   ", "undefined", "null", " a", "a ", "a\n", "a\tb", "ключ", "x" * 256, 7, True, {}, []],
)
def test_event_key_refused(key: object) -> None:
    assert "event_key" in wrong_fields(E0 | {"event_key": key})


# Keys use all of printable ASCII, up to 255 characters.
@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=255))
def test_event_key_taken(key: str) -> None:
    if key == key.strip(" ") and key not in {"null", "undefined"}:
        assert read(E0 | {"event_key": key}).event_key == key


# The header gives the key where the body has none, and must agree where it has one.
@pytest.mark.parametrize(
    ("body_key", "header_key", "taken"),
    [
        (None, "k1", "k1"),
        ("k1", "k1", "k1"),
        ("k1", None, "k1"),
        ("k1", "k2", None),
        ("k1", "", None),
        (None, "", None),
        (None, "undefined", None),
        (None, "null", None),
        (None, " k1", None),
    ],
)
def test_key_header(body_key: str | None, header_key: str | None, taken: str | None) -> None:
    body = E0 | {"event_key": body_key}
    if taken is None:
        assert "event_key" in wrong_fields(body, header_key)
    else:
        assert read(body, header_key).event_key == taken


# Versions are exact integers, as numbers or as text, up to the end of a 64-bit column.
@pytest.mark.parametrize(
    ("raw", "version"),
    [
        (b"0", 0),
        (b"9007199254740993", 9007199254740993),
        (b"9223372036854775807", 2**63 - 1),
        (b'"9223372036854775807"', 2**63 - 1),
        (b'"10"', 10),
        (b'"007"', 7),
    ],
)
def test_source_version_taken(raw: bytes, version: int) -> None:
    body = json.dumps(E0).encode().replace(b'"source_version": 7', b'"source_version": ' + raw)
    assert read(body).source_version == version


# What is not plainly a whole number of at least 0 within 64 bits is refused, never rounded or coerced.
@pytest.mark.parametrize(
    "raw",
    [
        b"7.5",
        b"7.0",
        b"1e3",
        b"true",
        b'"1e3"',
        b"-1",
        b'"-1"',
        b'""',
        b'" 7"',
        b'"7.0"',
        b"[]",
        b"{}",
        b"9223372036854775808",
        b'"9223372036854775808"',
        '"٧"'.encode(),
        b'"' + b"9" * 5000 + b'"',
    ],
)
def test_source_version_refused(raw: bytes) -> None:
    body = json.dumps(E0).encode().replace(b'"source_version": 7', b'"source_version": ' + raw)
    assert set(wrong_fields(body)) == {"source_version"}


# Each field is held to its shape and length.
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "Customer"),
        ("kind", ".x"),
        ("kind", "k" * 65),
        ("kind", "a:b"),
        ("kind", "a\n"),
        ("entity", ""),
        ("entity", "   "),
        ("entity", "e" * 513),
        ("entity", "a\0"),
        ("entity", 42),
        ("payload", []),
        ("payload", "text"),
        ("draft", "text"),
        ("draft", []),
        ("requested_by", ""),
        ("requested_by", "r" * 513),
        ("requested_by", {"id": 1}),
    ],
)
def test_field_shapes(field: str, value: object) -> None:
    assert set(wrong_fields(E0 | {field: value})) == {field}


# The longest names and entities that the contract allows are taken.
def test_longest_fields() -> None:
    event = read(E0 | {"kind": "k" * 64, "entity": "\N{GRINNING FACE}" * 512})
    assert (len(event.kind), len(event.entity)) == (64, 512)


# URLs are absolute http or https, without user info, spaces, controls or tricks.
@pytest.mark.parametrize("field", ["record_url", "resume_url"])
@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/",
        "//a.example",
        "/x",
        "javascript:alert(1)",
        "https://",
        "https:///x",
        "http://a b/",
        "https://user:pw@a.example/",
        "https://user@a.example",
        "https://a.example\\@b.example/",
        "https://a\n.x/",
        "https://a.example:99999/",
        "https://a.example:x/",
        "https://a.example/\x00",
        " https://a.example",
        5,
        "",
        "https://a.example/" + "x" * 2048,
    ],
)
def test_urls_refused(field: str, url: object) -> None:
    assert set(wrong_fields(E0 | {field: url})) == {field}


# Integers that JavaScript cannot hold are refused wherever they stand, however they are written.
@pytest.mark.parametrize("number", [b"9007199254740992", b"-9007199254740992", b"1" * 30, b"1e22", b"1e400"])
@pytest.mark.parametrize("field", [b"payload", b"draft"])
def test_huge_numbers(number: bytes, field: bytes) -> None:
    body = json.dumps(E0 | {"payload": {}, "draft": {}}).encode()
    body = body.replace(b'"%b": {}' % field, b'"%b": {"a": [{"b c": %b}]}' % (field, number))
    errors = wrong_fields(body)
    assert set(errors) == {f"{field.decode()}.a[0].b c"}
    assert errors[f"{field.decode()}.a[0].b c"].endswith("send it as text")


# The largest integers that survive JavaScript are kept, and so are fractions.
def test_safe_numbers() -> None:
    payload = {"most": 2**53 - 1, "least": 1 - 2**53, "part": 1.1}
    assert read(E0 | {"payload": payload}).payload == payload


# Depth is counted over the whole document: 32 levels are taken, the 33rd is not, and no depth harms us.
@pytest.mark.parametrize(
    ("levels", "taken"), [(30, True), (31, True), (32, False), (150, False), (100_000, False)]
)
@pytest.mark.parametrize(("opening", "closing"), [(b'{"a":', b"}"), (b"[", b"]")])
def test_depth(levels: int, taken: bool, opening: bytes, closing: bytes) -> None:
    nested = b'{"a":' + opening * (levels - 1) + b"1" + closing * (levels - 1) + b"}"
    body = json.dumps(E0 | {"payload": {}}).encode().replace(b'"payload": {}', b'"payload": ' + nested)
    if taken:
        assert "a" in read(body).payload
    else:
        assert len(wrong_fields(body)) == 1


# What is not one strict JSON object in UTF-8 is refused with one sentence, never an exception of the parser.
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b"{}x",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"{'a':1}",
        b"{a:1}",
        b"[" * 100000,
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":1,}',
        b'{"a":01}',
        b'{"a":"\x00"}',
        b"// x\n{}",
        b'{"a":1,"a":1}',
        b'{"a":{"b":1,"b":2}}',
        b'{"a":1,"\\u0061":2}',
        b'{"a":"\\ud83d"}',
        b'{"a":"\\udc00"}',
        b'{"a":"\xed\xa0\xbd"}',
        b'{"\\ud83d":1}',
        b'{"a":' + b"9" * 5000 + b"}",
    ],
)
def test_not_strict_json(raw: bytes) -> None:
    assert set(wrong_fields(raw)) == {"body"}


# No bytes at all make reading raise anything but InvalidEvent.
@given(st.binary(max_size=200))
def test_any_bytes(raw: bytes) -> None:
    assert wrong_fields(raw)


# A NUL is found in names and values at any place.
@pytest.mark.parametrize("payload", [{"a\0": 1}, {"a": "\0"}, {"a": [{"b": ["x\0y"]}]}])
def test_nul(payload: dict[str, Any]) -> None:
    assert all(field.startswith("payload") for field in wrong_fields(E0 | {"payload": payload}))


# A correction names its reason, and a key that is the old one dressed up is refused.
@pytest.mark.parametrize(
    ("event_key", "replaces", "reason", "field"),
    [
        ("k2", "k1", None, "reason"),
        ("k1", "k1", "why", "event_key"),
        ("k1-2", "k1", "why", "event_key"),
        ("k1 retry", "k1", "why", "event_key"),
        ("k1.v2", "k1", "why", "event_key"),
        ("k2", "null", "why", "replaces"),
        ("k2", " ", "why", "replaces"),
        ("k12", "k1", "why", None),
        ("k1b", "k1", "why", None),
        ("k2", "k1", "why", None),
        ("k", "k1", "why", None),
    ],
)
def test_replaces(event_key: str, replaces: str, reason: str | None, field: str | None) -> None:
    body = E0 | {"event_key": event_key, "replaces": replaces, "reason": reason}
    if field is None:
        assert read(body).replaces == replaces
    else:
        assert set(wrong_fields(body)) == {field}


# A body made of faults gets a short answer: few errors, short paths, nothing of the text.
def test_answer_is_bounded() -> None:
    errors = wrong_fields(E0 | {"payload": {"n" * 5000: 2**60}} | {f"x{i}" * 99: 1 for i in range(500)})
    assert len(errors) <= 50
    assert max(map(len, errors)) <= 200


# The origin is what n8n's headers say, cut to what an id looks like; nothing else is read from them.
def test_origin() -> None:
    headers = {"x-n8n-execution": "231", "x-n8n-workflow": "a\x7fb" + "c" * 500, "x-workflow-version": ""}
    assert read_origin(headers) == Origin(execution="231", workflow="ab" + "c" * 198)
