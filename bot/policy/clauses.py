"""The parts that a kind is made of: durations, Slack ids, its effect, its rules, how long content is kept.
Not here: the kind itself and reading the file (kinds), and what rules make of a draft (rules).
"""

import functools
import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

import re2
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictStr,
    ValidationInfo,
    model_validator,
)

from bot.contracts.fields import wrong_url
from bot.policy import limits

EFFECT_TYPES: Final = frozenset({"http", "smtp", "slack_message"})
MISSING: Final = object()  # what a path gives that leads nowhere
FROM_SNAPSHOT: Final = {"from_snapshot": True}  # the context in which seconds are read back as numbers

_DURATION: Final = re.compile(r"([0-9]{1,12})([smhd])")
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SLACK_REVIEWER: Final = re.compile(r"[UWS][A-Z0-9]{1,30}")
_SLACK_CHANNEL: Final = re.compile(r"[CG][A-Z0-9]{1,30}")
_PATH: Final = re.compile(r"(?:output|payload)(?:\.[^.\s]{1,100}){1,20}")
_PAYLOAD_PATH: Final = re.compile(r"payload(?:\.[^.\s]{1,100}){1,20}")
_RESPONSE_PATH: Final = re.compile(r"[^.\s]{1,100}(?:\.[^.\s]{1,100}){0,9}")
_INDEX: Final = re.compile(r"[0-9]{1,9}")
_MAX_PATTERN_CHARACTERS: Final = 1000  # Longer ones are lists, which `in` says better.


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


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:  # noqa: ANN401 - re2 carries no types
    """Compile a pattern for the linear-time engine.

    Raises:
        ValueError: if it does not take the pattern (look-around and back references do not exist there).

    """
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as fault:
        raise ValueError("is not a pattern that RE2 takes (no look-around, no back references)") from fault


def _matching(pattern: re.Pattern[str], sentence: str) -> BeforeValidator:
    def check(value: object) -> object:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(sentence)
        return value

    return BeforeValidator(check)


def _url(value: object) -> object:
    if message := wrong_url(value):
        raise ValueError(message)
    return value


Duration = Annotated[int, BeforeValidator(_duration)]
Url = Annotated[str, BeforeValidator(_url)]
ReviewerId = Annotated[str, _matching(_SLACK_REVIEWER, "must be a Slack user (U…, W…) or user group id (S…)")]
ChannelId = Annotated[
    str, _matching(_SLACK_CHANNEL, "must be a Slack channel id (C… or G…), not a channel's name")
]
RulePath = Annotated[str, _matching(_PATH, 'must be a path like "output.label" or "payload.amount"')]
PayloadPath = Annotated[str, _matching(_PAYLOAD_PATH, 'must be a path into the payload, like "payload.to"')]
ResponsePath = Annotated[
    str, _matching(_RESPONSE_PATH, 'must be a path in the answer, like "id" or "data.id"')
]


def is_channel_or_user(text: str) -> bool:
    """Tell a Slack channel, conversation or user id from other text."""
    return re.fullmatch(r"[CDGUW][A-Z0-9]{1,30}", text) is not None


class Clause(BaseModel):
    """A frozen part of the policy; an unknown key is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class EffectPolicy(Clause):
    """What happens on approval, and where to. Times are in seconds; `recipient` is a payload path."""

    type: StrictStr
    target: StrictStr = ""
    recipient: PayloadPath | None = None
    response_id: ResponsePath | None = None
    lookup: StrictStr | None = None
    settle_seconds: Duration = Field(
        default=limits.SETTLE_SECONDS, alias="settle", ge=0, le=limits.MAX_SETTLE_SECONDS
    )
    timeout_seconds: Duration = Field(
        default=limits.EFFECT_TIMEOUT_SECONDS, alias="timeout", ge=1, le=limits.MAX_EFFECT_TIMEOUT_SECONDS
    )
    attempts: int = Field(default=limits.EFFECT_ATTEMPTS, strict=True, ge=1, le=limits.MAX_EFFECT_ATTEMPTS)
    idempotent: StrictBool = False


Scalar = str | int | float | bool


class Rule(Clause):
    """One deterministic check on a draft's output or the event's payload; `rules` says what it means."""

    level: Literal["hard", "warn", "allow"]
    path: RulePath
    op: Literal["equals", "in", "matches", "min", "max", "present"]
    value: Any = None
    message: StrictStr = Field(min_length=1, max_length=300)

    @model_validator(mode="after")
    def _value_fits(self) -> Self:
        if sentence := _wrong_rule_value(self.op, self.value):
            raise ValueError(sentence)
        return self


class Earned(Clause):
    """What a kind must show before actions go out without a person (by_exception only)."""

    decisions: int = Field(default=50, strict=True, ge=1)
    threshold: float = Field(default=0.9, strict=True, gt=0, lt=1)
    sample: float = Field(default=0.1, strict=True, ge=0, le=1)


class Retention(Clause):
    """How long content is kept, in seconds; hashes and markers stay (SPEC section 11)."""

    runs_seconds: Duration = Field(
        default=limits.RETENTION_SECONDS, alias="runs", ge=limits.LEAST_RETENTION_SECONDS
    )
    drafts_seconds: Duration = Field(
        default=limits.RETENTION_SECONDS, alias="drafts", ge=limits.LEAST_RETENTION_SECONDS
    )
    effects_seconds: Duration = Field(
        default=limits.RETENTION_SECONDS, alias="effects", ge=limits.LEAST_RETENTION_SECONDS
    )
    audit_details_seconds: Duration = Field(
        default=limits.RETENTION_SECONDS, alias="audit_details", ge=limits.LEAST_RETENTION_SECONDS
    )


def read_path(document: Mapping[str, Any], path: str) -> object:
    """Follow a dotted path; a number steps into a list. `MISSING` where it leads nowhere."""
    here: object = document
    for step in path.split("."):
        if isinstance(here, Mapping):
            here = here.get(step, MISSING)
        elif isinstance(here, list) and _INDEX.fullmatch(step) and int(step) < len(here):
            here = here[int(step)]
        else:
            return MISSING
    return here


def is_number(value: object) -> bool:
    """Tell a usable number: not a boolean, not NaN, not infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _wrong_rule_value(op: str, value: object) -> str | None:
    if op in {"min", "max"}:
        return None if is_number(value) else f"value must be a finite number for op {op}"
    if op == "equals":
        return None if _is_scalar(value) else "value must be text, a number, true or false for op equals"
    if op == "in":
        fits = isinstance(value, list) and value and all(map(_is_scalar, value))
        return None if fits else "value must be a list of texts, numbers, true or false for op in"
    if op == "matches":
        return _wrong_pattern(value)
    return None if value is None or value is True else "op present takes no value"


def _wrong_pattern(value: object) -> str | None:
    if not isinstance(value, str) or len(value) > _MAX_PATTERN_CHARACTERS:
        return f"value must be a pattern of at most {_MAX_PATTERN_CHARACTERS} characters for op matches"
    try:
        compile_pattern(value)
    except ValueError as fault:
        return f"value {fault}"
    return None


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | bool) or is_number(value)
