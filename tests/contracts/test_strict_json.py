"""Canonical JSON: the fast way writes byte for byte what RFC 8785 says, and refuses what it refuses.
Not here: what is read (test_event).
"""

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from bot.contracts.strict_json import canonical_json, find_faults, read_json

SAFE = 2**53 - 1
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-SAFE, SAFE) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


# For every JSON value the bytes equal those of the RFC's general implementation.
@given(VALUES)
def test_equal_to_the_general_way(value: Any) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


# Every finite float is written as the RFC writes it, near and far from where exponents begin.
@given(st.floats(allow_nan=False, allow_infinity=False) | st.floats(1e-6, 1e-3) | st.floats(1e14, 1e22))
def test_floats(value: float) -> None:
    assert canonical_json([value]) == rfc8785.dumps([value])


# The RFC's own awkward examples come out right: name order by UTF-16, escapes, numbers.
@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"\ufb33": 1, "\U0001f600": 2, "\u20ac": 3}, '{"\u20ac":3,"\U0001f600":2,"\ufb33":1}'),
        ({"b": 1, "a": [True, None, '\u000f\n"\\/']}, '{"a":[true,null,"\\u000f\\n\\"\\\\/"],"b":1}'),
        ([1.0, 1e21, 4.50, 2e-3, 1e-27, -0.0], "[1,1e+21,4.5,0.002,1e-27,0]"),
        ("\x7f\u2028\u00e9", '"\x7f\u2028\u00e9"'),
    ],
)
def test_examples(value: Any, written: str) -> None:
    assert canonical_json(value) == written.encode()


# What has no canonical form is refused instead of being written somehow.
@pytest.mark.parametrize(
    "value",
    [2**53, [-(2**53)], float("nan"), {"a": float("inf")}, object(), {1: 2}, ["\ud800"], [1.0, "\ud800"]],
)
def test_without_canonical_form(value: Any) -> None:
    with pytest.raises(rfc8785.CanonicalizationError):
        canonical_json(value)


# Spelling does not matter: spaces, escapes and the order of names give the same canonical bytes.
@given(VALUES)
def test_spelling_is_no_content(value: Any) -> None:
    escaped = json.dumps(value, ensure_ascii=True, indent=3).encode()
    assert canonical_json(read_json(escaped)) == canonical_json(read_json(json.dumps(value).encode()))


# Half a surrogate pair is found in text that did not come through our parser.
@pytest.mark.parametrize("value", [{"a": "x\ud83d"}, {"a": ["\udc00"]}, {"\ud83d": 1}])
def test_half_a_pair(value: dict[str, Any]) -> None:
    assert find_faults(value, "output")


# Ordinary text of any script is no fault.
def test_no_fault() -> None:
    assert find_faults({"é": ["中文", "שלום", "\U0001f600", 1, -2.5, None, True]}, "output") == []
