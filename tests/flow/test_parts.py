"""Several effects of one draft: each with a life of its own, and what all of them make of draft and run.

Not here: who may approve (test_decide), the buttons (tests/doors) or the drawing (tests/cards).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from bot.cards import lives
from bot.cards.review import fallback
from bot.connectors.connector import Effect
from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision
from bot.contracts.outcome import NotSent, Refused, SendOutcome, Sent, Unknown
from bot.flow import settle, withdraw
from bot.flow.announce import Announcing
from bot.flow.announce import run_once as announce
from bot.flow.cancel import Cancelled, cancel
from bot.flow.life import Scene, gravest, parts_of
from bot.flow.picture import review_view
from bot.flow.receive import Receiver
from bot.flow.reconcile import Choice, settle_unknown
from bot.flow.tally import Tally
from bot.flow.withdraw import Withdrawing
from bot.policy.tokens import hash_token
from store import decisions, heads, letting, showing, unknowns
from store.database import Database
from store.decisions import Vote
from store.ids import new_id
from store.letting import Letting
from tests import makers
from tests.flow.outlets import Scripted, actions, dispatch, dispatcher, make_due
from tests.flow.test_decide import click, deciding
from tests.flow.test_limits import worth
from tests.upstream import arrival

MAIL, NOTE, PING = "https://mail.example", "https://crm.example", "C0NEWS"
ADMIN = "slack:T0:U0ADMIN"
SCENE = Scene(actions_enabled=True)


def effect(name: str, target: str, **more: Any) -> dict[str, Any]:
    terms: dict[str, Any] = makers.SNAPSHOT["effect"] | {"response_id": None, "undo": None, "after": None}
    return terms | {"name": name, "target": target, "type": "http"} | more


def several(*effects: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"effects": list(effects)} | more


async def approved(dsn: str, db: Database, *effects: dict[str, Any], **run: Any) -> dict[str, Any]:
    """Approve a draft with these effects as a click does; give its ids, and those of its effects by name."""
    draft = makers.make_draft(dsn, snapshot=several(*effects), run={"entity": "cust-77", "version": 6} | run)
    return await voted(dsn, db, draft, [one["name"] for one in effects])


async def voted(dsn: str, db: Database, draft: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Approve an open draft; give its ids, and those of its effects by name."""
    token = makers.make_token(dsn, draft)
    effect_ids = sorted(new_id() for _ in names)
    vote = Vote(
        token_hash=hash_token(token),
        revision=1,
        decision="approve",
        surface="message",
        channel=draft["channel"],
        ts=draft["ts"],
        subject="slack:T0:U0ALICE",
        counted_as="user:U0ALICE",
        reason=None,
        considered=["slack:T0:U0ALICE"],
        still_reviewers=[],
        effect_ids=effect_ids,
    )
    async with db.transaction() as conn:
        await heads.lock_heads(conn, [draft["draft_key"]])
        await decisions.cast_votes(conn, [vote])
    return draft | {"effects": dict(zip(names, effect_ids, strict=True))}


