"""What a provider can have answered to a send or to a look-up, as values to match on.
Not here: what follows from an answer (retry, unknown, failed), which bot/flow decides.

`reason` is always a short stable word of ours (`timeout`, `http_500`, `redirect`), never text from outside:
it ends up in logs, in the record and on cards.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sent:
    """The provider confirmed; `provider_id` is its name for what it did, if it gave one."""

    provider_id: str | None


@dataclass(frozen=True, slots=True)
class NotSent:
    """Proven not to have arrived: safe to send again, not before `retry_after_seconds` if given."""

    reason: str
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider has it and will not do it; sending the same again is pointless."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The provider may or may not have done it. No machine guesses (SPEC section 5, promise 7)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """A look-up found the effect at the provider."""

    provider_id: str | None


@dataclass(frozen=True, slots=True)
class Absent:
    """A look-up was answered, and the provider does not know the effect (yet)."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A look-up told us nothing, or the connector cannot look up at all."""

    reason: str


SendOutcome = Sent | NotSent | Refused | Unknown
LookUpOutcome = Found | Absent | NoAnswer
