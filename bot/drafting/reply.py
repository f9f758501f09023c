"""The endpoint's reply to one request, read without trust: what was said, why it ended, what it cost.
Not here: the request (model), and the object inside the answer (extract). Reasoning fields are never read.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bot.drafting.extract import find_object
from bot.drafting.faults import NotJson, ProviderFault, Refused

_CUT: Final = frozenset({"length", "max_tokens", "model_length"})
_FILTERED: Final = frozenset({"content_filter", "safety", "recitation", "prohibited_content", "blocklist"})
_NOT_PLAIN: Final = re.compile(r"[^\x20-\x7e]")
_MAX_NAME_CHARACTERS: Final = 200  # Model names and fingerprints are far shorter; what is longer is not one.
_MAX_TOKENS: Final = 100_000_000  # A day's budget; a larger count is nonsense and must not eat one.


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply. `text` is what the model said openly; it is kept out of the repr."""

    text: str = field(repr=False)
    finish_reason: str | None
    refused: bool
    model: str | None
    fingerprint: str | None
    prompt_tokens: int
    completion_tokens: int


def read_reply(raw: bytes) -> Reply:
    """Read the body of a 2xx.

    Raises:
        ProviderFault: not a JSON object, an error inside, no choices, a choice without a message.

    """
    body = _read_body(raw)
    choice = _first_choice(body)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise ProviderFault("no_message")
    reason = choice.get("finish_reason")
    finish_reason = reason.casefold() if isinstance(reason, str) else None
    usage = body.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    return Reply(
        text=_said(message.get("content")),
        finish_reason=finish_reason,
        refused=bool(message.get("refusal")) or finish_reason in _FILTERED,
        model=_plain(body.get("model")),
        fingerprint=_plain(body.get("system_fingerprint")),
        prompt_tokens=_count(counts.get("prompt_tokens")),
        completion_tokens=_count(counts.get("completion_tokens")),
    )


def read_models(raw: bytes) -> tuple[str, ...]:
    """Read the names in a list of models; what is not one is left out.

    Raises:
        ProviderFault: not a JSON object, or an error inside.

    """
    data = _read_body(raw).get("data")
    entries = data if isinstance(data, list) else []
    names = (_plain(each.get("id")) for each in entries if isinstance(each, Mapping))
    return tuple(name for name in names if name)


def take_object(reply: Reply) -> dict[str, Any]:
    """Take the one JSON object of a reply.

    Raises:
        Refused: the model declined or was filtered.
        NotJson: also `truncated`, when the token limit cut the answer, whatever it may still parse as.

    """
    if reply.refused:
        raise Refused("content_filter" if reply.finish_reason in _FILTERED else "refusal")
    if reply.finish_reason in _CUT:
        raise NotJson("truncated", hints=("The answer was cut at the token limit; give a shorter one.",))
    return find_object(reply.text)


def _read_body(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise ProviderFault("not_json_http") from None
    if not isinstance(body, dict):
        raise ProviderFault("not_json_http")
    if body.get("error"):
        raise ProviderFault("error_in_200")
    return body


def _first_choice(body: dict[str, Any]) -> Mapping[str, Any]:
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise ProviderFault("no_choices")
    choice: Mapping[str, Any] = choices[0]
    if choice.get("error") or choice.get("finish_reason") == "error":
        raise ProviderFault("error_in_200")
    return choice


def _said(content: object) -> str:
    """Text, or the text parts of a list of parts (a part of another type is reasoning or no text at all)."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part for part in content if isinstance(part, Mapping) and part.get("type") == "text")
    return "".join(text for part in parts if isinstance(text := part.get("text"), str))


def _plain(name: object) -> str | None:
    return _NOT_PLAIN.sub("?", name)[:_MAX_NAME_CHARACTERS] if isinstance(name, str) and name else None


def _count(value: object) -> int:
    return min(max(value, 0), _MAX_TOKENS) if isinstance(value, int) and not isinstance(value, bool) else 0
