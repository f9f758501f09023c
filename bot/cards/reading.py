"""Draws the modal in which a long draft is read whole, in parts if need be, and decided on its last part.

The card that offers it is in `review`; opening it and turning its pages is in `doors/modals`.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from bot.cards.blocks import (
    ELEMENT_TEXT,
    VIEW_BLOCKS,
    Block,
    actions,
    bullets,
    button,
    confirm,
    lines,
    modal_of,
    outside,
    phrase,
    plain,
    preformatted,
    quote,
    rich,
    section,
    words,
)
from bot.cards.draft import hidden_note, title_of
from bot.cards.facts import action, everything, warnings_title
from bot.cards.text import length, split, visible
from bot.cards.views import Field, Pending, ReviewView
from bot.cards.words import say
from bot.contracts.click import (
    APPROVE_ACTION,
    EDIT_ACTION,
    QUEUE_NEXT_ACTION,
    READ_ACTION,
    REDRAFT_ACTION,
    REJECT_ACTION,
)

# A view may have 250 kB; a character takes at most 6 bytes of JSON a unit of `length`: 180 kB.
PART_TEXT: Final = 30_000
_PART_BLOCKS: Final = VIEW_BLOCKS - 10  # Room for what stands around the draft.
READ_VIEW: Final = "stet.read"
_PART_ACTION: Final = re.compile(rf"{re.escape(READ_ACTION)}\.part\.([1-9][0-9]{{0,3}})")


@dataclass(frozen=True, slots=True)
class ReadView:
    """The draft to read, the part wanted (from 1), and the button values minted for this view.

    In `review.buttons`, approve, reject, edit and redraft are this view's own tokens; `read` turns the pages,
    and passes the draft over where others wait behind it (`in_line`).
    """

    review: ReviewView
    part: int = 1
    in_line: bool = False


def part_count(review: ReviewView) -> int:
    """How many parts the whole draft takes; what decides is on the last."""
    return len(_parts(review))


def part_of_action(action_id: str) -> int | None:
    """Which part a page-turning button asks for; None for any other button."""
    found = _PART_ACTION.fullmatch(action_id)
    return int(found[1]) if found else None


def render(view: ReadView) -> Block:
    """Draw one part. A part number past the end shows the last."""
    review, language = view.review, view.review.language
    parts = _parts(review)
    part = min(max(view.part, 1), len(parts))
    last = part == len(parts)
    blocks = [_head(review, part, len(parts)), *parts[part - 1]]
    if last:
        blocks += _tail(review)
    buttons = _buttons(review, part, len(parts))
    if view.in_line and review.buttons.read:
        buttons.append(button(QUEUE_NEXT_ACTION, say(language, "button.pass_over"), review.buttons.read))
    blocks += actions(f"stet.read.{part}.actions", buttons)
    modal = modal_of(language, say(language, "read.title"), blocks)
    return {**modal, "callback_id": READ_VIEW, "private_metadata": review.buttons.read or ""}


def _head(review: ReviewView, part: int, parts: int) -> Block:
    found = [
        [outside(f"{title_of(review.kind)} · {review.entity}", limit=800, bold=True)],
        action(review),
    ]
    if parts > 1:
        found.append(phrase(review.language, "read.part", part=str(part), parts=str(parts)))
    if 1 <= part < parts and isinstance(review.state, Pending):
        found.append(phrase(review.language, "read.last"))
    return rich(f"stet.read.{part}.head", lines(found))


def _tail(review: ReviewView) -> list[Block]:
    """Warnings and labels, all of them and whole."""
    found: list[Block] = []
    warnings = [
        [words(piece) for piece in split(visible(text), ELEMENT_TEXT)] for text in review.warnings if text
    ]
    warnings = [*hidden_note(everything(review), "warnings.hidden", review.language), *warnings]
    if warnings:
        title = section(warnings_title(review))
        found.append(rich("stet.read.warnings", title, bullets(warnings)))
    return found


def _parts(review: ReviewView) -> list[list[Block]]:
    """Cut the draft, then its labels, into parts within a view's limits; nothing of them is left out."""
    return _cut_up((*review.draft, *review.labels), review.revision, review.language)


@lru_cache(maxsize=4)  # Opening one asks for each of its parts, and turning its pages for all of them again.
def _cut_up(fields: tuple[Field, ...], revision: int, language: str) -> list[list[Block]]:
    parts: list[list[Block]] = [[]]
    room = PART_TEXT
    for number, (field, piece) in enumerate(_pieces(fields)):
        cost = length(piece) + length(field.name)
        if cost > room or len(parts[-1]) == _PART_BLOCKS:
            parts.append([])
            room = PART_TEXT
        parts[-1].append(_drawn(field, piece, f"stet.read.r{revision}.{number}", language))
        room -= cost
    return parts


def _pieces(fields: tuple[Field, ...]) -> list[tuple[Field, str]]:
    found: list[tuple[Field, str]] = []
    for field in fields:
        pieces = split(visible(field.text), ELEMENT_TEXT) or [""]
        found += [
            (field, pieces[0]),
            *((Field("", "", literal=field.literal), piece) for piece in pieces[1:]),
        ]
    return found


def _drawn(field: Field, piece: str, name: str, language: str) -> Block:
    heading = [section([outside(title_of(field.name), limit=ELEMENT_TEXT, bold=True)])] if field.name else []
    text = words(piece) if piece else words(say(language, "draft.empty"), italic=True)
    body = (preformatted if field.literal else quote)([text])
    return rich(name, *heading, body)


def _buttons(review: ReviewView, part: int, parts: int) -> list[Block]:
    language, values = review.language, review.buttons
    found: list[Block] = []
    if part == parts and isinstance(review.state, Pending):
        if values.approve:
            found.append(_approve(review, values.approve))
        others = (
            (REJECT_ACTION, "button.reject", values.reject),
            (EDIT_ACTION, "button.edit", values.edit),
            (REDRAFT_ACTION, "button.redraft", values.redraft),
        )
        found += [button(name, say(language, label), value) for name, label, value in others if value]
    for turned, label in ((part + 1, "read.next"), (part - 1, "read.before")):
        if values.read and 1 <= turned <= parts:
            found.append(button(f"{READ_ACTION}.part.{turned}", say(language, label), values.read))
    return found


def _approve(review: ReviewView, value: str) -> Block:
    label = say(review.language, "button.approve")
    manner: dict[str, object] = {"style": "primary"}
    if review.confirm == "dialog":
        manner["confirm"] = confirm(review.language, plain(action(review)), label)
    return button(APPROVE_ACTION, label, value, **manner)
