"""The way out: claim, start, send, record.

Not here: unknown effects afterwards (test_reconcile), the switch (test_stop), several processes (tests/race).
"""

import asyncio
import time
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from bot.connectors.connector import Effect
from bot.contracts.outcome import NotSent, Refused, SendOutcome, Sent, Unknown
from bot.flow import dispatch as dispatching
from bot.policy.kinds import load_policy
from store.database import Database
from tests import makers
from tests.flow.conftest import POLICY
from tests.flow.outlets import Scripted, actions, dispatch, dispatcher, effect_row, make_due

ASLEEP_TOO = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # The one that does not stand still.


# A confirmed effect completes with its id, and its draft, its run, its card and the record follow in one go.
async def test_confirmed(db: Database, dsn: str) -> None:
    sink = Scripted(Sent("msg-7"))
    effect_id = makers.make_effect(dsn, body=b'{"exact":"bytes"}')
    await dispatch(db, sink)
    row = effect_row(dsn, effect_id)
    assert [call.body for call in sink.calls] == [b'{"exact":"bytes"}']
    assert (row["state"], row["provider_id"], row["attempts"]) == ("completed", "msg-7", 1)
    assert (row["draft_status"], row["run_state"], row["wanted_version"]) == ("sent", "completed", 2)
    assert actions(dsn, row["idempotency_key"]) == [("system", "effect_completed")]


# What a connector is given is the row's: recipient, revision, target, try, and the frozen policy.
async def test_what_a_connector_gets(db: Database, dsn: str) -> None:
    sink = Scripted()
    effect_id = makers.make_effect(dsn)
    await dispatch(db, sink)
    call = sink.calls[0]
    assert (call.effect_id, call.recipient, call.revision, call.attempt) == (
        effect_id,
        "amy@example.test",
        1,
        1,
    )
    assert (call.target, call.policy.response_id) == (makers.SNAPSHOT["effect"]["target"], "id")
    assert call.created_at == effect_row(dsn, effect_id)["created_at"]
    assert call.entity.startswith("customer:")


# Proven not sent: it waits and is tried again, with the same key and bytes.
@pytest.mark.parametrize(
    ("retry_after", "least", "most"), [(None, 0, 1), (0.0, 0, 1), (7.0, 6, 7), (99_999.0, 3590, 3600)]
)
async def test_not_sent(db: Database, dsn: str, retry_after: float | None, least: int, most: int) -> None:
    sink = Scripted(NotSent("http_429", retry_after))
    effect_id = makers.make_effect(dsn)
    await dispatch(db, sink)
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["attempts"], row["reason"]) == ("pending", 1, "http_429")
    assert row["started_at"] is None
    assert row["draft_status"] == "approved"
    assert least <= row["wait"].total_seconds() <= most
    sink.answer = Sent(None)
    make_due(dsn)
    await dispatch(db, sink)
    assert effect_row(dsn, effect_id)["state"] == "completed"
    assert sink.calls[0].body == sink.calls[1].body


# The tries of the policy are all it gets; then it has failed, and with it run and draft.
async def test_attempts_used_up(db: Database, dsn: str) -> None:
    sink = Scripted(NotSent("http_404"))
    (effect_id,) = makers.make_effects(dsn, 1, effect={"attempts": 3})
    for _ in range(5):
        make_due(dsn)
        await dispatch(db, sink)
    row = effect_row(dsn, effect_id)
    assert len(sink.calls) == 3
    assert (row["state"], row["reason"]) == ("failed", "http_404")
    assert (row["draft_status"], row["run_state"], row["failure"]) == (
        "failed",
        "failed_terminal",
        "http_404",
    )
    assert actions(dsn, row["idempotency_key"]) == [("system", "effect_failed")]


# A refusal is final at once.
async def test_refused(db: Database, dsn: str) -> None:
    effect_id = makers.make_effect(dsn)
    await dispatch(db, Scripted(Refused("redirect")))
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["reason"], row["run_state"]) == ("failed", "redirect", "failed_terminal")