def states(dsn: str, draft: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    """State and reason of each effect, by name."""
    found = makers.rows(dsn, "SELECT effect_id, state, reason FROM effect_outbox")
    by_id = {one["effect_id"]: (one["state"], one["reason"]) for one in found}
    return {name: by_id[effect_id] for name, effect_id in draft["effects"].items()}


def ends(dsn: str, draft: dict[str, Any]) -> tuple[str, str]:
    found = makers.rows(
        dsn,
        "SELECT d.status, r.state FROM drafts AS d JOIN workflow_runs AS r ON r.run_id = d.run_id"
        " WHERE d.draft_id = %(id)s",
        id=draft["draft_id"],
    )
    return found[0]["status"], found[0]["state"]


def by_target(**answers: SendOutcome) -> Callable[[Effect], SendOutcome]:
    """Answer as told for a host's first word, else confirm."""
    return lambda one: answers.get(one.target.split("//")[-1].split(".")[0], Sent(f"id-{one.target}"))


def claimed(dsn: str, draft: dict[str, Any]) -> dict[str, Any]:
    """Give the draft to a run that is being drafted; what identifies the hold on it."""
    lease: dict[str, Any] = {"lease_owner": "me", "lease_expires_at": "2100-01-01"}
    run_id = makers.make_run(dsn, state="processing", **lease)
    makers.change(dsn, "UPDATE drafts SET run_id = %(r)s", r=run_id)
    return {"run_id": run_id, "owner": "me", "version": 1}


@pytest.fixture
async def receiver(db: Database) -> AsyncIterator[Receiver]:
    made = Receiver(db, Tally(db), wake=lambda _: None, release="1.2.3")
    yield made
    await made.close()


async def card_of(db: Database, draft: dict[str, Any]) -> showing.DraftCard:
    async with db.connection() as conn:
        (card,) = await showing.read_draft_cards(conn, [draft["draft_id"]])
    return card


# One approval makes a row for each effect, with bytes, target and recipient of its own; both leave at once.
async def test_each_its_own(dsn: str, db: Database) -> None:
    note = effect("note", NOTE, recipient="payload.subject")
    draft = await approved(dsn, db, effect("mail", MAIL), note)
    sink = Scripted(by_target())
    await dispatch(db, sink)
    assert {one.target: one.recipient for one in sink.calls} == {
        MAIL: "amy@example.test",
        NOTE: "Late parcel",
    }
    for one in sink.calls:
        body = json.loads(one.body)
        assert (body["effect_id"], body["output"]["body"]) == (str(one.effect_id), "It ships Monday.")
        assert body["recipient"] == one.recipient
    assert ends(dsn, draft) == ("sent", "completed")
    ids = makers.rows(dsn, "SELECT provider_id FROM effect_outbox ORDER BY effect_id")
    assert [one["provider_id"] for one in ids] == [f"id-{MAIL}", f"id-{NOTE}"]


# What names `after` leaves only once that one is completed, however often is looked; the run waits for both.
async def test_after(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE, after="mail"))
    sink = Scripted(by_target(mail=NotSent("connection_refused", None)))
    await dispatch(db, sink)
    await dispatch(db, sink)
    assert [one.target for one in sink.calls] == [MAIL]
    card = await card_of(db, draft)
    assert [type(part.life).__name__ for part in parts_of(card, SCENE)] == [
        "Queued",
        "Awaiting",
    ]
    make_due(dsn)
    sink.answer = Unknown("timeout")
    await dispatch(db, sink)
    await dispatch(db, sink)
    assert [one.target for one in sink.calls] == [MAIL, MAIL]
    assert states(dsn, draft) == {"mail": ("unknown", "timeout"), "note": ("pending", None)}
    sink.answer = by_target()
    version = makers.rows(dsn, "SELECT version FROM effect_outbox WHERE state = 'unknown'")[0]["version"]
    await settle_unknown(db, draft["effects"]["mail"], version, choice=Choice.DELIVERED, by=ADMIN)
    assert ends(dsn, draft) == ("approved", "approved")
    await dispatch(db, sink)
    assert [one.target for one in sink.calls] == [MAIL, MAIL, NOTE]
    assert ends(dsn, draft) == ("sent", "completed")
    (mail, _) = parts_of(await card_of(db, draft), SCENE)
    assert isinstance(mail.life, lives.Sent)
    assert mail.life.confirmed_by is not None


# A dependent follows at once when the one before it is confirmed: nobody has to look again.
async def test_after_follows_by_itself(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE, after="mail"))
    await dispatch(db, Scripted(by_target()))
    assert ends(dsn, draft) == ("sent", "completed")


