"""Reading policy.toml: the whole file is checked, and every fault is named with its key and the mend.
Not here: what a key may be (terms, clauses) and what keys must be to each other (contradictions).
"""

import difflib
import tomllib
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from bot.contracts.fields import KIND
from bot.policy.clauses import EFFECT_TYPES, Earned, EffectPolicy, Retention, Rule
from bot.policy.contradictions import find_contradictions
from bot.policy.snapshot import Snapshot
from bot.policy.terms import AVAILABLE_GATES, GATES, Kind
from bot.policy.values import Clause

__all__ = [
    "AVAILABLE_GATES",
    "GATES",
    "Earned",
    "EffectPolicy",
    "Kind",
    "Policy",
    "PolicyError",
    "Retention",
    "Rule",
    "Snapshot",
    "load_policy",
]


T = TypeVar("T", bound=Clause)


class PolicyError(ValueError):
    """The policy is not usable; `problems` are sentences, each naming its key and the mend."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class Policy(BaseModel):
    """All kinds by name, and what holds for all of them together."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kinds: dict[str, Kind]
    daily_tokens: int | None = None


class _General(Clause):
    """The keys of the file that belong to no kind."""

    daily_tokens: int | None = Field(default=None, strict=True, ge=1)
    retention: Retention = Retention()


_PYDANTIC_SENTENCES: Final = MappingProxyType(
    {
        "missing": "is required",
        "string_type": "must be text",
        "string_too_short": "must not be empty",
        "string_too_long": "is too long",
        "bool_type": "must be true or false",
        "int_type": "must be a whole number",
        "float_type": "must be a number",
        "finite_number": "must be a finite number",
        "tuple_type": "must be a list",
        "dict_type": "must be a table",
        "model_type": "must be a table",
        "model_attributes_type": "must be a table",
        "too_short": "must not be empty: an empty list means nobody",
    }
)


def load_policy(
    text: str, *, effect_types: frozenset[str] = EFFECT_TYPES, gates: frozenset[str] = AVAILABLE_GATES
) -> Policy:
    """Read and check the whole policy.

    `effect_types` are the connectors there are, `gates` the modes.

    Raises:
        PolicyError: with every fault found; keys are compared with each other once each is right alone.

    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise PolicyError((f"the policy file is not TOML: {fault}",)) from fault
    tables = document.pop("kinds", {})
    problems: list[str] = []
    general = _validate(_General, document, "", problems)
    if not isinstance(tables, dict):
        problems.append("kinds must be tables: write [kinds.NAME]")
        tables = {}
    defaults = document.get("retention", {}) if general else {}
    kinds = {name: _load_kind(name, table, defaults, problems) for name, table in tables.items()}
    for name, kind in kinds.items():
        if kind is not None:
            found = find_contradictions(kind, effect_types, gates)
            problems += [f"kinds.{name}.{key} {sentence}" for key, sentence in found]
    if problems or general is None:
        raise PolicyError(tuple(problems))
    return Policy(
        kinds={name: kind for name, kind in kinds.items() if kind is not None},
        daily_tokens=general.daily_tokens,
    )


def _load_kind(name: str, table: Any, defaults: dict[str, Any], problems: list[str]) -> Kind | None:  # noqa: ANN401 - TOML
    where = f"kinds.{name}"
    if not KIND.fullmatch(name):
        problems.append(
            f"{where}: a kind's name is 1 to 64 of a-z 0-9 _ . - and begins with a letter or digit"
        )
        return None
    if not isinstance(table, dict):
        problems.append(f"{where} must be a table: write [{where}]")
        return None
    if "name" in table:
        problems.append(f"{where}.name is not a key: the table's own name is the kind's name")
        return None
    own = table.get("retention", {})
    if isinstance(own, dict):
        table = table | {"retention": defaults | own}
    kind = _validate(Kind, table | {"name": name}, where, problems)
    if table.get("effect") is None and not table.get("effects"):
        problems.append(f"{where}.effect is required")
    elif "effect" in table and "effects" in table:
        problems.append(f"{where}.effects stands beside effect: give one of them")
    return kind


def _validate(model: type[T], table: dict[str, Any], where: str, problems: list[str]) -> T | None:
    try:
        return model.model_validate(table)
    except ValidationError as fault:
        problems += _sentences(model, fault, where)
        return None


def _sentences(model: type[Clause], fault: ValidationError, where: str) -> Iterator[str]:
    errors = fault.errors(include_url=False, include_input=False)
    deeper = {error["loc"][:-1] for error in errors}
    for error in errors:
        if error["type"] == "too_short" and error["loc"] in deeper:
            continue  # the list is only short because its entries were refused
        key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error["loc"])
        yield f"{where}{key}".lstrip(".") + f" {_sentence(model, error)}"


def _sentence(model: type[Clause], error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "value_error":
            return str(context["error"])
        case "extra_forbidden":
            return f"is not a key here{_suggestion(model, error)}"
        case "literal_error":
            return f"must be {context['expected']}"
        case "greater_than_equal" | "less_than_equal" | "greater_than" | "less_than":
            bound = next(value for name, value in context.items() if name in {"ge", "le", "gt", "lt"})
            return f"must be {error['type'].replace('_', ' ').replace(' equal', ' or equal to')} {bound}"
        case other:
            return _PYDANTIC_SENTENCES.get(other, error["msg"])


def _suggestion(model: type[Clause], error: ErrorDetails) -> str:
    if len(error["loc"]) != 1:
        return ": remove it"
    keys = [field.alias or name for name, field in model.model_fields.items() if name != "name"]
    close = difflib.get_close_matches(str(error["loc"][0]), keys, n=1)
    return f": do you mean {close[0]}?" if close else ": remove it"
