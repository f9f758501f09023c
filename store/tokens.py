"""The stored side of the buttons' tokens: hashes, each bound to its surface.

Not here: making tokens (bot/policy/tokens) or spending them (store/decisions).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

import orjson

from store.queries import Connection, query

# Read buttons stand on settled cards too; past this a card is history, and its text is in `/stet show`.
READ_KEEP_SECONDS = 90 * 86400
ENDED_KEEP_SECONDS = 30 * 86400  # So long a click on an outdated card is told what became of it.

_INSERT = query("insert_tokens")
_DROP_OLD = query("drop_old_tokens")
_DROP_ENDED = query("drop_ended_tokens")


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One button's token. A message's names the card, a view's its holder; no end means READ_KEEP_SECONDS."""

    token_hash: str
    approval_id: UUID
    revision: int
    decision: str
    surface: str
    shown_hash: str
    expires_at: datetime | None
    card_id: UUID | None = None
    holder: str | None = None
    effect_id: UUID | None = None


async def insert_tokens(conn: Connection, tokens: Sequence[TokenRow]) -> None:
    """Store the tokens of a surface before it is shown."""
    if tokens:
        written = orjson.dumps([asdict(token) for token in tokens]).decode()
        await _INSERT.run(conn, {"tokens": written, "keep_seconds": READ_KEEP_SECONDS})


async def drop_old_tokens(conn: Connection, *, most: int) -> int:
    """Remove up to `most` of the tokens that ran out long ago; give their number."""
    return await _DROP_OLD.run(conn, {"keep_seconds": ENDED_KEEP_SECONDS, "most": most})


async def drop_ended_tokens(conn: Connection, draft_id: UUID) -> None:
    """Remove the tokens of questions of this draft that ended long ago."""
    await _DROP_ENDED.run(conn, {"draft_id": draft_id, "keep_seconds": ENDED_KEEP_SECONDS})