# What was let out and will never arrive is told to ops, an undo in its own words; a waiting execution that is
# gone is no news, of others of one run one is enough, and of those that nobody reaches.
@pytest.mark.parametrize(
    ("makes", "reason", "told"),
    [
        ({}, "http_400", ["effect_failed"]),
        ({"clause": "{0,undo}"}, "http_400", ["undo_failed"]),
        ({"effect_type": "resume"}, "http_401", ["resume_failed"]),
        ({"effect_type": "resume"}, "connection_refused", ["resume_away"]),
        ({"effect_type": "resume"}, "gone", []),
    ],
)
async def test_failures_are_told(
    db: Database, dsn: str, makes: dict[str, Any], reason: str, told: list[str]
) -> None:
    sink = Scripted(Refused(reason), effect_type=makes.get("effect_type", "http"))
    undoable = {"effect": makers.SNAPSHOT["effect"] | {"undo": makers.SNAPSHOT["effect"]}}
    draft = makers.make_draft(dsn, status="approved", snapshot=undoable)
    for number in range(2 if "effect_type" in makes else 1):
        if reason == "connection_refused" and number:
            draft = makers.make_draft(dsn, status="approved", run={"entity": "customer:2"})
        makers.make_effect(dsn, draft=draft, target=f"https://n8n.example/{number}", **makes)
    await dispatch(db, sink)
    raised = makers.rows(dsn, "SELECT name, facts FROM alerts")
    assert [one["name"] for one in raised] == told
    keys = [one["key"] for one in makers.rows(dsn, "SELECT idempotency_key AS key FROM workflow_runs")]
    assert all(one["facts"]["because"] == reason and one["facts"]["key"] in keys for one in raised)


# What may have arrived is unknown: nobody sends it again, ops gets a card, the draft's card is drawn again.
async def test_unknown(db: Database, dsn: str) -> None:
    sink = Scripted(Unknown("http_500"))
    effect_id = makers.make_effect(dsn)
    for _ in range(3):
        await dispatch(db, sink)
    row = effect_row(dsn, effect_id)
    assert len(sink.calls) == 1
    assert (row["state"], row["reason"], row["run_state"]) == ("unknown", "http_500", "approved")
    assert row["ambiguous_at"] is not None
    assert row["wanted_version"] == 2
    assert 50 < row["wait"].total_seconds() <= 60
    cards = makers.rows(dsn, "SELECT channel FROM cards WHERE effect_id IS NOT NULL")
    assert [card["channel"] for card in cards] == ["C0OPS"]
    assert makers.rows(dsn, "SELECT name FROM alerts") == []


# Without an ops channel the alert is kept, once an occasion.
async def test_unknown_without_channel(db: Database, dsn: str) -> None:
    effect_id = makers.make_effect(dsn)
    await dispatch(db, Scripted(Unknown("cut")), ops_channel=None)
    alerts = makers.rows(dsn, "SELECT name, facts FROM alerts")
    assert [(alert["name"], alert["facts"]["effect_id"]) for alert in alerts] == [
        ("unknown_effect", str(effect_id))
    ]


# Whatever a connector lets escape is unknown.
async def test_escaped(db: Database, dsn: str) -> None:
    def explode(_: Effect) -> SendOutcome:
        raise RuntimeError("SECRET")

    effect_id = makers.make_effect(dsn)
    await dispatch(db, Scripted(explode))
    assert (effect_row(dsn, effect_id)["state"], effect_row(dsn, effect_id)["reason"]) == (
        "unknown",
        "escaped",
    )


# A call that never ends meets our own deadline, and may have arrived.
async def test_deadline(db: Database, dsn: str) -> None:
    sink = Scripted()
    sink.holds = lambda _: True
    effect_id = makers.make_effect(dsn)
    await dispatch(db, sink, margin_seconds=-10.0)
    assert (effect_row(dsn, effect_id)["state"], effect_row(dsn, effect_id)["reason"]) == (
        "unknown",
        "deadline",
    )


# F026: frozen between start and call until the lease can no longer cover the call, it makes none: somebody
# else may have sent it by then. In time it is made. A machine that slept counts as frozen: its other clocks
# stood still.
@pytest.mark.parametrize("seconds", [29, 31])
@pytest.mark.parametrize("point", ["dispatch.after_claim", "dispatch.after_start"])
async def test_frozen_before_the_call(
    db: Database, dsn: str, monkeypatch: pytest.MonkeyPatch, point: str, seconds: int
) -> None:
    real, lost = time.clock_gettime, [0]

    def freeze(name: str) -> None:
        if name == point:
            lost[0] = seconds

    monkeypatch.setattr(dispatching, "reach", freeze)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: real(clock) + lost[0] * (clock == ASLEEP_TOO))
    sink = Scripted()
    effect_id = makers.make_effect(dsn)
    await dispatch(db, sink)
    row = effect_row(dsn, effect_id)
    in_time = seconds == 29
    assert len(sink.calls) == in_time
    assert (row["state"], row["reason"]) == (("completed", None) if in_time else ("pending", "late"))
    assert makers.rows(dsn, "SELECT failures FROM targets") == []


