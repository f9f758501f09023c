"""The one JSON object in a model's answer: reasoning dropped, prose and fences passed over.
Not here: whether the object fits the kind (check), and how the endpoint's reply is read (reply).

The text is walked once from left to right. Outside of JSON a reasoning block is skipped whole; inside a
string of the object the same tags are text, and stay as they are. Nothing is ever completed.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from bot.contracts.strict_json import NotStrictJson, find_faults, read_json
from bot.drafting.faults import NotJson

# Ten times the longest text anybody reads before approving it.
MAX_ANSWER_BYTES: Final = 64 * 1024

_TAGS: Final = (
    "think|thinking|thought|thoughts|reason|reasoning|reflection|scratchpad|analysis"
    "|chain_of_thought|seed:think|antthinking|internal_monologue"
)
# (opening, closing) of what models are known to wrap their reasoning in. A closing that comes without its
# opening (chat templates put the opening into the prompt) makes all before it reasoning.
_BLOCKS: Final = (
    (rf"<(?:{_TAGS})\b[^<>]*>", rf"</(?:{_TAGS})\s*>"),
    (r"\[(?:THINK|REASONING)\]", r"\[/(?:THINK|REASONING)\]"),
    (r"<\|channel\|>\s*(?!final\b)\w*", r"<\|channel\|>\s*final\b|<\|end\|>|assistantfinal"),
    (r"<\|channel>\s*(?!final\b)\w*", r"<channel\|>"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"◁think▷", r"◁/think▷"),
    (r"<unused94>", r"<unused95>"),
)
_CLOSINGS: Final = tuple(re.compile(closing, re.IGNORECASE) for _, closing in _BLOCKS)
_TAG_SIGNS: Final = "|".join(
    [
        *(f"(?P<open{number}>{opening})" for number, (opening, _) in enumerate(_BLOCKS)),
        *(f"(?P<shut{number}>{closing})" for number, (_, closing) in enumerate(_BLOCKS)),
    ],
)
_TAGS_ONLY: Final = re.compile(_TAG_SIGNS, re.IGNORECASE)
_SIGNS: Final = re.compile(rf"{_TAG_SIGNS}|(?P<list>\[\s*\{{)|(?P<brace>\{{)", re.IGNORECASE)
_STARTS_LIKE_JSON: Final = re.compile(r"\{\s*[\"}]")
_BRACES: Final = re.compile(r"[{}]")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Block:
    """A stretch of reasoning, from the start of the text if it had no opening."""

    start: int
    end: int
    from_the_start: bool


@dataclass(frozen=True, slots=True)
class _Json:
    """A stretch that reads as a JSON object."""

    start: int
    end: int


_Found = _Block | _Json | NotJson


def find_object(text: str) -> dict[str, Any]:
    """Take the only JSON object that is left when reasoning and prose are dropped.

    Raises:
        NotJson: with detail `empty`, `too_large`, `prose` (none is left), `several`, `list`, `broken` (begins
            like an object and is none), `too_deep`, `not_strict` (a name twice, NaN, half a surrogate pair),
            `not_keepable` (NUL, integers beyond 2^53-1, over 32 levels).

    """
    if len(text.encode(errors="surrogatepass")) > MAX_ANSWER_BYTES:
        raise NotJson("too_large", hints=(f"The answer is larger than {MAX_ANSWER_BYTES} bytes.",))
    if not text.strip():
        raise NotJson("empty", hints=("The answer is empty.",))
    return _read_strictly(text, _the_only_one(text))


def visible_text(text: str) -> str:
    """Give the answer without its reasoning blocks, for showing it to the model again, nothing else."""
    kept: list[str] = []
    position = 0
    for found in _walk(text):
        if isinstance(found, _Block):
            kept = [] if found.from_the_start else [*kept, text[position : found.start]]
            position = found.end
    return "".join([*kept, text[position:]]).strip()


def _the_only_one(text: str) -> _Json:
    objects: list[_Json] = []
    fault: NotJson | None = None
    for found in _walk(text):
        match found:
            case _Json():
                objects.append(found)
            case NotJson():
                fault = found
            case _Block(from_the_start=True):
                objects, fault = [], None
    if fault is not None:
        raise fault
    if len(objects) == 1:
        return objects[0]
    if objects:
        raise NotJson("several", hints=(f"The answer holds {len(objects)} JSON objects; give exactly one.",))
    if not visible_text(text):
        raise NotJson("empty", hints=("The answer is empty but for reasoning.",))
    raise NotJson("prose", hints=("The answer holds no JSON object.",))


def _walk(text: str) -> Iterator[_Found]:
    position = 0
    broken = False
    # Once something is broken, only reasoning is looked for: half an answer is never completed by its own
    # parts, but all of it may turn out to have been reasoning.
    while sign := (_TAGS_ONLY if broken else _SIGNS).search(text, position):
        found, position = _read_sign(text, sign)
        if isinstance(found, NotJson):
            broken = True
        elif isinstance(found, _Block) and found.from_the_start:
            broken = False
        if found is not None:
            yield found


def _read_sign(text: str, sign: re.Match[str]) -> tuple[_Found | None, int]:
    """What begins here, and where the walk goes on."""
    name = str(sign.lastgroup)
    if name.startswith("open"):
        closing = _CLOSINGS[int(name[4:])].search(text, sign.end())
        end = closing.end() if closing else len(text)
        return _Block(sign.start(), end, from_the_start=False), end
    if name.startswith("shut"):
        return _Block(0, sign.end(), from_the_start=True), sign.end()
    if name == "list":
        return NotJson("list", hints=("The answer is a list; give the one JSON object itself.",)), sign.end()
    if _STARTS_LIKE_JSON.match(text, sign.start()):
        return _read_json_here(text, sign.start())
    return _pass_braces(text, sign.start())


def _read_json_here(text: str, start: int) -> tuple[_Json | NotJson, int]:
    try:
        _, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        return NotJson("too_deep", hints=("The answer is nested too deep.",)), start + 1
    except ValueError as fault:
        # int() refuses thousands of digits with an error that knows no place.
        at = f" at character {fault.pos - start + 1}" if isinstance(fault, json.JSONDecodeError) else ""
        return NotJson("broken", hints=(f"The JSON object is broken{at}.",)), start + 1
    return _Json(start, end), end


def _pass_braces(text: str, start: int) -> tuple[NotJson | None, int]:
    """Pass over braces that are not JSON, `{like this}`, with all that they enclose."""
    depth = 0
    for brace in _BRACES.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return None, brace.end()
    return NotJson("broken", hints=("The answer holds a brace that is never closed.",)), start + 1


def _read_strictly(text: str, found: _Json) -> dict[str, Any]:
    try:
        value = read_json(text[found.start : found.end].encode(errors="surrogatepass"))
    except NotStrictJson as fault:
        raise NotJson("not_strict", hints=(f"The JSON object is not acceptable: {fault}.",)) from None
    faults = find_faults(value, "answer")
    if faults:
        raise NotJson("not_keepable", hints=tuple(f"{fault.field} {fault.message}." for fault in faults))
    if not isinstance(value, dict):
        raise NotJson("prose", hints=("The answer holds no JSON object.",))
    return value
