"""What the ops channel is to be told, once an occasion.

Not here: the words of an alert (bot/cards/notices) or its sending (bot/flow/alert).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from store.ids import new_id
from store.queries import Connection, query
from store.rows import Row

FIRST_WAIT_SECONDS = 30  # Longer than any call to Slack: nobody else takes an alert that is being posted.
LONGEST_WAIT_SECONDS = 3600  # A channel that is mended hears within the hour.

_RAISE = query("raise_alert")
_CLAIM = query("claim_alerts")
_MARK_SENT = query("mark_alert_sent")
_POSTPONE = query("postpone_alert")


class AlertRow(Row):
    """An alert to post; `attempts` counts this try."""

    alert_id: UUID
    alert_key: str
    name: str
    facts: dict[str, Any]
    raised_at: datetime
    attempts: int


async def raise_alert(conn: Connection, *, key: str, name: str, facts: Mapping[str, Any]) -> bool:
    """Ask for an alert in the caller's transaction; False when that occasion was already reported.

    `facts` are ids, words and numbers, never content: they are posted and kept.
    """
    params = {"alert_id": new_id(), "alert_key": key, "name": name, "facts": Jsonb(dict(facts))}
    return await _RAISE.run(conn, params) == 1


async def claim_alerts(conn: Connection, *, most: int) -> list[AlertRow]:
    """Take up to `most` due alerts; each comes again, later every time, until it is marked as sent."""
    params = {
        "most": most,
        "first_wait_seconds": FIRST_WAIT_SECONDS,
        "longest_wait_seconds": LONGEST_WAIT_SECONDS,
    }
    return await _CLAIM.rows(conn, params, AlertRow)


async def mark_alert_sent(conn: Connection, alert_id: UUID) -> None:
    """Record that ops was told."""
    await _MARK_SENT.run(conn, {"alert_id": alert_id})


async def postpone_alert(conn: Connection, alert: AlertRow, *, wait_seconds: float) -> None:
    """Give an alert back that was proven not to be posted, without counting the try."""
    params = {"alert_id": alert.alert_id, "attempts": alert.attempts, "wait_seconds": wait_seconds}
    await _POSTPONE.run(conn, params)
