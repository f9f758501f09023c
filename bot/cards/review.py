"""Draws the card of a draft in each of its states, from one `ReviewView`. This is the card people decide on.

What is true is decided elsewhere: the card states settled facts only. Reading a long draft is in `modals`.
"""

from dataclasses import dataclass
from typing import Final

from bot.cards.blocks import (
    FALLBACK_TEXT,
    MESSAGE_TEXT,
    Block,
    Element,
    actions,
    button,
    clip,
    confirm,
    header,
    lines,
    phrase,
    plain,
    rich,
    section,
    text_length,
)
from bot.cards.draft import Drawn, cut_note, draw_fields, title_of
from bot.cards.facts import ENTITY_TEXT, action, all_shown, below, block_id, small_print
from bot.cards.status import action_line, may_cancel, state_lines, state_title
from bot.cards.text import escape
from bot.cards.views import Approved, Pending, ReviewView
from bot.cards.words import say
from bot.contracts.click import (
    APPROVE_ACTION,
    CANCEL_ACTION,
    EDIT_ACTION,
    READ_ACTION,
    REDRAFT_ACTION,
    REJECT_ACTION,
    undo_action,
)

_BUTTON_ROOM: Final = (
    900  # Six labels of 75, a confirmation of 300: held back, so buttons never decide the fit.
)
_UNDO_NAME: Final = 40  # Of a button's 75 characters.
_EXCERPT: Final = (
    1_500  # Of a draft too long for the card: enough to know it by, short enough to scroll past.
)


@dataclass(frozen=True, slots=True)
class _Layout:
    above: list[Block]
    below: list[Block]
    small_print: Block
    room: int
    draft: Drawn
    whole: bool


def render(view: ReviewView) -> list[Block]:
    """Draw the card. Approve stands on it only when the whole draft and every warning do (SPEC section 9)."""
    layout = _lay_out(view)
    parts = layout.draft.parts
    if layout.draft.left_out:
        excerpt = draw_fields(view.draft, room=min(layout.room, _EXCERPT), language=view.language)
        parts = [*excerpt.parts, cut_note(excerpt.left_out, view.language)]
    draft = [rich(block_id(view, "draft"), *parts)] if parts else []
    buttons = actions(block_id(view, "actions"), _buttons(view, whole=layout.whole))
    return [*layout.above, *draft, *layout.below, *buttons, layout.small_print]


def fits(view: ReviewView) -> bool:
    """Say whether all that must be read before approving stands on the card; else only the modal may approve.

    Does not depend on which buttons the view has, so it can be asked before any token is minted.
    """
    return _lay_out(view).whole


def fallback(view: ReviewView) -> str:
    """The message's `text`, for notifications: state, kind, entity and how the draft begins; escaped once."""
    first = next((field.text for field in view.draft if field.text), "")
    begins = f": {clip(first.replace(chr(10), ' '), 120)}" if first else ""
    state = plain(phrase(view.language, state_title(view.state)))
    return escape(clip(f"{state} · {title_of(view.kind)} · {clip(view.entity, 80)}{begins}", FALLBACK_TEXT))


def _lay_out(view: ReviewView) -> _Layout:
    others: tuple[list[Block], list[Block], Block] = _above(view), below(view), small_print(view)
    room = max(MESSAGE_TEXT - _BUTTON_ROOM - sum(map(text_length, others)), 0)
    draft = draw_fields(view.draft, room=room, language=view.language)
    return _Layout(*others, room=room, draft=draft, whole=all_shown(view) and not draft.left_out)


def _above(view: ReviewView) -> list[Block]:
    """Headline, state, and what will happen on approval."""
    status = lines([phrase(view.language, state_title(view.state)), *state_lines(view)])
    return [
        header(block_id(view, "title"), f"{title_of(view.kind)} · {clip(view.entity, ENTITY_TEXT)}"),
        rich(block_id(view, "state"), status),
        rich(block_id(view, "action"), section(action(view))),
    ]


def _buttons(view: ReviewView, *, whole: bool) -> list[Element]:
    values = view.buttons
    wanted: list[tuple[str, str, str | None, str | None]] = []
    if isinstance(view.state, Pending):
        wanted += [(APPROVE_ACTION, "button.approve", values.approve if whole else None, "primary")]
    if not whole:
        wanted += [(READ_ACTION, "button.read", values.read, None)]
    if isinstance(view.state, Pending):
        wanted += [
            (REJECT_ACTION, "button.reject", values.reject, None),
            (EDIT_ACTION, "button.edit", values.edit, None),
            (REDRAFT_ACTION, "button.redraft", values.redraft, None),
        ]
    if may_cancel(view.state):
        wanted += [(CANCEL_ACTION, "button.cancel", values.cancel, "danger")]
    found = [
        button(action, say(view.language, label), value, **_manner(view, action, style))
        for action, label, value, style in wanted
        if value is not None
    ]
    return [*found, *_undo_buttons(view)]


def _undo_buttons(view: ReviewView) -> list[Element]:
    """One for each effect that can be taken back, by its name where there are several."""
    if not isinstance(view.state, Approved):
        return []
    language, parts, values = view.language, view.state.parts, dict(view.undo)
    found = []
    for number, part in enumerate(parts):
        if part.undo is None or part.effect_id not in values:
            continue
        name = clip(part.action.name or part.action.effect_type, _UNDO_NAME)
        label = say(language, "button.undo_part" if len(parts) > 1 else "button.undo", name=name)
        sentence = plain(action_line(language, "confirm.undo", part.undo))
        asks = confirm(language, sentence, say(language, "button.undo"))
        # No colour: it stands on the card for weeks, and is pressed on the fewest.
        found.append(button(undo_action(number), label, values[part.effect_id], confirm=asks))
    return found


def _manner(view: ReviewView, action_id: str, style: str | None) -> dict[str, object]:
    manner: dict[str, object] = {"style": style} if style else {}
    if action_id == CANCEL_ACTION:  # There is no way back from it.
        what = say(view.language, "confirm.cancel")
        manner["confirm"] = confirm(view.language, what, say(view.language, "button.cancel"))
    return manner | (approve_manner(view) if action_id == APPROVE_ACTION else {})


def approve_manner(view: ReviewView) -> dict[str, object]:
    """The dialog that asks once more before approving, for kinds that want one."""
    if view.confirm != "dialog":
        return {}
    return {"confirm": confirm(view.language, plain(action(view)), say(view.language, "button.approve"))}
