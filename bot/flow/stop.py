"""Closes and opens the kill switch: when a kill is answered, no further send starts.

Not here: who may (bot/doors), what a scope means (bot/policy/switch), or the end of a process (dispatch).
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from bot.cards.notices import Alert
from bot.flow.checkpoints import reach
from bot.policy.switch import ALL_SCOPE
from store import alerts, audit, switch
from store.database import Database
from store.errors import DatabaseAway, DatabaseBusy
from store.ids import new_id
from store.queries import Connection
from store.switch import StartedRow

log = logging.getLogger(__name__)

TRIES: Final = (
    3  # A kill that met a lock for 1.5 s is worth asking again before somebody is told that it failed.
)


@dataclass(frozen=True, slots=True)
class Switched:
    """The switch as it is now; `started` are effects whose calls were on the wire at that moment."""

    scope: str
    started: tuple[StartedRow, ...]


async def kill(db: Database, *, by: str, reason: str | None, scope: str = ALL_SCOPE) -> Switched:
    """Close a scope; a reason may follow by closing it again.

    Raises:
        DatabaseAway: nothing was changed (CommitUnknown: perhaps it was, ask again).

    """
    return await _switch(db, scope=scope, is_open=False, by=by, reason=reason)


async def resume(db: Database, *, by: str, reason: str, scope: str = ALL_SCOPE) -> Switched:
    """Open a scope; a missing row is made again. Raises as `kill` does."""
    return await _switch(db, scope=scope, is_open=True, by=by, reason=reason)


async def _switch(db: Database, *, scope: str, is_open: bool, by: str, reason: str | None) -> Switched:
    occasion = f"switch:{new_id()}"
    facts = {"scope": scope, "who": by, "reason": reason or "–"}

    async def work(conn: Connection) -> Switched:
        await switch.lock_switch(conn)
        await switch.set_switch(conn, scope=scope, is_open=is_open, by=by, reason=reason)
        started = await switch.list_started(conn, scope)
        detail = {"scope": scope, "reason": reason, "started": [str(one.effect_id) for one in started]}
        await audit.append_system(conn, by, "resumed" if is_open else "killed", detail)
        name = Alert.SWITCH_OPENED if is_open else Alert.SWITCH_CLOSED
        await alerts.raise_alert(conn, key=occasion, name=name, facts=facts)
        return Switched(scope, tuple(started))

    switched = await _insist(db, work)
    reach("switch.after_commit")
    try:
        await show_switched(db)
    except DatabaseAway:
        # The switch has moved, whatever becomes of this; the timer asks again.
        log.warning("the cards of waiting effects were not asked for", extra={"scope": scope})
    return switched


async def show_switched(db: Database) -> int:
    """Have the cards drawn again of what waits under scopes that were switched; give how many scopes.

    Raises:
        DatabaseAway: they are still to be asked for.

    """

    async def work(conn: Connection) -> int:
        scopes = await switch.take_unshown(conn)
        for scope in scopes:
            await switch.want_waiting_cards(conn, scope)
        return len(scopes)

    return await db.retrying(work)


async def _insist(db: Database, work: Callable[[Connection], Awaitable[Switched]]) -> Switched:
    for _ in range(TRIES - 1):
        try:
            return await db.retrying(work)
        except DatabaseBusy:
            continue
    return await db.retrying(work)
