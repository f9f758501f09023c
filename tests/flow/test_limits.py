"""Limits of what leaves, one process at a time: places, rates, caps, and what holds an effect for good.

Not here: several processes (tests/race), targets that rest (test_resting), reading the policy (tests/policy).
"""

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest

from bot.connectors.connector import Effect
from bot.contracts.outcome import NotSent, Refused, SendOutcome, Sent, Unknown
from bot.flow import recover
from bot.flow.reconcile import Choice, settle_unknown
from bot.flow.recover import Recovering
from bot.policy.kinds import load_policy
from store.database import Database
from store.ids import new_id
from tests import makers
from tests.flow.conftest import POLICY
from tests.flow.outlets import Scripted, dispatch, dispatcher, effect_row, make_due

KIND = "customer_email"
LATER = "UPDATE departures SET taken_at = taken_at - interval '61 seconds'"


def states(dsn: str) -> dict[str, int]:
    found = makers.rows(dsn, "SELECT state, count(*)::int AS n FROM effect_outbox GROUP BY state")
    return {row["state"]: row["n"] for row in found}


def worth(dsn: str, effect_id: UUID, body: str) -> None:
    """Let the revision that was approved have this content."""
    makers.change(
        dsn,
        "INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)"
        " SELECT draft_id, 1, run_id, %(body)s::jsonb, '', 'model' FROM effect_outbox"
        " WHERE effect_id = %(id)s ON CONFLICT (draft_id, revision) DO UPDATE SET body = excluded.body",
        body=body,
        id=effect_id,
    )


def make_worth(dsn: str, *amounts: float) -> list[UUID]:
    """Pending effects worth these amounts, in order."""
    made = makers.make_effects(dsn, len(amounts))
    for effect_id, amount in zip(made, amounts, strict=True):
        worth(dsn, effect_id, json.dumps({"amount": amount}))
    return made


def limits_row(dsn: str) -> dict[str, Any]:
    return makers.rows(dsn, "SELECT * FROM kind_limits")[0]


# So many calls at once to one target and no more, whatever there is room for; each answer lets one more out.
async def test_concurrency(db: Database, dsn: str) -> None:
    makers.limit(dsn, concurrency=2)
    makers.make_effects(dsn, 5)
    sink = Scripted()
    sink.holds = lambda _: True
    one, two = dispatcher(db, sink), dispatcher(db, sink, owner="two")
    assert (await one.run_once(), await two.run_once()) == (2, 0)
    sink.holds = lambda _: False
    sink.let_go.set()
    await one.quiet()
    assert states(dsn) == {"completed": 5}


# The limit is a target's own: another target of the kind goes on beside it.
async def test_concurrency_is_a_targets_own(db: Database, dsn: str) -> None:
    makers.limit(dsn, concurrency=1)
    makers.make_effects(dsn, 4, targets=2)
    sink = Scripted()
    sink.holds = lambda _: True
    one = dispatcher(db, sink)
    assert await one.run_once() == 2
    targets = "SELECT count(DISTINCT target) AS n FROM effect_outbox WHERE state = 'sending'"
    assert makers.rows(dsn, targets) == [{"n": 2}]
    sink.let_go.set()
    await one.quiet()


# An owner that dies between claim and start holds its places until its lease runs out, and no longer.
async def test_lost_owner_leaks_no_place(db: Database, dsn: str) -> None:
    makers.limit(dsn, concurrency=1)
    makers.make_effects(dsn, 2)
    dead = dispatcher(db, Scripted(), owner="dead")
    dead._set_going = lambda *batch: len(batch[0])  # type: ignore[method-assign] # killed right after its claim
    assert await dead.run_once() == 1
    sink = Scripted()
    assert await dispatcher(db, sink).run_once() == 0
    makers.change(
        dsn,
        "UPDATE effect_outbox SET lease_expires_at = now() - interval '1 second' WHERE state = 'sending'",
    )
    assert await recover.run_once(Recovering(db)) == 1
    await dispatch(db, sink)
    assert states(dsn) == {"completed": 2}
    assert {row["attempts"] for row in makers.rows(dsn, "SELECT attempts FROM effect_outbox")} == {1}


