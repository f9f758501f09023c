"""Drops what ran out so long ago that nobody asks for it any more: tokens of buttons on old cards.

Not here: contents that the policy's retention ends, or the tokens of Homes, which each drawing replaces.
"""

from dataclasses import dataclass
from typing import Final

from store import tokens
from store.database import Database

MOST: Final = 1_000  # A statement: short beside the clicks, and by the step's pace more than are ever minted.


@dataclass(frozen=True, slots=True)
class Sweeping:
    """What sweeping needs."""

    db: Database


async def run_once(deps: Sweeping) -> int:
    """Drop some of the oldest; give how many, so that a backlog is worked off at once."""
    async with deps.db.connection() as conn:
        return await tokens.drop_old_tokens(conn, most=MOST)
