"""The drafting retry matrix of SPEC section 6 as one table of data.
Not here: one error type a row (bot/drafting/faults) and the code that obeys it (bot/drafting, bot/flow).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bot.policy.limits import MAX_REPAIRS


class Fault(StrEnum):
    """What can become of asking a model for a draft."""

    NOT_DELIVERED = "not delivered"
    TIMEOUT = "timeout"
    THROTTLED = "throttled"
    QUOTA_GONE = "quota gone"
    PROVIDER_FAULT = "provider fault"
    MISCONFIGURED = "misconfigured"
    NOT_JSON = "not JSON"
    WRONG_JSON = "wrong JSON"
    SOFT_FAILURE = "soft failure"
    REFUSED = "refused"
    LOST_LEASE = "lost lease"
    BUDGET = "budget"


class Resume(StrEnum):
    """When a `failed_retryable` run is due again."""

    BACKOFF = "backoff"  # limits.DRAFT_BACKOFF_SECONDS, each step counted
    RETRY_AFTER = "retry_after"  # when the provider said, within floor and cap; not counted
    DAY_TURN = "day_turn"  # when the budget's day turns; not counted


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the matrix.

    `tries` counts requests within one claim, `waits_seconds` are the pauses between them (jitter of up to a
    half is added), `repairs` how often the fault is shown to the model. `ends_in` is the run's state when
    these are used up; None means: stop and write nothing. `alert` tells ops.
    """

    fault: Fault
    example: str
    tries: int
    waits_seconds: tuple[float, ...]
    repairs: int
    ends_in: str | None
    resume: Resume | None
    alert: bool


RETRYABLE: Final = "failed_retryable"
TERMINAL: Final = "failed_terminal"

_BLIP_WAITS_SECONDS: Final = (
    1.0,
    4.0,
)  # Two pauses: a restart behind a balancer fits in, a lease does not notice.

MATRIX: Final = (
    Row(
        Fault.NOT_DELIVERED,
        "refused connection, DNS, TLS, 408, 425",
        tries=3,
        waits_seconds=_BLIP_WAITS_SECONDS,
        repairs=0,
        ends_in=RETRYABLE,
        resume=Resume.BACKOFF,
        alert=False,
    ),
    Row(
        Fault.TIMEOUT,
        "no complete answer within the kind's timeout",
        tries=2,
        waits_seconds=(0.0,),
        repairs=0,
        ends_in=RETRYABLE,
        resume=Resume.BACKOFF,
        alert=False,
    ),
    Row(
        Fault.THROTTLED,
        "429",
        tries=1,
        waits_seconds=(),
        repairs=0,
        ends_in=RETRYABLE,
        resume=Resume.RETRY_AFTER,
        alert=False,
    ),
    Row(
        Fault.QUOTA_GONE,
        "429 with insufficient_quota",
        tries=1,
        waits_seconds=(),
        repairs=0,
        ends_in=TERMINAL,
        resume=None,
        alert=True,
    ),
    Row(
        Fault.PROVIDER_FAULT,
        "5xx, cut stream, an error inside a 200, no choices",
        tries=3,
        waits_seconds=_BLIP_WAITS_SECONDS,
        repairs=0,
        ends_in=RETRYABLE,
        resume=Resume.BACKOFF,
        alert=False,
    ),
    Row(
        Fault.MISCONFIGURED,
        "every 4xx but 408, 425, 429",
        tries=1,
        waits_seconds=(),
        repairs=0,
        ends_in=TERMINAL,
        resume=None,
        alert=True,
    ),
    Row(
        Fault.NOT_JSON,
        "prose, truncation, empty content",
        tries=1,
        waits_seconds=(),
        repairs=MAX_REPAIRS,
        ends_in=TERMINAL,
        resume=None,
        alert=True,
    ),
    Row(
        Fault.WRONG_JSON,
        "schema violated",
        tries=1,
        waits_seconds=(),
        repairs=MAX_REPAIRS,
        ends_in=TERMINAL,
        resume=None,
        alert=True,
    ),
    Row(
        Fault.SOFT_FAILURE,
        "valid JSON that breaks a hard rule",
        tries=1,
        waits_seconds=(),
        repairs=MAX_REPAIRS,
        ends_in=TERMINAL,
        resume=None,
        alert=True,
    ),
    Row(
        Fault.REFUSED,
        "refusal field, content filter",
        tries=1,
        waits_seconds=(),
        repairs=0,
        ends_in=TERMINAL,
        resume=None,
        alert=True,
    ),
    Row(
        Fault.LOST_LEASE,
        "compare-and-set returned no row",
        tries=1,
        waits_seconds=(),
        repairs=0,
        ends_in=None,
        resume=None,
        alert=False,
    ),
    Row(
        Fault.BUDGET,
        "daily tokens used up",
        tries=1,
        waits_seconds=(),
        repairs=0,
        ends_in=RETRYABLE,
        resume=Resume.DAY_TURN,
        alert=True,
    ),
)

_ROWS: Final = {row.fault: row for row in MATRIX}


def row_of(fault: Fault) -> Row:
    """Look up what happens on a fault."""
    return _ROWS[fault]


def write_matrix() -> str:
    """Write the matrix as the Markdown table that the README holds."""
    lines = ["| class | example | tries | repairs | then | ops alerted |", "|---|---|---|---|---|---|"]
    for row in MATRIX:
        then = "stop, write nothing" if row.ends_in is None else f"`{row.ends_in}`"
        when = f", due by {row.resume.replace('_', ' ')}" if row.resume else ""
        alert = "yes" if row.alert else "no"
        lines.append(
            f"| {row.fault} | {row.example} | {row.tries} | {row.repairs} | {then}{when} | {alert} |"
        )
    return "\n".join(lines)
