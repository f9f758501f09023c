"""What the model has cost today, by kind.

Not here: how much it may cost (bot/policy) or what happens when that is used up (bot/flow/budget).
"""

from datetime import date

from store.queries import Connection, query
from store.rows import Row

_ADD = query("add_tokens")
_READ = query("read_tokens")


class TokensRow(Row):
    """Tokens of one UTC day so far, and the seconds until it turns, by the database's clock."""

    day: date
    of_all: int
    of_kind: int
    left_seconds: float


async def add_tokens(conn: Connection, *, kind: str, tokens: int) -> None:
    """Count tokens that were spent on a kind just now."""
    await _ADD.run(conn, {"kind": kind, "tokens": tokens})


async def read_tokens(conn: Connection, *, kind: str) -> TokensRow:
    """Read what today has cost, of this kind and of all kinds together."""
    return await _READ.one(conn, {"kind": kind}, TokensRow)
