"""The gate mode `approve_first`: every draft waits for a person.

Not here: modes that let drafts through (delayed, by_exception).
"""

from bot.gates.gate import Ask, Draft, Verdict
from bot.policy.kinds import Kind

MODE = "approve_first"


def judge(draft: Draft, kind: Kind) -> Verdict:  # noqa: ARG001 - the contract of every mode
    """Ask, whatever the draft says."""
    return Ask(MODE)
