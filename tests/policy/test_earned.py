"""Agreement bounded from below: Wilson's interval, the threshold, the sample.
Not here: which decisions are counted (tests/flow/test_by_exception).
"""

import math
from uuid import UUID

import pytest

from bot.policy.clauses import Earned
from bot.policy.earned import Evidence, Z, has_earned, is_sampled, lower_bound
from store.ids import new_id


# The bound is what Wilson defines: the share that lies Z of its own standard errors below the measured one.
@pytest.mark.parametrize(
    ("agreed", "decisions"), [(50, 50), (49, 50), (45, 50), (5, 10), (1, 1), (1, 3), (999, 1000)]
)
def test_lower_bound(agreed: int, decisions: int) -> None:
    bound, share = lower_bound(agreed, decisions), agreed / decisions
    assert bound < share
    assert share - bound == pytest.approx(Z * math.sqrt(bound * (1 - bound) / decisions))


# The two figures that the defaults were chosen by.
def test_the_default_terms() -> None:
    assert [round(lower_bound(agreed, 50), 3) for agreed in (50, 49)] == [0.929, 0.895]


# The bound is no more than the share itself, grows with agreement, and grows with how much was seen.
def test_bound_is_careful() -> None:
    for decisions in (1, 2, 10, 50, 1000):
        bounds = [lower_bound(agreed, decisions) for agreed in range(decisions + 1)]
        assert bounds == sorted(bounds)
        assert all(0 <= bound <= agreed / decisions + 1e-12 for agreed, bound in enumerate(bounds))
    assert lower_bound(9, 10) < lower_bound(90, 100) < lower_bound(900, 1000)


# Nothing measured, or what cannot be, proves nothing.
@pytest.mark.parametrize(("agreed", "decisions"), [(0, 0), (5, 0), (-1, 10), (11, 10), (0, -3)])
def test_nothing_proves_nothing(agreed: int, decisions: int) -> None:
    assert lower_bound(agreed, decisions) == 0.0


# The defaults: fifty of fifty have earned it, one edit has not; fewer decisions than asked for never have.
@pytest.mark.parametrize(
    ("evidence", "earned"),
    [
        (Evidence(50, 50), True),
        (Evidence(50, 49), False),
        (Evidence(49, 49), False),
        (Evidence(), False),
        (Evidence(500, 500), True),
    ],
)
def test_has_earned(evidence: Evidence, *, earned: bool) -> None:
    assert has_earned(evidence, Earned()) is earned


# Above the threshold is above it: equal is not, and a threshold that is no number is passed by nothing.
@pytest.mark.parametrize("threshold", [lower_bound(50, 50), math.nan, 1.0, math.inf])
def test_threshold_is_passed_from_above(threshold: float) -> None:
    terms = Earned.model_construct(decisions=50, threshold=threshold, sample=0.0)
    assert not has_earned(Evidence(50, 50), terms)


# The figures survive being written as a reason; any other reason gives none.
def test_word_is_read_back() -> None:
    assert Evidence.read(Evidence(50, 48).word) == Evidence(50, 48)
    for other in (None, "", "earned", "earned 1/x", "earned 50/50 or so", "Too rude"):
        assert Evidence.read(other) is None


# The sample is about its share, the same at every retry, and all or nothing at the ends.
def test_sample() -> None:
    runs = [new_id() for _ in range(4000)]
    drawn = [run for run in runs if is_sampled(run, 0.1)]
    assert 280 < len(drawn) < 520
    assert drawn == [run for run in runs if is_sampled(run, 0.1)]
    assert all(is_sampled(run, 1.0) for run in runs)
    assert not any(is_sampled(run, 0.0) for run in runs)
    assert is_sampled(UUID(int=1), math.nan)
