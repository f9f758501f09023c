"""Everything that Stet draws, with one text in every place that the outside, the model or a person fills.

What must hold of it is in `test_hostile`. Each drawing function of the code is a key here; a new one without
an entry fails that test, and a new field of a view is filled by itself.
"""

import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from string import Formatter
from typing import Any, Final

from bot.cards import answers, history, home, modals, notices, queue, reading, rehearsal, review, unknown
from bot.cards.blocks import header
from bot.cards.lives import Who
from bot.cards.notices import Alert, Notice, Said
from bot.cards.views import Channel, Field, Pending, ReviewView, Source, State
from bot.cards.words import TABLES
from bot.doors.verdicts import say_faults
from bot.flow import drawing
from bot.flow.alert import draw_alert
from bot.flow.edit import Fault, Unfit
from bot.policy.editing import make_form
from tests.cards.samples import (
    ALL_BUTTONS,
    CORRECTION,
    DECIDED,
    EARLIER,
    FIRST_REVISION,
    OPENED,
    PLAIN,
    REVIEW_STATES,
    UNKNOWN_STATES,
    value,
)
from tests.cards.test_home import HOMES, SHORT

# Fields that hold a word of ours: a language, a button's value, a key of the catalogue, a decision.
OURS: Final = {
    "language",
    "buttons",
    "button_value",
    "value",
    "Decided.decision",
    "MessageView.key",
    "ReviewView.confirm",
    "ReviewView.undo",
    "Said.key",
}
LONG: Final = 1_000  # A text longer than this is drawn in fewer states: only its length is tried then.
LONGEST_ENTITY: Final = 512  # Intake takes no longer one, nor a longer key (SPEC section 3).


@dataclass(frozen=True, slots=True)
class Drawn:
    """One thing as Slack would get it: blocks of a message, or a whole view; and the message's text."""

    content: Any
    text: str = ""
    warns: bool = False  # It is decided on here, so hidden characters must be warned of.

    @property
    def is_view(self) -> bool:
        return isinstance(self.content, dict)


def poisoned(view: Any, text: str) -> Any:
    """The same frozen value with the text in every field of every depth that holds text from elsewhere."""
    if isinstance(view, tuple):
        return tuple(poisoned(one, text) for one in view)
    if isinstance(view, str) and not isinstance(view, Enum):
        return text
    if not is_dataclass(view) or isinstance(view, type):
        return view
    hints = typing.get_type_hints(type(view))
    changed: dict[str, Any] = {}
    for each in fields(view):
        if each.name in OURS or f"{type(view).__name__}.{each.name}" in OURS or not each.init:
            continue
        stands = getattr(view, each.name)
        if stands is None and _takes_text(hints[each.name]):
            changed[each.name] = text
        elif stands == () and typing.get_args(hints[each.name])[:1] == (str,):
            changed[each.name] = (text,)
        else:
            changed[each.name] = poisoned(stands, text)
    return replace(view, **changed)


def _takes_text(hint: Any) -> bool:
    return isinstance(hint, types.UnionType) and str in typing.get_args(hint)


# One card with everything on it that a card may have.
FULL: Final = replace(
    PLAIN,
    warnings=("Check the amount.",) * 3,
    previous=FIRST_REVISION,
    replaces=CORRECTION,
    earlier=EARLIER,
    source=Source("https://crm.example/1", frozenset({"crm.example"}), "U0BOSS"),
    small=replace(PLAIN.small, edited_by=Who("slack:T0STET:U0ANNA"), repeats=2),
    buttons=ALL_BUTTONS,
    undo=REVIEW_STATES["several_sent"].undo,
)


def full(text: str, language: str, state: Any = None) -> ReviewView:
    """That card in one state, filled with the text, within what intake takes."""
    filled = poisoned(replace(FULL, state=state or Pending(), language=language), text)
    known = [text[:LONGEST_ENTITY] or "-", text[:LONGEST_ENTITY] or "-"]
    small = replace(filled.small, key=known[1])
    return typing.cast("ReviewView", replace(filled, kind=PLAIN.kind, entity=known[0], small=small))


def _manner(state: State) -> tuple[type, int, bool]:
    """What makes one state's card differ from another's in more than its words."""
    parts = getattr(state, "parts", ())
    undoable = any(part.undo for part in parts)
    return type(getattr(state, "life", state)), len(parts), undoable


