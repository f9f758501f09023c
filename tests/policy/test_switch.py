"""The kill switch: open only if everything says so.
Not here: the statements that ask it.
"""

import itertools

import pytest

from bot.policy.switch import Closed, Open, is_scope, may_send

OPEN = {"all": True}


# An effect leaves only with the setting on, the `all` row there and open, and no narrower row closed.
@pytest.mark.parametrize(
    ("rows", "enabled", "answer"),
    [
        (OPEN, True, Open()),
        (OPEN | {"kind:a": True, "effect:http": True}, True, Open()),
        (OPEN | {"kind:b": False, "effect:smtp": False, "llm": False}, True, Open()),
        (OPEN, False, Closed("AI_ACTIONS_ENABLED")),
        (None, True, Closed("all")),
        ({}, True, Closed("all")),
        ({"kind:a": True, "effect:http": True}, True, Closed("all")),
        ({"all": False, "kind:a": True}, True, Closed("all")),
        (OPEN | {"kind:a": False}, True, Closed("kind:a")),
        (OPEN | {"effect:http": False}, True, Closed("effect:http")),
    ],
)
def test_may_send(rows: dict[str, bool] | None, enabled: bool, answer: Open | Closed) -> None:
    assert may_send(rows, actions_enabled=enabled, kind="a", effect_type="http") == answer


# Over every combination, one thing closed is enough.
@pytest.mark.parametrize("states", list(itertools.product([True, False, None], repeat=3)))
def test_every_combination(states: tuple[bool | None, ...]) -> None:
    scopes = ("all", "kind:a", "effect:http")
    rows = {scope: state for scope, state in zip(scopes, states, strict=True) if state is not None}
    is_open = states[0] is True and False not in states[1:]
    answer = may_send(rows, actions_enabled=True, kind="a", effect_type="http")
    assert isinstance(answer, Open) is is_open


# The first word of a reason is only a scope if it is one.
@pytest.mark.parametrize(
    ("word", "scope"),
    [
        ("all", True),
        ("llm", True),
        ("kind:order.paid", True),
        ("effect:slack_message", True),
        ("mail", False),
        ("kind:", False),
        ("kind", False),
        ("effect:A", False),
        ("ALL", False),
        ("all ", False),
    ],
)
def test_is_scope(word: str, scope: bool) -> None:
    assert is_scope(word) is scope
