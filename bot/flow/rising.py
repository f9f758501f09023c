"""Asks for people to be told again and again of an effect that is unknown, until one of them decides.

Not here: telling them, in the thread of the effect's card (alert), or asking the provider (reconcile).
"""

from dataclasses import dataclass
from typing import Final

from bot.cards.notices import Alert
from bot.policy.limits import RECOVERY_BATCH, SETTLE_SECONDS, UNKNOWN_RISES_SECONDS
from store import alerts, unknowns
from store.database import Database

# The last comes again every day.
STEPS: Final = (Alert.UNKNOWN_FIRST, Alert.UNKNOWN_HOUR, Alert.UNKNOWN_HOURS, Alert.UNKNOWN_DAY)


@dataclass(frozen=True, slots=True)
class Rising:
    """What it needs."""

    db: Database


async def run_once(deps: Rising) -> int:
    """Raise the newest step that is due of up to a batch; each once over all processes, missed ones never."""
    async with deps.db.connection() as conn:
        due = await unknowns.list_rising_unknowns(
            conn, UNKNOWN_RISES_SECONDS, settle_seconds=SETTLE_SECONDS, most=RECOVERY_BATCH
        )
        raised = 0
        for row in due:
            facts = {
                "effect_id": str(row.effect_id),
                "version": row.version,
                "key": row.idempotency_key,
                "at": row.ambiguous_at.isoformat(),
            }
            key = f"unknown:{row.effect_id}:{row.version}:{row.number}"
            name = STEPS[min(row.number, len(STEPS)) - 1]
            raised += await alerts.raise_alert(conn, key=key, name=name, facts=facts)
    return raised
