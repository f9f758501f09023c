"""The doctor's test card: each of its stages as its golden file, in every language.

Not here: the click it waits for (tests/examination/test_click).
"""

from collections.abc import Callable

import pytest

from bot.cards import rehearsal
from bot.cards.lives import Who
from bot.cards.rehearsal import Stage
from bot.demo.slack_blocks import block_problems

Golden = Callable[[str, object], None]


# Each stage is drawn as its golden file says; the button stands on it only while it is waited for.
@pytest.mark.parametrize(("stage", "value"), [(Stage.ASK, "v" * 22), (Stage.ARRIVED, ""), (Stage.MISSED, "")])
def test_stages(stage: Stage, value: str, golden: Golden) -> None:
    who = Who("U0ANNA") if stage is Stage.ARRIVED else None
    blocks = rehearsal.render(stage, value=value, who=who)
    golden(f"rehearsal_{stage}", {"text": rehearsal.fallback(stage, who=who), "blocks": blocks})
    assert block_problems(blocks) == []
    assert [block["type"] for block in blocks] == ["rich_text", *(["actions"] if value else [])]
