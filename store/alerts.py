"""What the ops channel is to be told, once an occasion.

Not here: the words of an alert (bot/cards/notices) or its sending (bot/flow/alert).
"""

from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from store.ids import new_id
from store.queries import Connection, query

_RAISE = query("raise_alert")


async def raise_alert(conn: Connection, *, key: str, name: str, facts: Mapping[str, Any]) -> bool:
    """Ask for an alert in the caller's transaction; False when that occasion was already reported.

    `facts` are ids, words and numbers, never content: they are posted and kept.
    """
    params = {"alert_id": new_id(), "alert_key": key, "name": name, "facts": Jsonb(dict(facts))}
    return await _RAISE.run(conn, params) == 1
