"""Finds the headline of what was let out: it never says the opposite of what became of a part.

Ground of status. Not here: the headlines of what nobody let out (status), or the sentences (words_en).
"""

from collections.abc import Sequence
from typing import Final

from bot.cards.lives import (
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
)

_LEAVES: Final = (Queued, Scheduled)  # By itself, the soonest first.
_STANDS: Final = (Held, Kept, Paused)


def title(life: Life, parts: Sequence[Part]) -> str:
    """The key of the headline, `state.…`: of what is taken back if there is such, else of what was sent.

    `life` stands for a draft whose parts are not told.
    """
    return _undo_title(parts) or _title([part.life for part in parts] or [life])


def _title(lives: Sequence[Life]) -> str:
    """Say first what nobody knows, then what was not sent, then what is to come.

    Whoever reads of something unknown looks below before doing it by hand; of what was not sent may not.
    """
    if any(isinstance(life, SendUnknown) for life in lives):
        return "state.sendunknown" if _all(lives, SendUnknown) else "state.partunknown"
    if any(map(is_given_up, lives)):
        return "state.givenup" if all(map(is_given_up, lives)) else "state.partgivenup"
    is_partly_sent = any(isinstance(life, Sent) for life in lives)
    over = [life for life in lives if isinstance(life, Sent | SendFailed | Dropped)]
    if any(isinstance(life, SendFailed | Dropped) for life in lives):
        if len(over) < len(lives):
            return "state.partopen"
        return "state.partsent" if is_partly_sent else "state.sendfailed"
    if len(over) == len(lives):
        return "state.sent"
    if any(isinstance(life, Sending) for life in lives):
        return "state.sending"
    waits = _wait_of(lives)
    if not is_partly_sent:
        return f"state.{waits.__name__.lower()}"
    return "state.partstands" if waits in _STANDS else "state.partwaits"


def _wait_of(lives: Sequence[Life]) -> type[Life]:
    """What those that wait have in common: what leaves by itself goes before what stands."""
    kinds = {type(life) for life in lives if not isinstance(life, Sent | Awaiting)}
    for leaves in _LEAVES:
        if leaves in kinds:
            return leaves
    if not kinds:
        return Awaiting
    return kinds.pop() if len(kinds) == 1 else Kept


def is_given_up(life: Life) -> bool:
    """Say whether it may have arrived, and nobody looks any more."""
    return isinstance(life, SendFailed) and life.by is not None


def _all(lives: Sequence[Life], kind: type[Life]) -> bool:
    return all(isinstance(life, kind) for life in lives)


def _undo_title(parts: Sequence[Part]) -> str | None:
    """The headline once something is being taken back; undone when nothing is left that may have arrived."""
    lives = [part.undoing.life for part in parts if part.undoing is not None]
    if not lives:
        return None
    if any(isinstance(life, SendUnknown) for life in lives):
        return "state.undounknown" if _all(lives, SendUnknown) else "state.partundounknown"
    if any(map(is_given_up, lives)):
        return "state.undogivenup" if all(map(is_given_up, lives)) else "state.partundogivenup"
    if any(isinstance(life, SendFailed | Dropped) for life in lives):
        whole = all(isinstance(life, SendFailed | Dropped) for life in lives)
        return "state.undofailed" if whole else "state.partundofailed"
    if not _all(lives, Sent):
        return "state.undoing"
    left = any(
        part.undoing is None and (isinstance(part.life, Sent) or is_given_up(part.life)) for part in parts
    )
    return "state.partundone" if left else "state.undone"
