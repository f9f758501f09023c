"""The tree of faults: one class a row, nothing from outside in text or repr, Retry-After within its bounds.

Not here: which fault a reply becomes on the wire (test_model).
"""

import pytest

from bot.drafting.faults import (
    FAULTS,
    DraftFault,
    Misconfigured,
    NotJson,
    Throttled,
    fault_of_status,
    read_retry_after,
)
from bot.policy.retries import MATRIX
from tests.drafting.conftest import NOON


# Every row of the matrix has exactly one class, in the matrix's order, and finds its row again.
def test_one_class_a_row() -> None:
    assert [each.word for each in FAULTS] == [row.fault for row in MATRIX]
    assert set(FAULTS) == set(DraftFault.__subclasses__())
    assert [each("x").row for each in FAULTS] == list(MATRIX)


# Hints are for the model: neither text nor repr nor args holds them, and a detail is a word, not a sentence.
def test_nothing_from_outside() -> None:
    fault = NotJson("prose", hints=("The customer said SECRET",))
    assert "SECRET" not in f"{fault}{fault!r}{fault.args}"
    assert str(fault) == "not JSON: prose"
    for detail in ("Some text", "", "a" * 65, "é"):
        with pytest.raises(ValueError, match="one stable word"):
            NotJson(detail)


# Seconds and HTTP dates are read, floored at 1 s and capped at 1 h; rubbish is no time at all.
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("1", 1.0),
        (" 17 ", 17.0),
        ("2.5", 2.5),
        ("0", 1.0),
        ("-5", 1.0),
        ("3601", 3600.0),
        ("9" * 300, 3600.0),
        ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0),
        ("Fri, 15 Jan 2027 08:01:00", 60.0),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 1.0),
        ("Fri, 15 Jan 2038 08:00:00 GMT", 3600.0),
        ("Fri, 99 Jan 2027 08:01:00 GMT", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("١", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert read_retry_after(header, now=NOON) == seconds


# Bodies of any shape are looked at for a code and never make the mapping itself fail.
@pytest.mark.parametrize("body", [None, [], "x", 7, {}, {"error": "x"}, {"error": {"code": 7}}, {"code": []}])
def test_bodies_of_any_shape(body: object) -> None:
    assert isinstance(fault_of_status(429, body, retry_after_seconds=5), Throttled)
    assert isinstance(fault_of_status(404, body, retry_after_seconds=None), Misconfigured)
