"""What cannot be sent is found before anybody is asked about it, by the connectors' own rules.

Not here: the connectors (tests/connectors), or who is told how (tests/flow, tests/doors).
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.connectors import slack_message
from bot.connectors.letter import Unwritable, write_letter
from bot.policy.clauses import EffectPolicy, UndoPolicy
from bot.policy.sendable import MESSAGE_CHARACTERS, find_unsendable
from tests.connectors.effects import make_effect

MAIL = EffectPolicy(type="smtp", recipient="payload.to")
MESSAGE = EffectPolicy(type="slack_message", target="C0REVIEW")
HTTP = EffectPolicy(type="http", target="https://n8n.example/x")


# A subject that would break or end a header line is found when the draft is checked.
@pytest.mark.parametrize(
    "end", ["\r\nBcc: x@example.test", "\rthere", "\nthere", "\u2028t", "\u2029t", "\0t", "\x85t"]
)
@pytest.mark.parametrize("name", ["subject", "Subject"])
def test_header_breaks(end: str, name: str) -> None:
    found = find_unsendable({name: f"Hi{end}", "body": "fine"})
    assert f"output.{name}" in {error.field for error in found}


# A body keeps its lines, and a subject its tabs and its scripts; only NUL is refused everywhere.
def test_sendable() -> None:
    assert find_unsendable({"subject": "Größe\t中文 שלום", "body": "a\r\nb\u2028c"}) == ()
    assert find_unsendable({"body": "a\0b"})
    assert find_unsendable({"amount": 2**60})


# A one-line subject of ordinary characters is never refused.
@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])))
def test_ordinary_subjects(subject: str) -> None:
    assert find_unsendable({"subject": subject}) == ()


# Every character that a mail's subject may not have is refused beforehand, and no other.
def test_subjects_of_mails() -> None:
    for code in range(0x3000):
        output = {"subject": f"a{chr(code)}b", "body": "x"}
        letter = write_letter(
            make_effect("", body=json.dumps({"output": output}).encode()), "us@stet.example"
        )
        assert isinstance(letter, Unwritable) == bool(find_unsendable(output, [MAIL])), hex(code)


# What no mail or message can be made of is refused beforehand, and what they are made of passes.
@pytest.mark.parametrize(
    "output",
    [
        {},
        {"subject": "x"},
        {"subject": "x", "body": 1},
        {"subject": None, "body": "x"},
        {"subject": "", "body": ""},
        {"subject": "a\tb", "body": "x"},
        {"text": ""},
        {"text": " \n "},
        {"text": 3},
        {"text": 3, "body": "x"},
        {"text": " ", "body": "x"},
        {"text": "x" * MESSAGE_CHARACTERS},
        {"body": " \n "},
        {"body": "x", "subject": "y"},
    ],
)
def test_as_the_connectors_see_it(output: dict[str, Any]) -> None:
    made = make_effect("", body=json.dumps({"output": output}).encode())
    letter = write_letter(made, "us@stet.example")
    assert isinstance(letter, Unwritable) == bool(find_unsendable(output, [HTTP, MAIL]))
    assert (slack_message._text(made.body) is None) == bool(find_unsendable(output, [HTTP, MESSAGE]))
    assert find_unsendable(output, [HTTP]) == ()


# A message has as much room as Slack is sure to take, its title included; the field and the bound are named.
@pytest.mark.parametrize(
    ("output", "field", "bound"),
    [
        ({"text": "x" * (MESSAGE_CHARACTERS + 1), "subject": "y"}, "output.text", MESSAGE_CHARACTERS),
        ({"body": "x" * MESSAGE_CHARACTERS, "subject": "y"}, "output.body", MESSAGE_CHARACTERS - 1),
    ],
)
def test_long_messages(output: dict[str, Any], field: str, bound: int) -> None:
    (found,) = find_unsendable(output, [MESSAGE, MESSAGE])
    assert (found.field, found.word, found.bound) == (field, "maxLength", bound)
    assert str(bound) in found.message


# An undo sends the draft with its own words over it.
def test_undos() -> None:
    undo = UndoPolicy(type="slack_message", target="C0REVIEW", output={"text": "taken back"})
    assert find_unsendable({"text": "x" * 20_000}, [undo]) == ()
    assert find_unsendable({"text": "fine"}, [replace_output(undo, " ")])


def replace_output(undo: UndoPolicy, text: str) -> UndoPolicy:
    return undo.model_copy(update={"output": {"text": text}})
