"""What every gate mode must do, whatever it decides.

Not here: what is particular to one (tests/gates).
"""

import inspect
import itertools
from typing import Any, get_args

import pytest

from bot.gates.gate import Ask, Draft, Judge, Verdict
from bot.policy.kinds import Kind
from bot.registry import find_gates

DRAFTS = [Draft(*flags) for flags in itertools.product((False, True), repeat=4)]
JUDGES = {name: module.judge for name, module in find_gates().items()}
# Validation is not what is tested: every field a gate may read, at a plain value.
FIELDS: dict[str, Any] = {"name": "customer_email", "regulated": False, "cancel_window_seconds": 600}
KIND = Kind.model_construct(**FIELDS)


@pytest.fixture(params=sorted(JUDGES))
def judge(request: pytest.FixtureRequest) -> Judge:
    return JUDGES[request.param]  # type: ignore[no-any-return]


# A gate answers one of the three, for every draft, and the same each time.
@pytest.mark.parametrize("draft", DRAFTS)
def test_answers_a_verdict(judge: Judge, draft: Draft) -> None:
    verdict = judge(draft, KIND)
    assert isinstance(verdict, get_args(Verdict))
    assert judge(draft, KIND) == verdict


# A gate does not wait.
def test_is_plain_arithmetic(judge: Judge) -> None:
    assert not inspect.iscoroutinefunction(judge)


# What a person has to see for a warning's sake is never sent at once.
@pytest.mark.parametrize("draft", [draft for draft in DRAFTS if draft.warned or draft.sampled])
def test_warning_is_not_sent_at_once(judge: Judge, draft: Draft) -> None:
    assert type(judge(draft, KIND)).__name__ != "SendNow"


# The mode that every kind can have is there, and always asks.
@pytest.mark.parametrize("draft", DRAFTS)
def test_approve_first_is_there(draft: Draft) -> None:
    assert JUDGES["approve_first"](draft, KIND) == Ask("approve_first")
