"""Tests of the gate mode approve_first.

Not here: what every mode must do (tests/conformance).
"""

import itertools
from typing import Any

import pytest

from bot.gates.approve_first import judge
from bot.gates.gate import Ask, Draft
from bot.policy.kinds import Kind

KIND: dict[str, Any] = {"name": "customer_email"}


# A person is asked whatever the draft has going for it.
@pytest.mark.parametrize("flags", list(itertools.product((False, True), repeat=5)))
def test_always_asks(flags: tuple[bool, bool, bool, bool, bool]) -> None:
    assert judge(Draft(*flags), Kind.model_construct(**KIND)) == Ask("approve_first")
