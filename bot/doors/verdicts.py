"""Puts into words what became of a click: the answer of `decide` as a notice.

Not here: deciding (bot/flow/decide), the sentences (bot/cards), or where they are said (whispers, windows).
"""

from typing import Final

from bot.cards.notices import Done, Notice, Part, Refusal, done, refused
from bot.cards.views import Who
from bot.contracts.answer import NotDecided, Why
from bot.contracts.click import Decision
from bot.flow.decide import Decided

# Steps that a decision makes work for: the card says so, effects leave, the next card gets the place, whoever
# waits upstream hears.
WOKEN: Final = ("show", "dispatch", "places", "resume")
# What was typed lost its object: something newer took the place of what the person had before them.
OVERTAKEN: Final = frozenset(
    {
        Why.NEWER_REVISION,
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
        Refusal.ALREADY_VOTED: {"count", "quorum"},
    }
    return needed.get(word, set()) <= parts.keys()