# A target that deduplicates gets an ambiguous send again, with the same key and bytes, within its attempts;
# after that no machine says failed.
@pytest.mark.parametrize("last", [Refused("http_400"), NotSent("dns_failed"), Unknown("timeout")])
async def test_repeats(db: Database, dsn: str, last: SendOutcome) -> None:
    sink = Scripted(Unknown("http_502"), repeats=True)
    (effect_id,) = makers.make_effects(dsn, 1, effect={"attempts": 2})
    await dispatch(db, sink)
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["attempts"], row["ambiguous_at"] is None) == ("pending", 1, False)
    sink.answer = last
    make_due(dsn)
    await dispatch(db, sink)
    assert effect_row(dsn, effect_id)["state"] == "unknown"
    assert effect_row(dsn, effect_id)["ambiguous_at"] == row["ambiguous_at"]
    assert sink.calls[0].effect_id == sink.calls[1].effect_id


HELD = {
    "not_before": "not_before = now() + interval '1 hour'",
    "backoff": "next_attempt_at = now() + interval '1 hour'",
    "stale": "fresh_until = now() - interval '1 second'",
    "another type": "effect_type = 'smtp'",
}


# It stays where it is, uncounted: before its time, stale, or of a type that this process cannot send.
@pytest.mark.parametrize("held", HELD)
async def test_not_due(db: Database, dsn: str, held: str) -> None:
    sink = Scripted()
    effect_id = makers.make_effect(dsn)
    makers.change(dsn, f"UPDATE effect_outbox SET {HELD[held]}")  # noqa: S608 - our own words
    assert await dispatcher(db, sink).run_once() == 0
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["attempts"], row["version"], sink.calls) == ("pending", 0, 1, [])


AHEAD = UUID("7fffffff-ffff-7fff-bfff-ffffffffffff")  # As a clock makes it that is ahead of the others.


# An older effect of the same draft_key goes first, and while it is open the younger waits, whatever clocks
# those had that wrote them, limited or not; a resume effect waits for nobody and holds up nobody.
@pytest.mark.parametrize(
    ("older", "sent"), [("pending", 1), ("unknown", 0), ("completed", 1), ("failed", 1), ("cancelled", 1)]
)
@pytest.mark.parametrize("first_id", [None, AHEAD], ids=["clocks_agree", "clock_ahead"])
@pytest.mark.parametrize("limited", [False, True])
async def test_order(
    db: Database, dsn: str, older: str, sent: int, first_id: UUID | None, *, limited: bool
) -> None:
    if limited:
        makers.limit(dsn, concurrency=5)
    draft = makers.make_draft(dsn, status="approved")
    first = makers.make_effect(dsn, state=older, draft=draft, target="https://a.example", effect_id=first_id)
    second = makers.make_effect(dsn, draft=draft, target="https://b.example")
    makers.make_effect(dsn, draft=draft, effect_type="resume", target="https://n8n.example/r")
    mail, resume = Scripted(), Scripted(effect_type="resume")
    one = dispatcher(db, mail, resume)
    await one.run_once()
    await one.quiet()
    assert [call.effect_id for call in mail.calls] == ([first] if older == "pending" else [second] * sent)
    assert len(resume.calls) == 1


# An effect of a kind that our policy lacks is left to a process that has it, with limits and without; where
# it is still there after a while, nobody has, and it leaves by what was approved.
@pytest.mark.parametrize("limited", [False, True])
async def test_kind_of_another_policy(db: Database, dsn: str, *, limited: bool) -> None:
    sink = Scripted()
    makers.make_effect(dsn)
    if limited:
        makers.limit(dsn, concurrency=5)
    without = load_policy(POLICY.replace("customer_email", "other_kind"))
    await dispatch(db, sink, policy=without)
    assert sink.calls == []
    makers.change(dsn, "UPDATE effect_outbox SET next_attempt_at = now() - interval '16 seconds'")
    await dispatch(db, sink, policy=without)
    assert len(sink.calls) == 1


# A resume effect needs no head, moves no run or draft, and takes only its bounds from the policy.
async def test_resume(db: Database, dsn: str) -> None:
    draft = makers.make_draft(dsn, status="sent")
    makers.change(dsn, "UPDATE draft_heads SET source_version = 99")
    effect_id = makers.make_effect(dsn, draft=draft, effect_type="resume", target="https://n8n.example/r")
    sink = Scripted(Refused("http_400"), effect_type="resume")
    await dispatch(db, sink)
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["run_state"], row["draft_status"]) == ("failed", "completed", "sent")
    assert (sink.calls[0].policy.response_id, sink.calls[0].policy.attempts) == (None, 5)


# A newer version that is known stops the call, and the draft goes back to its reviewers.
async def test_overtaken_before_start(db: Database, dsn: str) -> None:
    sink = Scripted()
    effect_id = makers.make_effect(dsn)
    makers.change(dsn, "UPDATE draft_heads SET source_version = 18")
    await dispatch(db, sink)
    row = effect_row(dsn, effect_id)
    assert (sink.calls, row["state"], row["reason"]) == ([], "cancelled", "newer_version")
    assert (row["draft_status"], row["run_state"]) == ("pending", "awaiting_human")
    assert actions(dsn, row["idempotency_key"]) == [("system", "withdrawn")]


