"""Receiving: one transaction for what arrives together, each answer as if it had come alone.

Not here: HTTP (tests/doors/test_intake) or several processes (tests/race/test_intake).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from bot.flow.arrive import Arrival, Known, Stored, Unfit, Unsettled
from bot.flow.receive import (
    Accepted,
    Conflict,
    Duplicate,
    Received,
    Receiver,
    Stale,
    Unkeepable,
    recognise,
    rounds,
)
from bot.flow.tally import Tally
from store import audit, heads
from store.cards import open_card
from store.database import Database
from store.errors import CommitUnknown, DatabaseAway
from store.ids import new_id
from store.intake import KnownRun
from store.states import RunState
from tests.faults import Proxy, proxied
from tests.makers import change, locked_out, make_draft, make_effect, make_run, rows
from tests.upstream import arrival

RESUME = "https://n8n.example/webhook-waiting/231?signature=a"


@pytest.fixture
def woken() -> list[str]:
    return []


@pytest.fixture
def tally(db: Database) -> Tally:
    return Tally(db)


@pytest.fixture
async def receiver(db: Database, tally: Tally, woken: list[str]) -> AsyncIterator[Receiver]:
    made = Receiver(db, tally, wake=woken.append, release="1.2.3")
    yield made
    await made.close()


async def together(receiver: Receiver, *arrivals: Arrival) -> list[Received]:
    """Deliver at the same moment, in this order."""
    return list(await asyncio.gather(*[receiver.receive(one) for one in arrivals]))


def run_of(received: Received) -> UUID:
    assert isinstance(received, Accepted | Duplicate | Stale)
    return received.receipt.run_id


def state_of(dsn: str, run_id: UUID) -> str:
    return str(rows(dsn, "SELECT state FROM workflow_runs WHERE run_id = %(r)s", r=run_id)[0]["state"])


async def actions(db: Database, key: str) -> list[str]:
    """What the record of one key says, after it was proven whole."""
    async with db.connection() as conn:
        lines = await audit.read_chain(conn, key)
    assert audit.faults_of(lines) == []
    return [line.action for line in lines]


# An accepted event leaves a run, its content, its head, its seen row and a line of record; drafting is woken.
async def test_accepted_is_stored_whole(receiver: Receiver, db: Database, dsn: str, woken: list[str]) -> None:
    received = await receiver.receive(arrival(requested_by="U1", resume_url=RESUME))
    assert isinstance(received, Accepted)
    run_id = received.receipt.run_id
    (run,) = rows(dsn, "SELECT * FROM workflow_runs")
    assert (run["run_id"], run["state"], run["source_version"], run["version"]) == (run_id, "received", 7, 1)
    assert rows(dsn, "SELECT run_id, requested_by FROM run_inputs") == [
        {"run_id": run_id, "requested_by": "U1"}
    ]
    assert rows(dsn, "SELECT draft_key, source_version, run_id FROM draft_heads") == [
        {"draft_key": received.receipt.draft_key, "source_version": 7, "run_id": run_id}
    ]
    assert rows(dsn, "SELECT run_id, duplicates FROM seen_events") == [{"run_id": run_id, "duplicates": 0}]
    assert rows(dsn, "SELECT run_id, resume_url FROM waiters") == [{"run_id": run_id, "resume_url": RESUME}]
    assert await actions(db, received.receipt.key) == ["received"]
    assert woken == ["draft"]


# Each duplicate adds its own waiter, once an URL, also when the outcome is known already.
async def test_duplicates_add_waiters(receiver: Receiver, dsn: str, woken: list[str]) -> None:
    first = await receiver.receive(arrival(resume_url=RESUME))
    change(dsn, "UPDATE workflow_runs SET state = 'superseded', finished_at = now(), version = version + 1")
    woken.clear()
    other = RESUME.replace("231", "232")
    again = await together(receiver, arrival(resume_url=other), arrival(resume_url=RESUME), arrival())
    assert all(isinstance(one, Duplicate) for one in again)
    assert {run_of(one) for one in again} == {run_of(first)}
    assert [one["resume_url"] for one in rows(dsn, "SELECT resume_url FROM waiters ORDER BY 1")] == [
        RESUME,
        other,
    ]
    assert woken == ["resume"]


# A key that comes several times at once makes one run; the rest are duplicates of it.
async def test_one_batch_many_of_one_key(receiver: Receiver, dsn: str) -> None:
    answers = await together(receiver, *[arrival() for _ in range(10)])
    assert [type(one) for one in answers] == [Accepted] + [Duplicate] * 9
    assert len({run_of(one) for one in answers}) == 1
    assert len(rows(dsn, "SELECT 1 AS one FROM workflow_runs")) == 1


# After a burst of repeats keys are read before anything is inserted; what is new goes in all the same.
async def test_a_burst_of_repeats_changes_no_answer(receiver: Receiver, dsn: str) -> None:
    await receiver.receive(arrival())
    await together(receiver, *[arrival() for _ in range(50)])
    mixed = await together(receiver, arrival(), arrival(8), arrival(6), arrival(8))
    assert [type(one) for one in mixed] == [Duplicate, Accepted, Stale, Duplicate]


# Other content under a known key changes nothing; ops and the record hear of it once a content.
async def test_conflict_is_told_once_a_content(receiver: Receiver, db: Database, dsn: str) -> None:
    first = await receiver.receive(arrival())
    others = [arrival(payload={"to": "amy@example.test", "n": n}, resume_url=RESUME) for n in (1, 1, 2, 1)]
    answers = await together(receiver, *others)
    assert [type(one) for one in answers] == [Conflict] * 4
    assert len(rows(dsn, "SELECT 1 AS one FROM alerts")) == 2
    assert rows(dsn, "SELECT 1 AS one FROM waiters") == []
    key = "n8n:customer_email:evt-7"
    assert await actions(db, key) == ["received", "conflict", "conflict"]
    assert state_of(dsn, run_of(first)) == "received"


# A conflict waits for whoever writes to the key's record under the head's lock alone: a refused click.
async def test_conflict_beside_a_refused_click(receiver: Receiver, db: Database, dsn: str) -> None:
    accepted = await receiver.receive(arrival())
    assert isinstance(accepted, Accepted)
    key = accepted.receipt.key
    async with db.transaction() as conn:
        await heads.lock_heads(conn, [accepted.receipt.draft_key])
        await audit.append(conn, [audit.Entry(key, "slack:T1:U1", "refused", {})])
        conflicting = asyncio.create_task(receiver.receive(arrival(payload={"to": "bob@example.test"})))
        await locked_out(dsn)
    assert isinstance(await conflicting, Conflict)
    assert await actions(db, key) == ["received", "refused", "conflict"]


# One event's conflict fails none of those that came with it.
async def test_conflict_beside_new_ones(receiver: Receiver) -> None:
    await receiver.receive(arrival())
    answers = await together(
        receiver,
        arrival(1, entity="a"),
        arrival(payload={"to": "amy@example.test", "n": 1}),
        arrival(2, entity="b"),
        arrival(),
    )
    assert [type(one) for one in answers] == [Accepted, Conflict, Accepted, Duplicate]


# In one batch the order of arrival decides, as if each had come alone.
async def test_order_of_arrival_within_a_batch(receiver: Receiver, dsn: str) -> None:
    answers = await together(receiver, *[arrival(version) for version in (8, 7, 9, 9, 10)])
    assert [type(one) for one in answers] == [Accepted, Stale, Accepted, Duplicate, Accepted]
    states = rows(dsn, "SELECT source_version AS v, state FROM workflow_runs ORDER BY 1")
    assert [(one["v"], one["state"]) for one in states] == [
        (7, "superseded"),
        (8, "superseded"),
        (9, "superseded"),
        (10, "received"),
    ]
    assert rows(dsn, "SELECT source_version FROM draft_heads") == [{"source_version": 10}]


# A stale event is born superseded, stays stale on redelivery, and its waiter is kept for the outcome.
async def test_stale_stays_stale(receiver: Receiver, db: Database, dsn: str, woken: list[str]) -> None:
    await receiver.receive(arrival(8))
    woken.clear()
    stale = await receiver.receive(arrival(7, resume_url=RESUME))
    assert isinstance(stale, Stale)
    assert (stale.receipt.state, stale.receipt.outcome) == (RunState.SUPERSEDED, "superseded")
    assert woken == ["resume"]
    assert isinstance(await receiver.receive(arrival(7)), Stale)
    assert await actions(db, stale.receipt.key) == ["stale"]
    assert len(rows(dsn, "SELECT 1 AS one FROM waiters WHERE run_id = %(r)s", r=stale.receipt.run_id)) == 1


# A run that a newer event superseded later is a duplicate, not stale.
async def test_superseded_later_is_a_duplicate(receiver: Receiver) -> None:
    await receiver.receive(arrival(7))
    await receiver.receive(arrival(8))
    again = await receiver.receive(arrival(7))
    assert isinstance(again, Duplicate)
    assert again.receipt.outcome == "superseded"


# Runs that no draft shows yet end when something newer is accepted, whatever they were doing.
@pytest.mark.parametrize("state", ["received", "processing", "failed_retryable"])
async def test_newer_supersedes_undrafted(receiver: Receiver, db: Database, dsn: str, state: str) -> None:
    old = make_run(dsn, state=state, version=6, entity="cust-77", event_key="old")
    await receiver.receive(arrival(7))
    assert state_of(dsn, old) == "superseded"
    assert await actions(db, "n8n:customer_email:old") == ["superseded"]


# What is final or of another draft_key stays as it is.
async def test_newer_leaves_others_alone(receiver: Receiver, dsn: str) -> None:
    others = [make_run(dsn, entity="cust-78", version=1), make_run(dsn, kind="order.paid", entity="cust-77")]
    done = make_run(dsn, state="completed", version=6, entity="cust-77")
    await receiver.receive(arrival(7))
    assert [state_of(dsn, one) for one in (*others, done)] == ["received", "received", "completed"]


# The open question about the older draft is only blocked: its card is drawn again, its redraft ends.
async def test_newer_blocks_the_pending_draft(receiver: Receiver, dsn: str, woken: list[str]) -> None:
    old = make_draft(dsn, run={"version": 6, "entity": "cust-77"})
    change(
        dsn,
        "INSERT INTO redrafts (redraft_id, draft_id, revision, requested_by, lease_owner, lease_expires_at)"
        " VALUES (gen_random_uuid(), %(d)s, 1, 'slack:T:U', 'x', now())",
        d=old["draft_id"],
    )
    wanted = rows(dsn, "SELECT wanted_version FROM cards")[0]["wanted_version"]
    await receiver.receive(arrival(7))
    assert rows(dsn, "SELECT status, approval_id FROM drafts") == [
        {"status": "pending", "approval_id": old["approval_id"]}
    ]
    assert state_of(dsn, old["run_id"]) == "awaiting_human"
    assert rows(dsn, "SELECT wanted_version FROM cards") == [{"wanted_version": wanted + 1}]
    assert rows(dsn, "SELECT outcome, lease_owner FROM redrafts") == [
        {"outcome": "newer_event", "lease_owner": None}
    ]
    assert woken == ["draft", "show", "resume"]


UNSTARTED: list[dict[str, Any]] = [
    {"state": "pending"},
    {"state": "pending", "attempts": 1},
    {"state": "sending", "lease_age_seconds": -30},
]


# An approval none of whose effects started is withdrawn: a new question, the old one over, effects cancelled.
@pytest.mark.parametrize("effect", UNSTARTED)
async def test_newer_withdraws_the_unstarted(
    receiver: Receiver, db: Database, dsn: str, effect: dict[str, Any]
) -> None:
    old = make_draft(dsn, status="approved", run={"version": 6, "entity": "cust-77", "event_key": "old"})
    make_effect(dsn, draft=old, **effect)
    await receiver.receive(arrival(7))
    (draft,) = rows(dsn, "SELECT status, notice, known_version, approval_id FROM drafts")
    assert (draft["status"], draft["notice"], draft["known_version"]) == ("pending", "withdrawn_newer", 6)
    assert rows(dsn, "SELECT state, reason, lease_owner FROM effect_outbox") == [
        {"state": "cancelled", "reason": "newer_version", "lease_owner": None}
    ]
    assert state_of(dsn, old["run_id"]) == "awaiting_human"
    open_ones = rows(dsn, "SELECT approval_id FROM approvals WHERE ended_at IS NULL")
    assert open_ones == [{"approval_id": draft["approval_id"]}]
    assert await actions(db, "n8n:customer_email:old") == ["withdrawn"]


STARTED: list[dict[str, Any]] = [
    {"state": "sending", "lease_age_seconds": -30, "started": True},
    {"state": "unknown"},
    {"state": "completed", "provider_id": "p1"},
]


# What was started is let be: nobody can call it back.
@pytest.mark.parametrize("effect", STARTED)
async def test_newer_leaves_the_started(receiver: Receiver, dsn: str, effect: dict[str, Any]) -> None:
    old = make_draft(dsn, status="approved", run={"version": 6, "entity": "cust-77"})
    make_effect(dsn, draft=old, **effect)
    assert isinstance(await receiver.receive(arrival(7)), Accepted)
    assert rows(dsn, "SELECT status FROM drafts") == [{"status": "approved"}]
    assert rows(dsn, "SELECT state FROM effect_outbox") == [{"state": effect["state"]}]
    assert state_of(dsn, old["run_id"]) == "approved"


# The card of an unknown effect is drawn anew with a newer event: it cannot be sent again any more; also where
# the draft is over, because another effect of it failed.
@pytest.mark.parametrize("status", ["approved", "failed"])
async def test_newer_tells_of_the_unknown(receiver: Receiver, db: Database, dsn: str, status: str) -> None:
    old = make_draft(dsn, status=status, run={"version": 6, "entity": "cust-77"})
    effect_id = make_effect(dsn, draft=old, state="unknown")
    async with db.connection() as conn:
        await open_card(conn, channel="C0OPS", effect_id=effect_id)
    change(dsn, "UPDATE cards SET shown_version = wanted_version")
    await receiver.receive(arrival(7))
    behind = rows(dsn, "SELECT draft_id, effect_id FROM cards WHERE wanted_version > shown_version")
    assert {one["effect_id"] or one["draft_id"] for one in behind} == {effect_id, old["draft_id"]}


# One effect that may have left lets all of an approval be; a try that was ambiguous counts as left.
async def test_one_started_effect_holds_the_others(receiver: Receiver, dsn: str) -> None:
    old = make_draft(dsn, status="approved", run={"version": 6, "entity": "cust-77"})
    make_effect(dsn, draft=old, state="pending")
    other = make_effect(dsn, draft=old, state="pending", target="https://n8n.example/other")
    change(dsn, "UPDATE effect_outbox SET ambiguous_at = now() WHERE effect_id = %(e)s", e=other)
    await receiver.receive(arrival(7))
    assert {one["state"] for one in rows(dsn, "SELECT state FROM effect_outbox")} == {"pending"}
    assert rows(dsn, "SELECT status FROM drafts") == [{"status": "approved"}]


# A resume effect belongs to the outcome and holds nothing.
async def test_resume_effects_do_not_count(receiver: Receiver, dsn: str) -> None:
    old = make_draft(dsn, status="approved", run={"version": 6, "entity": "cust-77"})
    make_effect(dsn, draft=old, state="pending")
    make_effect(dsn, draft=old, state="unknown", effect_type="resume", target=RESUME)
    make_effect(dsn, draft=old, state="pending", effect_type="resume", target=RESUME + "2")
    await receiver.receive(arrival(7))
    assert rows(dsn, "SELECT status FROM drafts") == [{"status": "pending"}]
    left = rows(dsn, "SELECT effect_type AS type, state FROM effect_outbox ORDER BY 1, 2")
    assert [(one["type"], one["state"]) for one in left] == [
        ("http", "cancelled"),
        ("resume", "pending"),
        ("resume", "unknown"),
    ]


# A value that the database refuses fails its own event, never those that came with it.
async def test_one_bad_value_fails_alone(receiver: Receiver, dsn: str) -> None:
    answers = await together(
        receiver,
        arrival(1, entity="a"),
        arrival(2, entity="b", payload={"to": "a\0b"}),
        arrival(3, entity="c"),
    )
    assert [type(one) for one in answers] == [Accepted, Unkeepable, Accepted]
    assert len(rows(dsn, "SELECT 1 AS one FROM workflow_runs")) == 2


def correction(version: int, *, replaces: str = "old", key: str = "new", entity: str = "cust-77") -> Arrival:
    return arrival(version, key=key, entity=entity, replaces=replaces, reason="a typo")


# A correction of equal version is taken if what it replaces is final and holds the newest.
async def test_correction_of_equal_version(receiver: Receiver, db: Database, dsn: str) -> None:
    old = make_run(dsn, state="completed", version=7, entity="cust-77", event_key="old")
    received = await receiver.receive(correction(7))
    assert isinstance(received, Accepted)
    assert rows(dsn, "SELECT run_id, source_version FROM draft_heads") == [
        {"run_id": received.receipt.run_id, "source_version": 7}
    ]
    made = rows(dsn, "SELECT replaces FROM workflow_runs WHERE run_id = %(r)s", r=received.receipt.run_id)
    assert made == [{"replaces": old}]
    assert isinstance(await receiver.receive(correction(7)), Duplicate)
    assert await actions(db, received.receipt.key) == ["received"]


# A correction of equal version blocks the older draft that the corrected run's failure gave back to people.
async def test_correction_blocks_the_reopened_draft(receiver: Receiver, dsn: str) -> None:
    older = make_draft(dsn, run={"entity": "cust-77", "version": 7})
    make_run(dsn, state="failed_terminal", entity="cust-77", version=8, event_key="old")
    change(dsn, "UPDATE drafts SET known_version = 8, notice = 'newer_failed'")
    assert isinstance(await receiver.receive(correction(8)), Accepted)
    (draft,) = rows(
        dsn, "SELECT d.*, h.source_version FROM drafts AS d JOIN draft_heads AS h USING (draft_key)"
    )
    assert (draft["draft_id"], draft["status"]) == (older["draft_id"], "pending")
    assert draft["source_version"] > draft["known_version"]


# So is one that was approved again: unstarted it goes back to people, started it is not tried again.
@pytest.mark.parametrize(("state", "status"), [("pending", "pending"), ("sending", "approved")])
async def test_correction_outdates_the_reopened_effect(
    receiver: Receiver, dsn: str, state: str, status: str
) -> None:
    older = make_draft(dsn, status="approved", run={"entity": "cust-77", "version": 7})
    make_run(dsn, state="failed_terminal", entity="cust-77", version=8, event_key="old")
    change(dsn, "UPDATE drafts SET known_version = 8")
    make_effect(
        dsn, draft=older, state=state, started=state == "sending", lease_age_seconds=-60, known_version=8
    )
    assert isinstance(await receiver.receive(correction(8)), Accepted)
    assert rows(dsn, "SELECT status, known_version FROM drafts") == [{"status": status, "known_version": 7}]
    (effect,) = rows(dsn, "SELECT state, known_version FROM effect_outbox")
    assert effect["state"] == "cancelled" or effect["known_version"] == 7


# A correction is judged by what stands when it holds the head: an effect that ends at this moment has ended.
async def test_correction_waits_for_the_end(receiver: Receiver, db: Database, dsn: str) -> None:
    old = make_draft(dsn, status="approved", run={"version": 6, "entity": "cust-77", "event_key": "old"})
    make_effect(dsn, draft=old, state="sending", started=True, lease_age_seconds=-30)
    async with db.transaction() as conn:
        await heads.lock_heads(conn, [old["draft_key"]])
        await conn.execute(
            "UPDATE effect_outbox SET state = 'completed', lease_owner = NULL, lease_expires_at = NULL"
        )
        correcting = asyncio.create_task(receiver.receive(correction(9)))
        waiting = asyncio.create_task(locked_out(dsn))
        await asyncio.wait({correcting, waiting}, return_when=asyncio.FIRST_COMPLETED)
        assert not correcting.done(), "judged before its time"
        await waiting
    assert isinstance(await correcting, Accepted)


# An equal version is stale as ever while what it replaces is open, or does not hold the newest.
async def test_correction_that_is_stale(receiver: Receiver, dsn: str) -> None:
    make_run(dsn, state="awaiting_human", version=7, entity="cust-77", event_key="old")
    assert isinstance(await receiver.receive(correction(7)), Stale)
    make_run(dsn, state="rejected", version=7, entity="cust-78", event_key="older")
    make_run(dsn, state="completed", version=8, entity="cust-78", event_key="newest")
    late = correction(8, replaces="older", key="late", entity="cust-78")
    assert isinstance(await receiver.receive(late), Stale)
    assert isinstance(await receiver.receive(correction(9, key="newer")), Accepted)


# What is replaced must exist under this source and kind and be about the same entity, and be settled.
async def test_correction_that_does_not_fit(receiver: Receiver, dsn: str) -> None:
    assert isinstance(await receiver.receive(correction(9)), Unfit)
    make_run(dsn, state="completed", version=7, entity="cust-77", event_key="old")
    assert isinstance(await receiver.receive(correction(9, entity="cust-78")), Unfit)
    sent = make_draft(dsn, status="approved", run={"version": 8, "entity": "cust-77", "event_key": "open"})
    make_effect(dsn, draft=sent, state="sending", lease_age_seconds=-30)
    assert isinstance(await receiver.receive(correction(9, replaces="open")), Unsettled)
    assert len(rows(dsn, "SELECT 1 AS one FROM workflow_runs")) == 2


@asynccontextmanager
async def cut_off(dsn: str) -> AsyncIterator[tuple[Receiver, Proxy]]:
    """A receiver whose line to the database can be cut."""
    async with proxied(dsn) as (proxy, through):
        db = Database(through)
        await db.open()
        receiver = Receiver(db, Tally(db), wake=lambda _step: None)
        yield receiver, proxy
        await receiver.close()
        await db.close()


# A commit whose answer was lost is read again by key: what is there was accepted.
async def test_lost_commit_that_happened(dsn: str) -> None:
    async with cut_off(dsn) as (receiver, proxy):
        proxy.lose_reply_to(b"COMMIT")
        answers = await together(receiver, arrival(8, entity="a"), arrival(7, entity="b"))
        assert proxy.dropped.is_set()
        assert [type(one) for one in answers] == [Accepted, Accepted]
        assert isinstance(await receiver.receive(arrival(8, entity="a")), Duplicate)
    assert len(rows(dsn, "SELECT 1 AS one FROM workflow_runs")) == 2


# A stale event whose commit's answer was lost is still told that it is stale.
async def test_lost_commit_of_a_stale_event(dsn: str) -> None:
    async with cut_off(dsn) as (receiver, proxy):
        await receiver.receive(arrival(8))
        proxy.lose_reply_to(b"COMMIT")
        assert isinstance(await receiver.receive(arrival(7)), Stale)


# What is not there after a lost commit is not known: the sender tries again, and then it goes in.
async def test_lost_commit_that_did_not_happen(dsn: str) -> None:
    async with cut_off(dsn) as (receiver, proxy):
        proxy.lose(b"COMMIT")
        with pytest.raises(DatabaseAway):
            await receiver.receive(arrival())
        assert isinstance(await receiver.receive(arrival()), Accepted)


# What somebody else stored under the key meanwhile is not taken for our own.
def test_foreign_run_is_not_our_own() -> None:
    ours = arrival()
    found = KnownRun(
        idempotency_key=ours.key,
        run_id=new_id(),
        payload_hash=ours.payload_hash,
        state=RunState.RECEIVED,
        draft_key=ours.draft_key,
        was_stale=False,
        revision=None,
        decided_by=None,
    )
    lost = CommitUnknown("the connection broke while committing")
    assert recognise(ours, found, lost) == Known()
    assert recognise(ours, found.model_copy(update={"run_id": ours.run_id}), lost) == Stored(is_stale=False)
    assert recognise(ours, None, lost) is lost


# Repeats reach the key's row and the day's counters with one flush; a second flush has nothing to do.
async def test_repeats_are_counted(receiver: Receiver, tally: Tally, dsn: str) -> None:
    await receiver.receive(arrival(8))
    await together(receiver, *[arrival(8) for _ in range(9)])
    await together(receiver, arrival(7), arrival(8, payload={"to": "bob@example.test"}))
    assert await tally.flush() == 12
    assert await tally.flush() == 0
    seen = rows(dsn, "SELECT duplicates, stales, conflicts FROM seen_events ORDER BY idempotency_key")
    assert seen == [
        {"duplicates": 0, "stales": 1, "conflicts": 0},
        {"duplicates": 9, "stales": 0, "conflicts": 1},
    ]
    counted = {one["status"]: one["n"] for one in rows(dsn, "SELECT status, n FROM event_counters")}
    assert counted == {"accepted": 1, "duplicate": 9, "stale": 1, "conflict": 1}


# A batch is split so that a key and a draft_key occur once a round, and order is kept where it matters.
def test_rounds() -> None:
    batch = [
        arrival(1, entity="a"),
        arrival(2, entity="a"),
        arrival(1, entity="b"),
        arrival(3, entity="c"),
        arrival(3, entity="d"),
        arrival(4, entity="a"),
    ]
    assert rounds(batch) == [[0, 3], [1, 2, 4], [5]]
