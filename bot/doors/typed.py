"""Reads what people type after /stet, as phones and keyboards make it: quotes, dashes, case and spaces.

Not here: what the words do (commands, switching).
"""

import html
import re
from dataclasses import dataclass
from typing import Final

from bot.policy.switch import ALL_SCOPE, LLM_SCOPE

_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
_QUOTES: Final = "\"'`´“”„‟«»‹›‘’‚‛「」『』＂＇"
_OPENING: Final = frozenset(_QUOTES)
_DASHES: Final = "-‐‑‒–—―−﹘﹣－"
_SIGNS: Final = _QUOTES + _DASHES + ":：,.!"
_PLAIN: Final = str.maketrans({**dict.fromkeys("“”„‟«»＂", '"'), **dict.fromkeys("‘’‚‛＇", "'")})
_REASON: Final = re.compile(rf"[{_DASHES}]+\s*reason\b[\s:=]*", re.IGNORECASE)
_SCOPE: Final = re.compile(rf"(?:{ALL_SCOPE}|{LLM_SCOPE}|(?:kind|effect):\S*)", re.IGNORECASE)
_PREFIX: Final = re.compile(r"^(kind|effect)\s*[:：]\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Typed:
    """The command's word in lower case, and what follows it."""

    word: str
    rest: str


def read_typed(text: str) -> Typed:
    """Split the first word off; it loses case and the signs around it, the rest only its margins."""
    word, _, rest = _spaced(text).partition(" ")
    return Typed(word.strip(_SIGNS).lower(), rest.strip())


def read_scope(rest: str) -> tuple[str | None, str]:
    """Take a scope off the front, None without one: only `all`, `llm`, `kind:…` and `effect:…` are scopes.

    In quotes a scope stands alone; quotes around more than it are those of a reason.
    """
    joined = _PREFIX.sub(lambda found: f"{found[1]}:", rest.lstrip(_DASHES + " "), count=1)
    first, _, after = joined.partition(" ")
    word = first.strip(_QUOTES + ",")
    quoted = first[:1] in _OPENING and first.rstrip(",")[-1:] not in _QUOTES
    if quoted or _SCOPE.fullmatch(word) is None:
        return None, rest
    return word.lower(), after.strip()


def read_reason(text: str) -> str:
    """The reason itself: without `--reason` before it and without quotes around all of it."""
    reason = text.strip()
    introduced = _REASON.match(reason)
    if introduced:
        reason = reason[introduced.end() :].strip()
    reason = reason.lstrip(_DASHES + " ")
    if len(reason) > 1 and reason[0] in _QUOTES and reason[-1] in _QUOTES:
        reason = reason[1:-1]
    return reason.strip()


def read_key(text: str) -> list[str]:
    """What key may have been meant, likeliest first: keys are ASCII, phones and Slack are not."""
    typed = text.strip()
    bare = typed.strip(_QUOTES)
    found = [typed, bare, html.unescape(typed), html.unescape(bare)]
    for dash in ("--", "-"):
        found += [re.sub(rf"[{_DASHES[1:]}]", dash, each.translate(_PLAIN)) for each in found[:4]]
    return list(dict.fromkeys(each for each in found if each))


def _spaced(text: str) -> str:
    """Plain spaces for whatever spaces stood there, none around; nothing that cannot be seen."""
    return re.sub(r"\s", " ", _INVISIBLE.sub("", text)).strip()
