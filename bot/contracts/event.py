"""The event as POST /events takes it: strict parsing of the raw bytes, every wrong field reported at once.
Not here: who sent it (the doors), and what its kind's policy asks of it (bot/policy, bot/flow/receive).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bot.contracts import fields
from bot.contracts.fields import FieldError
from bot.contracts.strict_json import MAX_FAULTS, NotStrictJson, find_faults, read_json

__all__ = ["Event", "FieldError", "InvalidEvent", "Origin", "read_event", "read_origin"]

_REQUIRED: Final = frozenset({"event_key", "kind", "entity", "source_version", "payload"})
_RULES: Final[dict[str, Callable[[object], str | None]]] = {
    "event_key": fields.wrong_event_key,
    "kind": fields.wrong_kind,
    "entity": fields.wrong_entity,
    "source_version": fields.wrong_source_version,
    "payload": fields.wrong_object,
    "record_url": fields.wrong_url,
    "requested_by": fields.wrong_requested_by,
    "draft": fields.wrong_object,
    "resume_url": fields.wrong_url,
    "replaces": fields.wrong_event_key,
    "reason": fields.wrong_reason,
}
_MAX_ORIGIN_CHARACTERS: Final = 200  # Ids of n8n are short; what is longer is not one, and is cut.
_NOT_PRINTABLE: Final = re.compile(r"[^\x20-\x7e]")


class InvalidEvent(Exception):
    """The body is not an event; `errors` names every wrong field. The message quotes nothing from it."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        super().__init__(f"the event has {len(errors)} wrong field(s)")
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Event:
    """One fact from upstream (SPEC section 3). What was absent or null is None."""

    source: str
    kind: str
    event_key: str
    entity: str
    source_version: int
    payload: dict[str, Any]
    record_url: str | None = None
    requested_by: str | None = None
    draft: dict[str, Any] | None = None
    resume_url: str | None = None
    replaces: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """What n8n says of itself in headers: recorded, never hashed, never trusted."""

    execution: str | None = None
    workflow: str | None = None
    workflow_version: str | None = None


def read_origin(headers: Mapping[str, str]) -> Origin:
    """Take the three origin headers (names in lower case), cut and stripped of what is not printable."""
    return Origin(
        execution=_origin_text(headers.get("x-n8n-execution")),
        workflow=_origin_text(headers.get("x-n8n-workflow")),
        workflow_version=_origin_text(headers.get("x-workflow-version")),
    )


def read_event(raw: bytes, *, source: str, header_key: str | None) -> Event:
    """Parse the raw body of an authenticated request.

    `source` is the sender's name as authenticated, `header_key` the `Idempotency-Key` header as it arrived.

    Raises:
        InvalidEvent: with every wrong field, each with a sentence that says how to mend it.

    """
    body = _read_object(raw)
    errors = _check_key_header(body, header_key) + _check_fields(body) + _check_replaces(body)
    if errors:
        raise InvalidEvent(tuple(errors[:MAX_FAULTS]))
    body["source_version"] = int(body["source_version"])
    return Event(source=source, **body)


def _read_object(raw: bytes) -> dict[str, Any]:
    try:
        body = read_json(raw)
    except NotStrictJson as fault:
        raise InvalidEvent((FieldError("body", str(fault)),)) from fault
    if not isinstance(body, dict):
        raise InvalidEvent((FieldError("body", "must be one JSON object"),))
    return body


def _check_key_header(body: dict[str, Any], header_key: str | None) -> list[FieldError]:
    """Let the header stand in for an absent `event_key`; if both are there they must agree."""
    if header_key is None:
        return []
    if body.get("event_key") is None:
        body["event_key"] = header_key
    elif body["event_key"] != header_key:
        return [
            FieldError("event_key", "differs from the Idempotency-Key header: send only one, or both alike")
        ]
    return []


def _check_fields(body: dict[str, Any]) -> list[FieldError]:
    errors = [FieldError(name[:100], "is not a field of an event") for name in body if name not in _RULES]
    for name, rule in _RULES.items():
        value = body.get(name)
        if value is None:
            if name in _REQUIRED:
                errors.append(FieldError(name, "is required"))
        elif message := rule(value):
            errors.append(FieldError(name, message))
        elif type(value) is dict:
            errors += find_faults(value, name)
    return errors


def _check_replaces(body: dict[str, Any]) -> list[FieldError]:
    old, new = body.get("replaces"), body.get("event_key")
    if old is None:
        return []
    if body.get("reason") is None:
        return [FieldError("reason", "is required with replaces: say what has to be corrected")]
    if isinstance(old, str) and isinstance(new, str) and _is_old_with_suffix(new, old):
        return [FieldError("event_key", "is the replaced key with a suffix: send the upstream's own new key")]
    return []


def _is_old_with_suffix(new: str, old: str) -> bool:
    """Tell a made-up key: the old one, alone or followed by something that begins with no letter or digit."""
    rest = new.removeprefix(old)
    return new.startswith(old) and not rest[:1].isalnum()


def _origin_text(value: str | None) -> str | None:
    return _NOT_PRINTABLE.sub("", value)[:_MAX_ORIGIN_CHARACTERS] or None if value else None
