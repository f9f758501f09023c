"""What the end of one effect does to the others of its draft, and what all of them are to draft and run.

Ground of arrive and settle. Not here: drafts with one effect, whose end is the draft's (settle).
"""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from store import audit, cards, intake, settling
from store.queries import Connection
from store.settling import LeftRow

SYSTEM = "system"


class Part(Protocol):
    """Where an effect belongs, or the draft of several."""

    @property
    def draft_key(self) -> str:
        """Whose head is locked."""
        ...

    @property
    def run_id(self) -> UUID:
        """The run whose effects these are."""
        ...


async def follow(conn: Connection, of: Sequence[Part]) -> None:
    """Cancel what may never leave now, and end draft and run if that is due; their heads are locked.

    What waits for an effect that did not complete never leaves, nor does what was overtaken while another one
    had left. The others go on, each by itself: one that failed ends the run at once and stops none of them.
    """
    await intake.lock_unfinished_effects(conn, of)
    run_ids = sorted({one.run_id for one in of})
    left = await settling.cancel_leftovers(conn, run_ids)
    ended = await settling.settle_parts(conn, run_ids)
    if left:
        await settling.lock_runs(conn, [one.run_id for one in left if one.run_id not in ended])
        await audit.append(conn, [_line(one) for one in left])
        await cards.want_cards(conn, [one.draft_id for one in left])


def _line(one: LeftRow) -> audit.Entry:
    detail = {"effect_id": str(one.effect_id), "effect_type": one.effect_type, "reason": one.reason}
    return audit.Entry(one.idempotency_key, SYSTEM, "effect_cancelled", detail)