# One failure ends the run at once; what waits for it is cancelled down the line, the others go on.
async def test_failure(dsn: str, db: Database) -> None:
    effects = [
        effect("mail", MAIL),
        effect("note", NOTE, after="mail"),
        effect("tag", "https://tag.example", after="note"),
        effect("log", "https://log.example"),
    ]
    draft = await approved(dsn, db, *effects)
    makers.change(dsn, "UPDATE effect_outbox SET next_attempt_at = 'infinity' WHERE target LIKE '%%log%%'")
    sink = Scripted(by_target(mail=Refused("http_422")))
    await dispatch(db, sink)
    assert ends(dsn, draft) == ("failed", "failed_terminal")
    assert states(dsn, draft) == {
        "mail": ("failed", "http_422"),
        "note": ("cancelled", "after_failed"),
        "tag": ("cancelled", "after_failed"),
        "log": ("pending", None),
    }
    make_due(dsn)
    await dispatch(db, sink)
    assert states(dsn, draft)["log"] == ("completed", None)
    assert ends(dsn, draft) == ("failed", "failed_terminal")
    assert [one for _, one in actions(dsn, draft["key"])].count("effect_cancelled") == 2
    lives = [type(part.life).__name__ for part in parts_of(await card_of(db, draft), SCENE)]
    assert lives == ["SendFailed", "Dropped", "Dropped", "Sent"]


# An unknown one keeps the run open; given up it fails it, and what waited for it never leaves.
async def test_give_up(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE, after="mail"))
    await dispatch(db, Scripted(Unknown("timeout")))
    version = makers.rows(dsn, "SELECT version FROM effect_outbox WHERE state = 'unknown'")[0]["version"]
    await settle_unknown(db, draft["effects"]["mail"], version, choice=Choice.GIVE_UP, by=ADMIN)
    assert states(dsn, draft) == {"mail": ("failed", "give_up"), "note": ("cancelled", "after_failed")}
    assert ends(dsn, draft) == ("failed", "failed_terminal")


# The switch for one type holds one effect; the other goes, and the run waits.
async def test_switch_by_type(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("news", PING, type="slack_message"))
    makers.change(
        dsn, "INSERT INTO kill_switch (scope, open, changed_by) VALUES ('effect:slack_message', false, 'me')"
    )
    mail, news = Scripted(by_target()), Scripted(effect_type="slack_message")
    await dispatch(db, mail, news)
    assert (len(mail.calls), len(news.calls)) == (1, 0)
    assert ends(dsn, draft) == ("approved", "approved")
    makers.change(dsn, "UPDATE kill_switch SET open = true")
    await dispatch(db, mail, news)
    assert ends(dsn, draft) == ("sent", "completed")


# Too old before any of them left: all go back together, and the draft asks once more.
async def test_withdrawn_together(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE, after="mail"))
    makers.change(dsn, "UPDATE effect_outbox SET fresh_until = now()")
    assert await withdraw.run_once(Withdrawing(db)) == 2
    assert set(states(dsn, draft).values()) == {("cancelled", "stale")}
    assert ends(dsn, draft) == ("pending", "awaiting_human")


# Approved once more after that, only what was approved then counts for how it ends.
async def test_approved_again(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE))
    makers.change(dsn, "UPDATE effect_outbox SET fresh_until = now()")
    await withdraw.run_once(Withdrawing(db))
    (asked,) = makers.rows(dsn, "SELECT approval_id FROM drafts")
    again = await voted(dsn, db, draft | asked, ["mail", "note"])
    await dispatch(db, Scripted(by_target()))
    assert set(states(dsn, again).values()) == {("completed", None)}
    assert ends(dsn, again) == ("sent", "completed")
    assert len(parts_of(await card_of(db, again), SCENE)) == 2


