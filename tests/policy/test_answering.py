"""Whether a person may answer a question: every list that binds, then and now.
Not here: single lists and accounts (test_people), the decision itself (tests/flow).
"""

from typing import Any

import pytest

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision, Surface
from bot.policy.answering import is_unconfirmed, may_answer, qualified_for, why_over
from bot.policy.people import Allowed, NotAllowed, Person
from store.decisions import Question
from tests.policy.samples import make_kind

GROUPS: dict[str, frozenset[str] | None] = {"S1": frozenset({"U1", "U2"}), "S2": frozenset({"U1"})}


def ask(**known: Any) -> Question:
    return Question.model_construct(None, **known)


def click(*, revision: int = 1, typed: str | None = None) -> Click:
    return Click(
        token="t",
        revision=revision,
        decision=Decision.APPROVE,
        team_id="T1",
        user_id="U1",
        surface=Surface.VIEW,
        typed=typed,
    )


def judge(then: dict[str, Any], now: dict[str, Any], **asked: Any) -> Allowed | NotAllowed:
    snapshot = {"reviewers": ["U1"], "separate_duties": True} | then
    question = ask(
        **({"allows": "approve", "requested_by": None, "editor": "model"} | asked), snapshot=snapshot
    )
    person = Person(
        team_id="T1",
        user_id="U1",
        enterprise_user_id=None,
        is_restricted=False,
        is_ultra_restricted=False,
        is_stranger=False,
        deleted=False,
        is_bot=False,
        known=True,
    )
    return may_answer(person, question, make_kind(reviewers=("U1",), **now), GROUPS, "T1")


# On a regulated kind the lists of then and of now bind, each alone; two without a common entry are not none.
@pytest.mark.parametrize(
    ("then", "now", "allowed"),
    [
        (["U1"], ["U1"], True),
        (["S1"], ["S2"], True),
        (["S1"], ["U1"], True),
        (["U2"], ["U3"], False),
        (["U1"], ["U3"], False),
        (["U3"], ["U1"], False),
        ([], ["U1"], False),
        (["U1"], [], False),
        ([], [], False),
        (None, ["U1"], True),
        (None, ["U3"], False),
        (["U1"], None, True),
        (["U3"], None, False),
        (None, None, True),
    ],
)
def test_qualified(then: list[str] | None, now: list[str] | None, allowed: bool) -> None:
    frozen = {"regulated": then is not None, "qualified": then or []}
    today = {"regulated": now is not None, "qualified": tuple(now or ())}
    assert isinstance(judge(frozen, today), Allowed) is allowed


# Every list that binds is asked of Slack.
def test_lists_to_ask() -> None:
    question = ask(snapshot={"regulated": True, "qualified": ["S1", "U1"]})
    assert qualified_for(question, make_kind(regulated=True, qualified=("S2",))) == ("S1", "S2", "U1")
    assert qualified_for(ask(snapshot={}), make_kind()) == ()


# Duties are separate for approving alone, and only where the draft's terms say so.
@pytest.mark.parametrize(
    ("asked", "separate", "allowed"),
    [
        ({"requested_by": "U1"}, True, False),
        ({"editor": "slack:T1:U1"}, True, False),
        ({"requested_by": "U1", "allows": "reject"}, True, True),
        ({"requested_by": "U1"}, False, True),
        ({"requested_by": "U2", "editor": "slack:T1:U2"}, True, True),
    ],
)
def test_separate_duties(asked: dict[str, Any], separate: bool, allowed: bool) -> None:
    assert isinstance(judge({"separate_duties": separate}, {}, **asked), Allowed) is allowed


# A question that is over while its draft waits: that it has other words, or is asked anew, is told apart.
@pytest.mark.parametrize(("newest", "why"), [(3, Why.NEWER_REVISION), (2, Why.ASKED_AGAIN)])
@pytest.mark.parametrize("before", [None, "approve"])
def test_over_and_waiting(newest: int, why: Why, before: str | None) -> None:
    question = ask(
        is_current=False, status="pending", revision=2, newest_revision=newest, over_decision=before
    )
    assert why_over(question, click(revision=2)) == NotDecided(why)


# The entity is typed as keyboards can: one line takes no line break, letters are composed either way, quotes
# are bent; what nobody sees is typed as it is shown, and not left out.
@pytest.mark.parametrize(
    ("entity", "typed", "unconfirmed"),
    [
        ("customer:42", "customer:42", False),
        (" customer:42\n", "customer:42", False),
        ("Zoë  &\tsons", "Zoe\u0308 & sons", False),
        ("O'Brien--Ltd", "O’Brien--Ltd", False),
        ("O’Brien-Ltd", "O'Brien–Ltd", False),
        ("customer:4\u200b2", "customer:4⟦U+200B⟧2", False),
        ("customer:4\u200b2", "customer:4[u+200b]2", False),
        ("customer:4[U+200B]2", "customer:4[U+200B]2", False),
        ("customer:4\u200b2", "customer:42", True),
        ("customer:42", "customer:42[U+FFFFFF]", True),
        ("customer:42", "Customer:42", True),
        ("customer:42", "customer:4", True),
        ("customer:42", "", True),
        ("customer:42", None, True),
    ],
)
def test_typed(entity: str, typed: str | None, unconfirmed: bool) -> None:
    question = ask(entity=entity, snapshot={"confirm": "typed"})
    assert is_unconfirmed(question, click(typed=typed)) is unconfirmed
