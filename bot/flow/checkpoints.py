"""Named points where a test may kill the process; in production each is one comparison.

Not here: the tests (tests/crash) or any behaviour.
"""

import os
import signal

NAMES = (
    "receive.before_commit",
    "receive.after_commit",
    "draft.after_claim",
    "draft.before_model",
    "draft.after_model",
    "draft.after_answer_stored",
    "draft.before_open_commit",
    "draft.after_open_commit",
    "show.after_claim",
    "show.before_post",
    "show.after_post",
    "show.after_shown",
    "decide.before_commit",
    "decide.after_commit",
    "edit.before_commit",
    "edit.after_commit",
    "redraft.after_ask_commit",
    "redraft.after_claim",
    "redraft.after_model",
    "redraft.after_answer_stored",
    "redraft.before_commit",
    "redraft.after_commit",
    "cancel.before_commit",
    "cancel.after_commit",
    "undo.before_commit",
    "undo.after_commit",
    "expire.after_commit",
    "dispatch.after_claim",
    "dispatch.after_probe",
    "dispatch.after_hold",
    "dispatch.after_take_back",
    "dispatch.after_start",
    "dispatch.before_record",
    "dispatch.after_record",
    "announce.before_commit",
    "announce.after_commit",
    "reconcile.after_look_up",
    "reconcile.after_record",
    "switch.after_commit",
)

_KILL_AT = os.environ.get("STET_KILL_AT", "")


def reach(name: str) -> None:
    """Die here, as by `kill -9`, if the environment names this point in STET_KILL_AT."""
    if name == _KILL_AT:
        os.kill(os.getpid(), signal.SIGKILL)
