"""JSON read without leniency and written in its one canonical form (RFC 8785), both fast.
Not here: what the fields of an event mean (fields, event).

Reading is one pass of `jiter`, which refuses NaN, Infinity, a name twice in an object, lone surrogates
and bytes that are not UTF-8, and keeps every integer exact; then one walk for what a parser cannot know.
"""

import math
import re
from typing import Any, Final

import jiter
import orjson
import rfc8785

from bot.contracts.fields import FieldError

MAX_DEPTH: Final = 32  # SPEC section 3: far deeper than real events, far shallower than a stack
MAX_SAFE_INTEGER: Final = 2**53 - 1  # Beyond it JavaScript, and so RFC 8785, cannot tell neighbours apart.
MAX_FAULTS: Final = 50  # A body of nothing but faults must not be answered with megabytes.
_LEAST_PLAIN_FLOAT: Final = 1e-4  # Below it writers begin to differ on when an exponent is due.
_MAX_PATH_CHARACTERS: Final = 200  # Names in a path come from the sender.

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_POSITION: Final = re.compile(r"at (line \d+ column \d+)$")

Path = tuple[str | int, ...]


class NotStrictJson(ValueError):
    """The text is not JSON as we take it; the message says why and where, without quoting from it."""


def read_json(raw: bytes) -> Any:  # noqa: ANN401 - JSON is any of its seven types
    """Parse exactly one JSON value.

    Raises:
        NotStrictJson: on anything that RFC 8259 refuses, on NaN and Infinity, and on what I-JSON (RFC 7493)
            leaves out: a name twice in one object, lone surrogates; and on nesting no walk could follow.

    """
    try:
        return jiter.from_json(raw, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")
    except ValueError as fault:
        raise NotStrictJson(_sentence(str(fault))) from fault


def find_faults(value: object, name: str) -> list[FieldError]:
    """Walk a parsed member of the document and list what cannot be kept exactly: NUL, huge integers, depth.

    `name` is the member's name; the document itself counts as the first level of nesting.
    """
    found: list[FieldError] = []
    _walk(value, (name,), found)
    return found


def canonical_json(value: object) -> bytes:
    """Write the canonical form of RFC 8785.

    Raises:
        rfc8785.CanonicalizationError: for what has none: huge integers, NaN, half a surrogate pair.

    """
    # orjson writes the same bytes some 40 times faster, except for some floats and for the order of names
    # that are not ASCII (UTF-8 order is not UTF-16 order); those few take the general way.
    if _is_plain(value):
        try:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError as fault:
            raise rfc8785.CanonicalizationError("half a surrogate pair, or nested too deep") from fault
    return rfc8785.dumps(value)  # type: ignore[arg-type]  # what is not JSON raises


def _is_plain(value: object) -> bool:
    kind = type(value)
    if kind is str:
        return True
    if kind is dict:
        return all(type(key) is str and key.isascii() and _is_plain(item) for key, item in value.items())  # type: ignore[attr-defined]
    if kind is list:
        return all(map(_is_plain, value))  # type: ignore[call-overload]
    if kind is int:
        return -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER  # type: ignore[operator]
    if kind is float:
        return _is_plain_float(value)  # type: ignore[arg-type]
    return value is None or kind is bool


def _is_plain_float(value: float) -> bool:
    # Here RFC 8785 writes neither an exponent nor a bare integer, and any shortest form is the same form.
    return _LEAST_PLAIN_FLOAT <= abs(value) <= MAX_SAFE_INTEGER and not value.is_integer()


def _walk(value: object, path: Path, found: list[FieldError]) -> None:
    if isinstance(value, str):
        if message := _wrong_text(value):
            _add(found, path, message)
    elif isinstance(value, dict | list):
        if len(path) >= MAX_DEPTH:
            _add(found, path, f"is nested deeper than {MAX_DEPTH} levels")
        else:
            _walk_into(value, path, found)
    elif isinstance(value, int | float) and (message := _wrong_number(value)):
        _add(found, path, message)


def _walk_into(value: dict[str, object] | list[object], path: Path, found: list[FieldError]) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _walk(item, (*path, index), found)
        return
    for key, item in value.items():
        if message := _wrong_text(key):
            _add(found, path, f"{message} in a name")
        _walk(item, (*path, key), found)


def _wrong_text(value: str) -> str | None:
    if "\0" in value:
        return "must not contain a NUL character"
    # Our own parser lets no half pair through; text that came by another way (a Slack modal) may hold one.
    if not value.isascii() and _SURROGATE.search(value):
        return "must not contain half a surrogate pair"
    return None


def _wrong_number(value: float) -> str | None:
    if -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return None
    if math.isinf(value):
        return "is larger than any number that can be kept: send it as text"
    # Every float of this size is an integer; 1e22 is how JavaScript writes a large id it has rounded.
    return "is an integer beyond 2^53-1, which loses digits on the way: send it as text"


def _add(found: list[FieldError], path: Path, message: str) -> None:
    if len(found) < MAX_FAULTS:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        found.append(FieldError("".join(steps).lstrip(".")[:_MAX_PATH_CHARACTERS], message))


def _sentence(fault: str) -> str:
    position = _POSITION.search(fault)
    where = f" ({position[1]})" if position else ""
    if fault.startswith("Detected duplicate key"):
        return f"a name occurs twice in one object{where}"
    if fault.startswith("recursion limit"):
        return f"is nested deeper than {MAX_DEPTH} levels{where}"
    if "surrogate" in fault or "hex escape" in fault:
        return f"half a surrogate pair cannot be kept as text{where}"
    return f"is not valid JSON in UTF-8{where}"
