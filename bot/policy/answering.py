"""Whether one click may answer one question: it is open, the surface is its own, the person is allowed.
Not here: where the facts about people come from (bot/slack/people) or the vote itself (bot/flow/decide).
"""

import re
import sys
import unicodedata
from typing import Final

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision
from bot.policy.kinds import Kind
from bot.policy.people import (
    Allowed,
    Groups,
    NotAllowed,
    Person,
    check_qualified,
    check_separation,
    may_review,
)
from store.decisions import Question

_STRAIGHT: Final = str.maketrans(
    dict.fromkeys("‘’‚‛′", "'") | dict.fromkeys("“”„‟″", '"') | dict.fromkeys("‐‑‒–—―−", "-")
)
# What nobody sees is shown as ⟦U+200B⟧ (bot/cards/text), and typed the same way; phones have other brackets.
_MARKER: Final = re.compile(r"[⟦\[(]U\+([0-9A-Fa-f]{4,6})[⟧\])]", re.IGNORECASE)


def why_over(question: Question, click: Click) -> NotDecided | None:
    """Say why a question can not be answered by this click any more; None if it can.

    The order is what a person wants to know first: what was decided before what the button was bound to.
    """
    if question.is_current:
        return _why_not_now(question, click)
    if question.over_decision is not None and question.status != "pending":
        word = {"approve": Why.APPROVED, "reject": Why.REJECTED, "cancel": Why.CANCELLED}
        return NotDecided(word.get(question.over_decision, Why.SETTLED), question.over_by, question.over_at)
    if question.status == "expired":
        return NotDecided(Why.EXPIRED, at=question.expires_at)
    if question.status == "pending":
        # The same words may be asked about anew: a withdrawn approval, a newer event that came to nothing.
        same = question.revision == question.newest_revision
        return NotDecided(Why.ASKED_AGAIN if same else Why.NEWER_REVISION)
    return NotDecided(Why.SETTLED)


def _why_not_now(question: Question, click: Click) -> NotDecided | None:
    if question.is_expired:
        return NotDecided(Why.EXPIRED, at=question.expires_at)
    if question.revision != click.revision or question.revision != question.newest_revision:
        return NotDecided(Why.NEWER_REVISION)
    if question.is_blocked:
        return NotDecided(Why.BLOCKED)
    if question.is_redrafting:
        return NotDecided(Why.REDRAFTING)
    if question.allows != click.decision or not from_its_surface(question, click):
        return NotDecided(Why.WRONG_SURFACE)
    return None


def is_unconfirmed(question: Question, click: Click) -> bool:
    """Say whether an approval lacks the entity that its kind wants typed, exactly as far as keyboards can."""
    asked = click.decision is Decision.APPROVE and question.snapshot.get("confirm") == "typed"
    typed = click.typed or ""
    wanted = _typeable(question.entity)
    return asked and wanted not in (_typeable(typed), _typeable(_MARKER.sub(_marked, typed)))


def _typeable(text: str) -> str:
    """Leave out what keyboards change by themselves.

    A field of one line takes no line break, nor space at its ends; letters are composed either way; phones
    bend quotes and join dashes.
    """
    return " ".join(unicodedata.normalize("NFC", text).translate(_STRAIGHT).split())


def _marked(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return chr(code) if code <= sys.maxunicode else found[0]


def from_its_surface(question: Question, click: Click) -> bool:
    """Say whether a click comes from where its token was shown, and from whom it was shown to."""
    if question.surface != click.surface:
        return False
    if question.holder is not None:
        return question.holder == f"slack:{click.team_id}:{click.user_id}"
    # Until a post's answer is recorded the card has no ts: then its channel decides.
    return question.card_channel == click.channel and question.card_ts in (None, click.ts)


def may_answer(
    person: Person, question: Question, kind: Kind, groups: Groups, home_team: str
) -> Allowed | NotAllowed:
    """Tell whether a person may answer: reviewer then and now, qualified if regulated, duties apart."""
    allowed = may_review(
        person,
        home_team=home_team,
        reviewers_then=question.snapshot["reviewers"],
        reviewers_now=kind.reviewers,
        groups=groups,
    )
    if isinstance(allowed, NotAllowed):
        return allowed
    for qualified in _qualified_lists(question, kind):
        counted = check_qualified(person, qualified, groups=groups)
        if isinstance(counted, NotAllowed):
            return counted
    if question.allows == Decision.APPROVE and question.snapshot["separate_duties"]:
        barred = check_separation(person, requested_by=question.requested_by, editors=[question.editor])
        if barred is not None:
            return barred
    return allowed


def may_cancel(person: Person, kind: Kind, groups: Groups, home_team: str) -> Allowed | NotAllowed:
    """Tell whether a person may stop what was approved: any of today's reviewers, whoever approved it."""
    return may_review(
        person,
        home_team=home_team,
        reviewers_then=kind.reviewers,
        reviewers_now=kind.reviewers,
        groups=groups,
    )


def may_undo(person: Person, kind: Kind, groups: Groups, home_team: str) -> Allowed | NotAllowed:
    """Tell whether a person may take back what was delivered: whoever may decide on the kind today, alone."""
    allowed = may_cancel(person, kind, groups, home_team)
    if isinstance(allowed, NotAllowed) or not kind.regulated:
        return allowed
    return check_qualified(person, kind.qualified, groups=groups)


def qualified_for(question: Question, kind: Kind) -> tuple[str, ...]:
    """Name every entry that must be known to judge a regulated kind; empty where it is not regulated."""
    return tuple(sorted({entry for qualified in _qualified_lists(question, kind) for entry in qualified}))


def _qualified_lists(question: Question, kind: Kind) -> list[tuple[str, ...]]:
    # Then and now bind alike, each alone: two lists without a common entry must not look like no list at all.
    lists = []
    if question.snapshot.get("regulated"):
        lists.append(tuple(question.snapshot.get("qualified") or ()))
    if kind.regulated:
        lists.append(kind.qualified)
    return lists
