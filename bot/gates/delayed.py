"""The gate mode `delayed`: a draft goes out by itself after a while in which any reviewer may cancel it.

Not here: the window's end (the outbox's `not_before`) or the cancelling (bot/flow).
"""

from bot.gates.gate import Ask, Draft, SendAfter, Verdict
from bot.policy.kinds import Kind
from bot.policy.limits import CANCEL_WINDOW_SECONDS

MODE = "delayed"


def judge(draft: Draft, kind: Kind) -> Verdict:
    """Let it go after the window, unless a person has to look at it: a warning is never passed unseen."""
    if draft.warned:
        return Ask("warned")
    if draft.corrects:
        return Ask("correction")
    return SendAfter(kind.cancel_window_seconds or CANCEL_WINDOW_SECONDS)