# A rate lets so many out in any second or minute; what waits for it was not tried and is not claimed.
@pytest.mark.parametrize("rate", ["per_second", "per_minute"])
async def test_rate(db: Database, dsn: str, rate: str) -> None:
    makers.limit(dsn, columns={rate: 3})
    makers.make_effects(dsn, 8)
    sink = Scripted()
    counts = []
    for _ in range(4):
        await dispatch(db, sink)
        counts.append(len(sink.calls))
        waiting = makers.rows(dsn, "SELECT attempts, version FROM effect_outbox WHERE state = 'pending'")
        assert {(row["attempts"], row["version"]) for row in waiting} <= {(0, 1)}
        makers.change(dsn, LATER)
    assert counts == [3, 6, 8, 8]


# Where only a rate holds effects back, they go on by themselves when it lets them.
async def test_rate_goes_on_by_itself(db: Database, dsn: str) -> None:
    makers.limit(dsn, per_second=5)
    makers.make_effects(dsn, 6)
    all_out = asyncio.Event()

    def answer(_: Effect) -> SendOutcome:
        if len(sink.calls) == 6:
            all_out.set()
        return Sent(None)

    sink = Scripted(answer)
    one = dispatcher(db, sink)
    await one.run_once()
    await all_out.wait()
    await one.quiet()
    await one.stop()
    assert states(dsn) == {"completed": 6}


# A retry is another call: rates count it, caps do not.
async def test_retries_count_for_rates_alone(db: Database, dsn: str) -> None:
    makers.limit(dsn, per_minute=2, cap_day=1)
    makers.make_effects(dsn, 1)
    sink = Scripted(NotSent("http_429", 0.0))
    for _ in range(3):
        make_due(dsn)
        await dispatch(db, sink)
    assert len(sink.calls) == 2


# A cap lets so many out in a window (UTC), says what waits and until when, and ops hears it once a window.
@pytest.mark.parametrize(("cap", "window"), [("cap_hour", "hour"), ("cap_day", "day")])
async def test_cap(db: Database, dsn: str, cap: str, window: str) -> None:
    makers.limit(dsn, columns={cap: 3})
    makers.make_effects(dsn, 5)
    sink = Scripted()
    for _ in range(3):
        await dispatch(db, sink)
    assert len(sink.calls) == 3
    row = limits_row(dsn)
    ends = makers.rows(
        dsn, "SELECT date_trunc(%(w)s, now(), 'UTC') + ('1 ' || %(w)s)::interval AS at", w=window
    )
    assert (row["full_why"], row["full_until"]) == (cap, ends[0]["at"])
    assert {
        row["attempts"] for row in makers.rows(dsn, "SELECT * FROM effect_outbox WHERE state = 'pending'")
    } == {0}
    makers.change(dsn, "UPDATE departures SET taken_at = taken_at - interval '1 day'")
    makers.change(dsn, "UPDATE kind_limits SET full_until = full_until - interval '1 day'")
    await dispatch(db, sink)
    assert (len(sink.calls), limits_row(dsn)["full_why"]) == (5, None)


# Proven not sent gives the share back, for good or until the next try; what may have left keeps it.
@pytest.mark.parametrize(
    ("answer", "leaves"),
    [(NotSent("dns_failed"), 1), (Refused("http_400"), 1), (Unknown("timeout"), 0), (Sent(None), 0)],
)
async def test_shares(db: Database, dsn: str, answer: SendOutcome, leaves: int) -> None:
    makers.limit(dsn, cap_day=1)
    first, second = makers.make_effects(dsn, 2)
    sink = Scripted(lambda effect: answer if effect.effect_id == first else Sent(None))
    await dispatch(db, sink)
    await dispatch(db, sink)
    assert [call.effect_id for call in sink.calls] == [first, *[second] * leaves]