# Too old after one had left: the other is over without it, and the run says that not all was sent.
@pytest.mark.parametrize("overtaken", [False, True])
async def test_left_behind(dsn: str, db: Database, receiver: Receiver, *, overtaken: bool) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("news", PING, type="slack_message"))
    mail, news = Scripted(by_target()), Scripted(effect_type="slack_message")
    await dispatch(db, mail)
    if overtaken:
        await receiver.receive(arrival(7))
    else:
        makers.change(dsn, "UPDATE effect_outbox SET fresh_until = now()")
        await withdraw.run_once(Withdrawing(db))
    reason = "overtaken" if overtaken else "outdated"
    assert states(dsn, draft) == {"mail": ("completed", None), "news": ("cancelled", reason)}
    assert ends(dsn, draft) == ("failed", "failed_terminal")
    await dispatch(db, mail, news)
    assert not news.calls
    card = await card_of(db, draft)
    assert type(gravest(card, SCENE)).__name__ == "Dropped"
    assert fallback(review_view(card, SCENE)).startswith("❌ Not all of it was sent · ")


# While one is on its way a newer event lets both be; once it is confirmed the other is over, never sent.
async def test_overtaken_on_the_way(dsn: str, db: Database, receiver: Receiver) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE, after="mail"))
    sink = Scripted(by_target())
    sink.holds = lambda one: one.target == MAIL
    one = dispatcher(db, sink)
    await one.run_once()
    await sink.held.wait()
    await receiver.receive(arrival(7))
    assert states(dsn, draft) == {"mail": ("sending", None), "note": ("pending", None)}
    sink.let_go.set()
    await one.quiet()
    assert [call.target for call in sink.calls] == [MAIL]
    assert states(dsn, draft)["note"] == ("cancelled", "overtaken")
    assert ends(dsn, draft) == ("failed", "failed_terminal")


# A draft that failed with one of its effects may have another one that is to be tried again: a newer event
# ends that at once, so that it holds up nothing of the newer draft.
async def test_overtaken_after_a_failure(dsn: str, db: Database, receiver: Receiver) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE))
    await dispatch(db, Scripted(by_target(mail=Refused("http_422"), crm=NotSent("http_429", 3600.0))))
    assert ends(dsn, draft) == ("failed", "failed_terminal")
    assert states(dsn, draft)["note"] == ("pending", "http_429")
    await receiver.receive(arrival(7))
    assert states(dsn, draft) == {"mail": ("failed", "http_422"), "note": ("cancelled", "overtaken")}
    lines = [action for _, action in actions(dsn, draft["key"])]
    assert lines.count("effect_cancelled") == 1


# Overtaken while nobody knows whether another one left: it is not claimed each second until somebody says so,
# and over as soon as they do.
@pytest.mark.parametrize("choice", [Choice.DELIVERED, Choice.GIVE_UP])
async def test_overtaken_beside_an_unknown(
    dsn: str, db: Database, receiver: Receiver, choice: Choice
) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("news", PING, type="slack_message"))
    news = Scripted(effect_type="slack_message")
    await dispatch(db, Scripted(Unknown("timeout")))
    await receiver.receive(arrival(7))
    await dispatch(db, news)
    (row,) = makers.rows(
        dsn,
        "SELECT state, extract(epoch FROM next_attempt_at - now())::int AS wait FROM effect_outbox"
        " WHERE effect_type = 'slack_message'",
    )
    assert (row["state"], news.calls) == ("pending", [])
    assert row["wait"] > 30
    (mail,) = makers.rows(dsn, "SELECT effect_id, version FROM effect_outbox WHERE state = 'unknown'")
    await settle_unknown(db, mail["effect_id"], mail["version"], choice=choice, by=ADMIN)
    assert states(dsn, draft)["news"] == ("cancelled", "overtaken")
    assert ends(dsn, draft) == ("failed", "failed_terminal")


# A gate that lets it through makes the same rows as a person's click does.
async def test_let_through(dsn: str, db: Database) -> None:
    draft = makers.make_draft(dsn, snapshot=several(effect("mail", MAIL), effect("note", NOTE, after="mail")))
    hold = claimed(dsn, draft)
    async with db.transaction() as conn:
        await letting.let_through(conn, hold, draft["draft_id"], Letting("gate:delayed", 2, window_seconds=0))
    made = makers.rows(
        dsn, "SELECT target, clause, after_id, effect_id FROM effect_outbox ORDER BY effect_id"
    )
    assert [(one["target"], one["clause"]) for one in made] == [(MAIL, ["0"]), (NOTE, ["1"])]
    assert (made[0]["after_id"], made[1]["after_id"]) == (None, made[0]["effect_id"])
    await dispatch(db, Scripted(by_target()))
    assert ends(dsn, draft) == ("sent", "completed")


