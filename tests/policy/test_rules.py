"""Deterministic checks at work: each operator, each level, and text that could not be sent.
Not here: how rules are read (test_kinds).
"""

from typing import Any

import pytest

from bot.policy.clauses import Rule
from bot.policy.rules import RuleVerdict, check_rules

NAN = float("nan")


def rule(level: str, op: str, value: Any = None) -> Rule:
    return Rule.model_validate(
        {"level": level, "path": "output.x", "op": op, "value": value, "message": "said"}
    )


def judge(checked: Rule, output: dict[str, Any]) -> RuleVerdict:
    return check_rules([checked], output=output, payload={})


HOLDS = [
    ("equals", "refund", "refund", True),
    ("equals", "refund", "Refund", False),
    ("equals", "refund", "refund ", False),
    ("equals", True, True, True),
    ("equals", True, 1, False),
    ("equals", True, "true", False),
    ("equals", 1, 1.0, True),
    ("equals", 1, True, False),
    ("equals", 1, "1", False),
    ("equals", "", None, False),
    ("in", ["a", 2], 2, True),
    ("in", ["a", 2], "2", False),
    ("in", ["a", True], 1, False),
    ("in", ["a"], ["a"], False),
    ("matches", "a+", "aaa", True),
    ("matches", "a+", "aab", False),
    ("matches", "a+", "baa", False),
    ("matches", "a+", "aa\n", False),
    ("matches", "1", 1, False),
    ("matches", "é.", "é中", True),
    ("matches", ".*[Rr]efund.*", "Dear Amy,\nWe refund you.\r\n\u2028Yours", True),
    ("matches", "[^\\n]*refund.*", "Dear Amy,\nWe refund you.", False),
    ("min", 0.5, 0.5, True),
    ("min", 0.5, 0.4, False),
    ("min", 0, True, False),
    ("min", 0, "5", False),
    ("min", 0, NAN, False),
    ("min", 0, float("inf"), False),
    ("max", 100, 100, True),
    ("max", 100, 100.5, False),
    ("max", 100, NAN, False),
    ("max", 100, -float("inf"), False),
    ("max", 100, None, False),
    ("present", None, "x", True),
    ("present", None, 0, True),
    ("present", None, False, True),
    ("present", None, [], True),
    ("present", None, None, False),
    ("present", None, "", False),
    ("present", None, " \n", False),
]


# A hard rule must hold, without any coercion; its message says what is broken.
@pytest.mark.parametrize(("op", "value", "given_value", "holds"), HOLDS)
def test_hard(op: str, value: object, given_value: object, holds: bool) -> None:
    verdict = judge(rule("hard", op, value), {"x": given_value})
    assert [finding.message for finding in verdict.broken] == ([] if holds else ["said"])
    assert verdict.warnings == ()


# An allow rule must hold as well, before anything leaves without a person.
@pytest.mark.parametrize(("op", "value", "given_value", "holds"), HOLDS)
def test_allow(op: str, value: object, given_value: object, holds: bool) -> None:
    verdict = judge(rule("allow", op, value), {"x": given_value})
    assert verdict == RuleVerdict((), (), allowed=holds)


# A warning fires when its rule holds; what its rule cannot judge is the matter of the next tests.
@pytest.mark.parametrize(
    ("op", "value", "given_value", "holds"),
    [row for row in HOLDS if (row[0] not in {"min", "max"} and row[:3] != ("matches", "1", 1)) or row[3]],
)
def test_warn(op: str, value: object, given_value: object, holds: bool) -> None:
    verdict = judge(rule("warn", op, value), {"x": given_value})
    assert [finding.message for finding in verdict.warnings] == (["said"] if holds else [])
    assert verdict.broken == ()


# A threshold that has nothing to measure warns: what is not a number was not shown to be harmless.
@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize(
    "given_value",
    [NAN, float("inf"), -float("inf"), None, "5", True, [], 7],
)
def test_warn_threshold(op: str, given_value: object) -> None:
    assert judge(rule("warn", op, 7), {"x": given_value}).warnings
    assert not judge(rule("warn", op, 7), {"x": 6 if op == "min" else 8}).warnings


# Nor was what a pattern cannot be held against, unless there is nothing.
@pytest.mark.parametrize(
    ("given_value", "warns"),
    [(1, True), (True, True), (["refund"], True), ({"a": "refund"}, True), (None, False), ("", False)],
)
def test_warn_pattern(given_value: object, warns: bool) -> None:
    assert bool(judge(rule("warn", "matches", ".*refund.*"), {"x": given_value}).warnings) is warns


# Where the value is missing, nothing passes: hard is broken, allow does not allow, a threshold warns.
@pytest.mark.parametrize(
    ("op", "value"),
    [("equals", "x"), ("in", ["x"]), ("matches", ".*"), ("min", 0), ("max", 9), ("present", None)],
)
def test_missing(op: str, value: object) -> None:
    assert judge(rule("hard", op, value), {}).broken
    assert not judge(rule("allow", op, value), {}).allowed
    assert bool(judge(rule("warn", op, value), {}).warnings) is (op in {"min", "max"})


# Without any allow rule nothing is allowed; with several, all must hold.
def test_all_allow_rules() -> None:
    yes, no = rule("allow", "present"), rule("allow", "equals", "other")
    assert not check_rules([], output={"x": 1}, payload={}).allowed
    assert check_rules([yes, yes], output={"x": 1}, payload={}).allowed
    assert not check_rules([yes, no], output={"x": 1}, payload={}).allowed


# Output and payload are two places; one cannot stand in for the other.
def test_places() -> None:
    assert judge(rule("hard", "present"), {}).broken
    assert check_rules([rule("hard", "present")], output={}, payload={"x": 1}).broken


# A pattern that would take exponential time elsewhere is answered at once.
def test_linear_time() -> None:
    assert judge(rule("hard", "matches", "(a+)+"), {"x": "a" * 100_000 + "b"}).broken