# A person's "send again" counts once: its share is still there, it needs no room and no turn in the queue.
async def test_send_again_counts_once(db: Database, dsn: str) -> None:
    makers.limit(dsn, cap_hour=1, cap_day=1, cap_value_day=10, value="output.amount")
    first, *_ = make_worth(dsn, 10, 10, 10)
    sink = Scripted(Unknown("timeout"))
    await dispatch(db, sink)
    version = effect_row(dsn, first)["version"]
    await settle_unknown(db, first, version, choice=Choice.RESEND, by="slack:T1:U1")
    sink.answer = Sent(None)
    await dispatch(db, sink)
    assert [call.effect_id for call in sink.calls] == [first, first]
    assert states(dsn) == {"completed": 1, "pending": 2}


# A value cap adds up what left: what does not fit is passed by for what does, and never more leaves.
async def test_value_cap(db: Database, dsn: str) -> None:
    makers.limit(dsn, cap_value_day=100, value="output.amount")
    made = make_worth(dsn, 60, 50, 30.5, 9.5, 0.01)
    sink = Scripted()
    for _ in range(2):
        await dispatch(db, sink)
    assert {call.effect_id for call in sink.calls} == {made[0], made[2], made[3]}
    assert limits_row(dsn)["full_why"] == "cap_value_day"


UNREADABLE = {
    "missing": "{}",
    "text": '{"amount": "12"}',
    "NaN": '{"amount": "NaN"}',
    "true": '{"amount": true}',
    "null": '{"amount": null}',
    "negative": '{"amount": -5}',
    "list": '{"amount": [5]}',
    "deeper": '{"amount": {"value": 5}}',
    "no object": "5",
}


# Without a plain number nothing passes a value cap: it is held, says why, ops hears once, and others go on.
@pytest.mark.parametrize("body", UNREADABLE.values(), ids=list(UNREADABLE))
async def test_value_unreadable(db: Database, dsn: str, body: str) -> None:
    makers.limit(dsn, cap_value_day=100, value="output.amount")
    bad, good = make_worth(dsn, 1, 1)
    worth(dsn, bad, body)
    sink = Scripted()
    for _ in range(3):
        await dispatch(db, sink)
        make_due(dsn)
    row = effect_row(dsn, bad)
    assert [call.effect_id for call in sink.calls] == [good]
    assert (row["state"], row["reason"], row["attempts"], row["wanted_version"]) == (
        "pending",
        "value_unreadable",
        0,
        4,
    )
    told = makers.rows(dsn, "SELECT name, facts FROM alerts")
    assert [one["name"] for one in told] == ["limits_hold"]
    assert told[0]["facts"]["because"] == "value_unreadable"


# More than the whole cap fits into no window: held by itself, without holding up what is behind it.
async def test_value_over_cap(db: Database, dsn: str) -> None:
    makers.limit(dsn, cap_value_day=100, value="output.amount")
    huge, good = make_worth(dsn, 100.01, 100)
    sink = Scripted()
    await dispatch(db, sink)
    assert ([call.effect_id for call in sink.calls], effect_row(dsn, huge)["reason"]) == (
        [good],
        "value_over_cap",
    )


# Promise 9: what an event, a draft or a frozen policy says of limits changes none.
async def test_content_changes_no_limit(db: Database, dsn: str) -> None:
    makers.limit(dsn, cap_day=1)
    said = {"limits": {"cap_day": 99}, "cap_day": 99, "kind_limits": {"cap_day": 99}}
    for _ in range(3):
        run = {"entity": f"customer:{new_id()}", "inputs": {"payload": said}}
        draft = makers.make_draft(dsn, status="approved", body=said, snapshot=said, run=run)
        makers.make_effect(dsn, draft=draft, body=json.dumps(said).encode())
    sink = Scripted()
    for _ in range(2):
        await dispatch(db, sink)
    assert (len(sink.calls), limits_row(dsn)["cap_day"]) == (1, 1)


