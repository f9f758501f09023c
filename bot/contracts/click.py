"""What a Slack button or modal of ours carries: its action id, and an opaque value with token and revision.
Not here: who clicked and whether that counts (bot/policy/people, bot/flow/decide).

A token belongs to one button: a reject token cannot approve. It is base64url of 32 random bytes without
padding (43 characters); only its SHA-256 is stored (SPEC section 8).
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from uuid import UUID


class Decision(StrEnum):
    """What a person answered."""

    APPROVE = "approve"
    REJECT = "reject"
    EDIT = "edit"
    REDRAFT = "redraft"
    CANCEL = "cancel"
    UNDO = "undo"


class Surface(StrEnum):
    """Where a token was shown; a click must come from the same place."""

    MESSAGE = "message"
    VIEW = "view"
    HOME = "home"


APPROVE_ACTION: Final = "stet.approve"
REJECT_ACTION: Final = "stet.reject"
READ_ACTION: Final = "stet.read"  # opens the whole draft in a modal; decides nothing
EDIT_ACTION: Final = "stet.edit"
REDRAFT_ACTION: Final = "stet.redraft"
CANCEL_ACTION: Final = "stet.cancel"
UNDO_ACTION: Final = "stet.undo"  # of the first effect; the others' say `stet.undo.2` and so on
QUEUE_NEXT_ACTION: Final = "stet.queue.next"  # opens the next draft in line; decides nothing
REHEARSAL_ACTION: Final = "stet.rehearsal"  # on the doctor's test card; decides nothing
UNKNOWN_DELIVERED_ACTION: Final = "stet.unknown.delivered"
UNKNOWN_RESEND_ACTION: Final = "stet.unknown.resend"
UNKNOWN_DROP_ACTION: Final = "stet.unknown.drop"  # stands in resend's place while a newer event waits
UNKNOWN_GIVE_UP_ACTION: Final = "stet.unknown.give_up"

NEXT_VALUE: Final = "next"  # what the queue card's button carries: who is next is known at the click alone
ACTION_DECISIONS: Final = {f"stet.{decision.value}": decision for decision in Decision}

_BUTTON_VALUE: Final = re.compile(r"([A-Za-z0-9_-]{43})\.([1-9][0-9]{0,8})")
_UNDO_ACTION: Final = re.compile(r"stet\.undo(?:\.[1-9])?")
_EFFECT_VALUE: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class ButtonValue:
    """A decision button's value. The token is a secret and stays out of `repr`."""

    token: str = field(repr=False)
    revision: int


@dataclass(frozen=True, slots=True)
class EffectValue:
    """The value of a button on an unknown effect's card, bound to the effect's version."""

    effect_id: UUID
    version: int


def encode_value(value: ButtonValue) -> str:
    """Write `<token>.<revision>`, the whole of what a button carries."""
    return f"{value.token}.{value.revision}"


def decode_value(text: str) -> ButtonValue | None:
    """Read a button's value; None for anything that we never wrote."""
    found = _BUTTON_VALUE.fullmatch(text)
    return ButtonValue(token=found[1], revision=int(found[2])) if found else None


def undo_action(number: int) -> str:
    """Name the undo button of the effect with this number, from 0: Slack wants names that differ."""
    return UNDO_ACTION if number == 0 else f"{UNDO_ACTION}.{number + 1}"


def is_undo_action(action_id: str) -> bool:
    """Tell the undo button of any effect from other buttons."""
    return _UNDO_ACTION.fullmatch(action_id) is not None


def encode_effect_value(value: EffectValue) -> str:
    """Write `<effect_id>.<version>`."""
    return f"{value.effect_id}.{value.version}"


def decode_effect_value(text: str) -> EffectValue | None:
    """Read the value of an unknown-effect button; None for anything that we never wrote."""
    found = _EFFECT_VALUE.fullmatch(text)
    return EffectValue(effect_id=UUID(found[1]), version=int(found[2])) if found else None
