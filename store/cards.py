"""The Slack messages of drafts and unknown effects, and how far behind the truth they are.

Not here: what a card looks like (bot/cards) or when it is drawn (bot/flow/show).
"""

from collections.abc import Sequence
from uuid import UUID

from store.ids import new_id
from store.queries import Connection, query

_WANT = query("want_cards")
_OPEN = query("open_card")


async def want_cards(
    conn: Connection, draft_ids: Sequence[UUID] = (), effect_ids: Sequence[UUID] = ()
) -> None:
    """Bump the wanted version of these cards, in the transaction of the change they show."""
    await _WANT.run(conn, {"draft_ids": list(draft_ids), "effect_ids": list(effect_ids)})


async def open_card(
    conn: Connection, *, channel: str, draft_id: UUID | None = None, effect_id: UUID | None = None
) -> None:
    """Ask for the card of a draft or an unknown effect; one that exists is drawn again."""
    opened = await _OPEN.run(
        conn, {"card_id": new_id(), "draft_id": draft_id, "effect_id": effect_id, "channel": channel}
    )
    if opened == 0:
        await want_cards(conn, [draft_id] if draft_id else [], [effect_id] if effect_id else [])
