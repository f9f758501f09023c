"""Forms: which fields they have, how each is asked for, and what the filled form makes of the draft.

Not here: drawing forms (tests/cards) or saving them (tests/flow, tests/doors).
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.policy.editing import MOST_FIELDS, Form, Input, changed_fields, fill, make_form
from bot.policy.snapshot import may_edit


def form(body: dict[str, Any], **properties: Any) -> Form:
    names = (*body, *(name for name in properties if name not in body))
    return make_form(body, {"properties": properties}, names, fits=lambda text: len(text) <= 3000)


ASKED: dict[str, tuple[Any, Any, Input | None]] = {
    "a text": ("x", {"type": "string"}, Input.TEXT),
    "a text the schema says nothing of": ("x", None, Input.TEXT),
    "a short text": ("x", {"type": "string", "maxLength": 80}, Input.LINE),
    "a short text that has lines": ("x\ny", {"type": "string", "maxLength": 80}, Input.TEXT),
    "a text of choices": ("a", {"enum": ["a", "b"]}, Input.CHOICE),
    "choices that are numbers": (2, {"enum": [1, 2]}, Input.CHOICE),
    "a choice too long to be shown": ("a", {"type": "string", "enum": ["a", "b" * 76]}, Input.TEXT),
    "an empty choice": ("", {"type": "string", "enum": ["", "b"]}, Input.TEXT),
    "too many choices": ("1", {"type": "string", "enum": [str(n) for n in range(101)]}, Input.TEXT),
    "a yes or no": (True, {"type": "boolean"}, Input.YES_NO),
    "a yes or no the schema says nothing of": (False, None, Input.YES_NO),
    "a number": (1.5, {"type": "number"}, Input.NUMBER),
    "a day": ("2026-05-04", {"type": "string", "format": "date"}, Input.DATE),
    "a day that is none": ("soon", {"type": "string", "format": "date"}, Input.TEXT),
    "nothing yet": (None, {"type": ["string", "null"]}, Input.TEXT),
    "a list": (["a"], {"type": "array"}, None),
    "an object": ({"a": 1}, None, None),
    "a shape that is missing": (None, {"type": "object"}, None),
    "a value of another type than the schema's": (7, {"type": "string"}, None),
    "a text that does not fit": ("x" * 3001, {"type": "string"}, None),
    "several types": (7, {"type": ["string", "integer"]}, Input.NUMBER),
}


# Each field is asked for as its schema says, else as its value is; what has a shape of its own is left out.
@pytest.mark.parametrize("case", ASKED)
def test_how_a_field_is_asked_for(case: str) -> None:
    value, schema, asked = ASKED[case]
    made = form({"x": value}, **({"x": schema} if schema is not None else {}))
    assert [each.input for each in made.fields] == ([asked] if asked else [])
    assert made.left_out == (() if asked else ("x",))


# A mail's subject is one line, whatever the schema says.
def test_subject() -> None:
    assert form({"Subject": "x"}).fields[0].input is Input.LINE


# A form is not longer than a person can fill in, and has no name that Slack would refuse.
def test_bounds() -> None:
    made = form({f"f{n}": "x" for n in range(50)} | {"n" * 201: "x"})
    assert len(made.fields) == MOST_FIELDS
    assert len(made.left_out) == 11


# What came back as it was keeps its very value: 1.50 stays 1.5 and an absent field absent.
def test_untouched() -> None:
    body = {"n": 1.50, "flag": False, "text": " a ", "none": None, "choice": 2}
    made = form(body, choice={"enum": [1, 2]}, other={"type": "string"}, amount={"type": "number"})
    typed = {each.name: each.text for each in made.fields}
    filled = fill(made, body, typed)
    assert filled.body == body
    assert json.dumps(filled.body) == json.dumps(body)
    assert fill(made, body, {}).body == body


FILLED: dict[str, tuple[Any, Any, str, Any]] = {
    "an emptied text": ("x", {"type": "string"}, "", ""),
    "an emptied number": (1, {"type": "integer"}, "", ...),
    "an emptied choice": ("a", {"enum": ["a", "b"]}, "", ...),
    "an emptied choice that may be null": ("a", {"type": ["string", "null"], "enum": ["a", None]}, "", None),
    "a whole number": (1, {"type": "integer"}, "-12", -12),
    "a number with a point": (1, {"type": "number"}, "1.50", 1.5),
    "a number with an exponent": (1, {"type": "number"}, "1e3", 1000.0),
    "white space around a number": (1, {"type": "integer"}, " 7 ", 7),
    "another choice": (1, {"enum": [1, 2]}, "2", 2),
    "yes": (False, {"type": "boolean"}, "true", True),
    "a day": ("2026-05-04", {"type": "string", "format": "date"}, "2026-05-05", "2026-05-05"),
    "something where nothing was": (None, {"type": ["string", "null"]}, "x", "x"),
}


# What was typed becomes a value of the field's own type.
@pytest.mark.parametrize("case", FILLED)
def test_filled(case: str) -> None:
    value, schema, typed, stored = FILLED[case]
    filled = fill(form({"x": value}, x=schema), {"x": value}, {"x": typed})
    assert filled.wrong == ()
    assert filled.body == ({} if stored is ... else {"x": stored})
    assert type(filled.body.get("x")) is type(None if stored is ... else stored)


WRONG: dict[str, tuple[Any, Any, str]] = {
    "a word for a number": (1, {"type": "number"}, "one"),
    "a comma": (1, {"type": "number"}, "1,5"),
    "not a number": (1, {"type": "number"}, "NaN"),
    "a fraction for a whole number": (1, {"type": "integer"}, "1.5"),
    "other digits": (1, {"type": "integer"}, "１"),
    "a leading zero": (1, {"type": "integer"}, "007"),
    "a choice that is none": ("a", {"enum": ["a", "b"]}, "c"),
    "neither yes nor no": (True, {"type": "boolean"}, "maybe"),
}


# What is no value of the field is named and not stored.
@pytest.mark.parametrize("case", WRONG)
def test_wrong(case: str) -> None:
    value, schema, typed = WRONG[case]
    filled = fill(form({"x": value}, x=schema), {"x": value}, {"x": typed})
    assert (filled.wrong, filled.body) == (("x",), {"x": value})


# A field that the form does not have is never written, whatever is sent.
def test_nothing_else_is_written() -> None:
    body = {"x": "a", "tags": ["b"]}
    assert fill(form(body), body, {"tags": "c", "to": "mallory@example.test"}).body == body


# Any text typed into any text is stored as it is, unless only its line ends came back as line feeds.
@given(st.text(), st.text())
def test_exactly(before: str, after: str) -> None:
    body = {"x": before}
    stored = fill(make_form(body, {}, ("x",), fits=lambda _: True), body, {"x": after}).body["x"]
    as_given_back = before.replace("\r\n", "\n").replace("\r", "\n")
    assert stored == (before if after == as_given_back else after)


# Changes are told as JSON tells them: by value and type, also what came or went.
def test_changes() -> None:
    before = {"same": [1], "a": True, "b": 1, "gone": "x", "null": None}
    after = {"same": [1], "a": 1, "b": 1.0, "new": None}
    assert changed_fields(before, after) == ("a", "b", "gone", "new", "null")


# Without a list everything may be edited but what says the recipient once more; a list is taken by its word.
@pytest.mark.parametrize(
    ("name", "editable", "recipient", "may"),
    [
        ("body", None, "payload.to", True),
        ("to", None, "payload.to", False),
        ("mail", None, "payload.customer.mail", False),
        ("recipient", None, None, False),
        ("to", ("to",), "payload.to", True),
        ("body", ("to",), "payload.to", False),
        ("body", (), None, False),
    ],
)
def test_may_edit(name: str, editable: tuple[str, ...] | None, recipient: str | None, *, may: bool) -> None:
    assert may_edit(name, editable, [recipient] if recipient else []) is may


# What the schema asks for and is there must be filled in; what stands empty, or may be null, need not.
def test_required() -> None:
    schema = {
        "required": ["subject", "body", "note"],
        "properties": {"note": {"type": ["string", "null"]}, "label": {"type": "string"}},
    }
    body = {"subject": "Late", "body": "", "note": "x", "label": "y"}
    form = make_form(body, schema, tuple(body), fits=lambda _text: True)
    assert {field.name: field.required for field in form.fields} == {
        "subject": True,
        "body": False,
        "note": False,
        "label": False,
    }
