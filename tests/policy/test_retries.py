"""The drafting retry matrix says what the contract says, row by row.
Not here: obeying it (tests/drafting).
"""

import pytest

from bot.policy import limits
from bot.policy.retries import MATRIX, Fault, Resume, Row, row_of, write_matrix


# Every fault has exactly one row.
def test_complete() -> None:
    assert [row.fault for row in MATRIX] == list(Fault)


# Tries, repairs, the end and the alert are those of the contract.
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.NOT_DELIVERED, (3, 0, "failed_retryable", Resume.BACKOFF, False)),
        (Fault.TIMEOUT, (2, 0, "failed_retryable", Resume.BACKOFF, False)),
        (Fault.THROTTLED, (1, 0, "failed_retryable", Resume.RETRY_AFTER, False)),
        (Fault.QUOTA_GONE, (1, 0, "failed_terminal", None, True)),
        (Fault.PROVIDER_FAULT, (3, 0, "failed_retryable", Resume.BACKOFF, False)),
        (Fault.MISCONFIGURED, (1, 0, "failed_terminal", None, True)),
        (Fault.NOT_JSON, (1, 2, "failed_terminal", None, True)),
        (Fault.WRONG_JSON, (1, 2, "failed_terminal", None, True)),
        (Fault.SOFT_FAILURE, (1, 2, "failed_terminal", None, True)),
        (Fault.REFUSED, (1, 0, "failed_terminal", None, True)),
        (Fault.LOST_LEASE, (1, 0, None, None, False)),
        (Fault.BUDGET, (1, 0, "failed_retryable", Resume.DAY_TURN, True)),
    ],
)
def test_rows(fault: Fault, expected: tuple[int, int, str | None, Resume | None, bool]) -> None:
    row = row_of(fault)
    assert (row.tries, row.repairs, row.ends_in, row.resume, row.alert) == expected


# Between the tries of a row there is one pause each, and only what may pass is due again.
@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.fault)
def test_consistent(row: Row) -> None:
    assert len(row.waits_seconds) == row.tries - 1
    assert (row.resume is not None) == (row.ends_in == "failed_retryable")


# The backoff between claims is 1, 5, 15 and 60 minutes.
def test_backoff() -> None:
    assert limits.DRAFT_BACKOFF_SECONDS == (60, 300, 900, 3600)


# The worst run of tries, repairs and pauses stays within one claim's time.
def test_fits_into_a_claim() -> None:
    calls = row_of(Fault.TIMEOUT).tries * (1 + limits.MAX_REPAIRS)
    assert calls * limits.MAX_MODEL_TIMEOUT_SECONDS <= limits.PROCESSING_SECONDS
    assert limits.RENEW_SECONDS * 3 <= limits.LEASE_SECONDS


# The README's table has a line for every row.
def test_written() -> None:
    lines = write_matrix().splitlines()
    assert len(lines) == len(MATRIX) + 2
    assert len({line.count("|") for line in lines}) == 1
