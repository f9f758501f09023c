"""Effects on their way out: claimed, started, recorded, given back, withdrawn.

Not here: unknown outcomes (store/unknowns), what follows for drafts (store/settling), or the sending.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import orjson

from store.queries import Connection, query
from store.rows import ClaimedRow, EffectRef, Json, MovedRow, Result, Row

_CLAIM = query("claim_effects")
_START = query("start_effects")
_RELEASE = query("release_effects")
_OUTDATED = query("find_outdated_effects")
_RECORD = query("record_outcomes")
_EXPIRED = query("find_expired_leases")
_RECOVER = query("recover_effects")
_STALE = query("find_stale_effects")
_WITHDRAW = query("withdraw_effects")
_SIBLINGS = query("withdraw_siblings")
_POLICIES = query("read_effect_policies")


class StartedRow(Row):
    """An effect whose call is to be made now: its version and the number of this try."""

    effect_id: UUID
    version: int
    attempts: int


class RecoveredRow(Row):
    """An effect taken from a lost owner, and what it became."""

    effect_id: UUID
    state: str
    version: int


class WithdrawnRow(Row):
    """An effect that was cancelled before it started: `newer_version` or `stale`."""

    effect_id: UUID
    reason: str
    draft_id: UUID
    run_id: UUID
    idempotency_key: str
    undo_of: UUID | None

    @property
    def is_undo(self) -> bool:
        """Whether it was to take back another one."""
        return self.undo_of is not None


class _PolicyRow(Row):
    snapshot_hash: str
    effects: list[Json] | None


class _Id(Row):
    effect_id: UUID


@dataclass(frozen=True, slots=True)
class Room:
    """How much may be claimed: in all, a lane, and by the lanes that have less or more than that.

    `chosen` are effects of lanes that claims pass by, picked under the locks of this transaction. Effects of
    other kinds than `kinds` (None: there are none) are taken only once due for `kind_gone_seconds`.
    """

    most: int
    slots: int
    lanes: Mapping[int, int]
    effect_types: Sequence[str]
    enabled: bool
    timeout_seconds: int
    extra_seconds: int
    chosen: Sequence[UUID] = ()
    kinds: Collection[str] | None = None
    kind_gone_seconds: float = 0.0

    def has(self, kind: str) -> bool:
        """Whether the claimer's policy has this kind."""
        return self.kinds is None or kind in self.kinds


async def claim_effects(conn: Connection, owner: str, room: Room) -> list[ClaimedRow]:
    """Take due effects; their leases last the policy's timeout and `extra_seconds` from now."""
    return await _CLAIM.rows(
        conn,
        {
            "owner": owner,
            "enabled": room.enabled,
            "most": room.most,
            "slots": room.slots,
            "lanes": list(room.lanes.keys()),
            "lane_slots": list(room.lanes.values()),
            "effect_types": list(room.effect_types),
            "chosen": list(room.chosen),
            "kinds": None if room.kinds is None else list(room.kinds),
            "kind_gone_seconds": room.kind_gone_seconds,
            "timeout_seconds": room.timeout_seconds,
            "extra_seconds": room.extra_seconds,
        },
        ClaimedRow,
    )


async def start_effects(
    conn: Connection,
    owner: str,
    timeouts: Sequence[tuple[EffectRef, int]],
    *,
    enabled: bool,
    extra_seconds: int,
) -> dict[UUID, StartedRow]:
    """Mark the effects whose calls begin as soon as this commits; no call for what the answer lacks."""
    rows = await _START.rows(
        conn,
        {
            "owner": owner,
            "enabled": enabled,
            "extra_seconds": extra_seconds,
            "effects": _json(
                {"effect_id": one.effect_id, "version": one.version, "timeout_seconds": seconds}
                for one, seconds in timeouts
            ),
        },
        StartedRow,
    )
    return {row.effect_id: row for row in rows}


async def release_effects(
    conn: Connection, owner: str, effects: Sequence[EffectRef], *, wait_seconds: float
) -> set[UUID]:
    """Give back what was not started, due again after the wait; gives those that were still ours."""
    params = {"owner": owner, "wait_seconds": wait_seconds, "effects": _versions(effects)}
    return {row.effect_id for row in await _RELEASE.rows(conn, params, _Id)}


async def find_outdated_effects(conn: Connection, effect_ids: Sequence[UUID]) -> set[UUID]:
    """Tell which of these not started effects may never start as they are."""
    rows = await _OUTDATED.rows(conn, {"effect_ids": list(effect_ids)}, _Id)
    return {row.effect_id for row in rows}


async def record_outcomes(
    conn: Connection, owner: str, results: Iterable[tuple[UUID, int, Result]]
) -> dict[UUID, int]:
    """Move effects that we hold in these versions; gives the new versions of those that were still ours."""
    effects = _json(
        {
            "effect_id": effect_id,
            "version": version,
            "state": result.state,
            "reason": result.reason,
            "provider_id": result.provider_id,
            "wait_seconds": result.wait_seconds,
            "is_ambiguous": result.is_ambiguous,
            "uncounted": result.is_uncounted,
        }
        for effect_id, version, result in results
    )
    rows = await _RECORD.rows(conn, {"owner": owner, "effects": effects}, MovedRow)
    return {row.effect_id: row.version for row in rows}


async def find_expired_leases(conn: Connection, *, most: int) -> list[EffectRef]:
    """Give effects whose lease ran out."""
    return await _EXPIRED.rows(conn, {"most": most}, EffectRef)


async def recover_effects(
    conn: Connection, effects: Sequence[EffectRef], *, settle_seconds: int
) -> list[RecoveredRow]:
    """Take effects from owners whose lease ran out; `settle_seconds` stands in for a missing policy."""
    params = {"effects": _versions(effects), "settle_seconds": settle_seconds}
    return await _RECOVER.rows(conn, params, RecoveredRow)


async def find_stale_effects(conn: Connection, *, most: int) -> list[EffectRef]:
    """Give waiting effects whose approval is too old to be sent."""
    return await _STALE.rows(conn, {"most": most}, EffectRef)


async def withdraw_effects(conn: Connection, effect_ids: Sequence[UUID]) -> list[WithdrawnRow]:
    """Cancel those that are outdated and were not started, with the others of their runs, under their locks.

    What has others that were started stays as it is.
    """
    return await _WITHDRAW.rows(conn, {"effect_ids": list(effect_ids)}, WithdrawnRow)


async def withdraw_siblings(conn: Connection, effect_id: UUID) -> list[WithdrawnRow]:
    """Cancel the others of a cancelled effect if none of them has left, under the locks of heads and rows."""
    return await _SIBLINGS.rows(conn, {"effect_id": effect_id}, WithdrawnRow)


async def read_effect_policies(
    conn: Connection, snapshot_hashes: Sequence[str]
) -> dict[str, list[Json] | None]:
    """Give the effects of frozen policies, as stored."""
    rows = await _POLICIES.rows(conn, {"snapshot_hashes": list(snapshot_hashes)}, _PolicyRow)
    return {row.snapshot_hash: row.effects for row in rows}


def _versions(effects: Sequence[EffectRef]) -> str:
    return _json({"effect_id": effect.effect_id, "version": effect.version} for effect in effects)


def _json(effects: Iterable[Mapping[str, object]]) -> str:
    """One JSON text for many rows: quoting the elements of arrays costs ten times as much."""
    return orjson.dumps(list(effects)).decode()
