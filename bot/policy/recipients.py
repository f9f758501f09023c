"""Who an effect goes to: read from the payload by the policy's path, and exactly one plain address.
Not here: which hosts may be reached (bot/connectors/reach). Model output is never asked.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bot.policy.clauses import MISSING, EffectPolicy, read_path
from bot.policy.terms import Kind
from bot.policy.values import is_channel_or_user

_MAX_ADDRESS_CHARACTERS: Final = 254  # RFC 5321, section 4.5.3.1.3, without its angle brackets
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ATOM: Final = r"[A-Za-z0-9#$&'*+/=?^_`{|}~-]+"
# Dot-atom and host names only (RFC 5321, section 4.1.2): no quotes, comments, lists, routes or display names.
# Nor what servers may take for more than a name: old routes (a%b@, b!a@), an option (-o@), an encoded word.
_ADDRESS: Final = re.compile(
    rf"(?=[^@]{{1,64}}@)(?!-|[^@]*=\?){_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+(?=[A-Za-z]){_LABEL}"
)


_ADDRESS_SENTENCE: Final = (
    "must be exactly one plain mail address like amy@example.com: no name, no list, ASCII only "
    "(an international domain in its xn-- form), and before the @ no %, ! or =?, which servers may take "
    "for a route or for other text, nor a - at its beginning"
)


@dataclass(frozen=True, slots=True)
class WrongRecipient:
    """There is no usable recipient; `message` says why without quoting it, `field` where it should be."""

    field: str
    message: str


def find_recipient(effect: EffectPolicy, payload: Mapping[str, Any]) -> str | WrongRecipient | None:
    """Give the one address an effect goes to; None if the kind has no `recipient`."""
    if effect.recipient is None:
        return None
    value = read_path({"payload": payload}, effect.recipient)
    if value is MISSING or value is None:
        return WrongRecipient(effect.recipient, "is required: the kind sends to the address found here")
    if message := _wrong_address(effect.type, value):
        return WrongRecipient(effect.recipient, message)
    return str(value)


def find_wrong_recipients(kind: Kind, payload: Mapping[str, Any]) -> list[WrongRecipient]:
    """List what is wrong with the recipients of a kind's effects and of what undoes them, each once."""
    found = [find_recipient(effect, payload) for _, effect in kind.all_sends]
    return list(dict.fromkeys(one for one in found if isinstance(one, WrongRecipient)))


def _wrong_address(effect_type: str, value: object) -> str | None:
    if not isinstance(value, str):
        return "must be text: one plain address"
    if effect_type == "slack_message":
        return None if is_channel_or_user(value) else "must be one Slack channel or user id"
    return None if is_plain_address(value) else _ADDRESS_SENTENCE


def is_plain_address(text: str) -> bool:
    """Tell one bare ASCII mail address from everything that looks like it."""
    return len(text) <= _MAX_ADDRESS_CHARACTERS and _ADDRESS.fullmatch(text) is not None
