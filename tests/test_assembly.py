"""How a process is put together: what a step's work is work for.

Not here: the steps (tests/flow) or how the timer wakes them (tests/doors/test_timer).
"""

import pytest

from bot.assembly import build_process
from bot.policy.kinds import Policy
from bot.settings import Settings
from bot.variables import Variables


# What ends an effect, or gives one back, sends off what may leave now: that waits for no poll.
@pytest.mark.parametrize("step", ["recover", "reconcile", "resume"])
def test_what_may_leave_now_is_sent_at_once(step: str) -> None:
    env = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "secret", "INTAKE_TOKENS": "n8n:" + "s" * 40}
    process = build_process(
        Settings.load(env), Policy(kinds={}), Variables(), dsn="postgresql://nowhere.invalid/", owner="one"
    )
    assert "dispatch" in process.timer._steps[step].step.wakes
