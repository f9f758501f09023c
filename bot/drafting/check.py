"""Whether a draft may be shown to a person: the output schema, strictly, then the kind's own rules.
Not here: the rules themselves (bot/policy/rules), and finding the object in the answer (extract).

Draft 2020-12 with three differences, all towards refusing: an object whose schema names its keys takes no
others, formats are checked, and no reference is ever fetched. Nothing is coerced.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import re2
from jsonschema import Draft202012Validator, SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from bot.drafting.faults import Misconfigured, SoftFailure, WrongJson
from bot.policy.clauses import EffectPolicy, Rule
from bot.policy.rules import RuleVerdict, check_rules
from bot.policy.sendable import find_unsendable

_MAX_HINTS: Final = 10
_MAX_VALUE_CHARACTERS: Final = 200  # of a schema's value quoted in a hint

# Keywords whose subschemas describe the same value: its keys belong to the value's own schema. What only
# tests (`if`, `not`, `contains`) is left as it is: closing it would change the answer.
_SAME_VALUE: Final = frozenset(
    ("allOf", "anyOf", "oneOf", "then", "else", "$defs", "definitions", "dependentSchemas")
)
# Keywords whose subschemas describe a value inside.
_INSIDE: Final = frozenset(
    ("properties", "patternProperties", "additionalProperties", "items", "prefixItems", "unevaluatedItems")
)
# Keywords whose value is a mapping of subschemas by name, not a subschema.
_BY_NAME: Final = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_NAMES_KEYS: Final = frozenset(
    ("properties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas")
)
_QUIET: Final = re2.Options()
_QUIET.log_errors = False  # it would write the pattern to stderr
_SAYS_ITSELF: Final = frozenset(("additionalProperties", "unevaluatedProperties"))


@dataclass(frozen=True, slots=True)
class Violation:
    """One keyword of the schema that does not hold: in which field (None: of the whole), and its bound."""

    field: str | None
    keyword: str
    bound: object


def check_output(
    output: Mapping[str, Any],
    *,
    schema: Mapping[str, Any],
    rules: Iterable[Rule],
    payload: Mapping[str, Any],
    sends: Iterable[EffectPolicy] = (),
) -> RuleVerdict:
    """Let a draft pass, and say what the kind's rules make of it: the warnings, and whether it is allowed.

    Raises:
        WrongJson: the schema is violated; `hints` say where, for the model.
        SoftFailure: a hard rule is broken, or the text could not be sent.
        Misconfigured: the schema itself is no schema, or refers to something that is not in it.

    """
    faults = find_violations(output, schema)
    if faults:
        raise WrongJson("schema", hints=faults)
    unsendable = find_unsendable(output, sends)
    if unsendable:
        raise SoftFailure("unsendable", hints=tuple(f"{each.field} {each.message}." for each in unsendable))
    verdict = check_rules(rules, output=output, payload=payload)
    if verdict.broken:
        raise SoftFailure("hard_rule", hints=tuple(f"{each.path}: {each.message}" for each in verdict.broken))
    return verdict


def find_violations(output: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[str, ...]:
    """List what violates the schema, a sentence each, at most ten; they may quote the output's keys.

    Raises:
        Misconfigured: as `check_output`.

    """
    return tuple(dict.fromkeys(_hint(error) for error in _errors(output, schema)))[:_MAX_HINTS]


def list_violations(output: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Violation, ...]:
    """List what violates the schema, by the field it stands in; for people, who mend one field at a time.

    Raises:
        Misconfigured: as `check_output`.

    """
    return tuple(found for error in _errors(output, schema) for found in _violations(error))


def _violations(error: ValidationError) -> Iterator[Violation]:
    path = error.absolute_path
    keyword, bound, instance = str(error.validator), error.validator_value, error.instance
    if keyword == "required" and not path and isinstance(bound, list) and isinstance(instance, Mapping):
        yield from (Violation(name, keyword, None) for name in bound if name not in instance)
    else:
        yield Violation(str(path[0]) if path else None, keyword, bound)


def _errors(output: Mapping[str, Any], schema: Mapping[str, Any]) -> list[ValidationError]:
    try:
        Draft202012Validator.check_schema(schema)
        validator = _StrictValidator(
            _closed(schema, own=True),
            registry=Registry(),
            format_checker=Draft202012Validator.FORMAT_CHECKER,
        )
        return sorted(validator.iter_errors(output), key=lambda error: error.json_path)
    except SchemaError:
        raise Misconfigured("output_schema") from None
    except Unresolvable:
        raise Misconfigured("output_schema_reference") from None


def _closed(schema: Any, *, own: bool) -> Any:  # noqa: ANN401 - a schema is a mapping or a bool
    """Copy a schema so that each object which names its keys refuses all others.

    `own`: this is the whole schema of its value. It is `unevaluatedProperties`, not `additionalProperties`,
    because that sees the keys which allOf, $ref and their like name.
    """
    if not isinstance(schema, Mapping):
        return schema
    copy = {name: _closed_keyword(name, value) for name, value in schema.items()}
    if own and _NAMES_KEYS & set(copy) and not _SAYS_ITSELF & set(copy):
        copy["unevaluatedProperties"] = False
    return copy


def _closed_keyword(name: str, value: Any) -> Any:  # noqa: ANN401 - as above
    if name not in _SAME_VALUE | _INSIDE:
        return value
    own = name in _INSIDE
    if isinstance(value, list):
        return [_closed(each, own=own) for each in value]
    if name in _BY_NAME:
        return {key: _closed(each, own=own) for key, each in value.items()}
    return _closed(value, own=own)


def _pattern(
    validator: Draft202012Validator, pattern: str, instance: object, _schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """Match in linear time: the text is the model's, and must not be able to hold us up."""
    if validator.is_type(instance, "string") and not _search(pattern, str(instance)):
        yield ValidationError("the pattern does not match")


def _search(pattern: str, text: str) -> bool:
    try:
        return re2.compile(pattern, _QUIET).search(text) is not None
    except re2.error:
        # Look-around and back-references are beyond RE2; the pattern is the admin's own.
        return re.search(pattern, text) is not None


_StrictValidator: Final = extend(Draft202012Validator, {"pattern": _pattern})  # type: ignore[no-untyped-call]


def _hint(error: ValidationError) -> str:
    """Say what is wrong from the schema's side; the value itself stands in the answer shown beside it."""
    place = error.json_path
    match error.validator:
        case "type":
            return f"{place} must be of type {_quoted(error.validator_value)} exactly."
        case "enum" | "const":
            return f"{place} must be exactly one of {_quoted(error.validator_value)}."
        case "required":
            return f"{place} must have all of {_quoted(error.validator_value)}."
        case "unevaluatedProperties" | "additionalProperties":
            return f"{place} has keys that the schema does not name."
        case _:
            return f"{place} breaks {error.validator}: {_quoted(error.validator_value)}."


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:_MAX_VALUE_CHARACTERS]
