"""What a kind must have earned before actions go out without a person: agreement, bounded from below.
Not here: the decisions that are counted (store/earned) and what a gate makes of it (bot/gates/by_exception).
"""

import hashlib
import math
import re
from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

from bot.policy.clauses import Earned

Z: Final = 1.96  # 95 % confidence, two-sided: 50 of 50 pass a threshold of 0.9, 49 of 50 do not.

_WORD: Final = re.compile(r"earned ([0-9]{1,9})/([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The last decisions of people about one kind's drafts, and how many approved them unedited."""

    decisions: int = 0
    unedited: int = 0

    @property
    def lower_bound(self) -> float:
        """What the share of unedited approvals is at least, by `lower_bound`."""
        return lower_bound(self.unedited, self.decisions)

    @property
    def word(self) -> str:
        """Write it as the reason of an approval that no person gave; `read` reads it back."""
        return f"earned {self.unedited}/{self.decisions}"

    @classmethod
    def read(cls, word: str | None) -> Self | None:
        """Read what `word` wrote; None for any other reason."""
        found = _WORD.fullmatch(word or "")
        return cls(decisions=int(found[2]), unedited=int(found[1])) if found else None


def lower_bound(agreed: int, decisions: int) -> float:
    """Give the lower end of Wilson's score interval for a share, 0 where nothing was measured.

    E. B. Wilson, Probable inference, the law of succession, and statistical inference, Journal of the
    American Statistical Association 22 (1927), 209-212. Unlike the plain share it knows how little few cases
    prove.
    """
    if decisions <= 0 or not 0 <= agreed <= decisions:
        return 0.0
    share, square = agreed / decisions, Z * Z
    spread = Z * math.sqrt(share * (1 - share) / decisions + square / (4 * decisions * decisions))
    return max(0.0, (share + square / (2 * decisions) - spread) / (1 + square / decisions))


def has_earned(evidence: Evidence, terms: Earned) -> bool:
    """Tell whether there are enough decisions and their bound is above the threshold; NaN never is."""
    return evidence.decisions >= terms.decisions and evidence.lower_bound > terms.threshold


def is_sampled(run_id: UUID, share: float) -> bool:
    """Draw the share of runs that a person sees all the same.

    By the hash of an id of ours, so that a retry draws the same and no sender can choose a key that escapes.
    """
    drawn = int.from_bytes(hashlib.sha256(b"sample:" + run_id.bytes).digest()[:8])
    return not drawn / 2**64 >= share
