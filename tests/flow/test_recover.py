"""Leases that ran out: what was started is unknown, what was not goes back.

Not here: what a living process gives back itself (test_dispatch).
"""

import pytest

from bot.contracts.outcome import Refused, SendOutcome, Sent
from bot.flow import recover
from bot.flow.reconcile import Reconciling
from bot.flow.reconcile import run_once as reconcile
from bot.flow.recover import Recovering
from store.database import Database
from tests import makers
from tests.flow.outlets import Scripted, actions, dispatcher, effect_row, make_due


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
