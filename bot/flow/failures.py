"""Tells ops of what was let out and will never arrive, or did after all: a card that changes notifies nobody.

Not here: what is unknown (settle, rising), or the words (bot/cards/notices).
"""

from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from bot.cards.notices import Alert
from bot.connectors.answers import UNANSWERED
from bot.contracts.outcome import NotSent
from store import alerts
from store.queries import Connection
from store.rows import EffectRef

_RESUME: Final = "resume"
# What the connectors say: nobody waits there any more; nobody at all was reached, so others fare the same.
_GONE: Final = "gone"
_UNREACHED: Final = frozenset(row.cause for row in UNANSWERED if row.outcome is NotSent)


async def tell(conn: Connection, effect: EffectRef, reason: str) -> None:
    """Raise the alert of an effect that just failed for good, in the transaction of its end.

    Of those who wait for one run's outcome once, and of all that cannot be reached once an hour; whoever is
    gone waits no more.
    """
    if effect.effect_type != _RESUME:
        name, about = Alert.UNDO_FAILED if effect.is_undo else Alert.EFFECT_FAILED, str(effect.effect_id)
    elif reason == _GONE:
        return
    elif reason in _UNREACHED:
        name, about = Alert.RESUME_AWAY, f"{datetime.now(UTC):%Y-%m-%dT%H}:{reason}"
    else:
        name, about = Alert.RESUME_FAILED, str(effect.run_id)
    facts = {"key": effect.idempotency_key, "because": reason}
    await alerts.raise_alert(conn, key=f"{name}:{about}", name=name, facts=facts)


async def tell_of_arrival(conn: Connection, effect_id: UUID, key: str) -> None:
    """Raise the alert of an effect that arrived, though somebody took it for lost and gave it up."""
    name = Alert.ARRIVED_LATE
    await alerts.raise_alert(conn, key=f"{name}:{effect_id}", name=name, facts={"key": key})
