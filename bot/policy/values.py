"""What one value of policy.toml may be: durations, Slack ids, paths, addresses; and the base of its tables.
Not here: the tables themselves (clauses, ahead, terms).
"""

import re
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from bot.policy import limits

FROM_SNAPSHOT: Final = {"from_snapshot": True}  # the context in which seconds are read back as numbers

_DURATION: Final = re.compile(r"([0-9]{1,12})([smhd])")
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SLACK_REVIEWER: Final = re.compile(r"[UWS][A-Z0-9]{1,30}")
_SLACK_CHANNEL: Final = re.compile(r"[CG][A-Z0-9]{1,30}")
_PATH: Final = re.compile(r"(?:output|payload)(?:\.[^.\s]{1,100}){1,20}")
_PAYLOAD_PATH: Final = re.compile(r"payload(?:\.[^.\s]{1,100}){1,20}")
_EFFECT_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_RESPONSE_PATH: Final = re.compile(r"[^.\s]{1,100}(?:\.[^.\s]{1,100}){0,9}")


def read_duration(text: str) -> int:
    r"""Read `\d+(s|m|h|d)` as seconds.

    Raises:
        ValueError: for anything else, and for more than ten years.

    """
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError('must be a number and a unit, like "90s", "10m", "48h" or "7d"')
    seconds = int(found[1]) * _UNIT_SECONDS[found[2]]
    if seconds > limits.MAX_DURATION_SECONDS:
        raise ValueError("is longer than ten years")
    return seconds


def write_duration(seconds: int) -> str:
    """Write seconds in the largest unit that needs no fraction, as `read_duration` reads them."""
    for unit in "dhm":
        if seconds and seconds % _UNIT_SECONDS[unit] == 0:
            return f"{seconds // _UNIT_SECONDS[unit]}{unit}"
    return f"{seconds}s"


def _duration(value: object, info: ValidationInfo) -> int:
    if type(value) is int and info.context and "from_snapshot" in info.context:
        return value
    if not isinstance(value, str):
        raise ValueError('must be text with a unit, like "90s", "10m", "48h" or "7d"')  # noqa: TRY004 - pydantic
    return read_duration(value)


def matching(pattern: re.Pattern[str], sentence: str) -> BeforeValidator:
    """Take text of this pattern only; the sentence says what it must be."""

    def check(value: object) -> object:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(sentence)
        return value

    return BeforeValidator(check)


Duration = Annotated[int, BeforeValidator(_duration)]
ReviewerId = Annotated[str, matching(_SLACK_REVIEWER, "must be a Slack user (U…, W…) or user group id (S…)")]
ChannelId = Annotated[
    str, matching(_SLACK_CHANNEL, "must be a Slack channel id (C… or G…), not a channel's name")
]
RulePath = Annotated[str, matching(_PATH, 'must be a path like "output.label" or "payload.amount"')]
PayloadPath = Annotated[str, matching(_PAYLOAD_PATH, 'must be a path into the payload, like "payload.to"')]
ResponsePath = Annotated[
    str, matching(_RESPONSE_PATH, 'must be a path in the answer, like "id" or "data.id"')
]


EffectName = Annotated[
    str, matching(_EFFECT_NAME, 'must be 1 to 32 of a-z 0-9 _ -, a letter first, like "mail"')
]


def is_channel_or_user(text: str) -> bool:
    """Tell a Slack channel, conversation or user id from other text."""
    return re.fullmatch(r"[CDGUW][A-Z0-9]{1,30}", text) is not None


class Clause(BaseModel):
    """A frozen part of the policy; an unknown key is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
