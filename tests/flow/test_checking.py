"""The look at a record between claim and start: it passes, is held, or goes back to its reviewers.

Not here: what an answer means (tests/connectors/test_probe) or the kill at each point (tests/crash).
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any
from uuid import UUID

import pytest

from bot.connectors.connector import Effect
from bot.contracts.outcome import Changed, NotSent, ProbeOutcome, Sent, Unchanged, Unclear
from bot.demo.slack_server import SlackStandIn
from bot.flow import withdraw
from bot.flow.withdraw import Withdrawing
from bot.policy.ahead import Probe
from store.database import Database, outside_transaction
from tests import makers
from tests.flow.outlets import Scripted, actions, dispatch, dispatcher, effect_row, make_due
from tests.flow.screens import NewShower, buttons, said, seen, want

PROBE = {"url": "https://crm.example/{entity}", "version": "version", "timeout_seconds": 5}


OLDER = "UPDATE effect_outbox SET held_since = held_since - %(age)s * interval '1 second'"


class Records:
    """Answers for every record as told; holds questions back where told."""

    def __init__(self, answer: ProbeOutcome) -> None:
        self.answer = answer
        self.asked: list[tuple[Effect, tuple[int, ...]]] = []
        self.hangs = False
        self.held = asyncio.Event()
        self.let_go = asyncio.Event()

    async def ask(self, effect: Effect, probe: Probe, versions: Collection[int]) -> ProbeOutcome:
        outside_transaction()
        assert probe.version == "version"
        self.asked.append((effect, tuple(sorted(versions))))
        if self.hangs:
            self.held.set()
            await self.let_go.wait()
        return self.answer


def make_probed(dsn: str, **more: Any) -> UUID:
    (effect_id,) = makers.make_effects(dsn, 1, effect={"probe": PROBE}, **more)
    return effect_id


# A record that is as it was lets its effect go, in one try.
async def test_unchanged(db: Database, dsn: str) -> None:
    records, sink = Records(Unchanged()), Scripted(Sent("msg-1"))
    effect_id = make_probed(dsn)
    await dispatch(db, sink, prober=records)
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["attempts"], row["held_since"]) == ("completed", 1, None)
    assert [(asked.effect_id, versions) for asked, versions in records.asked] == [(effect_id, (17,))]


# Every try looks again.
async def test_every_try_looks(db: Database, dsn: str) -> None:
    records, sink = Records(Unchanged()), Scripted(NotSent("http_429"))
    make_probed(dsn)
    for _ in range(3):
        make_due(dsn)
        await dispatch(db, sink, prober=records)
    assert (len(records.asked), len(sink.calls)) == (3, 3)


# A record that changed takes the draft back to its reviewers, with a new question, and nothing is sent.
@pytest.mark.parametrize(
    ("version", "notice"), [(18, "withdrawn_record_changed:18:17"), (None, "withdrawn_record_closed")]
)
async def test_changed(db: Database, dsn: str, version: int | None, notice: str) -> None:
    sink = Scripted()
    effect_id = make_probed(dsn)
    await dispatch(db, sink, prober=Records(Changed(version)))
    row = effect_row(dsn, effect_id)
    assert not sink.calls
    assert (row["state"], row["reason"], row["attempts"]) == ("cancelled", "record_changed", 0)
    assert (row["draft_status"], row["run_state"]) == ("pending", "awaiting_human")
    (draft,) = makers.rows(dsn, "SELECT notice, approval_id FROM drafts")
    assert draft["notice"] == notice
    open_questions = makers.rows(dsn, "SELECT approval_id FROM approvals WHERE ended_at IS NULL")
    assert [one["approval_id"] for one in open_questions] == [draft["approval_id"]]
    assert actions(dsn, row["idempotency_key"]) == [("system", "withdrawn")]
    await dispatch(db, sink, prober=Records(Unchanged()))
    assert not sink.calls


# What may be out already is not taken back: a person decides.
async def test_changed_after_an_ambiguous_try(db: Database, dsn: str) -> None:
    effect_id = make_probed(dsn)
    makers.change(dsn, "UPDATE effect_outbox SET ambiguous_at = now(), attempts = 1")
    sink = Scripted(repeats=True)
    await dispatch(db, sink, prober=Records(Changed(18)))
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["run_state"], sink.calls) == ("unknown", "approved", [])


# A record that cannot be checked holds its effect: no try is used up, waits grow, ops hears once.
async def test_held(db: Database, dsn: str) -> None:
    records, sink = Records(Unclear("timeout")), Scripted()
    effect_id = make_probed(dsn)
    waits = []
    for age in (0, 30, 3600):
        makers.change(
            dsn, "UPDATE effect_outbox SET held_since = held_since - %(age)s * interval '1 s'", age=age
        )
        make_due(dsn)
        await dispatch(db, sink, prober=records)
        waits.append(effect_row(dsn, effect_id)["wait"].total_seconds())
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["attempts"], row["reason"]) == ("pending", 0, "timeout")
    assert (row["draft_status"], row["run_state"], row["wanted_version"]) == ("approved", "approved", 2)
    assert 4 < waits[0] <= 5
    assert 29 < waits[1] <= 45
    assert 299 < waits[2] <= 300
    assert not sink.calls
    assert [alert["name"] for alert in makers.rows(dsn, "SELECT name FROM alerts")] == ["effect_held"]
    assert actions(dsn, row["idempotency_key"]) == [("system", "effect_held")]
    records.answer = Unchanged()
    make_due(dsn)
    await dispatch(db, sink, prober=records)
    assert (effect_row(dsn, effect_id)["state"], len(sink.calls)) == ("completed", 1)


# A whole kind that is held is told once, by its first key.
async def test_one_alert_a_kind(db: Database, dsn: str) -> None:
    makers.make_effects(dsn, 5, effect={"probe": PROBE})
    await dispatch(db, Scripted(), prober=Records(Unclear("http_503")))
    (alert,) = makers.rows(dsn, "SELECT facts FROM alerts")
    assert (alert["facts"]["kind"], alert["facts"]["reason"]) == ("customer_email", "http_503")
    assert len(makers.rows(dsn, "SELECT 1 FROM effect_outbox WHERE held_since IS NOT NULL")) == 5


# Nobody to ask holds too: what cannot be checked is not sent.
async def test_nobody_to_ask(db: Database, dsn: str) -> None:
    effect_id, sink = make_probed(dsn), Scripted()
    await dispatch(db, sink)
    assert (effect_row(dsn, effect_id)["reason"], sink.calls) == ("not_set", [])


# fresh_for ends a hold as it ends any wait.
async def test_stale_while_held(db: Database, dsn: str) -> None:
    effect_id = make_probed(dsn)
    await dispatch(db, Scripted(), prober=Records(Unclear("timeout")))
    makers.change(dsn, "UPDATE effect_outbox SET fresh_until = now() - interval '1 second'")
    assert await withdraw.run_once(Withdrawing(db)) == 1
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["reason"], row["draft_status"]) == ("cancelled", "stale", "pending")


# A record that hangs holds up nothing else, and its effect nobody else's lane place.
async def test_hanging_record(db: Database, dsn: str) -> None:
    records, sink = Records(Unchanged()), Scripted()
    records.hangs = True
    probed = make_probed(dsn)
    (plain,) = makers.make_effects(dsn, 1)
    one = dispatcher(db, sink, prober=records)
    await one.run_once()
    await records.held.wait()
    while effect_row(dsn, plain)["state"] != "completed":
        await one.run_once()
        await asyncio.sleep(0)
    assert effect_row(dsn, probed)["started_at"] is None
    records.let_go.set()
    await one.quiet()
    assert effect_row(dsn, probed)["state"] == "completed"


async def stop_newer(dsn: str) -> None:
    makers.change(dsn, "UPDATE draft_heads SET source_version = 18")


async def close_switch(dsn: str) -> None:
    makers.change(dsn, "UPDATE kill_switch SET open = false")


async def lose_lease(dsn: str) -> None:
    makers.change(dsn, "UPDATE effect_outbox SET lease_expires_at = now() - interval '1 second'")


async def cancel_it(dsn: str) -> None:
    makers.change(
        dsn,
        "UPDATE effect_outbox SET state = 'cancelled', lease_owner = NULL, lease_expires_at = NULL,"
        " version = version + 1",
    )


# Whatever happens between the look and the start, the start's own statement decides: no call.
@pytest.mark.parametrize(
    ("between", "state"),
    [
        (stop_newer, "cancelled"),
        (close_switch, "pending"),
        (lose_lease, "sending"),
        (cancel_it, "cancelled"),
    ],
)
@pytest.mark.parametrize("answer", [Unchanged(), Changed(18), Unclear("timeout")])
async def test_between_look_and_start(
    db: Database, dsn: str, between: Callable[[str], Any], state: str, answer: ProbeOutcome
) -> None:
    records, sink = Records(answer), Scripted()
    records.hangs = True
    effect_id = make_probed(dsn)
    one = dispatcher(db, sink, prober=records)
    await one.run_once()
    await records.held.wait()
    await between(dsn)
    records.let_go.set()
    await one.quiet()
    assert not sink.calls
    row = effect_row(dsn, effect_id)
    assert row["started_at"] is None
    if answer == Unchanged():
        assert row["state"] in (state, "pending")
    if between is cancel_it:
        assert (row["state"], row["draft_status"]) == ("cancelled", "approved")


# Two processes look at different effects; no effect is looked at by two at once, and each leaves once.
async def test_two_processes(db: Database, dsn: str) -> None:
    made = makers.make_effects(dsn, 20, effect={"probe": PROBE})
    records, sink = Records(Unchanged()), Scripted()
    pair = [dispatcher(db, sink, owner=name, prober=records) for name in ("one", "two")]
    await asyncio.gather(*(one.run_once() for one in pair))
    await asyncio.gather(*(one.quiet() for one in pair))
    assert sorted(call.effect_id for call in sink.calls) == sorted(made)
    assert sorted(asked.effect_id for asked, _ in records.asked) == sorted(made)


# A stop breaks looks off, and gives their effects back as they were.
async def test_stop_while_looking(db: Database, dsn: str) -> None:
    records, sink = Records(Unchanged()), Scripted()
    records.hangs = True
    effect_id = make_probed(dsn)
    one = dispatcher(db, sink, prober=records)
    await one.run_once()
    await records.held.wait()
    await one.stop(grace_seconds=30)
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["attempts"], row["lease_owner"], row["held_since"]) == (
        "pending",
        0,
        None,
        None,
    )
    assert not sink.calls


# The card of a held effect says so; one that came back says what changed, and can be decided.
async def test_cards(db: Database, dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    make_probed(dsn)
    makers.change(
        dsn,
        "INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)"
        " SELECT draft_id, 1, run_id, '{\"subject\": \"Hi\"}', 'x', 'model' FROM drafts",
    )
    makers.change(dsn, "INSERT INTO run_inputs (run_id, payload) SELECT run_id, '{}' FROM workflow_runs")
    records = Records(Unclear("no_version"))
    await dispatch(db, Scripted(), prober=records)
    await shower().run_once()
    assert "the record cannot be checked" in said(seen(slack)[0])
    records.answer = Changed(18)
    make_due(dsn)
    await dispatch(db, Scripted(), prober=records)
    want(dsn)
    await shower().run_once()
    assert "version 18, drafted from 17" in said(seen(slack)[0])
    assert "stet.approve" in buttons(seen(slack)[0])
