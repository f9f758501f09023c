"""Leases that ran out: what was started is unknown, what was not goes back.

Not here: what a living process gives back itself (test_dispatch).
"""

from datetime import UTC, datetime

import pytest

from bot.contracts.outcome import Refused, SendOutcome, Sent
from bot.flow import failures, recover
from bot.flow.reconcile import Choice, NotResolved, Reconciling, Resolved, settle_unknown
from bot.flow.reconcile import run_once as reconcile
from bot.flow.recover import Recovering
from store import unknowns
from store.database import Database
from store.unknowns import LateAnswer
from tests import makers
from tests.flow.outlets import Scripted, actions, dispatcher, effect_row, make_due

ADA = "slack:T0STET:U0ADMIN"
CLAIM = (
    "UPDATE effect_outbox SET state = 'sending', lease_owner = 'other', version = version + 1,"
    " lease_expires_at = now() + interval '1 minute'"
)


# An effect that was claimed and never started goes back, uncounted and due at once.
async def test_not_started(db: Database, dsn: str) -> None:
    effect_id = makers.make_effect(dsn, state="sending", lease_age_seconds=1)
    assert await recover.run_once(Recovering(db)) == 1
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["attempts"], row["lease_owner"], row["version"]) == ("pending", 0, None, 2)
    assert actions(dsn, row["idempotency_key"]) == []


# An effect that was started is unknown: its owner may have sent it before it died.
async def test_started(db: Database, dsn: str) -> None:
    effect_id = makers.make_effect(dsn, state="sending", lease_age_seconds=1, started=True)
    assert await recover.run_once(Recovering(db, "C0OPS")) == 1
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["reason"], row["wanted_version"]) == ("unknown", "lease_expired", 2)
    assert 50 < row["wait"].total_seconds() <= 60
    assert actions(dsn, row["idempotency_key"]) == [("system", "effect_unknown")]
    assert len(makers.rows(dsn, "SELECT FROM cards WHERE channel = 'C0OPS'")) == 1


# A lease that holds is left alone, however long the send takes.
async def test_lease_holds(db: Database, dsn: str) -> None:
    makers.make_effect(dsn, state="sending", lease_age_seconds=-5, started=True)
    assert await recover.run_once(Recovering(db)) == 0


# A confirmation that comes after the lease was lost moves nothing, is kept, and lets reconciliation complete
# without asking anybody; any other late answer proves nothing.
@pytest.mark.parametrize(
    ("answer", "word", "state"),
    [(Sent("late-1"), "sent", "completed"), (Refused("http_400"), "refused", "unknown")],
)
@pytest.mark.parametrize("recovered_first", [True, False])
async def test_late_answer(
    db: Database, dsn: str, answer: SendOutcome, word: str, state: str, *, recovered_first: bool
) -> None:
    sink = Scripted(answer)
    sink.holds = lambda _: True
    effect_id = makers.make_effect(dsn)
    one = dispatcher(db, sink)
    await one.run_once()
    await sink.held.wait()
    makers.change(dsn, "UPDATE effect_outbox SET lease_expires_at = now() - interval '1 second'")
    if recovered_first:
        await recover.run_once(Recovering(db))
    sink.let_go.set()
    await one.quiet()
    assert effect_row(dsn, effect_id)["state"] == ("unknown" if recovered_first else "sending")
    await recover.run_once(Recovering(db))
    evidence = makers.rows(dsn, "SELECT answer, attempt FROM effect_evidence")
    assert [(line["answer"], line["attempt"]) for line in evidence] == [(word, 1)]
    if word != "sent":
        make_due(dsn)
    assert await reconcile(Reconciling(db, {"http": sink})) == 1
    row = effect_row(dsn, effect_id)
    assert (row["state"], len(sink.asked)) == (state, 0 if word == "sent" else 1)
    assert row["provider_id"] == ("late-1" if word == "sent" else None)


# One that comes while a person's second try still waits takes that back, claimed or not: none leaves twice.
@pytest.mark.parametrize("claimed", [False, True])
async def test_proof_before_the_second_try(db: Database, dsn: str, *, claimed: bool) -> None:
    sink = Scripted(Sent("first"))
    sink.holds = lambda _: True
    effect_id = makers.make_effect(dsn)
    one = dispatcher(db, sink, owner="late")
    await one.run_once()
    await sink.held.wait()
    makers.change(dsn, "UPDATE effect_outbox SET lease_expires_at = now() - interval '1 second'")
    await recover.run_once(Recovering(db))
    version = effect_row(dsn, effect_id)["version"]
    assert isinstance(await settle_unknown(db, effect_id, version, choice=Choice.RESEND, by=ADA), Resolved)
    if claimed:
        makers.change(dsn, CLAIM)
    else:
        makers.change(dsn, "UPDATE effect_outbox SET not_before = now() + interval '1 hour'")
    sink.let_go.set()
    await one.quiet()
    assert effect_row(dsn, effect_id)["state"] == "unknown"
    makers.change(dsn, "UPDATE effect_outbox SET not_before = NULL")
    await dispatcher(db, sink).run_once()
    assert await reconcile(Reconciling(db, {"http": sink})) == 1
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["provider_id"], row["draft_status"], len(sink.calls)) == (
        "completed",
        "first",
        "sent",
        1,
    )


# One that comes after a person took the effect for lost changes nothing any more, and ops is told.
async def test_proof_after_giving_up(db: Database, dsn: str) -> None:
    effect_id = makers.make_effect(dsn, state="unknown")
    await settle_unknown(db, effect_id, 1, choice=Choice.GIVE_UP, by=ADA)
    for answer in ("refused", "sent", "sent"):
        async with db.transaction() as conn:
            arrived = await unknowns.add_evidence(conn, [LateAnswer(effect_id, 1, answer, "first")])
            for one in arrived:
                await failures.tell_of_arrival(conn, one.effect_id, one.idempotency_key)
    row = effect_row(dsn, effect_id)
    assert row["state"] == "failed"
    assert makers.rows(dsn, "SELECT name, facts FROM alerts") == [
        {"name": "arrived_late", "facts": {"key": row["idempotency_key"]}}
    ]


# Once the next try is on its way the proof of an earlier one is kept and changes nothing; that try's own
# answer counts.
async def test_proof_after_the_second_start(db: Database, dsn: str) -> None:
    effect_id = makers.make_effect(dsn, state="sending", started=True, ambiguous_at=datetime.now(UTC))
    async with db.transaction() as conn:
        await unknowns.add_evidence(conn, [LateAnswer(effect_id, 1, "sent", "first")])
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["version"], row["lease_owner"]) == ("sending", 1, "test")


# With a proof on file nobody can say "send again" any more; that it was delivered, they can.
@pytest.mark.parametrize(("choice", "counts"), [(Choice.RESEND, False), (Choice.DELIVERED, True)])
async def test_no_second_try_against_a_proof(db: Database, dsn: str, choice: Choice, *, counts: bool) -> None:
    effect_id = makers.make_effect(dsn, state="unknown")
    makers.change(
        dsn,
        "INSERT INTO effect_evidence (evidence_id, effect_id, attempt, answer, provider_id)"
        " VALUES (gen_random_uuid(), %(id)s, 1, 'sent', 'first')",
        id=effect_id,
    )
    settled = await settle_unknown(db, effect_id, 1, choice=choice, by=ADA)
    assert (settled is not NotResolved.SETTLED) == counts
    assert effect_row(dsn, effect_id)["state"] == ("completed" if counts else "unknown")
