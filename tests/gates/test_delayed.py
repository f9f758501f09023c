"""Tests of the gate mode delayed.

Not here: what every mode must do (tests/conformance) or what the window does (tests/flow/test_delayed).
"""

from typing import Any

import pytest

from bot.gates.delayed import judge
from bot.gates.gate import Ask, Draft, SendAfter, Verdict
from bot.policy.kinds import Kind

KIND: dict[str, Any] = {"name": "customer_email", "cancel_window_seconds": 90}


# It goes out after the window, whatever was earned; what a person must see waits for one.
@pytest.mark.parametrize(
    ("draft", "verdict"),
    [
        (Draft(), SendAfter(90)),
        (Draft(allowed=True, earned=True, sampled=True), SendAfter(90)),
        (Draft(warned=True), Ask("warned")),
        (Draft(corrects=True), Ask("correction")),
        (Draft(warned=True, corrects=True), Ask("warned")),
    ],
)
def test_delayed(draft: Draft, verdict: Verdict) -> None:
    assert judge(draft, Kind.model_construct(**KIND)) == verdict


# Without a window of its own a kind has ten minutes.
def test_default_window() -> None:
    kind: dict[str, Any] = {"name": "customer_email", "cancel_window_seconds": None}
    assert judge(Draft(), Kind.model_construct(**kind)) == SendAfter(600)