# The same after a try that may have arrived goes to a person instead: taking it back would be a guess.
async def test_overtaken_ambiguous(db: Database, dsn: str) -> None:
    sink = Scripted(repeats=True)
    effect_id = makers.make_effect(dsn)
    makers.change(dsn, "UPDATE effect_outbox SET ambiguous_at = now(), attempts = 1")
    makers.change(dsn, "UPDATE draft_heads SET source_version = 18")
    await dispatch(db, sink)
    row = effect_row(dsn, effect_id)
    assert (sink.calls, row["state"], row["reason"], row["run_state"]) == (
        [],
        "unknown",
        "outdated",
        "approved",
    )


# A newer event that came while a try was on the wire, and the try did not arrive: nothing is sent any more.
async def test_overtaken_while_sending(db: Database, dsn: str) -> None:
    sink = Scripted(NotSent("connection_refused"))
    sink.holds = lambda _: True
    effect_id = makers.make_effect(dsn)
    one = dispatcher(db, sink)
    await one.run_once()
    await sink.held.wait()
    makers.change(dsn, "UPDATE draft_heads SET source_version = 18")
    sink.let_go.set()
    await one.quiet()
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["draft_status"], row["run_state"]) == ("cancelled", "pending", "awaiting_human")


# An effect whose bytes were erased, or whose policy cannot be read, is not sent.
@pytest.mark.parametrize(
    ("spoiled", "reason"),
    [
        ("UPDATE effect_payloads SET body = NULL, erased_at = now()", "erased"),
        ("UPDATE effect_payloads SET snapshot_hash = 'gone'", "policy_unreadable"),
    ],
)
async def test_unsendable(db: Database, dsn: str, spoiled: Any, reason: str) -> None:
    sink = Scripted()
    effect_id = makers.make_effect(dsn)
    makers.change(dsn, spoiled)
    await dispatch(db, sink)
    assert (effect_row(dsn, effect_id)["state"], effect_row(dsn, effect_id)["reason"]) == ("failed", reason)
    assert sink.calls == []


# F028: targets that fail or hang hold up nobody; each failing one is asked as often as its policy says.
async def test_slow_and_failing_targets(db: Database, dsn: str) -> None:
    all_good = asyncio.Event()
    answers: dict[str, SendOutcome] = {"busy": NotSent("http_429", 0.0), "broken": Unknown("http_500")}

    def answer(effect: Effect) -> SendOutcome:
        if [_name(call) for call in sink.calls].count("good") == 20:
            all_good.set()
        return answers.get(_name(effect), Sent(None))

    sink = Scripted(answer)
    sink.holds = lambda effect: _name(effect) == "hung"
    made = {}
    for name, count in (("busy", 5), ("broken", 5), ("hung", 1), ("good", 20)):
        policy = {"attempts": 3, "target": f"https://x.example/{name}"}
        made[name] = makers.make_effects(dsn, count, effect=policy)
    one = dispatcher(db, sink, margin_seconds=60.0)
    await one.run_once()
    await all_good.wait()
    for _ in range(4):
        make_due(dsn)
        await dispatch(db, sink, owner="another")
    sink.let_go.set()
    await one.quiet()
    states = {name: {effect_row(dsn, each)["state"] for each in ids} for name, ids in made.items()}
    assert states == {"busy": {"failed"}, "broken": {"unknown"}, "hung": {"completed"}, "good": {"completed"}}
    assert Counter(_name(call) for call in sink.calls) == {"busy": 15, "broken": 5, "hung": 1, "good": 20}


def _name(effect: Effect) -> str:
    return effect.target.rsplit("/", 1)[1]


# A stop gives back what was not started, and calls unknown what did not end within the grace.
async def test_stop(db: Database, dsn: str) -> None:
    sink = Scripted()
    sink.holds = lambda _: True
    started = makers.make_effect(dsn)
    one = dispatcher(db, sink)
    await one.run_once()
    await sink.held.wait()
    await one.stop(grace_seconds=0)
    row = effect_row(dsn, started)
    assert (row["state"], row["reason"]) == ("unknown", "stopped")
    waiting = makers.make_effect(dsn)
    assert await one.run_once() == 0
    assert effect_row(dsn, waiting)["state"] == "pending"


# What was claimed when the stop came, and not started, is due at once for the others, and does not count.
async def test_stop_between_claim_and_start(db: Database, dsn: str) -> None:
    effect_id = makers.make_effect(dsn)
    sink = Scripted()
    one = dispatcher(db, sink)
    await one.run_once()
    await one.stop()
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["attempts"], sink.calls) == ("pending", 0, [])
    assert row["wait"].total_seconds() <= 0