# Whoever waits upstream hears of every effect what became of it.
async def test_outcome_lists_all(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE, after="mail"))
    makers.change(
        dsn,
        "INSERT INTO waiters (waiter_id, run_id, resume_url, url_hash)"
        " SELECT gen_random_uuid(), run_id, 'https://n8n.example/r', '0' FROM workflow_runs",
    )
    makers.change(dsn, "UPDATE workflow_runs SET is_waited = true")
    await dispatch(db, Scripted(by_target(mail=Refused("http_422"))))
    await announce(Announcing(db))
    told = makers.rows(
        dsn,
        "SELECT body FROM effect_payloads JOIN effect_outbox USING (effect_id) WHERE effect_type = 'resume'",
    )
    outcome = json.loads(bytes(told[0]["body"]))
    assert outcome["outcome"] == "failed"
    found = {one["effect_id"]: one["state"] for one in outcome["effects"]}
    assert found == {str(draft["effects"]["mail"]): "failed", str(draft["effects"]["note"]): "cancelled"}


# Two drafts of one key keep their order, whatever each of them has: the newer waits for all of the older.
async def test_order_between_drafts(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE))
    makers.change(dsn, "UPDATE effect_outbox SET next_attempt_at = 'infinity' WHERE target = %(t)s", t=NOTE)
    makers.change(dsn, "UPDATE drafts SET status = 'failed' WHERE draft_id = %(d)s", d=draft["draft_id"])
    newer = await approved(dsn, db, effect("mail", "https://other.example"), version=6, event_key="newer")
    sink = Scripted(by_target())
    await dispatch(db, sink)
    assert [one.target for one in sink.calls] == [MAIL]
    make_due(dsn)
    await dispatch(db, sink)
    await dispatch(db, sink)
    assert [one.target for one in sink.calls] == [MAIL, NOTE, "https://other.example"]
    assert states(dsn, newer)["mail"][0] == "completed"


# A snapshot without its effects' ids never loses one silently.
async def test_never_fewer(dsn: str, db: Database) -> None:
    draft = makers.make_draft(dsn, snapshot=several(effect("mail", MAIL), effect("note", NOTE)))
    hold = claimed(dsn, draft)
    with pytest.raises(Exception, match="null value"):
        async with db.transaction() as conn:
            await letting.let_through(conn, hold, draft["draft_id"], Letting("gate:delayed", 1))


def stopping(dsn: str, draft: dict[str, Any]) -> Click:
    return click(draft, makers.make_token(dsn, draft, "cancel"), decision=Decision.CANCEL)


# Cancelled before any of them started, all are; once one has, none is, and the press says so.
@pytest.mark.parametrize("started", [False, True])
async def test_cancel(dsn: str, db: Database, *, started: bool) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE, after="mail"))
    sink = Scripted(by_target())
    one = dispatcher(db, sink)
    if started:
        sink.holds = lambda call: call.target == MAIL
        await one.run_once()
        await sink.held.wait()
    answer = await cancel(deciding(db), stopping(dsn, draft))
    if started:
        assert isinstance(answer, NotDecided)
        assert answer.why == Why.STARTED
        assert {state for state, _ in states(dsn, draft).values()} == {"sending", "pending"}
        sink.let_go.set()
        await one.quiet()
        assert ends(dsn, draft) == ("sent", "completed")
    else:
        assert answer == Cancelled()
        assert {state for state, _ in states(dsn, draft).values()} == {"cancelled"}
        await dispatch(db, sink)
        assert not sink.calls


