"""Tests of the gate mode by_exception.

Not here: what every mode must do (tests/conformance) or the evidence (tests/flow/test_by_exception).
"""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from bot.gates.by_exception import judge
from bot.gates.gate import Ask, Draft, SendNow
from bot.policy.earned import Evidence
from bot.policy.kinds import Kind

KIND: dict[str, Any] = {"name": "customer_email"}
GOOD = Draft(allowed=True, earned=True, evidence=Evidence(50, 50))


# All of it together, and only then: every rule held, nothing warned, it was earned, it was not drawn.
def test_sends_only_then() -> None:
    kind = Kind.model_construct(**KIND)
    sent = [
        flags
        for flags in itertools.product((False, True), repeat=5)
        if isinstance(judge(Draft(*flags), kind), SendNow)  # type: ignore[arg-type]
    ]
    assert sent == [(False, True, True, False, False)]
    assert judge(GOOD, kind) == SendNow("earned 50/50")


# What spoke against it is told, the weightiest first.
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"warned": True, "allowed": False}, "warned"),
        ({"corrects": True}, "correction"),
        ({"allowed": False, "earned": False}, "not_allowed"),
        ({"earned": False, "sampled": True}, "not_earned"),
        ({"sampled": True}, "sampled"),
    ],
)
def test_says_why_it_asks(change: dict[str, Any], why: str) -> None:
    assert judge(replace(GOOD, **change), Kind.model_construct(**KIND)) == Ask(why)
