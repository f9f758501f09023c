"""The kill switch as a pure question, denied by default: may this leave, given these rows and this setting?
Not here: the rows (store/switch) and the statements that ask again at the claim and at the start of a send.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

ALL_SCOPE: Final = "all"
LLM_SCOPE: Final = "llm"
SETTING: Final = "AI_ACTIONS_ENABLED"

_SCOPE: Final = re.compile(r"all|llm|kind:[a-z0-9][a-z0-9_.-]{0,63}|effect:[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Open:
    """Nothing holds it back."""


@dataclass(frozen=True, slots=True)
class Closed:
    """It stays here; `by` is what holds it: a scope, or the name of the setting."""

    by: str


def may_send(
    rows: Mapping[str, bool] | None, *, actions_enabled: bool, kind: str, effect_type: str
) -> Open | Closed:
    """Tell whether an effect may leave.

    `rows` maps scope to whether it is open; None means they could not be read. Open needs the setting, an
    `all` row that is there and open, and no narrower row that is closed (SPEC section 10).
    """
    if not actions_enabled:
        return Closed(SETTING)
    if rows is None or rows.get(ALL_SCOPE) is not True:
        return Closed(ALL_SCOPE)
    for scope in (kind_scope(kind), effect_scope(effect_type)):
        if rows.get(scope, True) is not True:
            return Closed(scope)
    return Open()


def kind_scope(kind: str) -> str:
    """Name the scope of one kind."""
    return f"kind:{kind}"


def effect_scope(effect_type: str) -> str:
    """Name the scope of one effect type."""
    return f"effect:{effect_type}"


def is_scope(word: str) -> bool:
    """Tell a scope from the first word of a reason; whether its kind or type exists is for the caller."""
    return _SCOPE.fullmatch(word) is not None
