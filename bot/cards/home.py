"""Draws one person's App Home: what waits for them, what they decided; for admins the switch and the week.

What waits and what became of it is found in `flow/home`; the channel's cards are in `review`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from bot.cards.answers import SwitchView, standing
from bot.cards.blocks import (
    Block,
    Element,
    actions,
    button,
    date,
    lines,
    outside,
    phrase,
    rich,
    section,
    words,
)
from bot.cards.draft import hidden_in, title_of
from bot.cards.facts import action, all_shown, everything
from bot.cards.lives import Action
from bot.cards.notices import Notice, lines_of
from bot.cards.review import approve_manner
from bot.cards.status import action_line, state_title
from bot.cards.text import length, visible
from bot.cards.unknown import answer_buttons
from bot.cards.views import Field, Pending, PendingNote, ReviewView, State
from bot.cards.words import say
from bot.contracts.click import APPROVE_ACTION, EDIT_ACTION, READ_ACTION, REDRAFT_ACTION, REJECT_ACTION

PAGE: Final = 8  # Drafts a page: two blocks each of the hundred a Home may have, and a screen or two to read.
MOST_DECIDED: Final = 10
MOST_UNKNOWN: Final = 5  # Their cards stand in the operators' channel; here one sees that there are some.
PREVIEW_LINES: Final = 3
_LINE: Final = 200  # Of a draft's text: two lines on a phone.
_PAGE_ACTION: Final = re.compile(r"stet\.home\.page\.([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class Decided:
    """One answer of the person, and where its draft stands now."""

    kind: str
    entity: str
    decision: str
    at: datetime
    state: State


@dataclass(frozen=True, slots=True)
class Unsettled:
    """One effect nobody knows the outcome of. `button_value` is bound to its version."""

    kind: str
    entity: str
    action: Action
    since: datetime
    button_value: str
    newer_waits: bool = False


@dataclass(frozen=True, slots=True)
class Week:
    """The last seven days in numbers."""

    accepted: int = 0
    duplicates: int = 0
    stales: int = 0
    conflicts: int = 0
    approved: int = 0
    rejected: int = 0
    expired: int = 0
    sent: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class AdminView:
    """What admins see besides: the switch, unknown effects (`unknown_total` of them), the week."""

    switch: SwitchView
    unknown: tuple[Unsettled, ...]
    unknown_total: int
    week: Week


@dataclass(frozen=True, slots=True)
class HomeView:
    """Everything on one person's Home; `waiting` is one page of `total`, with this Home's own buttons.

    Not `is_whole`: more may wait for them, which could not be found out.
    """

    waiting: tuple[ReviewView, ...]
    total: int
    page: int = 1
    decided: tuple[Decided, ...] = ()
    admin: AdminView | None = None
    language: str = "en"
    is_whole: bool = True


def page_of_action(action_id: str) -> int | None:
    """Which page a button asks for; None for any other button."""
    found = _PAGE_ACTION.fullmatch(action_id)
    return int(found[1]) if found else None


def page_count(total: int) -> int:
    """How many pages so many drafts take; an empty list has one."""
    return max(1, -(-total // PAGE))


def render(view: HomeView, note: Notice | None = None) -> Block:
    """Draw the Home; a note above it all says what came of the last press there."""
    said = [] if note is None else [rich("stet.home.note", lines(lines_of(note)))]
    blocks = [*said, *_waiting(view), *_decided(view)]
    if view.admin is not None:
        blocks += _admin(view.admin, view.language)
    return {"type": "home", "blocks": blocks}


def fits(view: ReviewView) -> bool:
    """Say whether all that must be read before approving stands here; else only the modal may approve."""
    texts = (*view.draft, *view.labels)
    plain = view.previous is None and view.replaces is None and view.earlier is None and not view.warnings
    state = isinstance(view.state, Pending) and view.state.note is not PendingNote.NEWER_FAILED
    short = len(texts) <= PREVIEW_LINES and all(_is_a_line(field) for field in texts)
    return plain and state and short and all_shown(view) and not hidden_in(everything(view))


def _is_a_line(field: Field) -> bool:
    return not field.literal and "\n" not in field.text and length(visible(field.text)) <= _LINE


def item_blocks(view: ReviewView, number: int) -> list[Block]:
    """One waiting draft: what and for whom, since when and until when, its first lines, its buttons."""
    name = f"stet.home.{number}.r{view.revision}.v{view.version}"
    head = [
        [outside(f"{title_of(view.kind)} · {view.entity}", limit=300, bold=True)],
        _times(view),
        action(view),
        *_preview(view),
    ]
    return [rich(f"{name}.text", lines(head)), *actions(f"{name}.actions", _item_buttons(view))]


def _times(view: ReviewView) -> list[Element]:
    opened, expires = view.times.opened_at, view.times.expires_at
    if expires is None:
        return phrase(view.language, "times.waiting", opened=date(opened))
    return phrase(view.language, "times.waiting_until", opened=date(opened), expires=date(expires))


def _preview(view: ReviewView) -> list[list[Element]]:
    """The first lines of the draft; when that is not all of it, a line that says so."""
    found = [
        [outside(f"{title_of(field.name)}:", limit=80, bold=True), words(" "), _first_line(field)]
        for field in (*view.draft, *view.labels)[:PREVIEW_LINES]
    ]
    return found if fits(view) else [*found, phrase(view.language, "home.read_first")]


def _first_line(field: Field) -> Element:
    first, _, more = field.text.partition("\n")
    return outside(f"{first} …" if more else first, limit=_LINE)


def _item_buttons(view: ReviewView) -> list[Element]:
    language, values = view.language, view.buttons
    wanted = (
        (APPROVE_ACTION, "button.approve", values.approve if fits(view) else None),
        (READ_ACTION, "button.read", values.read),
        (REJECT_ACTION, "button.reject", values.reject),
        (EDIT_ACTION, "button.edit", values.edit),
        (REDRAFT_ACTION, "button.redraft", values.redraft),
    )
    return [
        button(name, say(language, label), value, **(approve_manner(view) if name == APPROVE_ACTION else {}))
        for name, label, value in wanted
        if value is not None
    ]


def _waiting(view: HomeView) -> list[Block]:
    language, pages = view.language, page_count(view.total)
    unsure = [] if view.is_whole else [phrase(language, "queue.not_whole")]
    if not view.waiting:
        return [rich("stet.home.head", lines(unsure or [phrase(language, "queue.empty")]))]
    head = phrase(language, "queue.title", count=f"{view.total:,}")
    if pages > 1:
        head += [words("  "), *phrase(language, "home.page", page=str(view.page), pages=str(pages))]
    blocks = [rich("stet.home.head", lines([head, *unsure]))]
    for number, item in enumerate(view.waiting):
        blocks += [{"type": "divider", "block_id": f"stet.home.{number}.rule"}] if number else []
        blocks += item_blocks(item, number)
    turned = [(view.page - 1, "home.before"), (view.page + 1, "home.next")]
    buttons = [
        button(f"stet.home.page.{page}", say(language, label), str(page))
        for page, label in turned
        if 1 <= page <= pages
    ]
    return [*blocks, *actions("stet.home.pages", buttons)]


def _decided(view: HomeView) -> list[Block]:
    if not view.decided:
        return []
    found = [
        phrase(view.language, "home.decided"),
        *(_decided_line(one, view.language) for one in view.decided),
    ]
    return [{"type": "divider", "block_id": "stet.home.rule"}, rich("stet.home.decided", lines(found))]


def _decided_line(one: Decided, language: str) -> list[Element]:
    what = outside(f"{title_of(one.kind)} · {one.entity}", limit=120)
    said = phrase(language, f"home.did.{one.decision}", what=what, at=date(one.at))
    return [*said, words(" "), *phrase(language, state_title(one.state))]


def _admin(admin: AdminView, language: str) -> list[Block]:
    counts = phrase(language, "home.unknown", count=f"{admin.unknown_total:,}")
    blocks = [
        {"type": "divider", "block_id": "stet.home.admin"},
        rich("stet.home.switch", lines(lines_of(standing(admin.switch, language=language)))),
        rich("stet.home.week", lines(_week(admin.week, language))),
        rich("stet.home.unknown", section(counts)),
    ]
    for number, one in enumerate(admin.unknown):
        blocks += _unsettled(one, number, language)
    return blocks


def _week(week: Week, language: str) -> list[list[Element]]:
    numbers = {name: f"{getattr(week, name):,}" for name in Week.__dataclass_fields__}
    return [phrase(language, f"home.week.{name}", **numbers) for name in ("events", "decisions", "effects")]


def _unsettled(one: Unsettled, number: int, language: str) -> list[Block]:
    name = f"stet.home.unknown.{number}"
    told: Sequence[list[Element]] = [
        [outside(f"{title_of(one.kind)} · {one.entity}", limit=300, bold=True)],
        action_line(language, "action.is", one.action),
        phrase(language, "home.unknown_since", at=date(one.since)),
    ]
    buttons = answer_buttons(language, one.button_value, newer_waits=one.newer_waits)
    return [rich(f"{name}.text", lines(told)), *actions(f"{name}.actions", buttons)]