def _reviews(text: str, language: str) -> Iterator[Drawn]:
    states = {_manner(each.state): each.state for each in REVIEW_STATES.values()}
    for state in states.values() if len(text) < LONG else [Pending(), REVIEW_STATES["rejected"].state]:
        view = full(text, language, state)
        yield Drawn(review.render(view), review.fallback(view), warns=True)


def _reading(text: str, language: str) -> Iterator[Drawn]:
    for in_line in (False, True):
        view = full(text, language)
        parts = reading.part_count(view)
        for part in sorted({1, (parts + 1) // 2, parts}):
            shown = reading.render(reading.ReadView(view, part, in_line=in_line))
            yield Drawn(shown, warns=part == parts)


def _unknowns(text: str, language: str) -> Iterator[Drawn]:
    for sample in UNKNOWN_STATES.values():
        view = poisoned(replace(sample, language=language), text)
        view = replace(view, entity=text[:LONGEST_ENTITY] or "-", kind=PLAIN.kind)
        yield Drawn(unknown.render(view), unknown.fallback(view), warns=True)


def _homes(text: str, language: str) -> Iterator[Drawn]:
    for sample in HOMES.values():
        waiting = tuple(full(text, language) for _ in sample.waiting)
        yield Drawn(home.render(replace(poisoned(replace(sample, language=language), text), waiting=waiting)))
    short = replace(poisoned(replace(SHORT, language=language), text), warnings=(), kind=PLAIN.kind)
    yield Drawn(home.render(home.HomeView((short,), 1, language=language)))


def _question(draw: Callable[[modals.QuestionView], Any]) -> Callable[[str, str], Iterator[Drawn]]:
    def drawn(text: str, language: str) -> Iterator[Drawn]:
        yield Drawn(draw(modals.QuestionView(value("b"), text[:LONGEST_ENTITY] or "-", language)), warns=True)

    return drawn


def _edits(text: str, language: str) -> Iterator[Drawn]:
    """Every input there is, under a name from elsewhere, with a text from elsewhere in it."""
    body = {"subject": text, "body": text, text or "-": text, "label": text, "number": 7, "day": "2026-03-02"}
    schema = {
        "properties": {
            "label": {"enum": [text, "other"]},
            "number": {"type": "integer"},
            "day": {"type": "string", "format": "date"},
        }
    }
    form = make_form(body, schema, tuple(body), fits=modals.can_edit)
    yield Drawn(modals.edit(modals.EditView(value("d"), form, language)), warns=True)


def _messages(text: str, language: str) -> Iterator[Drawn]:
    kept = (Field(text or "-", text), Field("text", text))
    yield Drawn(modals.message(modals.MessageView("modal.overtaken", kept, language)))


def _told(text: str, language: str) -> Iterator[Drawn]:
    kept = (Field(text or "-", text), Field("text", text))
    yield Drawn(modals.tell(next(sentences(text, language)), kept))


def sentences(text: str, language: str) -> Iterator[Notice]:
    """Every sentence of the catalogue that has places, with the text in each of them, twenty at a time."""
    said = [
        Said(key, {place: _part(place, text) for place in places})
        for key, sentence in TABLES[language].items()
        if (places := {place for _, place, _, _ in Formatter().parse(sentence) if place})
    ]
    for first in range(0, len(said), answers.MOST_LINES):
        yield Notice(tuple(said[first : first + answers.MOST_LINES]), language)


def _part(place: str, text: str) -> Any:
    if place in {"at", "since", "expires", "opened"}:
        return DECIDED
    if place == "who":
        return Who(text or "-", text)
    if place == "where":
        return Channel(text or "-")
    return "retries" if place == "mend" else text


def _answers(text: str, language: str) -> Iterator[Notice]:
    """Every answer to a command, as long as it gets."""
    who, many = Who(text, text), answers.MOST_LINES + 5
    closed = (answers.Closed(text, who, DECIDED, text),) * many
    switch = answers.SwitchView(enabled=False, all_row=False, closed=closed)
    waiting = [answers.Waiting(text, text, OPENED, end) for end in (None, DECIDED)] * many
    lost = [answers.Unknown(text, text, OPENED)] * many
    yield answers.help_text(admin=True, language=language)
    yield answers.unknown_word(text, answers.help_text(admin=True, language=language), switch=switch)
    yield answers.usage("scope_unknown", scope=text, known=text, language=language)
    yield answers.standing(switch, language=language)
    yield answers.status(switch, answers.Counts(1, 2, 3, 4), language=language)
    yield answers.queue(waiting, counts={text: 7, "other": 9}, language=language)
    for already in (False, True):
        killed = answers.killed(text, in_flight=[text] * many, already=already, reason="", language=language)
        yield from (killed, answers.shortened(killed, 1_000))
        yield answers.resumed(text, already=already, still_closed=[text] * many, language=language)
    yield answers.unknowns(lost, total=many + 1, language=language)
    yield answers.answer("rerun.final", key=text, state=text, language=language)
    told = history.History(
        key=text,
        state=text,
        received_at=OPENED,
        failure=text,
        repeats=3,
        made=history.Made(2, who, text, text),
        decided=history.Decided(text, who, DECIDED, text),
        effects=(
            history.Done(text, text, text),
            history.Done(text, text, undo_by=who, undoes=text),
            history.Done(text, text, waits_for=text),
        )
        * 3,
        lines=(history.Line(DECIDED, who, text),) * many,
    )
    yield history.shown(told, language=language)


def _notices(text: str, language: str) -> Iterator[Drawn]:
    for notice in (*sentences(text, language), *_answers(text, language)):
        yield Drawn(notices.render(notice), notices.fallback(notice))


def _alerts(text: str, language: str) -> Iterator[Drawn]:
    facts = ("key", "reason", "detail", "scope", "channel", "kind", "step", "who", "at", "since", "count")
    for name in (*Alert, text or "-"):
        drawn = draw_alert(name, dict.fromkeys(facts, text), language)
        yield Drawn(drawn[1], drawn[0])


def _queues(text: str, language: str) -> Iterator[Drawn]:
    for count in (0, 12_345):
        view = queue.QueueView(count, 3, language)
        yield Drawn(queue.render(view), queue.fallback(view))


def _rehearsals(text: str, language: str) -> Iterator[Drawn]:
    for stage in rehearsal.Stage:
        who = Who(text, text)
        said = rehearsal.fallback(stage, who=who, language=language)
        yield Drawn(rehearsal.render(stage, value="x", who=who, language=language), said)


def _plain_cards(text: str, language: str) -> Iterator[Drawn]:
    yield Drawn(drawing._plain(full(text, language)))


def _faults(text: str, language: str) -> Iterator[Drawn]:
    """What Slack shows at the fields of an edit, as plain text."""
    wrong = (Fault(text or None, text, text, text), Fault(text or None, "maximum", text), Fault(None, text))
    said = say_faults(Unfit(wrong, ("subject",)), language)
    yield Drawn([header("stet.fault", line) for line in said.values()][:1])


# Each function that draws, and what it draws of one text in one language.
SURFACES: Final[dict[str, Callable[[str, str], Iterator[Drawn]]]] = {
    "cards.review.render": _reviews,
    "cards.reading.render": _reading,
    "cards.unknown.render": _unknowns,
    "cards.home.render": _homes,
    "cards.queue.render": _queues,
    "cards.rehearsal.render": _rehearsals,
    "cards.modals.reject": _question(modals.reject),
    "cards.modals.redraft": _question(modals.redraft),
    "cards.modals.typed": _question(modals.typed),
    "cards.modals.edit": _edits,
    "cards.modals.message": _messages,
    "cards.modals.tell": _told,
    "cards.notices.render": _notices,
    "flow.alert.draw_alert": _alerts,
    "flow.drawing._plain": _plain_cards,
    "doors.verdicts.say_faults": _faults,
}
# Drawing functions whose blocks are part of one above.
PIECES: Final = {
    "cards.facts.below",
    "cards.facts.small_print",
    "cards.home.item_blocks",
    "flow.alert._as_it_is",
    "flow.open._form",
    "flow.open._window",
    "doors.verdicts._sentence",
}
# Makers of notices beside the sentences of the catalogue, each of which is drawn with its places filled.
NOTICES: Final = {
    "cards.answers.help_text",
    "cards.answers.unknown_word",
    "cards.answers.usage",
    "cards.answers.standing",
    "cards.answers.status",
    "cards.answers.queue",
    "cards.answers.killed",
    "cards.answers.resumed",
    "cards.answers.shortened",
    "cards.answers.unknowns",
    "cards.answers.answer",
    "cards.history.shown",
}
