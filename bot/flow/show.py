"""Makes Slack agree with the rows: draws the cards that are behind, and is the only writer of cards.

Not here: what a card says (picture, drawing), one card's way to Slack (posting), tokens of modals (open).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from bot.flow.checkpoints import reach
from bot.flow.drawing import Drawing, draw
from bot.flow.life import Scene
from bot.flow.naming import Names
from bot.flow.picture import people_of
from bot.flow.posting import LEASE_SECONDS, bring
from bot.flow.setback import Card, Desk, Errand
from bot.flow.turns import Turns
from bot.slack.client import SlackClient
from bot.slack.pace import Pace
from store import cards, queue, showing
from store.cards import CardHold, ClaimedCard
from store.database import Database
from store.errors import LostRace
from store.ids import new_id

log = logging.getLogger(__name__)

BATCH: Final = 8  # At once: fewer than the pool has connections, and more than Slack's pace keeps busy.
UNREADABLE_SECONDS: Final = 600.0  # A card without its rows is a fault for people; meanwhile it is no load.


@dataclass(frozen=True, slots=True)
class Showing:
    """What showing needs. `pace` and `names` are the process's own; `actions_enabled` is the setting.

    `due_in` hears in how many seconds a card that has to wait will be due.
    """

    db: Database
    owner: str
    slack: SlackClient
    pace: Pace
    names: Names
    actions_enabled: bool
    language: str = "en"
    clock: Callable[[], float] = time.monotonic
    due_in: Callable[[float], None] = lambda _seconds: None


class Shower:
    """Draws cards; any number of processes may, each card is one worker's at a time."""

    def __init__(self, deps: Showing) -> None:
        self._deps = deps
        self._desk = Desk(deps.db, deps.slack, Turns(deps.pace, deps.clock), deps.due_in)

    async def run_once(self) -> int:
        """Draw up to BATCH cards that are behind and due; give how many were taken in hand.

        A card that Slack's pace does not let through now is due again when its turn comes.
        """
        owner = f"{self._deps.owner}:{new_id().hex}"
        async with self._deps.db.connection() as conn:
            claimed = await cards.claim_cards(conn, owner=owner, most=BATCH, lease_seconds=LEASE_SECONDS)
        if not claimed:
            return 0
        reach("show.after_claim")
        found = await self._read(claimed)
        await self._leave_unreadable(owner, {one.card_id for one in claimed} - {one.card_id for one in found})
        names = await self._deps.names.of({person for card in found for person in people_of(card)})
        scene = Scene(self._deps.actions_enabled, names, self._deps.language)
        ended = await asyncio.gather(
            *(self._bring(Errand(CardHold(card.card_id, owner), card, scene)) for card in found),
            return_exceptions=True,  # One card's fault must not leave the others' calls without their record.
        )
        for fault in ended:
            if fault is not None:
                raise fault
        return len(claimed)

    async def _read(self, claimed: Sequence[ClaimedCard]) -> list[Card]:
        """Read the truth of them all, whoever expires first in front: the first calls are theirs."""
        draft_ids = [one.draft_id for one in claimed if one.draft_id is not None]
        effect_ids = [one.effect_id for one in claimed if one.effect_id is not None]
        channels = [one.queue_of for one in claimed if one.queue_of is not None]
        async with self._deps.db.connection() as conn:
            drafts = await showing.read_draft_cards(conn, draft_ids) if draft_ids else []
            effects = await showing.read_effect_cards(conn, effect_ids) if effect_ids else []
            queues = await queue.read_queue_cards(conn, channels) if channels else []
        return [*effects, *sorted(drafts, key=lambda card: card.expires_at), *queues]

    async def _bring(self, errand: Errand) -> None:
        await bring(self._desk, errand, partial(_draw, errand.card, errand.scene))

    async def _leave_unreadable(self, owner: str, card_ids: set[UUID]) -> None:
        for card_id in card_ids:
            log.error(
                "a card cannot be drawn: its rows are missing or cannot be read",
                extra={"card_id": str(card_id)},
            )
            try:
                async with self._deps.db.connection() as conn:
                    await cards.postpone_card(
                        conn, CardHold(card_id, owner), wait_seconds=UNREADABLE_SECONDS, counted=True
                    )
            except LostRace:
                continue


def _draw(card: Card, scene: Scene, plain: bool) -> Drawing:  # noqa: FBT001 - the one thing posting knows
    return draw(card, scene, plain=plain)
