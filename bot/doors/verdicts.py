"""Puts into words what became of a click: the answer of `decide` as a notice.

Not here: deciding (bot/flow/decide), the sentences (bot/cards), or where they are said (whispers, windows).
"""

from typing import Final

from bot.cards.blocks import clip
from bot.cards.draft import title_of
from bot.cards.lives import Who
from bot.cards.modals import EDIT_BLOCK
from bot.cards.notices import Done, Notice, Part, Refusal, done, refused
from bot.cards.words import say
from bot.contracts.answer import NotDecided, Why
from bot.contracts.click import Decision
from bot.flow.decide import Decided
from bot.flow.edit import Fault, Unfit

# Steps that a decision makes work for: effects leave, and first; the card says so, the next card gets the
# place, whoever waits upstream hears.
WOKEN: Final = ("dispatch", "show", "places", "resume")
REDRAFT_WOKEN: Final = ("show", "redraft")
# What was typed lost its object: something newer took the place of what the person had before them.
OVERTAKEN: Final = frozenset(
    {
        Why.NEWER_REVISION,
        Why.ASKED_AGAIN,
        Why.EXPIRED,
        Why.APPROVED,
        Why.REJECTED,
        Why.CANCELLED,
        Why.SUPERSEDED,
        Why.SETTLED,
        Why.BLOCKED,
        Why.REDRAFTING,
    }
)
FAULT_TEXT: Final = 300  # Of a rule's own sentence, under a field of a modal.
FAULT_NAME: Final = 80
# Keywords of JSON Schema, and our own words, by what a person is told.
_FAULTS: Final = {
    "required": "required",
    "value": "value",
    "enum": "value",
    "const": "value",
    "number": "number",
    "type": "form",
    "whole_number": "whole_number",
    "minLength": "longer",
    "maxLength": "shorter",
    "minimum": "larger",
    "maximum": "smaller",
    "pattern": "form",
    "format": "form",
    "one_line": "one_line",
    "unsendable": "unsendable",
}
_DONE: Final = {Decision.APPROVE: Done.APPROVED, Decision.REJECT: Done.REJECTED}


def say_decided(decided: Decided, language: str) -> Notice:
    """Say that it counts, and how many more are needed."""
    if decided.voted.reached:
        return done(_DONE[decided.decision], language=language)
    return done(Done.VOTED, language=language, count=decided.voted.votes, quorum=decided.voted.quorum)


def say_refused(answer: NotDecided, language: str) -> Notice:
    """Say why nothing was decided, and who decided instead."""
    parts: dict[str, Part] = {}
    if answer.by is not None:
        parts["who"] = Who(answer.by)
    if answer.at is not None:
        parts["at"] = answer.at
    if answer.counts is not None:
        parts["count"], parts["quorum"] = answer.counts
    word = Refusal(answer.why)
    if not _is_whole(word, parts):
        word = Refusal.SETTLED
    return refused(word, language=language, **parts)


def _is_whole(word: Refusal, parts: dict[str, Part]) -> bool:
    """Whether every place of the sentence can be filled."""
    needed = {
        Refusal.EXPIRED: {"at"},
        Refusal.APPROVED: {"who", "at"},
        Refusal.REJECTED: {"who", "at"},
        Refusal.CANCELLED: {"who", "at"},
        Refusal.UNDONE: {"who", "at"},
        Refusal.ALREADY_VOTED: {"count", "quorum"},
    }
    return needed.get(word, set()) <= parts.keys()


def say_faults(unfit: Unfit, language: str) -> dict[str, str]:
    """Say what is wrong with an edit, a sentence a field, by the field's block; Slack shows it there.

    What is wrong elsewhere in the draft stands at the first field: Slack takes no other place.
    """
    said: dict[str, str] = {}
    for fault in unfit.faults:
        sentence = _sentence(fault, language)
        if fault.field in unfit.fields:
            said.setdefault(f"{EDIT_BLOCK}{fault.field}", sentence)
        else:
            where = clip(title_of(fault.field) if fault.field else "-", FAULT_NAME)
            elsewhere = say(language, "fault.elsewhere", name=where, what=sentence)
            said.setdefault(f"{EDIT_BLOCK}{unfit.fields[0]}", elsewhere)
    return said


def _sentence(fault: Fault, language: str) -> str:
    if fault.message is not None:
        return clip(fault.message, FAULT_TEXT)
    word = _FAULTS.get(fault.word, "other")
    if word == "longer" and fault.bound == 1:
        word = "required"
    return say(language, f"fault.{word}", bound=str(fault.bound))
