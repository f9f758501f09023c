"""Reading the forms of buttons and modals ourselves: the same as Bolt would read, or left to Bolt.

Not here: what follows from a request (test_buttons, test_modals), good and bad signatures among it.
"""

import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from slack_bolt.request.internals import parse_body

from bot.doors.slack_door import read_payload

FORM = "application/x-www-form-urlencoded"
VALUES: list[Any] = [
    {"type": "block_actions", "actions": [{"value": "t.1", "text": "50 % + 1 = 1;&?#"}]},
    {"text": "你好, ünïcode, \U0001f600, \x00 \x1f \x7f \u2028 \ud83d"},
    {"text": 'back\\slash \\x41 \\u0041 \\N{DIGIT ONE} "quoted"\nline', "a%41": "%2541 %25"},
]


# Whatever stands in a payload, we read what Bolt would.
@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("encode", [quote, quote_plus])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_we_read_what_bolt_would(value: Any, encode: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "replace").decode()
    raw = f"payload={encode(text)}"
    read = read_payload(raw.encode())
    assert read is not None
    assert read == parse_body(raw, FORM)


# Anything else is Bolt's to read or to refuse.
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"payload",
        b"payload=",
        b"payload=%5B1%5D",
        b"payload=%7B%7D&payload=%7B%7D",
        b"payload=%7B%22a%22%3A%2",
        b"payload=%7B%22a%22%3A%zz%7D",
        b"payload=%7B%22a%22%3A%22\\x41%22%7D",
        b"payload=%7B%22a%22%3A%22%FF%22%7D",
        b"command=%2Fstet&text=help",
        b"{}",
    ],
)
def test_what_is_left_to_bolt(raw: bytes) -> None:
    assert read_payload(raw) is None
