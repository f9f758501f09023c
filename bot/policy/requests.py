"""What a kind may add to its http requests: success rules, headers, a certificate, a body of its own shape.
Not here: the values of secrets (bot/variables), sending (bot/connectors/http), the effect itself (clauses).
"""

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, StrictStr, ValidationInfo

from bot.contracts.strict_json import NotStrictJson, read_json
from bot.policy.values import Clause, ResponsePath, matching

Scalar = str | int | float | bool
Part = dict[str, Any]

# The standard body (SPEC section 7); only the output goes deeper.
PLACES: Final = frozenset(
    {"effect_id", "key", "kind", "entity", "revision", "recipient", "output", "approved_by", "approved_at"}
)
MOST_TEMPLATE_CHARACTERS: Final = 20_000  # More is a document, not the shape of one.

_PLACE: Final = re.compile(r"\{([A-Za-z_][^{}\s]*)\}")
_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
# What Stet and HTTP say themselves.
_OUR_HEADERS: Final = re.compile(
    r"idempotency-key|webhook-.*|host|content-.*|transfer-encoding|connection|keep-alive|te|trailer|upgrade"
    r"|expect|proxy-.*|accept-encoding|user-agent",
    re.IGNORECASE,
)


def _header_names(value: dict[str, str]) -> dict[str, str]:
    for name in value:
        if not _HEADER.fullmatch(name):
            raise ValueError(f'names the header "{name[:64]}", which is letters, digits and hyphens only')
        if _OUR_HEADERS.fullmatch(name):
            raise ValueError(f"names the header {name}, which Stet sets itself: remove it")
    if len({name.lower() for name in value}) < len(value):
        raise ValueError("names a header twice: case does not count")
    return value


VariableName = Annotated[
    StrictStr, matching(_VARIABLE, "must be the name of an environment variable, like CRM_API_KEY")
]
Headers = Annotated[dict[str, VariableName], AfterValidator(_header_names)]


class Success(Clause):
    """What a 2xx must say to count as done."""

    path: ResponsePath
    equals: Scalar


def compile_body(template: str) -> list[Part]:
    """Cut a JSON template at its placeholders: literal text, whole values, and text inside a string.

    What is put in is a JSON value or the inside of a JSON string, so nothing can break out of its place.

    Raises:
        ValueError: no JSON, or a placeholder that the standard body has nothing for.

    """
    if len(template) > MOST_TEMPLATE_CHARACTERS:
        raise ValueError(f"must be at most {MOST_TEMPLATE_CHARACTERS} characters")
    try:
        document = read_json(template.encode())
    except (NotStrictJson, UnicodeError) as fault:
        raise ValueError("must be JSON, with placeholders inside its texts only") from fault
    merged: list[Part] = []
    for part in _parts(document):
        if merged and "text" in part and "text" in merged[-1]:
            merged[-1] = {"text": merged[-1]["text"] + part["text"]}
        else:
            merged.append(part)
    return merged


def write_body(parts: list[Part]) -> str:
    """The template again, as `compile_body` takes it."""
    return "".join(part["text"] if "text" in part else _written(part) for part in parts)


def _written(part: Part) -> str:
    place = "{" + ".".join(part["path"]) + "}"
    return place if part["inside"] else f'"{place}"'


def _parts(node: object) -> Iterator[Part]:
    match node:
        case dict():
            for number, (name, value) in enumerate(node.items()):
                if _PLACE.search(name):
                    raise ValueError("may have placeholders in values only, never in a name")
                yield {"text": ("," if number else "{") + json.dumps(name) + ":"}
                yield from _parts(value)
            yield {"text": "}" if node else "{}"}
        case list():
            for number, value in enumerate(node):
                yield {"text": "," if number else "["}
                yield from _parts(value)
            yield {"text": "]" if node else "[]"}
        case str():
            yield from _string(node)
        case _:
            yield {"text": json.dumps(node)}


def _string(text: str) -> Iterator[Part]:
    whole = _PLACE.fullmatch(text)
    if whole:
        yield {"path": _path(whole[1]), "inside": False}
        return
    pieces = _PLACE.split(text)  # literal, place, literal, …
    yield {"text": '"'}
    for number, piece in enumerate(pieces):
        yield {"path": _path(piece), "inside": True} if number % 2 else {"text": json.dumps(piece)[1:-1]}
    yield {"text": '"'}


def _path(place: str) -> list[str]:
    first, *deeper = place.split(".")
    if first not in PLACES or (deeper and first != "output") or "" in deeper:
        raise ValueError(
            f"has the placeholder {{{place[:64]}}}: there are only {', '.join(sorted(PLACES))} and output.…"
        )
    return [first, *deeper]


def _body(value: object, info: ValidationInfo) -> object:
    if info.context and "from_snapshot" in info.context:
        return value
    if not isinstance(value, str):
        raise ValueError("must be text that holds JSON: write it between three quotes")  # noqa: TRY004 - pydantic
    return compile_body(value)


BodyTemplate = Annotated[list[Part], BeforeValidator(_body)]
