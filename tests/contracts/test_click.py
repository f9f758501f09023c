"""What a button carries: its value is read back exactly, and everything else is no value.
Not here: who may click.
"""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.contracts.click import (
    ACTION_DECISIONS,
    ButtonValue,
    Decision,
    EffectValue,
    decode_effect_value,
    decode_value,
    encode_effect_value,
    encode_value,
)

TOKEN = "Ab0_-" * 8 + "xyz"


# A button's value survives the way through Slack.
@given(st.integers(1, 999_999_999))
def test_button_value(revision: int) -> None:
    value = ButtonValue(token=TOKEN, revision=revision)
    assert decode_value(encode_value(value)) == value


# The value of a button on an unknown effect survives as well.
@given(st.uuids(), st.integers(0, 999_999_999))
def test_effect_value(effect_id: UUID, version: int) -> None:
    value = EffectValue(effect_id=effect_id, version=version)
    assert decode_effect_value(encode_effect_value(value)) == value


# What we never wrote is nothing, not an exception.
@pytest.mark.parametrize(
    "text",
    [
        "",
        TOKEN,
        f"{TOKEN}.",
        f"{TOKEN}.0",
        f"{TOKEN}.-1",
        f"{TOKEN}.01",
        f"{TOKEN}.1.1",
        f"{TOKEN}.1\n",
        f"{TOKEN[1:]}.1",
        f"{TOKEN}=.1",
        f"{TOKEN}.٣",
        f"{TOKEN}." + "9" * 10,
        "approve",
        "{}",
    ],
)
def test_foreign_values(text: str) -> None:
    assert decode_value(text) is None
    assert decode_effect_value(text) is None


# A token is a secret: it is not in what gets logged.
def test_token_stays_out_of_repr() -> None:
    assert TOKEN not in repr(ButtonValue(token=TOKEN, revision=1))


# Each decision has its own action id, so that a reject button cannot be taken for an approve button.
def test_actions() -> None:
    assert {decision: action for action, decision in ACTION_DECISIONS.items()} == {
        decision: f"stet.{decision}" for decision in Decision
    }
