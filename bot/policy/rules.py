"""Deterministic checks on a draft: a kind's rules.

Not here: the JSON Schema check (bot/drafting/check), what cannot be sent (sendable), and what follows from a
finding (bot/gates, bot/flow).

What a level means: a `hard` rule must hold, or the draft is as wrong as one that breaks the schema; a `warn`
rule fires when it holds, and its message is shown; an `allow` rule must hold before anything leaves without a
person. NaN, missing values and values of another type never pass: hard and allow do not hold, and a warning
on `min` or `max` fires.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.policy.clauses import MISSING, Rule, compile_pattern, is_number, read_path


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that spoke: where, and the policy's own words about it."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """What all rules make of a draft. `allowed` needs at least one `allow` rule, and all of them to hold."""

    broken: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    allowed: bool


def check_rules(
    rules: Iterable[Rule], *, output: Mapping[str, Any], payload: Mapping[str, Any]
) -> RuleVerdict:
    """Run every rule over a draft's output and its event's payload."""
    document = {"output": output, "payload": payload}
    broken, warnings, allows = [], [], []
    for rule in rules:
        value = read_path(document, rule.path)
        match rule.level:
            case "hard" if not _holds(rule, value):
                broken.append(Finding(rule.path, rule.message))
            case "warn" if _warns(rule, value):
                warnings.append(Finding(rule.path, rule.message))
            case "allow":
                allows.append(_holds(rule, value))
    return RuleVerdict(tuple(broken), tuple(warnings), bool(allows) and all(allows))


def _warns(rule: Rule, value: object) -> bool:
    """Tell whether a warning fires; what its rule cannot judge goes to a person."""
    match rule.op:
        case "min" | "max":
            unfit = not is_number(value)
        case "matches":
            unfit = value is not MISSING and value is not None and not isinstance(value, str)
        case _:
            unfit = False
    return unfit or _holds(rule, value)


def _holds(rule: Rule, value: object) -> bool:
    if value is MISSING:
        return False
    match rule.op:
        case "equals":
            return _same(value, rule.value)
        case "in":
            return any(_same(value, one) for one in rule.value)
        case "matches":
            return isinstance(value, str) and compile_pattern(rule.value).fullmatch(value) is not None
        case "min":
            return is_number(value) and bool(value >= rule.value)
        case "max":
            return is_number(value) and bool(value <= rule.value)
        case "present":
            return value is not None and not (isinstance(value, str) and not value.strip())


def _same(left: object, right: object) -> bool:
    """Compare as JSON does: 1 is 1.0, but neither is true nor "1"."""
    if is_number(left) and is_number(right):
        return left == right
    return type(left) is type(right) and left == right
