"""What a provider can have answered to a send, a look-up or a probe, as values to match on.
Not here: what follows from an answer (retry, unknown, failed), which bot/flow decides.

`reason` is always a short stable word of ours (`timeout`, `http_500`, `redirect`), never text from outside:
it ends up in logs, in the record and on cards. `asked` is false where the cause lies with us alone, and
nothing was learnt of the target.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sent:
    """The provider confirmed; `provider_id` is its name for what it did, if it gave one."""

    provider_id: str | None


@dataclass(frozen=True, slots=True)
class NotSent:
    """Proven not to have arrived: safe to send again, not before `retry_after_seconds` if given."""

    reason: str
    retry_after_seconds: float | None = None
    asked: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider has it and will not do it; sending the same again is pointless."""

    reason: str
    asked: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Unknown:
    """The provider may or may not have done it. No machine guesses (SPEC section 5, promise 7)."""

    reason: str
    asked: bool = field(default=True, compare=False)


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


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The record is still what the draft was made from."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The record is another by now: at this version, or (None) no longer open."""

    version: int | None


@dataclass(frozen=True, slots=True)
class Unclear:
    """The record could not be read, or said nothing that can be true: neither changed nor unchanged."""

    reason: str


SendOutcome = Sent | NotSent | Refused | Unknown
LookUpOutcome = Found | Absent | NoAnswer
ProbeOutcome = Unchanged | Changed | Unclear
