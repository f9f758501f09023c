"""What limits a policy may set, how they read, and which of what waits fits.

Not here: holding to them (tests/flow/test_limits, tests/race/test_limits).
"""

from dataclasses import replace
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from bot.policy.caps import Candidate, Left, Limits, choose
from bot.policy.effective import describe
from bot.policy.kinds import load_policy
from bot.policy.snapshot import Snapshot
from tests.policy.samples import faulty_keys, make_kind, policy_text

KIND = "customer_email"


def limited(lines: str) -> str:
    return policy_text(tail=f"[kinds.customer_email.limits]\n{lines}")


# Left out, nothing is limited but a target that fails fifty times in a row.
def test_defaults() -> None:
    found = make_kind().limits
    assert found == Limits()
    assert [getattr(found, name) for name in ("concurrency", "per_second", "cap_day", "value_cap")] == [
        None
    ] * 4
    assert found.breaker_after == 50


# A wrong limit is refused with its key; unknown keys are refused; what belongs together must be together.
@pytest.mark.parametrize(
    ("lines", "key"),
    [
        ("concurrency = 0", "limits.concurrency"),
        ("per_second = 1.5", "limits.per_second"),
        ('per_minute = "9"', "limits.per_minute"),
        ("cap_hour = -1", "limits.cap_hour"),
        ("cap_day = true", "limits.cap_day"),
        ("cap_week = 5", "limits.cap_week"),
        ('value = "payload.amount"\ncap_value_day = 5', "limits.value"),
        ('value = "output.amount"\ncap_value_day = 5', "limits.value"),
        ('value = "output.label"', "limits.value"),
        ("cap_value_day = 5", "limits.value"),
        ('value = "output.label"\ncap_value_day = nan', "limits.cap_value_day"),
        ('value = "output.label"\ncap_value_day = inf', "limits.cap_value_day"),
        ('value = "output.label"\ncap_value_day = 0', "limits.cap_value_day"),
        ("breaker_after = -1", "limits.breaker_after"),
        ("breaker_rest = 30", "limits.breaker_rest"),
        ('breaker_rest = "1h"\nbreaker_rest_most = "1m"', "limits.breaker_rest_most"),
    ],
)
def test_refused(lines: str, key: str) -> None:
    assert faulty_keys(limited(lines)) == {key}


# The effective policy says what holds, the defaults included.
def test_described() -> None:
    text = limited(
        'concurrency = 2\nper_second = 5\ncap_day = 9\nvalue = "output.label"\ncap_value_day = 0.1'
    )
    said = describe(load_policy(text).kinds[KIND])
    for part in (
        "2 at once, 5 a second",
        "9 a day (UTC), output.label of 0.1 in all",
        "after 50 failures in a row",
    ):
        assert part in said
    plain = describe(make_kind())
    assert "no limit of its own, no rate" in plain


# Nothing of the limits freezes onto a draft: neither its content nor an old snapshot can bring others.
def test_limits_are_todays() -> None:
    kind = load_policy(limited("cap_day = 9")).kinds[KIND]
    assert kind.snapshot() == make_kind().snapshot()
    assert "limits" not in Snapshot.model_fields


def candidate(value: str | None = None, **more: bool) -> Candidate:
    effect_id = uuid4()
    return Candidate(effect_id, str(effect_id), KIND, 1, None if value is None else Decimal(value), **more)


def chosen(some: list[Candidate], left: Left, slots: int = 99) -> list[UUID]:
    return [one.effect_id for one in choose(some, {KIND: left}, {1: slots}).chosen]


# In order what fits is taken; who holds a share goes first and takes none.
def test_choice() -> None:
    some = [candidate("6"), candidate("5"), candidate("4"), candidate("9", holds_hour=True, holds_day=True)]
    left = Left(hour=9, day=2, value=Decimal(10), value_most=Decimal(10))
    assert chosen(some, left) == [some[3].effect_id, some[0].effect_id, some[2].effect_id]
    assert left == Left(hour=9, day=2, value=Decimal(10), value_most=Decimal(10))


# A draft's value counts once: for its first effect here, and for none if one of them left before.
def test_value_of_a_draft() -> None:
    first = candidate("6")
    some = [first, replace(candidate("6"), idempotency_key=first.idempotency_key), candidate("5")]
    some += [candidate("7", is_counted=True), candidate("4")]
    left = Left(value=Decimal(10), value_most=Decimal(10))
    assert chosen(some, left) == [some[n].effect_id for n in (0, 1, 3, 4)]


# What is full is named by the cap that frees last; what no place is left for is no cap's fault.
def test_what_is_full() -> None:
    made = choose([candidate(), candidate()], {KIND: Left(hour=1, day=0)}, {1: 9})
    assert (made.chosen, made.full) == ([], {KIND: "cap_day"})
    made = choose([candidate(), candidate()], {KIND: Left(hour=1)}, {1: 9})
    assert (len(made.chosen), made.full, made.cut) == (1, {KIND: "cap_hour"}, set())
    made = choose([candidate(), candidate()], {KIND: Left()}, {1: 1})
    assert (len(made.chosen), made.full, made.cut) == (1, {}, {1})


# No value that is not a finite number of at least nothing passes a value cap.
@pytest.mark.parametrize("value", [None, "NaN", "Infinity", "-Infinity", "-0.01"])
def test_unreadable(value: str | None) -> None:
    one = candidate(value)
    made = choose([one], {KIND: Left(value=Decimal(5), value_most=Decimal(5))}, {1: 9})
    assert (made.chosen, made.held) == ([], {one.effect_id: "value_unreadable"})
