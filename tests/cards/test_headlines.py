"""The headline of several effects: for every combination of their lives it is true of each of them.

Not here: how it is drawn (test_review) or which life an effect has (tests/flow).
"""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Final
from uuid import UUID

from bot.cards.lives import (
    Action,
    Awaiting,
    Dropped,
    Held,
    Kept,
    Life,
    Part,
    Paused,
    Queued,
    Scheduled,
    SendFailed,
    Sending,
    SendUnknown,
    Sent,
    Undoing,
)
from bot.cards.status import state_title
from bot.cards.views import Approved
from tests.cards.samples import BEN, DECIDED

LIVES: Final[dict[str, Life]] = {
    "sent": Sent(DECIDED),
    "sending": Sending(DECIDED),
    "queued": Queued(),
    "scheduled": Scheduled(DECIDED),
    "held": Held(DECIDED, "timeout"),
    "kept": Kept("resting", DECIDED, "n8n.example"),
    "paused": Paused("all"),
    "awaiting": Awaiting("mail"),
    "unknown": SendUnknown(DECIDED, "timeout"),
    "given_up": SendFailed(DECIDED, "given_up", BEN),
    "failed": SendFailed(DECIDED, "http_422"),
    "dropped": Dropped(DECIDED, "after_failed"),
}
NOT_SENT = {"failed", "dropped"}
LEAVES = {"queued", "scheduled", "awaiting"}
STANDS = {"held", "kept", "paused"}
WAITS = LEAVES | STANDS
OPEN = WAITS | {"sending"}
KNOWN = set(LIVES) - {"unknown"}
SURE = KNOWN - {"given_up"}
# Of each headline: what it is true beside, and of each of these sets at least one.
TRUE_OF: Final[dict[str, tuple[set[str], list[set[str]]]]] = {
    "sendunknown": ({"unknown"}, []),
    "partunknown": (set(LIVES), [{"unknown"}, KNOWN]),
    "givenup": ({"given_up"}, []),
    "partgivenup": (KNOWN, [{"given_up"}, SURE]),
    "partopen": (SURE, [NOT_SENT, OPEN]),
    "partsent": (NOT_SENT | {"sent"}, [NOT_SENT, {"sent"}]),
    "sendfailed": (NOT_SENT, []),
    "sent": ({"sent"}, []),
    "sending": (OPEN | {"sent"}, [{"sending"}]),
    "partwaits": (WAITS | {"sent"}, [{"sent"}, LEAVES]),
    "partstands": (STANDS | {"sent", "awaiting"}, [{"sent"}, STANDS]),
    "queued": (WAITS, [{"queued"}]),
    "scheduled": (WAITS - {"queued"}, [{"scheduled"}]),
    "awaiting": ({"awaiting"}, []),
    "held": ({"held", "awaiting"}, [{"held"}]),
    "paused": ({"paused", "awaiting"}, [{"paused"}]),
    "kept": (STANDS | {"awaiting"}, [STANDS]),
}
# Of what is taken back: the same, of the lives of the undos.
UNDO_TRUE_OF: Final[dict[str, tuple[set[str], list[set[str]]]]] = {
    "undounknown": ({"unknown"}, []),
    "partundounknown": (set(LIVES), [{"unknown"}, KNOWN]),
    "undogivenup": ({"given_up"}, []),
    "partundogivenup": (KNOWN, [{"given_up"}, SURE]),
    "undofailed": (NOT_SENT, []),
    "partundofailed": (SURE, [NOT_SENT, SURE - NOT_SENT]),
    "undoing": (OPEN | {"sent"}, [OPEN]),
    "undone": ({"sent"}, []),
}


def parts_of(names: tuple[str, ...], undos: tuple[str | None, ...] = ()) -> tuple[Part, ...]:
    backs = [None if undo is None else Undoing(BEN, DECIDED, LIVES[undo]) for undo in undos]
    return tuple(
        Part(
            UUID(int=number + 1),
            Action("http", "n8n.example", None, f"part{number}"),
            LIVES[name],
            undoing=backs[number] if backs else None,
        )
        for number, name in enumerate(names)
    )


def title_of(names: tuple[str, ...], undos: tuple[str | None, ...] = ()) -> str:
    # The life of the whole is that of one of them, as it was once the only thing that the headline knew.
    gravest = next(name for name in ("unknown", "sending", "failed", *LIVES) if name in names)
    state = Approved(LIVES[gravest], parts=parts_of(names, undos))
    return state_title(state).removeprefix("state.")


def several() -> Iterator[tuple[str, ...]]:
    for count in (1, 2, 3):
        yield from product(LIVES, repeat=count)


def is_true(rule: tuple[set[str], list[set[str]]], names: set[str]) -> bool:
    beside, needed = rule
    return names <= beside and all(names & one for one in needed)


# No headline says the opposite of what became of a part, whatever the order, and each is said of something.
def test_every_combination() -> None:
    titles = {names: title_of(names) for names in several()}
    wrong = {names: title for names, title in titles.items() if not is_true(TRUE_OF[title], set(names))}
    assert wrong == {}
    assert set(titles.values()) == set(TRUE_OF)
    by_set: dict[tuple[str, ...], set[str]] = {}
    for names, title in titles.items():
        by_set.setdefault(tuple(sorted(set(names))), set()).add(title)
    assert [names for names, said in by_set.items() if len(said) > 1] == []


# The same of the undos of two and three delivered effects.
def test_every_undo() -> None:
    for names in several():
        title = title_of(("sent",) * len(names), names)
        assert is_true(UNDO_TRUE_OF[title], set(names)), (names, title)


# Undone is said when nothing is left at the target that arrived or may have.
def test_partly_undone() -> None:
    for one, other in combinations(("sent", "given_up", "failed", "dropped"), 2):
        title = title_of((one, other), ("sent", None))
        assert title == ("partundone" if other == "given_up" else "undone"), (one, other)
    assert title_of(("sent", "sent"), ("sent", None)) == "partundone"
