"""The terms of one kind: its keys, what each may be, and their defaults.
Not here: how keys go together (contradictions), reading the file (kinds), what keys hold (clauses).
"""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictStr
from rfc8785 import CanonicalizationError

from bot.contracts.fields import SOURCE
from bot.contracts.strict_json import canonical_json
from bot.policy import limits
from bot.policy.caps import Limits
from bot.policy.clauses import Earned, EffectPolicy, EffectTerms, Retention, Rule
from bot.policy.snapshot import Snapshot
from bot.policy.values import ChannelId, Clause, Duration, ReviewerId, RulePath

GATES: Final = frozenset({"approve_first", "delayed", "by_exception"})  # all that the contract names
AVAILABLE_GATES: Final = GATES  # A caller that knows of more says so (bot/registry finds them).

_OTHER_PLACEHOLDER: Final = re.compile(r"\{(?!payload\})[A-Za-z_][A-Za-z0-9_.]*\}")
_SLACK_ID: Final = re.compile(r"[UWSCG][A-Z0-9]{1,30}")
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?")


def _source(value: str) -> str:
    if not SOURCE.fullmatch(value):
        raise ValueError("must be the name of an intake token: 1 to 64 of a-z 0-9 _ -")
    return value


def _record_host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError('must be a host name in lower case, like "crm.example", without https://')
    return value


def _escalation(value: object) -> object:
    if not isinstance(value, str) or not _SLACK_ID.fullmatch(value):
        raise ValueError("must be a Slack user, user group or channel id")
    return value


def _prompt(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be blank: say what the model is to draft")
    if other := _OTHER_PLACEHOLDER.search(value):
        raise ValueError(f"has the placeholder {other[0]}: {{payload}} is the only one there is")
    return value


def _output(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        canonical_json(schema)
        Draft202012Validator.check_schema(schema)
    except CanonicalizationError as fault:
        raise ValueError("holds a date, an infinite or a huge number, which JSON cannot") from fault
    except SchemaError as fault:
        where = "".join(f".{step}" for step in fault.absolute_path)
        raise ValueError(f"is not a JSON Schema (draft 2020-12): look at output{where}") from fault
    if schema.get("type") != "object":
        raise ValueError('must describe an object: add type = "object"')
    if any(not reference.startswith("#") for reference in _references(schema)):
        raise ValueError('must not refer to other documents: a $ref begins with "#"')
    return schema


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, item in node.items():
            if key in {"$ref", "$dynamicRef"} and isinstance(item, str):
                yield item
            yield from _references(item)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


class Kind(Clause):
    """The policy of one kind (SPEC section 7). Times are in seconds.

    `editable` is None when every field may be edited, `prompt` when every event must bring its draft. Exactly
    one of `effect` and `effects` is given (kinds looks); `all_effects` is either.
    """

    name: str
    gate: StrictStr
    cancel_window_seconds: Duration | None = Field(default=None, alias="cancel_window", ge=1)
    sources: tuple[Annotated[StrictStr, AfterValidator(_source)], ...] = Field(min_length=1)
    channel: ChannelId
    reviewers: tuple[ReviewerId, ...] = Field(min_length=1)
    quorum: int = Field(default=1, strict=True, ge=1)
    separate_duties: StrictBool = True
    expires_after_seconds: Duration = Field(default=limits.EXPIRES_AFTER_SECONDS, alias="expires_after", ge=1)
    fresh_for_seconds: Duration = Field(default=limits.FRESH_FOR_SECONDS, alias="fresh_for", ge=1)
    remind_after_seconds: tuple[Duration, ...] = Field(default=(), alias="remind_after")
    escalate_to: Annotated[str, BeforeValidator(_escalation)] | None = None
    confirm: Literal["none", "dialog", "typed"] = "none"
    regulated: StrictBool = False
    qualified: tuple[ReviewerId, ...] = ()
    record_hosts: tuple[Annotated[StrictStr, AfterValidator(_record_host)], ...] = ()
    record_fields: tuple[RulePath, ...] = ()
    max_open_cards: int = Field(default=limits.MAX_OPEN_CARDS, strict=True, ge=1)
    editable: tuple[StrictStr, ...] | None = None
    prompt: Annotated[StrictStr, AfterValidator(_prompt)] | None = None
    model: StrictStr | None = Field(default=None, min_length=1)
    timeout_seconds: Duration = Field(
        default=limits.MODEL_TIMEOUT_SECONDS, alias="timeout", ge=1, le=limits.MAX_MODEL_TIMEOUT_SECONDS
    )
    max_tokens: int = Field(default=limits.MODEL_MAX_TOKENS, strict=True, ge=1)
    daily_tokens: int | None = Field(default=None, strict=True, ge=1)
    redrafts: int = Field(default=limits.REDRAFTS, strict=True, ge=0, le=limits.MAX_REDRAFTS)
    output: Annotated[dict[str, Any], AfterValidator(_output)] | None = None
    effect: EffectTerms | None = None
    effects: tuple[EffectTerms, ...] = ()
    rules: tuple[Rule, ...] = ()
    earned: Earned | None = None
    limits: Limits = Limits()
    retention: Retention = Retention()

    @property
    def all_effects(self) -> tuple[EffectTerms, ...]:
        """What happens on approval, one or several, in the file's order."""
        return self.effects if self.effect is None else (self.effect,)

    @property
    def all_sends(self) -> Iterator[tuple[str, EffectPolicy]]:
        """All that may ever be sent, each under its key in the file: the effects, and what undoes them."""
        for index, effect in enumerate(self.all_effects):
            where = f"effects[{index}]" if self.effects else "effect"
            yield where, effect
            if effect.undo is not None:
                yield f"{where}.undo", effect.undo

    @property
    def sends(self) -> tuple[EffectPolicy, ...]:
        """All that may ever be sent, without their keys."""
        return tuple(send for _, send in self.all_sends)

    @property
    def prompt_version(self) -> str | None:
        """Hex SHA-256 of the prompt: which wording drafted this."""
        return None if self.prompt is None else hashlib.sha256(self.prompt.encode()).hexdigest()

    @property
    def ground(self) -> str:
        """Hex SHA-256 of what people judge in a draft of this kind: evidence counts for one ground only."""
        rules = [rule.model_dump(mode="json") for rule in self.rules]
        judged = [self.name, self.prompt, self.model, self.output, rules]
        return hashlib.sha256(json.dumps(judged, sort_keys=True).encode()).hexdigest()

    @property
    def drafts_here(self) -> bool:
        """Whether the model may be asked; otherwise an event without a `draft` is refused."""
        return self.prompt is not None

    def snapshot(self) -> dict[str, Any]:
        """Give what freezes onto a draft, as JSON values; `Snapshot.read` reads it back."""
        row = self.model_dump(mode="json", by_alias=False, include=set(Snapshot.model_fields))
        made = {"prompt_version": self.prompt_version, "ground": self.ground}
        return Snapshot.read(row | made).as_row()