# What takes back something delivered needs no share and no value: a full cap never keeps it from leaving.
async def test_undo_needs_no_share(db: Database, dsn: str) -> None:
    makers.limit(dsn, cap_day=1, cap_value_day=5, value="output.amount")
    (first,) = make_worth(dsn, 5)
    sink = Scripted()
    await dispatch(db, sink)
    (undo,) = makers.make_effects(dsn, 1)
    makers.change(
        dsn,
        "UPDATE effect_outbox SET undo_of = %(first)s, undo_by = 'slack:T1:U1' WHERE effect_id = %(id)s",
        first=first,
        id=undo,
    )
    make_worth(dsn, 0.5)
    await dispatch(db, sink)
    assert [call.effect_id for call in sink.calls] == [first, undo]
    makers.limit(dsn, cap_day=2, cap_value_day=5.5, value="output.amount")
    await dispatch(db, sink)
    assert len(sink.calls) == 3


# An outcome that is told to whoever waits takes no part in limits.
async def test_resume_is_not_limited(db: Database, dsn: str) -> None:
    makers.limit(dsn, cap_day=1, concurrency=1)
    draft = makers.make_draft(dsn, status="sent")
    for number in range(3):
        makers.make_effect(
            dsn, draft=draft, effect_type="resume", target=f"https://n8n.example/r{number}", kind=KIND
        )
    sink = Scripted(effect_type="resume")
    await dispatch(db, sink)
    assert len(sink.calls) == 3


# With the switch closed nothing of a limited kind is claimed either.
@pytest.mark.parametrize("scope", ["all", f"kind:{KIND}", "effect:http"])
async def test_switch(db: Database, dsn: str, scope: str) -> None:
    makers.limit(dsn, cap_day=5)
    makers.make_effects(dsn, 1)
    makers.change(
        dsn,
        "INSERT INTO kill_switch (scope, open, changed_by) VALUES (%(scope)s, false, 'test')"
        " ON CONFLICT (scope) DO UPDATE SET open = false",
        scope=scope,
    )
    assert await dispatcher(db, Scripted()).run_once() == 0


# What waits for a cap still gets too old to send.
async def test_stale_while_capped(db: Database, dsn: str) -> None:
    makers.limit(dsn, cap_day=1)
    makers.make_effects(dsn, 2)
    sink = Scripted()
    await dispatch(db, sink)
    makers.change(
        dsn, "UPDATE effect_outbox SET fresh_until = now() - interval '1 second' WHERE state = 'pending'"
    )
    makers.change(dsn, "DELETE FROM departures")
    await dispatch(db, sink)
    assert len(sink.calls) == 1


# A start puts the file's limits down before anything is claimed; a kind that is gone keeps its own, one that
# lost them has none.
async def test_limits_are_put_down(db: Database, dsn: str) -> None:
    makers.limit(dsn, kind="gone", cap_day=7)
    makers.make_effects(dsn, 3)
    limited = load_policy(POLICY + "[kinds.customer_email.limits]\ncap_day = 2\nbreaker_rest = '2m'\n")
    sink = Scripted()
    await dispatch(db, sink, policy=limited)
    assert len(sink.calls) == 2
    rows = makers.rows(
        dsn, "SELECT kind, cap_day, breaker_rest_seconds AS rest FROM kind_limits ORDER BY kind"
    )
    assert rows == [
        {"kind": KIND, "cap_day": 2, "rest": 120},
        {"kind": "gone", "cap_day": 7, "rest": 30},
    ]
    await dispatch(db, sink, policy=load_policy(POLICY))
    assert len(sink.calls) == 3
    assert [row["kind"] for row in makers.rows(dsn, "SELECT kind FROM kind_limits")] == ["gone"]


# Nothing is claimed while the limits could not be put down.
async def test_no_claim_without_limits(db: Database, dsn: str) -> None:
    makers.make_effects(dsn, 1)
    sink = Scripted()
    away = Database("host=127.0.0.1 port=1 dbname=none")
    one = dispatcher(away, sink, policy=load_policy(POLICY))
    with pytest.raises(Exception, match=r"not open|database"):
        await one.run_once()
    assert sink.calls == []
