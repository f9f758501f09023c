"""Draws the modals that ask or say something: why rejected, what to change, the edit, the typed approval.

The whole draft to read is in `reading`; what a submission does, in `doors/modals`. Private metadata is
one opaque value, no text.
"""

from dataclasses import dataclass
from typing import Final, assert_never

from bot.cards.blocks import (
    Block,
    Element,
    clip,
    lines,
    modal_of,
    outside,
    phrase,
    plain_text,
    quote,
    rich,
    section,
)
from bot.cards.draft import hidden_note, title_of
from bot.cards.notices import Notice, render
from bot.cards.text import length
from bot.cards.views import Field
from bot.cards.words import say
from bot.contracts.click import APPROVE_ACTION, EDIT_ACTION, REDRAFT_ACTION, REJECT_ACTION
from bot.policy.editing import OPTION_TEXT, Form, FormField, Input

REASON_TEXT: Final = 1_000  # A reason is a few sentences; it stands whole on the card.
INPUT_TEXT: Final = 3_000  # Slack: longest text of a plain text input
ANSWER_ACTION: Final = "stet.answer"  # the input's action id in each question
EDIT_BLOCK: Final = "stet.edit."  # an edited field's block id begins so; the field's name follows
MESSAGE_VIEW: Final = "stet.message"  # callback id of a modal that only says something


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A modal that asks one thing. `value` is the encoded button value that the answer is bound to."""

    value: str
    entity: str
    language: str = "en"


@dataclass(frozen=True, slots=True)
class EditView:
    """The fields a reviewer may change, as they stand, and the names of those that no form can hold."""

    value: str
    form: Form
    language: str = "en"


@dataclass(frozen=True, slots=True)
class MessageView:
    """A modal that only says something; `kept` is what the person had typed, to copy from."""

    key: str
    kept: tuple[Field, ...] = ()
    language: str = "en"


def reject(view: QuestionView) -> Block:
    """Ask why; the reason is required and at most REASON_TEXT long."""
    return _question(view, "reject", callback=REJECT_ACTION, submit="button.reject")


def redraft(view: QuestionView) -> Block:
    """Ask what should change."""
    return _question(view, "redraft", callback=REDRAFT_ACTION, submit="button.redraft")


def typed(view: QuestionView) -> Block:
    """Ask for the entity to be typed, for kinds whose approval is confirmed so."""
    return _question(view, "typed", callback=APPROVE_ACTION, submit="button.approve")


def can_edit(text: str) -> bool:
    """Say whether a text fits into Slack's text input; a longer one would be cut."""
    return length(text) <= INPUT_TEXT


def edit(view: EditView) -> Block:
    """Offer the fields for editing, exactly as stored; where it is not required, an emptied one is an answer.

    What does not fit into a form is named, so that nobody looks for it: it stays as it is.
    """
    blocks = [_edit_input(field, view.language) for field in view.form.fields]
    if view.form.left_out:
        names = outside(", ".join(map(title_of, view.form.left_out)), limit=1_000)
        blocks.append(
            rich("stet.edit_left_out", section(phrase(view.language, "edit.left_out", names=names)))
        )
    stands = [Field(field.name, field.text) for field in view.form.fields]
    if hidden := hidden_note(stands, "edit.hidden", view.language):
        blocks.insert(0, rich("stet.edit_hidden", lines(hidden)))
    modal = modal_of(view.language, say(view.language, "edit.title"), blocks)
    return {**modal, **_submitting(view.language, view.value, callback=EDIT_ACTION, submit="button.save")}


def message(view: MessageView) -> Block:
    """Say one sentence; below it what the person had typed, so that nothing typed is lost."""
    blocks = [rich("stet.message.text", section(phrase(view.language, view.key)))]
    if view.kept:
        title = section(phrase(view.language, "message.kept"))
        kept = [part for field in view.kept for part in _kept(field)]
        blocks.append(rich("stet.message.kept", title, *kept))
    modal = modal_of(view.language, say(view.language, "message.title"), blocks)
    return {**modal, "callback_id": MESSAGE_VIEW}


def tell(notice: Notice, kept: tuple[Field, ...] = (), *, clears: bool = False) -> Block:
    """Say a notice in a modal, in place of the one before; below it what the person had typed.

    `clears`: closing it closes what lies below it, too, where something was read that is so no more.
    """
    language = notice.language
    blocks = render(notice)
    if kept:
        title = section(phrase(language, "message.kept"))
        parts = [part for field in kept for part in _kept(field)]
        blocks.append(rich("stet.message.kept", title, *parts))
    ending = {"clear_on_close": True} if clears else {}
    modal = modal_of(language, say(language, "message.title"), blocks)
    return {**modal, "callback_id": MESSAGE_VIEW, **ending}


def _kept(field: Field) -> list[Element]:
    heading = section([outside(title_of(field.name), limit=80, bold=True)])
    return [heading, quote([outside(field.text, limit=INPUT_TEXT * 4)])]


def _question(view: QuestionView, name: str, *, callback: str, submit: str) -> Block:
    language, typing = view.language, name == "typed"
    element = {
        "type": "plain_text_input",
        "action_id": ANSWER_ACTION,
        "multiline": not typing,
        "min_length": 1,
        "max_length": REASON_TEXT,
    }
    asked = {
        "type": "input",
        "block_id": f"stet.{name}.input",
        "label": plain_text(say(language, f"{name}.label")),
        "hint": plain_text(say(language, f"{name}.hint")),
        "element": element,
    }
    hidden = hidden_note([Field("", view.entity)], "warnings.hidden", language)
    entity = [outside(view.entity, limit=5_000, code=typing)]
    shown = [rich(f"stet.{name}.entity", lines([entity, *hidden]))]
    modal = modal_of(language, say(language, f"{name}.title"), [*shown, asked])
    return {**modal, **_submitting(language, view.value, callback=callback, submit=submit)}


def _submitting(language: str, value: str, *, callback: str, submit: str) -> Block:
    return {
        "callback_id": callback,
        "private_metadata": value,
        "submit": plain_text(say(language, submit)),
        "clear_on_close": False,
    }


def _edit_input(field: FormField, language: str) -> Block:
    return {
        "type": "input",
        "block_id": f"{EDIT_BLOCK}{field.name}",
        "label": plain_text(clip(title_of(field.name), 100)),
        "optional": not field.required,
        "element": {"action_id": ANSWER_ACTION, **_edit_element(field, language)},
    }


def _edit_element(field: FormField, language: str) -> Element:
    match field.input:
        case Input.CHOICE | Input.YES_NO:
            options = {text: _option(field, text, language) for text in field.choices}
            chosen = {"initial_option": options[field.text]} if field.text in options else {}
            return {"type": "static_select", "options": list(options.values()), **chosen}
        case Input.DATE:
            return {"type": "datepicker", **({"initial_date": field.text} if field.text else {})}
        case Input.NUMBER:
            stands = {"initial_value": field.text} if field.text else {}
            return {"type": "number_input", "is_decimal_allowed": not field.whole, **stands}
        case Input.LINE | Input.TEXT:
            stands = {"initial_value": field.text} if field.text else {}
            multiline = field.input is Input.TEXT
            return {"type": "plain_text_input", "multiline": multiline, "max_length": INPUT_TEXT, **stands}
        case _ as never:
            assert_never(never)


def _option(field: FormField, text: str, language: str) -> Element:
    shown = (
        say(language, f"edit.{'yes' if field.choices[text] else 'no'}")
        if field.input is Input.YES_NO
        else text
    )
    return {"text": plain_text(clip(shown, OPTION_TEXT)), "value": text}
