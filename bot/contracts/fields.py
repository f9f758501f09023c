"""What one field of an event may look like: each rule answers None, or the sentence that says how to mend it.
Not here: how fields go together (event), and what a kind's policy asks of them (bot/policy).
"""

import re
from dataclasses import dataclass
from typing import Final

MAX_ENTITY_CHARACTERS: Final = 512  # SPEC section 3; at most 2,048 bytes, which an index row can hold
MAX_URL_CHARACTERS: Final = 2048  # Longer ones break in browsers and in Slack's 3,000 characters a text.
MAX_REASON_CHARACTERS: Final = 2000  # A reason is read by people on a card, whose texts end at 3,000.
MAX_SOURCE_VERSION: Final = 2**63 - 1  # a bigint column, SPEC section 1

KIND: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
SOURCE: Final = re.compile(r"[a-z0-9_-]{1,64}")
_EVENT_KEY: Final = re.compile(r"[\x21-\x7e]|[\x21-\x7e][\x20-\x7e]{0,253}[\x21-\x7e]")
_DIGITS: Final = re.compile(r"[0-9]{1,64}")
# Scheme, host (a name, or an address in brackets), port, rest; no user info, white space or controls.
_URL: Final = re.compile(
    r"(?i:https?)://(?:\[[0-9a-fA-F:.]+\]|[^\s\x00-\x20\x7f/?#@\\\[\]:]+)"
    r"(?::([0-9]{1,5}))?(?:[/?#][^\s\x00-\x20\x7f\\]*)?"
)
_MAX_PORT: Final = 65535


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field: where it is (`payload.items[2]`), and a sentence that says how to mend it."""

    field: str
    message: str


def wrong_kind(value: object) -> str | None:
    """Check a kind's name (SPEC section 1)."""
    if type(value) is str and KIND.fullmatch(value):
        return None
    return "must be 1 to 64 of a-z 0-9 _ . - and begin with a letter or digit"


def wrong_entity(value: object) -> str | None:
    """Check an entity: text of 1 to 512 characters that is more than white space."""
    return _wrong_text(value, MAX_ENTITY_CHARACTERS)


def wrong_event_key(value: object) -> str | None:
    """Check a key issued upstream (SPEC section 3); a blank or stringified absence is not a key."""
    if type(value) is not str:
        return "must be text: send the upstream system's own id of this fact"
    if value in {"null", "undefined"}:
        return f'is the word "{value}": the expression that should give the key found nothing'
    if not _EVENT_KEY.fullmatch(value):
        return "must be 1 to 255 printable ASCII characters without a space at either end"
    return None


def wrong_source_version(value: object) -> str | None:
    """Check a version: an integer of 0 to 2^63-1, or the same as text of decimal digits."""
    if type(value) is str and _DIGITS.fullmatch(value):
        value = int(value)
    if type(value) is not int or value < 0:
        return "must be an integer of at least 0, or a string of decimal digits"
    if value > MAX_SOURCE_VERSION:
        return "must fit into a signed 64-bit integer (at most 9223372036854775807)"
    return None


def wrong_object(value: object) -> str | None:
    """Check that a field is a JSON object."""
    return None if type(value) is dict else "must be a JSON object"


def wrong_requested_by(value: object) -> str | None:
    """Check whoever asked: any text of 1 to 512 characters."""
    return _wrong_text(value, MAX_ENTITY_CHARACTERS)


def wrong_reason(value: object) -> str | None:
    """Check the reason of a correction: any text of 1 to 2,000 characters."""
    return _wrong_text(value, MAX_REASON_CHARACTERS)


def wrong_url(value: object) -> str | None:
    """Check an absolute http or https URL without user info; whether its host is allowed is policy."""
    if type(value) is not str:
        return "must be text: an absolute http or https URL"
    if len(value) > MAX_URL_CHARACTERS:
        return f"must be at most {MAX_URL_CHARACTERS} characters"
    found = _URL.fullmatch(value)
    if not found or int(found[1] or 0) > _MAX_PORT:
        return "must be an absolute http or https URL without user name, spaces or backslashes"
    return None


def _wrong_text(value: object, most: int) -> str | None:
    if type(value) is not str:
        return "must be text"
    if "\0" in value:
        return "must not contain a NUL character"
    if not value or len(value) > most:
        return f"must be 1 to {most} characters"
    return "must not be blank" if value.isspace() else None
