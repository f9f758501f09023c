"""What follows from a provider's answer, or from the lack of one: SPEC section 4's table for effects.
Not here: what an answer means (bot/connectors) or the writing of it (bot/flow).
"""

from dataclasses import dataclass
from typing import Final

from bot.contracts.outcome import NotSent, Refused, SendOutcome, Sent, Unknown
from bot.policy.limits import (
    EFFECT_BACKOFF_SECONDS,
    LOOK_UP_BACKOFF_SECONDS,
    RETRY_AFTER_CAP_SECONDS,
    RETRY_AFTER_FLOOR_SECONDS,
)
from store.rows import Result

PROVIDER_ID_CHARS: Final = 255  # Evidence for people; what providers use stays far below.

COMPLETED: Final = "completed"
PENDING: Final = "pending"
UNKNOWN: Final = "unknown"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"


@dataclass(frozen=True, slots=True)
class Try:
    """What is known of the try that was answered.

    `number` counts from 1, `bound` is the policy's attempts; `is_ambiguous`: an earlier try may have arrived;
    `may_repeat`: the target deduplicates; `is_overtaken`: a newer version waits, so nothing more is sent;
    `is_resting`: the target is left in peace, so that its failures use up nobody's attempts.
    """

    number: int
    bound: int
    settle_seconds: float
    is_ambiguous: bool = False
    may_repeat: bool = False
    is_overtaken: bool = False
    is_resting: bool = False

    @property
    def has_another(self) -> bool:
        """Whether it may be tried again."""
        return self.is_resting or self.number < self.bound


def follow(outcome: SendOutcome, tried: Try) -> Result:
    """Tell which state an effect moves to, and when it is looked at again.

    Once a try was ambiguous this never answers `failed`: only a person may (SPEC section 4).
    """
    match outcome:
        case Sent(provider_id):
            return Result(
                state=COMPLETED, provider_id=None if provider_id is None else _storable(provider_id)
            )
        case NotSent(reason, retry_after):
            if tried.has_another and not (tried.is_ambiguous and tried.is_overtaken):
                wait = backoff_seconds(tried.number, retry_after)
                return Result(state=PENDING, reason=reason, wait_seconds=wait, is_uncounted=tried.is_resting)
            return _give_up(reason, tried)
        case Refused(reason):
            return _give_up(reason, tried)
        case Unknown(reason):
            if tried.may_repeat and tried.has_another and not tried.is_overtaken:
                return Result(
                    state=PENDING,
                    reason=reason,
                    wait_seconds=backoff_seconds(tried.number, None),
                    is_ambiguous=True,
                    is_uncounted=tried.is_resting,
                )
            return _unknown(reason, tried)


def backoff_seconds(number: int, retry_after: float | None) -> float:
    """How long to wait after try `number`; what the provider asks for counts within floor and cap."""
    if retry_after is not None:
        return min(max(retry_after, RETRY_AFTER_FLOOR_SECONDS), RETRY_AFTER_CAP_SECONDS)
    return float(EFFECT_BACKOFF_SECONDS[min(number, len(EFFECT_BACKOFF_SECONDS)) - 1])


def look_up_wait_seconds(times_asked: int) -> float:
    """How long to wait after a look-up that proved nothing; `times_asked` counts those before it."""
    return float(LOOK_UP_BACKOFF_SECONDS[min(times_asked, len(LOOK_UP_BACKOFF_SECONDS) - 1)])


def word_for(outcome: SendOutcome) -> str:
    """Name an answer for the evidence."""
    match outcome:
        case Sent():
            return "sent"
        case NotSent():
            return "not_sent"
        case Refused():
            return "refused"
        case Unknown():
            return "unknown"


def _storable(provider_id: str) -> str:
    """What a column of text takes: one bad id must not spoil the record of those written with it."""
    if provider_id.isprintable() and len(provider_id) <= PROVIDER_ID_CHARS:
        return provider_id
    kept = provider_id[:PROVIDER_ID_CHARS].encode("utf-8", "replace").decode()
    return "".join(character for character in kept if character.isprintable())


def _give_up(reason: str, tried: Try) -> Result:
    return _unknown(reason, tried) if tried.is_ambiguous else Result(state=FAILED, reason=reason)


def _unknown(reason: str, tried: Try) -> Result:
    return Result(state=UNKNOWN, reason=reason, wait_seconds=tried.settle_seconds, is_ambiguous=True)
