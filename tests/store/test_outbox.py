"""What the statements of the outbox hold to, one condition at a time.

Not here: the steps that use them (tests/flow) or several processes at once (tests/race).
"""

from uuid import UUID

import pytest

from store import outbox, switch
from store.database import Database
from store.outbox import Room
from store.rows import ClaimedRow, Result
from tests import makers

ROOM = Room(
    most=10, slots=10, lanes={}, effect_types=["http"], enabled=True, timeout_seconds=10, extra_seconds=30
)


async def claim(db: Database, owner: str = "me", room: Room = ROOM) -> list[ClaimedRow]:
    async with db.connection() as conn:
        return await outbox.claim_effects(conn, owner, room)


async def start(
    db: Database, rows: list[ClaimedRow], owner: str = "me", *, enabled: bool = True
) -> set[UUID]:
    async with db.transaction() as conn:
        await switch.queue_for_switch(conn)
        with_timeouts = [(row, 10) for row in rows]
        return set(await outbox.start_effects(conn, owner, with_timeouts, enabled=enabled, extra_seconds=30))


# A claim holds the effect for the policy's timeout and half a minute more, and brings what is to be sent.
async def test_claim(db: Database, dsn: str) -> None:
    (effect_id,) = makers.make_effects(dsn, 1, effect={"timeout_seconds": 120})
    (row,) = await claim(db)
    held = makers.rows(
        dsn,
        "SELECT lease_owner, started_at,"
        " extract(epoch FROM lease_expires_at - clock_timestamp())::int AS left FROM effect_outbox",
    )[0]
    assert (row.effect_id, row.version, row.body) == (effect_id, 2, b"{}")
    assert (held["lease_owner"], held["started_at"]) == ("me", None)
    assert 145 <= held["left"] <= 150
    assert await claim(db, "another") == []


# Each lane gives at most its slots, and no lane takes the places of another.
async def test_lanes(db: Database, dsn: str) -> None:
    makers.make_effects(dsn, 12, targets=3)
    few = Room(
        most=10, slots=2, lanes={}, effect_types=["http"], enabled=True, timeout_seconds=10, extra_seconds=30
    )
    first = await claim(db, room=few)
    assert sorted(row.target[-1] for row in first) == ["0", "0", "1", "1", "2", "2"]
    full = Room(
        most=10,
        slots=2,
        lanes={row.lane: 0 for row in first if row.target.endswith("0")},
        effect_types=["http"],
        enabled=True,
        timeout_seconds=10,
        extra_seconds=30,
    )
    assert sorted(row.target[-1] for row in await claim(db, room=full)) == ["1", "1", "2", "2"]


# Of one lane, what has been due longest goes first.
async def test_oldest_first(db: Database, dsn: str) -> None:
    made = makers.make_effects(dsn, 3)
    makers.change(
        dsn,
        "UPDATE effect_outbox SET next_attempt_at = now() - interval '1 hour' WHERE effect_id = %(id)s",
        id=made[2],
    )
    one = Room(
        most=1, slots=9, lanes={}, effect_types=["http"], enabled=True, timeout_seconds=10, extra_seconds=30
    )
    assert [row.effect_id for row in await claim(db, room=one)] == [made[2]]


CLOSE = "INSERT INTO kill_switch (scope, open, changed_by) VALUES"
SPOILED = {
    "lease over": "UPDATE effect_outbox SET lease_expires_at = now() - interval '1 second'",
    "lease shorter than the call": "UPDATE effect_outbox SET lease_expires_at = now() + interval '5 seconds'",
    "taken over": "UPDATE effect_outbox SET lease_owner = 'another'",
    "moved on": "UPDATE effect_outbox SET version = version + 1",
    "started": "UPDATE effect_outbox SET started_at = now()",
    "stale": "UPDATE effect_outbox SET fresh_until = now() - interval '1 second'",
    "newer version": "UPDATE draft_heads SET source_version = 18",
    "no head": "DELETE FROM draft_heads",
    "switch closed": "UPDATE kill_switch SET open = false",
    "no switch": "DELETE FROM kill_switch",
    "kind closed": f"{CLOSE} ('kind:customer_email', false, 'x')",
    "type closed": f"{CLOSE} ('effect:http', false, 'x')",
}


# Right before the call everything is asked again; one thing wrong, and there is no call.
@pytest.mark.parametrize("spoiled", SPOILED)
async def test_start_refused(db: Database, dsn: str, spoiled: str) -> None:
    makers.make_effects(dsn, 1)
    rows = await claim(db)
    makers.change(dsn, SPOILED[spoiled])
    assert await start(db, rows) == set()
    makers.change(
        dsn,
        "INSERT INTO kill_switch (scope, open, changed_by) VALUES ('all', true, 'x') ON CONFLICT DO NOTHING",
    )


# The setting is asked again too.
async def test_start_refused_by_setting(db: Database, dsn: str) -> None:
    makers.make_effects(dsn, 1)
    rows = await claim(db)
    assert await start(db, rows, enabled=False) == set()
    assert len(await start(db, rows)) == 1
    assert await start(db, rows) == set()


# What somebody else is changing at the moment is passed over, never waited for.
async def test_start_skips_locked(db: Database, dsn: str) -> None:
    first, second = makers.make_effects(dsn, 2)
    rows = await claim(db)
    async with db.transaction() as conn:
        await conn.execute("SELECT FROM effect_outbox WHERE effect_id = %s FOR UPDATE", (first,))
        assert await start(db, rows) == {second}


# A recording finds only what we still hold, in the version we know.
@pytest.mark.parametrize("spoiled", ["lease over", "taken over", "moved on"])
async def test_record_refused(db: Database, dsn: str, spoiled: str) -> None:
    makers.make_effects(dsn, 1)
    rows = await claim(db)
    await start(db, rows)
    makers.change(dsn, SPOILED[spoiled])
    async with db.connection() as conn:
        recorded = await outbox.record_outcomes(
            conn, "me", [(row.effect_id, row.version + 1, Result(state="completed")) for row in rows]
        )
    assert recorded == {}


# What was started is not given back.
async def test_release_refused(db: Database, dsn: str) -> None:
    makers.make_effects(dsn, 2)
    rows = await claim(db)
    await start(db, rows[:1])
    async with db.connection() as conn:
        released = await outbox.release_effects(conn, "me", rows, wait_seconds=0)
    assert released == {rows[1].effect_id}
