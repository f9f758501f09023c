"""Draws a draft's fields and what changed since the revision before, as literal text within a given room.

What surrounds them is in `review` and `modals`; how the difference is found is in `diff`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bot.cards.blocks import (
    ELEMENT_TEXT,
    Element,
    outside,
    phrase,
    preformatted,
    quote,
    section,
    text_length,
    words,
)
from bot.cards.diff import Piece, Turn, word_diff
from bot.cards.text import cut, hidden_characters, split, visible
from bot.cards.views import Field
from bot.cards.words import say

DIFF_TEXT: Final = 1_500  # A phone's screen or two; whoever wants more reads the draft.
NAME_TEXT: Final = 80  # Of a field's name: more is no name; a longer one is read whole in the modal.
_CONTEXT: Final = 40  # Characters kept around a change: half a line on a phone either side.
_LEAST: Final = 40  # A stretch of text shorter than this is not worth its line.

# Fields that describe the draft more than they are it: shown among the labels.
_LABEL_NAMES: Final = frozenset({"label", "labels", "category", "score", "confidence", "priority", "tags"})
_FIRST_NAMES: Final = ("subject", "title", "body", "text", "message")


@dataclass(frozen=True, slots=True)
class Drawn:
    """Rich text parts, and how many characters of the draft are not in them."""

    parts: list[Element]
    left_out: int


def fields_of(
    body: Mapping[str, object], language: str = "en"
) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """Part a revision's body into the draft's fields and its labels and scores; nothing is in neither.

    Texts are the draft, the subject first; numbers, yes and no, and fields with a label's name are labels.
    """
    names = sorted(
        body, key=lambda name: _FIRST_NAMES.index(name) if name in _FIRST_NAMES else len(_FIRST_NAMES)
    )
    drawn = [(_is_label(name, body[name]), _field(name, body[name], language)) for name in names]
    return tuple(field for label, field in drawn if not label), tuple(
        field for label, field in drawn if label
    )


def _is_label(name: str, value: object) -> bool:
    return name in _LABEL_NAMES or value is None or isinstance(value, bool | int | float)


def _field(name: str, value: object, language: str) -> Field:
    if isinstance(value, str):
        return Field(name, value)
    if isinstance(value, bool):
        return Field(name, say(language, "edit.yes" if value else "edit.no"))
    if value is None:
        return Field(name, say(language, "draft.empty"))
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return Field(name, ", ".join(map(str, value))) if name in _LABEL_NAMES else _as_json(name, value)
    return _as_json(name, value) if isinstance(value, dict | list) else Field(name, json.dumps(value))


def _as_json(name: str, value: object) -> Field:
    return Field(name, json.dumps(value, ensure_ascii=False, indent=2), literal=True)


def title_of(name: str) -> str:
    """A field's or kind's name for reading: `customer_email` becomes `Customer email`."""
    spaced = name.replace("_", " ").replace(".", " · ").strip()
    return spaced[:1].upper() + spaced[1:] if spaced else name


def draw_fields(fields: Sequence[Field], *, room: int, language: str) -> Drawn:
    """Draw the fields in order within `room` (escaped length); what did not fit is counted."""
    parts: list[Element] = []
    left_out = 0
    for field in fields:
        heading = [outside(title_of(field.name), limit=NAME_TEXT, bold=True)]
        rest = room - text_length(heading)
        shown = cut(visible(field.text), max(rest, 0))
        if left_out or (shown.left_out and rest < _LEAST):
            left_out += len(visible(field.text))
            continue
        elements = _literal(shown.shown) if shown.shown.strip() else [_nothing(shown.shown, language)]
        drawn = [section(heading), (preformatted if field.literal else quote)(elements)]
        room -= text_length(drawn)
        parts += drawn
        left_out += shown.left_out
    return Drawn(parts, left_out)


def _nothing(text: str, language: str) -> Element:
    """What stands for a text in which there is nothing to see."""
    return words(say(language, "draft.blank" if text else "draft.empty"), italic=True)


def _literal(text: str) -> list[Element]:
    return [words(piece) for piece in split(text, ELEMENT_TEXT)]


def cut_note(left_out: int, language: str) -> Element:
    """The line that says how much is not shown here."""
    return section([words(say(language, "draft.cut", count=f"{left_out:,}"), italic=True)])


def hidden_in(fields: Sequence[Field]) -> int:
    """How many hidden or direction-changing characters the fields hold."""
    return sum(hidden_characters(field.text) + hidden_characters(field.name) for field in fields)


def hidden_note(fields: Sequence[Field], key: str, language: str) -> list[list[Element]]:
    """The line that warns of them, by the key of its sentence; none where there is nothing hidden."""
    hidden = hidden_in(fields)
    return [phrase(language, key, count=str(hidden))] if hidden else []


def draw_changes(old: Sequence[Field], new: Sequence[Field], *, language: str) -> list[Element]:
    """Draw what changed between two revisions: gone struck through, new in bold; nothing if nothing did."""
    before = {field.name: field for field in old}
    after = {field.name: field for field in new}
    parts: list[Element] = []
    room = DIFF_TEXT
    for name in [*after, *(name for name in before if name not in after)]:
        was, now = (side[name].text if name in side else "" for side in (before, after))
        if was == now:
            continue
        elements = [outside(title_of(name), limit=NAME_TEXT, bold=True), words("\n")]
        elements += _changes(visible(was), visible(now), room=room, language=language)
        room = max(room - text_length(elements), 0)
        parts.append(section(elements))
    return parts


def _changes(old: str, new: str, *, room: int, language: str) -> list[Element]:
    pieces = word_diff(old, new)
    if pieces is None:
        return phrase(language, "diff.rewritten")
    elements: list[Element] = []
    for i, piece in enumerate(pieces):
        text = piece.text
        if piece.turn is Turn.SAME:
            text = _context(piece.text, first=i == 0, last=i == len(pieces) - 1)
        shown = cut(text, min(room, ELEMENT_TEXT))
        if shown.shown and piece.turn is Turn.NEW and i and _touch(pieces[i - 1], piece):
            elements.append(words(" "))  # Struck through and bold, and yet two words in one to the eye.
        if shown.shown:
            elements.append(_drawn(Piece(piece.turn, shown.shown)))
        if shown.left_out:
            return [*elements, *phrase(language, "diff.more")]
        room -= text_length(elements[-1:])
    return elements


def _touch(gone: Piece, new: Piece) -> bool:
    """Whether what is gone runs into what is new."""
    return gone.turn is Turn.GONE and not (gone.text[-1].isspace() or new.text[0].isspace())


def _context(text: str, *, first: bool, last: bool) -> str:
    """Keep the words next to a change; what lies further off becomes `…`."""
    keep_left, keep_right = (0 if first else _CONTEXT), (0 if last else _CONTEXT)
    if len(text) <= keep_left + keep_right + 3:
        return text
    left = cut(text, keep_left).shown if keep_left else ""
    right = text[-keep_right:].split(" ", 1)[-1] if keep_right else ""
    return f"{left}… {right}" if left else f"…{right}"


def _drawn(piece: Piece) -> Element:
    if piece.turn is Turn.SAME:
        return words(piece.text)
    return words(piece.text, strike=True) if piece.turn is Turn.GONE else words(piece.text, bold=True)
