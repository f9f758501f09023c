"""What a far side of the conformance suite is: manners, and a way to bring about each row of the table.

Not here: the far sides themselves (far_*.py, one a connector, found by name) or the suite (test_connectors).
"""

import importlib
import pkgutil
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from bot.connectors.answers import Row
from bot.connectors.connector import Connector, Effect
from bot.contracts.outcome import SendOutcome, Sent
from tests import conformance

HANG_SECONDS = 1.0  # Long enough to get as far as the hang on a busy machine.
BRIEF_SECONDS = 0.2  # Where nothing has to come first.


class Harness(Protocol):
    """A connector, an effect for it, and a far side with five manners."""

    connector: Connector
    can_look_up: bool

    def effect(self, **policy: Any) -> Effect:
        """An effect that this connector performs."""

    def healthy(self) -> None:
        """From now on the far side confirms."""

    def refusing(self) -> None:
        """From now on it says a plain no."""

    def losing_answers(self) -> None:
        """From now on it does the work and drops the line."""

    def hanging(self) -> None:
        """From now on it does the work and never answers."""

    async def reached(self) -> None:
        """Wait until something has arrived over there."""

    def away(self) -> None:
        """From now on the effects made go where nobody listens."""

    def done(self) -> int:
        """How often the work was done over there."""


Scene = Callable[[Any], Awaitable[list[SendOutcome]]]


@dataclass(frozen=True, slots=True)
class FarSide:
    """A connector's harness, and by the causes of its table how each comes about."""

    harness: Callable[[], AbstractAsyncContextManager[Harness]]
    scenes: Mapping[str, Scene]


def find_far_sides() -> dict[str, FarSide]:
    """Every `far_TYPE.py` of this room."""
    found = {}
    for info in pkgutil.iter_modules(conformance.__path__):
        kind, _, effect_type = info.name.partition("_")
        if kind == "far" and effect_type:
            module = importlib.import_module(f"tests.conformance.{info.name}")
            found[effect_type] = FarSide(module.harness, module.SCENES)
    return found


def fits(row: Row, outcome: SendOutcome) -> bool:
    """Whether an outcome is what its row says; a reason in brackets is the far side's own word."""
    if isinstance(outcome, Sent) or type(outcome) is not row.outcome:
        return type(outcome) is row.outcome
    word = row.reason or row.cause
    pattern = r"\w+" if word.startswith("(") else re.escape(word).replace("xx", "[0-9]{2}")
    return re.fullmatch(pattern, outcome.reason) is not None


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that is taken, and where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
