"""Races for a key and for a draft_key, from two pools and from two processes on one database.

Not here: what each answer is when nothing races (tests/flow/test_receive, tests/doors/test_intake).
"""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from bot.flow.receive import Accepted, Duplicate, Receiver, Stale
from bot.flow.tally import Tally
from store import audit
from store.database import Database
from tests.makers import change, make_draft, make_effect, rows
from tests.upstream import E0, arrival, upstream

ROUNDS = 30


@pytest.fixture
async def two(own_dsn: str) -> AsyncIterator[tuple[Receiver, Receiver]]:
    """Two processes' worth of intake: a pool, a receiver and counters each."""
    pools = [Database(own_dsn), Database(own_dsn)]
    for pool in pools:
        await pool.open()
    first, second = (Receiver(pool, Tally(pool), wake=lambda _step: None) for pool in pools)
    yield first, second
    for receiver, pool in zip((first, second), pools, strict=True):
        await receiver.close()
        await pool.close()


# F001: many deliveries of one key over two processes' pools make one run, one 202, the rest duplicates of it.
@pytest.mark.parametrize("deliveries", [10, 100])
async def test_one_key_many_deliveries(own_dsn: str, own_db: Database, deliveries: int) -> None:
    other = Database(own_dsn)
    await other.open()
    async with upstream(own_db) as first, upstream(other) as second:
        for number in range(3):
            event = E0 | {"event_key": f"evt-{number}", "entity": f"e{number}"}
            posts = [(first, second)[n % 2].post(event) for n in range(deliveries)]
            answers = await asyncio.gather(*posts)
            statuses = Counter(answer.status_code for answer in answers)
            assert statuses == {202: 1, 200: deliveries - 1}
            assert len({answer.json()["run_id"] for answer in answers}) == 1
    await other.close()
    assert rows(own_dsn, "SELECT count(*) AS n FROM workflow_runs") == [{"n": 3}]
    assert rows(own_dsn, "SELECT sum(duplicates)::int AS n FROM seen_events") == [{"n": 3 * (deliveries - 1)}]
    duplicates = "SELECT sum(n)::int AS n FROM event_counters WHERE status = 'duplicate'"
    assert rows(own_dsn, duplicates) == [{"n": 3 * (deliveries - 1)}]


_PROCESS = """
import asyncio, sys
from store.database import Database
from tests.upstream import E0, upstream

async def main():
    db = Database(sys.argv[1])
    await db.open()
    async with upstream(db) as served:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        answers = await asyncio.gather(*[served.post(E0) for _ in range(10)])
        print(*[f"{answer.status_code}:{answer.json()['run_id']}" for answer in answers], flush=True)
    await db.close()

asyncio.run(main())
"""


# F001: the same with two real processes.
def test_one_key_two_processes(own_dsn: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PROCESS, own_dsn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = " ".join(process.communicate()[0] for process in processes).split()
    assert Counter(answer.split(":")[0] for answer in answers) == {"202": 1, "200": 19}
    assert len({answer.split(":")[1] for answer in answers}) == 1
    assert rows(own_dsn, "SELECT count(*) AS n FROM workflow_runs") == [{"n": 1}]


# F034: an older and a newer event of one draft_key at once: the newer holds the head and alone is open.
async def test_newer_against_older(own_dsn: str, two: tuple[Receiver, Receiver]) -> None:
    first, second = two
    for number in range(ROUNDS):
        older = arrival(1, key=f"old-{number}", entity=f"e{number}")
        newer = arrival(2, key=f"new-{number}", entity=f"e{number}")
        pair = (older, newer) if number % 2 else (newer, older)
        answers = await asyncio.gather(first.receive(pair[0]), second.receive(pair[1]))
        by_key = {answer.receipt.key: answer for answer in answers if isinstance(answer, Accepted | Stale)}
        assert isinstance(by_key[newer.key], Accepted)
    assert rows(own_dsn, "SELECT DISTINCT source_version FROM draft_heads") == [{"source_version": 2}]
    states = rows(
        own_dsn, "SELECT source_version AS v, state, count(*) AS n FROM workflow_runs GROUP BY 1, 2"
    )
    assert {(one["v"], one["state"]): one["n"] for one in states} == {
        (1, "superseded"): ROUNDS,
        (2, "received"): ROUNDS,
    }


# Whole batches that overlap in opposite order never fail each other, and every key ends in one run.
async def test_overlapping_batches(own_dsn: str, two: tuple[Receiver, Receiver]) -> None:
    first, second = two
    for number in range(ROUNDS // 3):
        batch = [arrival(number, key=f"k{number}-{n}", entity=f"e{n}") for n in range(40)]
        forth = [first.receive(one) for one in batch]
        back = [second.receive(one) for one in reversed(batch)]
        answers = await asyncio.gather(*forth, *back)
        assert Counter(type(one) for one in answers) == {Accepted: 40, Duplicate: 40}
    runs = ROUNDS // 3 * 40
    assert rows(own_dsn, "SELECT count(*) AS n FROM workflow_runs") == [{"n": runs}]
    assert rows(own_dsn, "SELECT count(*) AS n FROM workflow_runs WHERE state = 'received'") == [{"n": 40}]


# A newer event against the start of the older one's send: either it was withdrawn, or it started and stands.
async def test_withdrawal_against_start(
    own_dsn: str, own_db: Database, two: tuple[Receiver, Receiver]
) -> None:
    outcomes = set()
    for number in range(ROUNDS):
        old = make_draft(own_dsn, status="approved", run={"version": 1, "entity": f"e{number}"})
        effect_id = make_effect(own_dsn, draft=old, state="sending", lease_age_seconds=-60)
        start = "UPDATE effect_outbox SET started_at = now() WHERE effect_id = %(e)s AND state = 'sending'"
        started, answer = await asyncio.gather(
            asyncio.to_thread(change, own_dsn, start, e=effect_id),
            two[number % 2].receive(arrival(2, key=f"n{number}", entity=f"e{number}")),
        )
        assert isinstance(answer, Accepted)
        (after,) = rows(own_dsn, "SELECT state FROM effect_outbox WHERE effect_id = %(e)s", e=effect_id)
        (draft,) = rows(own_dsn, "SELECT status FROM drafts WHERE draft_id = %(d)s", d=old["draft_id"])
        outcomes.add((started, after["state"], draft["status"]))
    assert outcomes <= {(1, "sending", "approved"), (0, "cancelled", "pending")}


# The record of every key holds after all the racing.
async def test_record_holds(own_db: Database, two: tuple[Receiver, Receiver]) -> None:
    for number in range(5):
        contents = [{"to": "amy@example.test", "n": n % 3} for n in range(12)]
        posts = [
            two[n % 2].receive(arrival(number, key=f"k{number}", payload=one))
            for n, one in enumerate(contents)
        ]
        await asyncio.gather(*posts)
    async with own_db.connection() as conn:
        chains = await audit.list_chains(conn, after="", most=100)
        assert len(chains) == 5
        for chain in chains:
            lines = await audit.read_chain(conn, chain)
            assert audit.faults_of(lines) == []
            assert [line.action for line in lines].count("conflict") == 2
