"""Every state and every allowed move of runs, drafts and effects: the single source.

Not here: who makes a move and when (bot/flow), or the trigger that refuses others (sql/migrations).
"""

from dataclasses import dataclass
from enum import StrEnum


class RunState(StrEnum):
    """`workflow_runs.state`."""

    RECEIVED = "received"
    PROCESSING = "processing"
    AWAITING_HUMAN = "awaiting_human"
    APPROVED = "approved"
    FAILED_RETRYABLE = "failed_retryable"
    COMPLETED = "completed"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    FAILED_TERMINAL = "failed_terminal"


class DraftStatus(StrEnum):
    """`drafts.status`."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    APPROVED = "approved"
    SENT = "sent"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"


class EffectState(StrEnum):
    """`effect_outbox.state`."""

    PENDING = "pending"
    SENDING = "sending"
    COMPLETED = "completed"
    UNKNOWN = "unknown"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Move:
    """One allowed change of state; `why` is shown in docs/states.md."""

    thing: str
    before: str
    after: str
    why: str


MOVES = (
    Move("run", "received", "processing", "claimed by a drafting worker"),
    Move("run", "received", "superseded", "a newer event was accepted"),
    Move("run", "processing", "processing", "taken over after the lease ran out"),
    Move("run", "processing", "awaiting_human", "valid draft, the gate wants a person"),
    Move("run", "processing", "approved", "the gate lets it through, outbox row with it"),
    Move("run", "processing", "failed_retryable", "a failure that may pass"),
    Move("run", "processing", "failed_terminal", "invalid after repair, refused or misconfigured"),
    Move("run", "processing", "superseded", "a newer event was accepted"),
    Move("run", "failed_retryable", "processing", "due again and claimed"),
    Move("run", "failed_retryable", "superseded", "a newer event was accepted"),
    Move("run", "awaiting_human", "superseded", "the newer event's draft opened"),
    Move("run", "awaiting_human", "approved", "a decision reached its quorum, outbox row with it"),
    Move("run", "awaiting_human", "rejected", "a person rejected it and said why"),
    Move("run", "awaiting_human", "expired", "nobody decided in time"),
    Move("run", "approved", "completed", "all its effects completed"),
    Move("run", "approved", "cancelled", "a person cancelled before any effect started"),
    Move("run", "approved", "awaiting_human", "withdrawn: newer event, or the approval outlived fresh_for"),
    Move("run", "approved", "failed_terminal", "an effect failed for good, or only some of them left"),
    Move("run", "approved", "superseded", "an unknown effect was dropped for a newer version"),
    Move("draft", "pending", "approved", "a decision reached its quorum"),
    Move("draft", "pending", "rejected", "a person rejected it"),
    Move("draft", "pending", "expired", "nobody decided in time"),
    Move("draft", "pending", "scheduled", "a newer event under the delayed gate"),
    Move("draft", "approved", "sent", "all its effects completed"),
    Move("draft", "approved", "failed", "an effect failed for good, or only some of them left"),
    Move("draft", "approved", "cancelled", "cancelled, or dropped for a newer version"),
    Move("draft", "approved", "pending", "withdrawn: newer event, or the approval outlived fresh_for"),
    Move("draft", "scheduled", "sent", "all its effects completed"),
    Move("draft", "scheduled", "failed", "an effect failed for good, or only some of them left"),
    Move("draft", "scheduled", "cancelled", "cancelled within the window"),
    Move("draft", "scheduled", "pending", "withdrawn: newer event, or it outlived fresh_for"),
    Move("effect", "pending", "sending", "claimed: lease held, switch open, due, nothing older unfinished"),
    Move("effect", "pending", "failed", "attempts used up and no try was ambiguous"),
    Move(
        "effect",
        "pending",
        "unknown",
        "an earlier try turns out to have arrived: reconciliation completes it",
    ),
    Move(
        "effect",
        "pending",
        "cancelled",
        "cancelled, newer version, no longer fresh, or what it waits for did not complete",
    ),
    Move("effect", "sending", "pending", "not started, or proven not sent and a try is left"),
    Move("effect", "sending", "completed", "the provider confirmed"),
    Move(
        "effect",
        "sending",
        "unknown",
        "the provider may have it, the lease ran out after the start, or an earlier try arrived",
    ),
    Move("effect", "sending", "failed", "proven refused, or attempts used up"),
    Move("effect", "sending", "cancelled", "not started: cancelled, newer version, or no longer fresh"),
    Move("effect", "failed", "cancelled", "an undo that failed is asked for again"),
    Move("effect", "unknown", "completed", "found at the provider, or a person says it was delivered"),
    Move("effect", "unknown", "pending", "a person said: not delivered, send again"),
    Move("effect", "unknown", "failed", "a person gave up"),
    Move("effect", "unknown", "cancelled", "a person said: not delivered, and a newer version waits"),
)

FINAL_RUNS = frozenset(
    {
        RunState.COMPLETED,
        RunState.REJECTED,
        RunState.EXPIRED,
        RunState.SUPERSEDED,
        RunState.CANCELLED,
        RunState.FAILED_TERMINAL,
    }
)

# The one word an n8n IF node branches on; none until the run is final.
OUTCOMES = {
    RunState.COMPLETED: "sent",
    RunState.REJECTED: "rejected",
    RunState.EXPIRED: "expired",
    RunState.SUPERSEDED: "superseded",
    RunState.CANCELLED: "cancelled",
    RunState.FAILED_TERMINAL: "failed",
}


def outcome_of(state: RunState) -> str | None:
    """Give the outcome word of a final state, None while the run is open."""
    return OUTCOMES.get(state)
