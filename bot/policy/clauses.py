"""The parts that a kind is made of: its effect, its rules, how long content is kept.
Not here: single values (values), the kind itself and its file (kinds), what rules make of a draft (rules).
"""

import functools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, Self

import re2
from pydantic import Field, StrictBool, StrictStr, model_validator

from bot.policy import limits
from bot.policy.ahead import Probe
from bot.policy.requests import BodyTemplate, Headers, Success, VariableName
from bot.policy.values import Clause, Duration, EffectName, PayloadPath, ResponsePath, RulePath

EFFECT_TYPES: Final = frozenset({"http", "smtp", "slack_message"})
MISSING: Final = object()  # what a path gives that leads nowhere

_INDEX: Final = re.compile(r"[0-9]{1,9}")
_MAX_PATTERN_CHARACTERS: Final = 1000  # Longer ones are lists, which `in` says better.


@functools.lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:  # noqa: ANN401 - re2 carries no types
    """Compile a pattern for the linear-time engine; a dot is any character, line breaks too.

    Patterns are held against whole texts: one that looks for a word must find it in a mail of many lines.

    Raises:
        ValueError: if it does not take the pattern (look-around and back references do not exist there).

    """
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    try:
        return re2.compile(pattern, options)
    except re2.error as fault:
        raise ValueError("is not a pattern that RE2 takes (no look-around, no back references)") from fault


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
    success: tuple[Success, ...] = ()
    headers: Headers = Field(default_factory=dict)
    client_certificate: VariableName | None = None
    client_key: VariableName | None = None
    body: BodyTemplate | None = None
    probe: Probe | None = None

    @property
    def client_pair(self) -> tuple[str, str] | None:
        """The variables that name the files of our certificate and its key."""
        if self.client_certificate is None or self.client_key is None:
            return None
        return self.client_certificate, self.client_key

    def variables(self) -> Iterator[tuple[str, str]]:
        """Which environment variables it needs, by the key that names each."""
        for place, headers in (
            ("headers", self.headers),
            ("probe.headers", self.probe and self.probe.headers),
        ):
            yield from ((f"{place}.{header}", name) for header, name in (headers or {}).items())
        for key in ("client_certificate", "client_key"):
            if (name := getattr(self, key)) is not None:
                yield key, name


class UndoPolicy(EffectPolicy):
    """What takes an effect back once it was delivered; `output` is laid over the revision's own fields."""

    output: dict[StrictStr, StrictStr] = Field(default_factory=dict)


class EffectTerms(EffectPolicy):
    """One effect of a kind: its name among several, which one it waits for, and how it is undone."""

    name: EffectName | None = None
    after: EffectName | None = None
    undo: UndoPolicy | None = None


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
