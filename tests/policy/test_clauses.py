"""Durations and paths, the parts that many keys share.
Not here: the keys that use them (test_kinds).
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.policy.clauses import MISSING, is_number, read_path
from bot.policy.values import read_duration, write_duration

DAY = 86400


# A duration is a number and a unit.
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("90s", 90),
        ("10m", 600),
        ("48h", 48 * 3600),
        ("7d", 7 * DAY),
        ("007m", 420),
        ("3650d", 3650 * DAY),
    ],
)
def test_duration(text: str, seconds: int) -> None:
    assert read_duration(text) == seconds


# Everything else is refused, also what other tools would guess at, and what no interval could hold.
@pytest.mark.parametrize(
    "text",
    [
        "",
        "s",
        "5",
        "5 s",
        " 5s",
        "5s ",
        "5s\n",
        "-5s",
        "+5s",
        "1.5h",
        "1e3s",
        "5S",
        "5w",
        "5ms",
        "1h30m",
        "٣s",
        "3651d",
        "9" * 5000 + "s",
    ],
)
def test_wrong_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be a number and a unit|ten years"):
        read_duration(text)


# What is written is read back as the same time.
@given(st.integers(0, 3650 * DAY))
def test_duration_round_trip(seconds: int) -> None:
    assert read_duration(write_duration(seconds)) == seconds


# A path leads through objects and lists, and nowhere is told apart from null.
@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("payload.a", {"b": [10, {"c": None}]}),
        ("payload.a.b.0", 10),
        ("payload.a.b.1.c", None),
        ("payload.a.b.2", MISSING),
        ("payload.a.b.-1", MISSING),
        ("payload.a.b.0.x", MISSING),
        ("payload.a.b." + "9" * 30, MISSING),
        ("payload.a.b.٠", MISSING),
        ("payload.text.0", MISSING),
        ("payload.0", "zero"),
        ("output.a", MISSING),
        ("payload.__class__", MISSING),
    ],
)
def test_read_path(path: str, found: object) -> None:
    document = {"payload": {"a": {"b": [10, {"c": None}]}, "text": "xyz", "0": "zero"}}
    assert read_path(document, path) == found


# Only finite numbers are numbers.
@pytest.mark.parametrize("value", [True, False, None, "1", float("nan"), float("inf"), -float("inf"), [1]])
def test_no_number(value: object) -> None:
    assert not is_number(value)
