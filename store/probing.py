"""What a look at an effect's record leads to before the effect is started: held, or taken back.

Not here: claiming and starting (store/outbox), or asking (bot/connectors/probe).
"""

from uuid import UUID

from store.queries import Connection, query
from store.rows import EffectRef, Row

_VERSIONS = query("find_probed_versions")
_HOLD = query("hold_effect")
_WITHDRAW = query("withdraw_changed_effect")


class Versions(Row):
    """What the record's version was when the draft was made, and when it was decided."""

    source_version: int
    known_version: int


class HeldRow(Row):
    """An effect that is held; `is_new`: it was not before."""

    effect_id: UUID
    is_new: bool


class _Id(Row):
    effect_id: UUID


async def find_probed_versions(conn: Connection, effect_id: UUID) -> Versions | None:
    """Tell which versions an effect may find."""
    found = await _VERSIONS.rows(conn, {"effect_id": effect_id}, Versions)
    return found[0] if found else None


async def hold_effect(
    conn: Connection, owner: str, effect: EffectRef, *, reason: str, bounds: tuple[float, float]
) -> HeldRow | None:
    """Hold an effect of ours that was not started; `bounds` are the least and most seconds of one wait."""
    least, most = bounds
    params = {"owner": owner, "effect_id": effect.effect_id, "version": effect.version, "reason": reason}
    found = await _HOLD.rows(conn, params | {"least_seconds": least, "most_seconds": most}, HeldRow)
    return found[0] if found else None


async def withdraw_changed_effect(conn: Connection, owner: str, effect: EffectRef) -> bool:
    """Cancel an effect of ours that was not started, under its head's lock; False if it is not ours."""
    params = {"owner": owner, "effect_id": effect.effect_id, "version": effect.version}
    return bool(await _WITHDRAW.rows(conn, params, _Id))