# A press of Cancel against two dispatchers: either both effects leave, or none does.
@pytest.mark.parametrize("round_", range(8))
async def test_cancel_against_claims(dsn: str, db: Database, round_: int) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE))
    sinks = [Scripted(by_target()), Scripted(by_target())]
    senders = [dispatcher(db, sink, owner=f"me-{n}") for n, sink in enumerate(sinks)]
    answer, *_ = await asyncio.gather(
        cancel(deciding(db), stopping(dsn, draft)), *(one.run_once() for one in senders)
    )
    for one in senders:
        await one.quiet()
    sent = sorted(call.target for sink in sinks for call in sink.calls)
    if answer == Cancelled():
        assert sent == []
        assert ends(dsn, draft) == ("cancelled", "cancelled")
    else:
        make_due(dsn)
        await dispatch(db, sinks[0])
        sent = sorted(call.target for sink in sinks for call in sink.calls)
        assert sent == [NOTE, MAIL]
        assert ends(dsn, draft) == ("sent", "completed")


# A record that changed once one of two had left takes only the other; the run says that not all was sent.
async def test_take_back(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE))
    await dispatch(db, Scripted(by_target(crm=NotSent("connection_refused", None))))
    change = "UPDATE effect_outbox SET state = 'cancelled', reason = 'record_changed' WHERE effect_id = %(e)s"
    makers.change(dsn, change, e=draft["effects"]["note"])
    async with db.transaction() as conn:
        ref = await unknowns.find_unknown(conn, draft["effects"]["note"])
        assert ref is not None
        await settle.lock(conn, [ref])
        await settle.take_back(conn, ref, "withdrawn_record_changed:7:6", "record_changed:7:6")
    assert ends(dsn, draft) == ("failed", "failed_terminal")
    assert states(dsn, draft)["mail"][0] == "completed"


# A record that changed before any left takes all of them back to the reviewers.
async def test_take_back_together(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE))
    change = "UPDATE effect_outbox SET state = 'cancelled', reason = 'record_changed' WHERE effect_id = %(e)s"
    makers.change(dsn, change, e=draft["effects"]["mail"])
    async with db.transaction() as conn:
        ref = await unknowns.find_unknown(conn, draft["effects"]["mail"])
        assert ref is not None
        await settle.lock(conn, [ref])
        await settle.take_back(conn, ref, "withdrawn_record_changed:7:6", "record_changed:7:6")
    assert states(dsn, draft)["note"] == ("cancelled", "record_changed")
    assert ends(dsn, draft) == ("pending", "awaiting_human")


# Effects of one approval go side by side: an unknown one holds its run and what waits for it, and no other.
async def test_side_by_side(dsn: str, db: Database) -> None:
    draft = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE))
    await dispatch(db, Scripted(by_target(mail=Unknown("timeout"))))
    assert states(dsn, draft) == {"mail": ("unknown", "timeout"), "note": ("completed", None)}
    assert ends(dsn, draft) == ("approved", "approved")


# A cap on values counts what a draft is worth once: its effects leave together and in turn, another draft
# that does not fit beside it waits, and an effect that follows another one takes nothing anew.
async def test_value_counts_once(db: Database, dsn: str) -> None:
    makers.limit(dsn, cap_value_day=100, value="output.amount")
    first = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE, after="mail"), entity="one")
    both = await approved(dsn, db, effect("mail", MAIL), effect("note", NOTE), entity="two")
    large = await approved(dsn, db, effect("mail", MAIL), entity="three")
    for draft, amount in ((first, 60), (both, 40), (large, 1)):
        worth(dsn, next(iter(draft["effects"].values())), json.dumps({"amount": amount}))
    sink = Scripted()
    for _ in range(3):
        await dispatch(db, sink)
        make_due(dsn)
    assert {state for state, _ in [*states(dsn, first).values(), *states(dsn, both).values()]} == {
        "completed"
    }
    assert states(dsn, large) == {"mail": ("pending", None)}
    assert len(sink.calls) == 4
