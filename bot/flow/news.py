"""Tells cards and ops what keeps effects waiting: targets that rest or are back, caps that are reached.

Not here: finding that out (resting, guarding), the words (bot/cards), or posting (alert, show).
"""

from typing import Any

from bot.policy.limits import RECOVERY_BATCH
from store import alerts, limits, targets
from store.database import Database
from store.ids import new_id
from store.limits import FullKind
from store.queries import Connection
from store.targets import TargetNews


async def run_once(db: Database) -> int:
    """Tell all news; gives how many those were. A crash in between tells them at the next run."""

    async def work(conn: Connection) -> int:
        news, full = await targets.take_untold_targets(conn), await limits.take_untold_kinds(conn)
        for one in news:
            await _tell_target(conn, one)
        for kind in full:
            await _tell_cap(conn, kind)
        if news or full:
            lanes, kinds = [one.lane for one in news], [one.kind for one in full]
            await targets.want_lane_cards(conn, lanes=lanes, kinds=kinds)
        await limits.forget_departures(conn, most=RECOVERY_BATCH)
        return len(news) + len(full)

    return await db.retrying(work)


async def _tell_target(conn: Connection, one: TargetNews) -> None:
    facts: dict[str, Any] = {"kind": one.kind, "target": one.target}
    if one.opened_at is not None and one.rests_until is not None:
        facts |= {"count": one.failures, "at": one.rests_until.isoformat()}
        key = f"target_resting:{one.lane}:{one.opened_at.isoformat()}"
        await alerts.raise_alert(conn, key=key, name="target_resting", facts=facts)
        return
    # Told once, since the news was taken in this very transaction.
    await alerts.raise_alert(conn, key=f"target_back:{one.lane}:{new_id()}", name="target_back", facts=facts)


async def _tell_cap(conn: Connection, one: FullKind) -> None:
    if one.full_until is None:
        return
    until = one.full_until.isoformat()
    facts = {"kind": one.kind, "because": one.full_why, "at": until}
    key = f"cap_full:{one.kind}:{one.full_why}:{until}"
    await alerts.raise_alert(conn, key=key, name="cap_full", facts=facts)
