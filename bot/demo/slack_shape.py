"""A small language for the shape of Block Kit: rules that look at one value and note what is wrong with it.

Which block has which shape is in `slack_blocks`, `slack_elements` and `slack_rich_text`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_BARE_AMPERSAND: Final = re.compile(r"&(?!(?:amp|lt|gt);)")


@dataclass(slots=True)
class Sheet:
    """What one payload came to: the complaints, and the sums that are limited over all its blocks."""

    surface: str
    problems: list[str] = field(default_factory=list)
    characters: int = 0
    markdown: int = 0

    def wrong(self, path: str, sentence: str) -> None:
        """Note a complaint in the form Slack uses in `response_metadata.messages`."""
        self.problems.append(f"[ERROR] {sentence} [json-pointer:{path}]")


Rule = Callable[[Sheet, str, Any], None]


def plain_length(text: str) -> int:
    """Characters as Slack counts them: after & < > have become entities."""
    return len(text) + 4 * text.count("&") + 3 * text.count("<") + 3 * text.count(">")


def mrkdwn_length(text: str) -> int:
    """The same for mrkdwn, where the writer has escaped already and < > are markup."""
    return len(text) + 4 * len(_BARE_AMPERSAND.findall(text))


def string(maximum: int, *, minimum: int = 1, pattern: str = "") -> Rule:
    """A string of so many characters."""

    def check(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        if not isinstance(value, str):
            sheet.wrong(path, "must be a string")
        elif not minimum <= len(value) <= maximum:
            sheet.wrong(path, f"must be between {minimum} and {maximum} characters")
        elif pattern and not re.fullmatch(pattern, value):
            sheet.wrong(path, f"must match {pattern}")

    return check


def words(maximum: int, *, minimum: int = 1) -> Rule:
    """A bare string that people read: counted after escaping, and in the sum."""

    def check(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        if not isinstance(value, str):
            return sheet.wrong(path, "must be a string")
        length = plain_length(value)
        sheet.characters += length
        if not minimum <= length <= maximum:
            sheet.wrong(path, f"must be between {minimum} and {maximum} characters")
        return None

    return check


def one_of(*allowed: str) -> Rule:
    """One of these strings."""

    def check(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        if value not in allowed:
            sheet.wrong(path, f"must be one of {', '.join(allowed)}")

    return check


def boolean(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
    """True or false, nothing like them."""
    if not isinstance(value, bool):
        sheet.wrong(path, "must be a boolean")


def anything(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
    """A value we have no rule for, but the key is known."""


def number(minimum: float, maximum: float, *, whole: bool = True) -> Rule:
    """A number in a range."""

    def check(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            sheet.wrong(path, "must be a number")
        elif not minimum <= value <= maximum:
            sheet.wrong(path, f"must be between {minimum:g} and {maximum:g}")

    return check


def text(*kinds: str, maximum: int, minimum: int = 1) -> Rule:
    """A text object of one of these kinds, counted after escaping."""
    extra = {"plain_text": "emoji", "mrkdwn": "verbatim"}

    def check(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        if not isinstance(value, Mapping) or value.get("type") not in kinds:
            return sheet.wrong(path, f"must be a text object of type {' or '.join(kinds)}")
        kind, content = value["type"], value.get("text")
        for key in value.keys() - {"type", "text", extra[kind]}:
            sheet.wrong(f"{path}/{key}", "unknown key")
        if not isinstance(content, str):
            return sheet.wrong(f"{path}/text", "must be a string")
        length = plain_length(content) if kind == "plain_text" else mrkdwn_length(content)
        sheet.characters += length
        if not minimum <= length <= maximum:
            sheet.wrong(f"{path}/text", f"must be between {minimum} and {maximum} characters")
        return None

    return check


def rows(rule: Rule, minimum: int, maximum: int) -> Rule:
    """A list of so many values, each by this rule."""

    def check(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        if not isinstance(value, list):
            return sheet.wrong(path, "must be an array")
        if not minimum <= len(value) <= maximum:
            sheet.wrong(path, f"must have between {minimum} and {maximum} items")
        for index, item in enumerate(value):
            rule(sheet, f"{path}/{index}", item)
        return None

    return check


def record(required: Mapping[str, Rule], optional: Mapping[str, Rule] | None = None) -> Rule:
    """An object with these keys and no others (`type` apart)."""
    known = {**required, **(optional or {})}

    def check(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        if not isinstance(value, Mapping):
            return sheet.wrong(path, "must be an object")
        for key in required.keys() - value.keys():
            sheet.wrong(path, f"missing required field: {key}")
        for key, item in value.items():
            if key in known:
                known[key](sheet, f"{path}/{key}", item)
            elif key != "type":
                sheet.wrong(f"{path}/{key}", "unknown key")
        return None

    return check


def by_type(shapes: Mapping[str, Rule]) -> Rule:
    """An object whose `type` picks the rule."""

    def check(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
        kind = value.get("type") if isinstance(value, Mapping) else None
        if not isinstance(kind, str) or kind not in shapes:
            return sheet.wrong(path, f"unsupported type: {kind if isinstance(kind, str) else 'none'}")
        return shapes[kind](sheet, path, value)

    return check
