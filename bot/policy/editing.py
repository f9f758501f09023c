"""Which parts of a draft a person may edit in a form, and what the filled form makes of the draft.
Not here: drawing the form (bot/cards/edit), or whether what was typed fits schema and rules (bot/drafting).

A form is made anew from the stored revision when it comes back, so nothing that Slack echoes is trusted. What
was not touched keeps its very value; what was typed is stored as it was typed.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from bot.policy.sendable import HEADER_FIELDS

MOST_OPTIONS: Final = 100  # Slack: options of a select
OPTION_TEXT: Final = 75  # Slack: text of an option; a longer choice is typed instead.
MOST_FIELDS: Final = 40  # A modal has 100 blocks; a form longer than this is filled in elsewhere.
NAME_TEXT: Final = 200  # A block id has 255 characters, and ours begins with a few of our own.
SHORT_TEXT: Final = 150  # Up to this a schema's maxLength means a line, beyond it a text.

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,29})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
_TYPES: Final = frozenset({"string", "integer", "number", "boolean"})


class Input(StrEnum):
    """How a field is asked for."""

    LINE = "line"
    TEXT = "text"
    CHOICE = "choice"
    YES_NO = "yes_no"
    NUMBER = "number"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of the form: `text` is what stands in it, `choices` what can be chosen, by its text."""

    name: str
    text: str
    input: Input
    choices: Mapping[str, object] = field(default_factory=dict)
    whole: bool = False
    may_be_null: bool = False
    required: bool = False  # The schema asks for it, and it is not empty now: the form may insist.


@dataclass(frozen=True, slots=True)
class Form:
    """The fields that may be edited here, and the names of those that do not fit into a form."""

    fields: tuple[FormField, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filled:
    """The draft as the form makes it; `wrong` names fields whose text is no such value."""

    body: dict[str, Any]
    wrong: tuple[str, ...]


def make_form(
    body: Mapping[str, Any],
    schema: Mapping[str, Any],
    names: Sequence[str],
    *,
    fits: Callable[[str], bool],
) -> Form:
    """Lay out the fields of these names, in this order; a text that an input cannot hold is left out."""
    described = schema.get("properties")
    properties = described if isinstance(described, Mapping) else {}
    asked = schema.get("required")
    required = frozenset(asked) if isinstance(asked, list) else frozenset()
    fields: list[FormField] = []
    left_out: list[str] = []
    for name in names:
        made = _field(name, body.get(name), properties.get(name))
        too_much = len(name) > NAME_TEXT or len(fields) == MOST_FIELDS
        if made is None or too_much or not fits(made.text):
            left_out.append(name)
        else:
            fields.append(
                replace(made, required=name in required and not made.may_be_null and made.text != "")
            )
    return Form(tuple(fields), tuple(left_out))


def fill(form: Form, body: Mapping[str, Any], typed: Mapping[str, str]) -> Filled:
    """Put what was typed into the draft. A field that did not come back stays as it is."""
    filled = dict(body)
    wrong = []
    for each in form.fields:
        given = typed.get(each.name)
        if given is None or _is_untouched(each, given):
            continue
        if given == "" and each.input not in {Input.LINE, Input.TEXT}:
            filled.pop(each.name, None)
            if each.may_be_null:
                filled[each.name] = None
        elif (value := _value(each, given)) is None:
            wrong.append(each.name)
        else:
            filled[each.name] = value
    return Filled(filled, tuple(wrong))


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Name what differs, as JSON tells things apart: true is not 1, and 1 is not 1.0."""
    names = sorted({*before, *after})
    return tuple(name for name in names if _written(before, name) != _written(after, name))


def _written(body: Mapping[str, Any], name: str) -> str | None:
    return json.dumps(body[name], sort_keys=True) if name in body else None


def _is_untouched(each: FormField, given: str) -> bool:
    """Whether a field came back as it was; an input gives other line ends back as line feeds."""
    if given == each.text:
        return True
    return "\r" in each.text and given == each.text.replace("\r\n", "\n").replace("\r", "\n")


def _field(name: str, value: object, described: object) -> FormField | None:
    """How one field is asked for; None for what has a shape of its own."""
    schema = described if isinstance(described, Mapping) else {}
    may_be_null = value is None or "null" in _types_of(schema)
    choices = _choices(schema)
    if choices:
        text = _choice_text(value) if any(_same(value, each) for each in choices.values()) else ""
        return FormField(name, text, Input.CHOICE, choices, may_be_null=may_be_null)
    kind = _kind(value, schema)
    if kind is None or not (value is None or isinstance(value, str | bool | int | float)):
        return None
    text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    match kind:
        case "boolean":
            yes_no = {"true": True, "false": False}
            return FormField(name, text, Input.YES_NO, yes_no, may_be_null=may_be_null)
        case "integer" | "number":
            whole = kind == "integer"
            return FormField(name, text, Input.NUMBER, whole=whole, may_be_null=may_be_null)
    if schema.get("format") == "date" and (not text or re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text)):
        return FormField(name, text, Input.DATE, may_be_null=may_be_null)
    return FormField(name, text, _how_long(name, text, schema), may_be_null=may_be_null)


def _kind(value: object, schema: Mapping[str, Any]) -> str | None:
    """The one type that the schema names; without one, that of the value. None: nothing a form can hold."""
    named = _types_of(schema) - {"null"}
    if len(named) == 1:
        kind = next(iter(named))
        return kind if kind in _TYPES and _fits_kind(value, kind) else None
    if named & {"object", "array"} or isinstance(value, list | dict):
        return None
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "string"


def _fits_kind(value: object, kind: str) -> bool:
    if value is None:
        return True
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _types_of(schema: Mapping[str, Any]) -> frozenset[str]:
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    return (
        frozenset(each for each in named if isinstance(each, str)) if isinstance(named, list) else frozenset()
    )


def _choices(schema: Mapping[str, Any]) -> dict[str, object]:
    """The values of an enum by their texts; none where a select could not show each of them whole."""
    values = schema.get("enum")
    if not isinstance(values, list) or not 0 < len(values) <= MOST_OPTIONS + 1:
        return {}
    given = [value for value in values if value is not None]
    if any(isinstance(value, list | dict) for value in given) or len(given) > MOST_OPTIONS:
        return {}
    texts = [_choice_text(value) for value in given]
    shown = all(text.strip() and _units(text) <= OPTION_TEXT for text in texts)
    return dict(zip(texts, given, strict=True)) if shown and len(set(texts)) == len(texts) else {}


def _choice_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _same(left: object, right: object) -> bool:
    return type(left) is type(right) and left == right


def _how_long(name: str, text: str, schema: Mapping[str, Any]) -> Input:
    """A line where the schema or the mail header wants one, and nothing that stands there would be lost."""
    longest = schema.get("maxLength")
    short = name.lower() in HEADER_FIELDS or (isinstance(longest, int) and longest <= SHORT_TEXT)
    return Input.LINE if short and not re.search(r"[\r\n]", text) else Input.TEXT


def _value(each: FormField, given: str) -> object | None:
    """The value that was typed or chosen; None if it is no such value."""
    match each.input:
        case Input.CHOICE | Input.YES_NO:
            return each.choices.get(given)
        case Input.NUMBER:
            return _number(given.strip(), whole=each.whole)
        case _:
            return given


def _number(text: str, *, whole: bool) -> int | float | None:
    if not _NUMBER.fullmatch(text):
        return None
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    return None if whole else float(text)


def _units(text: str) -> int:
    """Length in UTF-16 units, which is how Slack counts what is typed."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
