"""The contract of a gate: what it may know of a draft, and the three things it can answer.

Not here: any particular mode. Gates are arithmetic; nothing in this room waits.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from bot.policy.earned import Evidence
from bot.policy.kinds import Kind


@dataclass(frozen=True, slots=True)
class Draft:
    """What a gate may know of a draft. The model's own confidence is not among it (SPEC section 7)."""

    warned: bool = False  # a `warn` rule fired, or the text holds characters nobody sees
    allowed: bool = False  # the kind has `allow` rules and every one of them holds
    earned: bool = False  # the kind's record of human decisions is good enough (bot/policy/earned)
    sampled: bool = False  # drawn to be shown to a person all the same
    corrects: bool = False  # it corrects something: whoever asked for that may not be the only one to agree
    evidence: Evidence = field(default_factory=Evidence)  # what `earned` was judged by


@dataclass(frozen=True, slots=True)
class Ask:
    """A person decides; `why` is a short stable word for the record."""

    why: str


@dataclass(frozen=True, slots=True)
class SendAfter:
    """It goes out by itself after the window, unless a person cancels before."""

    window_seconds: int


@dataclass(frozen=True, slots=True)
class SendNow:
    """It goes out without a person; `rule` names what allowed it, for the record."""

    rule: str


Verdict = Ask | SendAfter | SendNow
Judge = Callable[[Draft, Kind], Verdict]
