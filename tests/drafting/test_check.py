"""Schema and rules: nothing is coerced, nothing unknown passes, nothing is fetched.

Not here: the rules' own operators (tests/policy/test_rules).
"""

from typing import Any

import pytest

from bot.drafting.check import Violation, check_output, find_violations, list_violations
from bot.drafting.faults import Misconfigured, SoftFailure, WrongJson
from tests.drafting.conftest import D0, PAYLOAD, SCHEMA


# What fits the schema passes, with an empty verdict of a kind without rules.
def test_fits() -> None:
    verdict = check_output(D0, schema=SCHEMA, rules=(), payload=PAYLOAD)
    assert (verdict.broken, verdict.warnings, verdict.allowed) == ((), (), False)


# Values that only resemble the right one are refused, and so are missing and unknown keys.
@pytest.mark.parametrize(
    "changes",
    [
        {"needs_human": "false"},
        {"needs_human": "no"},
        {"needs_human": 1},
        {"needs_human": 0},
        {"needs_human": None},
        {"label": "Shipping "},
        {"label": ["shipping"]},
        {"subject": ""},
        {"subject": 7},
        {"mood": "calm"},
        {"Subject": "twice"},
    ],
)
def test_refused(changes: dict[str, object]) -> None:
    with pytest.raises(WrongJson) as caught:
        check_output({**D0, **changes}, schema=SCHEMA, rules=(), payload=PAYLOAD)
    assert caught.value.hints


# A number is not a boolean and a boolean is no number, in enum and const too.
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, True),
        ({"type": "number"}, False),
        ({"enum": [1, 0]}, True),
        ({"const": False}, 0),
        ({"type": "integer"}, "1"),
        ({"type": "integer"}, 1.5),
    ],
)
def test_booleans_are_no_numbers(schema: dict[str, Any], value: object) -> None:
    assert find_violations({"x": value}, {"properties": {"x": schema}})


# Unknown keys are refused at every depth, through composition and references; a stated opening is honoured.
@pytest.mark.parametrize(
    ("schema", "output", "passes"),
    [
        ({"properties": {"a": {"properties": {"b": {}}}}}, {"a": {"b": 1}}, True),
        ({"properties": {"a": {"properties": {"b": {}}}}}, {"a": {"c": 1}}, False),
        ({"properties": {"a": {"items": {"properties": {"b": {}}}}}}, {"a": [{"c": 1}]}, False),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, {"a": 1, "b": 1}, True),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, {"a": 1, "c": 1}, False),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}, {"a": 1}, True),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}, {"c": 1}, False),
        ({"oneOf": [{"required": ["a"], "properties": {"a": {}}}]}, {"a": 1, "c": 1}, False),
        ({"properties": {"a": {}}, "additionalProperties": True}, {"c": 1}, True),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, {"c": 1}, False),
        ({"properties": {"a": {"type": "object"}}}, {"a": {"free": 1}}, True),
        ({"properties": {"a": {}}, "not": {"properties": {"a": {"const": 1}}}}, {"a": 2}, True),
    ],
)
def test_unknown_keys(schema: dict[str, Any], output: dict[str, Any], passes: bool) -> None:
    assert (find_violations(output, schema) == ()) is passes


# A schema that is none, or points outside itself, is the admin's fault; nothing is fetched.
@pytest.mark.parametrize(
    "schema", [{"type": 3}, {"$ref": "https://example.test/s"}, {"$ref": "#/$defs/none"}]
)
def test_unusable_schema(schema: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured):
        find_violations({"a": 1}, schema)


# A pattern that would take Python's engine for ever is answered in linear time; look-ahead still works.
@pytest.mark.parametrize(("pattern", "passes"), [("^(a+)+$", False), ("^(?=a)", True), ("!$", True)])
def test_patterns(pattern: str, passes: bool) -> None:
    found = find_violations({"x": "a" * 5_000 + "!"}, {"properties": {"x": {"pattern": pattern}}})
    assert (found == ()) is passes


# Formats are checked, not taken for decoration.
def test_formats() -> None:
    schema = {"properties": {"day": {"type": "string", "format": "date"}}}
    assert find_violations({"day": "2030-02-30"}, schema)
    assert not find_violations({"day": "2030-02-28"}, schema)


# F032: a subject that would break a header, or text with NUL, is refused whatever the schema says.
@pytest.mark.parametrize(
    "subject", ["Hi\r\nBcc: x@example.test", "Hi\rthere", "Hi\u2028there", "Hi\u0000there", "Hi\u0085there"]
)
def test_unsendable(subject: str) -> None:
    with pytest.raises(SoftFailure) as caught:
        check_output({**D0, "subject": subject}, schema=SCHEMA, rules=(), payload=PAYLOAD)
    assert caught.value.detail == "unsendable"
    assert "Bcc" not in f"{caught.value!r}"


# The hints say where and what from the schema's side, without repeating the value, ten at most.
def test_hints() -> None:
    found = find_violations({**D0, "needs_human": "SECRET", "label": "SECRET"}, SCHEMA)
    assert found == (
        '$.label must be exactly one of ["shipping", "refund", "other"].',
        '$.needs_human must be of type "boolean" exactly.',
    )
    many = {"properties": {f"x{number}": {"type": "string"} for number in range(30)}}
    assert len(find_violations({f"x{number}": number for number in range(30)}, many)) == 10


# For people violations are told by the field they stand in: a missing one by its name, the whole's without.
def test_violations_by_field() -> None:
    schema = {
        "required": ["a", "b"],
        "properties": {"a": {}, "b": {}, "c": {"minLength": 2}, "d": {"items": {"maximum": 3}}},
    }
    found = list_violations({"b": 1, "c": "x", "d": [1, 9], "e": 0}, schema)
    assert set(found) == {
        Violation("a", "required", None),
        Violation("c", "minLength", 2),
        Violation("d", "maximum", 3),
        Violation(None, "unevaluatedProperties", False),
    }
