"""The gate mode `by_exception`: routine goes out at once, where people have shown that they let it stand.

Not here: how agreement is measured (bot/policy/earned) or who is told when it falls (bot/flow/weighing).
"""

from bot.gates.gate import Ask, Draft, SendNow, Verdict
from bot.policy.kinds import Kind

MODE = "by_exception"


def judge(draft: Draft, kind: Kind) -> Verdict:  # noqa: ARG001 - the contract of every mode
    """Send it if nothing speaks against it; else ask, and say what spoke first, in the order of weight."""
    if draft.warned:
        return Ask("warned")
    if draft.corrects:
        return Ask("correction")
    if not draft.allowed:
        return Ask("not_allowed")
    if not draft.earned:
        return Ask("not_earned")
    if draft.sampled:
        return Ask("sampled")
    return SendNow(draft.evidence.word)
