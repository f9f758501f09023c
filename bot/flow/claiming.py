"""One process's claims: what is free to leave, and under locks what is held to limits.

Not here: carrying out what was claimed (dispatch), how limits are counted (guarding), or slots (lanes).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from bot.flow import guarding
from bot.flow.lanes import Lanes
from bot.policy.kinds import Policy
from bot.policy.limits import (
    CLAIM_BATCH,
    EFFECT_KIND_GONE_SECONDS,
    EFFECT_LEASE_EXTRA_SECONDS,
    EFFECT_TIMEOUT_SECONDS,
    LANE_SLOTS,
)
from store import outbox
from store.database import Database
from store.outbox import Room
from store.rows import ClaimedRow

LEAST_WAIT_SECONDS: Final = 0.02  # Between two claims that only a rate lies between.


@dataclass(slots=True)
class Claims:
    """What claiming needs, and what the last claims left over.

    `again` is called when a rate lets more out. Before anything is claimed the limits of `policy` are put
    down; without one those in the database hold.
    """

    db: Database
    owner: str
    effect_types: Sequence[str]
    enabled: bool
    policy: Policy | None
    again: Callable[[], None]
    lanes: Lanes = field(default_factory=Lanes)
    is_hungry: bool = False
    is_cut: bool = False
    _are_limits_down: bool = False
    _timer: asyncio.TimerHandle | None = None

    async def put_limits_down(self) -> None:
        """Make sure that the database knows the limits of the policy file."""
        if not self._are_limits_down and self.policy is not None:
            await guarding.put_down(self.db, self.policy)
        self._are_limits_down = True

    def _room(self) -> Room:
        return Room(
            most=min(CLAIM_BATCH, self.lanes.room()),
            slots=LANE_SLOTS,
            lanes=self.lanes.slots(),
            effect_types=self.effect_types,
            enabled=self.enabled,
            timeout_seconds=EFFECT_TIMEOUT_SECONDS,
            extra_seconds=EFFECT_LEASE_EXTRA_SECONDS,
            kinds=None if self.policy is None else self.policy.kinds.keys(),
            kind_gone_seconds=EFFECT_KIND_GONE_SECONDS,
        )

    async def claim(self) -> list[ClaimedRow]:
        """Claim what no limit holds back; afterwards `is_hungry` says whether there may be more."""
        room = self._room()
        self.is_hungry = True
        if room.most == 0:
            return []
        async with self.db.connection() as conn:
            rows = await outbox.claim_effects(conn, self.owner, room)
        taken = Counter(row.lane for row in rows)
        all_taken = any(n >= room.lanes.get(lane, LANE_SLOTS) for lane, n in taken.items())
        self.is_hungry = len(rows) == room.most or all_taken or 0 in room.lanes.values()
        return self._take(rows)

    async def claim_guarded(self) -> list[ClaimedRow]:
        """Claim what limits let out; afterwards `is_cut` says whether more waits for a send to end."""
        turn = await guarding.claim_guarded(self.db, self.owner, self._room())
        self.is_cut = turn.is_cut
        if turn.wait_seconds is not None:
            self.stop()
            wait = max(LEAST_WAIT_SECONDS, turn.wait_seconds)
            self._timer = asyncio.get_running_loop().call_later(wait, self.again)
        return self._take(turn.rows)

    def _take(self, rows: list[ClaimedRow]) -> list[ClaimedRow]:
        for row in rows:
            self.lanes.take(row.lane)
        return rows

    def stop(self) -> None:
        """Come again for no rate."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
