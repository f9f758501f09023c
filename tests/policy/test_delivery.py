"""What follows from an answer to a send, row by row.

Not here: writing it down (tests/flow/test_dispatch).
"""

from dataclasses import replace

import pytest

from bot.contracts.outcome import NotSent, Refused, SendOutcome, Sent, Unknown
from bot.policy.delivery import Try, backoff_seconds, follow, look_up_wait_seconds
from bot.policy.limits import EFFECT_BACKOFF_SECONDS

FIRST = Try(number=1, bound=3, settle_seconds=60)
LAST = replace(FIRST, number=3)
ONCE_UNSURE = {"is_ambiguous": True}
REPEATS = {"may_repeat": True}
OVERTAKEN = {"is_overtaken": True}


# Each answer leads to one state, by the try it came on and by what earlier tries may have done.
@pytest.mark.parametrize(
    ("outcome", "tried", "state", "is_ambiguous"),
    [
        (Sent("x"), LAST, "completed", False),
        (Sent(None), replace(FIRST, **ONCE_UNSURE, **OVERTAKEN), "completed", False),
        (NotSent("dns_failed"), FIRST, "pending", False),
        (NotSent("dns_failed"), LAST, "failed", False),
        (NotSent("dns_failed"), replace(LAST, **ONCE_UNSURE), "unknown", True),
        (NotSent("dns_failed"), replace(FIRST, **OVERTAKEN), "pending", False),
        (NotSent("dns_failed"), replace(FIRST, **ONCE_UNSURE, **OVERTAKEN), "unknown", True),
        (Refused("http_400"), FIRST, "failed", False),
        (Refused("http_400"), replace(FIRST, **ONCE_UNSURE), "unknown", True),
        (Unknown("timeout"), FIRST, "unknown", True),
        (Unknown("timeout"), replace(FIRST, **REPEATS), "pending", True),
        (Unknown("timeout"), replace(LAST, **REPEATS), "unknown", True),
        (Unknown("timeout"), replace(FIRST, **REPEATS, **OVERTAKEN), "unknown", True),
    ],
)
def test_follow(outcome: SendOutcome, tried: Try, state: str, *, is_ambiguous: bool) -> None:
    result = follow(outcome, tried)
    assert (result.state, result.is_ambiguous) == (state, is_ambiguous)


# Waits grow and end at the longest one; what the provider asks for counts between a second and an hour.
@pytest.mark.parametrize(
    ("number", "retry_after", "wait"),
    [
        (1, None, EFFECT_BACKOFF_SECONDS[0]),
        (2, None, EFFECT_BACKOFF_SECONDS[1]),
        (20, None, EFFECT_BACKOFF_SECONDS[-1]),
        (1, 0.0, 1),
        (1, -5.0, 1),
        (1, 45.0, 45),
        (1, 99_999.0, 3600),
    ],
)
def test_backoff(number: int, retry_after: float | None, wait: float) -> None:
    assert backoff_seconds(number, retry_after) == wait


# Look-ups come more and more seldom, and never stop.
def test_look_up_waits() -> None:
    waits = [look_up_wait_seconds(times) for times in range(20)]
    assert waits == sorted(waits)
    assert waits[0] < waits[4] == waits[19]


# A provider's id that no column takes is made storable: it must not spoil the batch it is written in.
@pytest.mark.parametrize(
    ("given", "kept"), [("a\x00b", "ab"), ("a\ud800b", "a?b"), ("x" * 999, "x" * 255), ("<id@x>", "<id@x>")]
)
def test_provider_id(given: str, kept: str) -> None:
    assert follow(Sent(given), FIRST).provider_id == kept
