"""What every gate mode must do, whatever it decides.

Not here: what is particular to one (tests/gates).
"""

import importlib
import inspect
import itertools
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from bot import gates
from bot.gates.gate import Ask, Draft, Judge, SendNow, Verdict
from bot.policy.kinds import AVAILABLE_GATES, GATES, Kind, load_policy
from bot.registry import find_gate_modes, find_gates
from tests.policy.samples import policy_text, problems

DRAFTS = [Draft(*flags) for flags in itertools.product((False, True), repeat=5)]  # type: ignore[arg-type]
JUDGES = {name: module.judge for name, module in find_gates().items()}
# Validation is not what is tested: every field a gate may read, at a plain value.
FIELDS: dict[str, Any] = {"name": "customer_email", "regulated": False, "cancel_window_seconds": 600}
KIND = Kind.model_construct(**FIELDS)
SAMPLE = '''"""The gate mode `never`: a sample."""

from bot.gates.gate import Ask, Draft, Verdict
from bot.policy.kinds import Kind

MODE = "never"


def judge(draft: Draft, kind: Kind) -> Verdict:
    """Ask."""
    return Ask(kind.name)
'''


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


# What a person has to see, for a warning's sake or since whoever asked may not agree alone, is always asked.
@pytest.mark.parametrize("draft", [draft for draft in DRAFTS if draft.warned or draft.corrects])
def test_warning_is_asked(judge: Judge, draft: Draft) -> None:
    assert isinstance(judge(draft, KIND), Ask)


# What was drawn to be seen, is not allowed by the rules or was not earned is never sent at once.
@pytest.mark.parametrize(
    "draft", [draft for draft in DRAFTS if draft.sampled or not draft.allowed or not draft.earned]
)
def test_nothing_is_sent_at_once_unearned(judge: Judge, draft: Draft) -> None:
    assert not isinstance(judge(draft, KIND), SendNow)


# One new file in the room is one new mode: found by its name, judged by, and a policy may name it.
def test_one_new_file_is_one_new_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "never.py").write_text(SAMPLE, "utf-8")
    monkeypatch.setattr(gates, "__path__", [*gates.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    try:
        assert find_gate_modes() == {*JUDGES, "never"}
        assert find_gates()["never"].judge(Draft(), KIND) == Ask("customer_email")
        text = policy_text(gate='"never"')
        assert load_policy(text, gates=find_gate_modes()).kinds["customer_email"].gate == "never"
        assert problems(text) == [
            "kinds.customer_email.gate must be one of approve_first, by_exception, delayed"
        ]
    finally:
        sys.modules.pop("bot.gates.never", None)


# The modes that the policy takes by itself are those that are there.
def test_modes_are_those_of_the_contract() -> None:
    assert find_gate_modes() == GATES == AVAILABLE_GATES


# The mode that every kind can have is there, and always asks.
@pytest.mark.parametrize("draft", DRAFTS)
def test_approve_first_is_there(draft: Draft) -> None:
    assert JUDGES["approve_first"](draft, KIND) == Ask("approve_first")
