"""Taking back what was delivered: once, by whoever may decide today, through the same outbox as everything.

Not here: the policy's table for it (tests/policy) or the drawing (tests/cards).
"""

import asyncio
import json
from typing import Any

import pytest

from bot.cards import unknown
from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision
from bot.contracts.outcome import Refused, Sent, Unknown
from bot.flow import withdraw
from bot.flow.announce import Announcing
from bot.flow.announce import run_once as announce
from bot.flow.decide import Decided, decide
from bot.flow.drawing import draw
from bot.flow.life import Scene
from bot.flow.picture import unknown_view
from bot.flow.receive import Receiver
from bot.flow.reconcile import Choice, settle_unknown
from bot.flow.tally import Tally
from bot.flow.undo import Undoing, undo
from bot.flow.withdraw import Withdrawing
from bot.policy.people import Bar
from store import audit, showing
from store.database import Database
from tests.flow.outlets import Scripted, dispatch
from tests.flow.test_decide import click, deciding
from tests.makers import SNAPSHOT, change, make_draft, make_token, rows
from tests.upstream import arrival

BACK = "https://n8n.example/webhook/take-back"
UNDO = {"type": "http", "target": BACK, "recipient": "payload.to", "output": {"note": "taken back"}}
WITH_UNDO = {"effect": SNAPSHOT["effect"] | {"undo": SNAPSHOT["effect"] | UNDO}}


async def sent(dsn: str, db: Database, **more: Any) -> dict[str, Any]:
    """A draft that Bob approved and that was delivered; with its effect's id."""
    draft = make_draft(dsn, snapshot=WITH_UNDO, **more)
    assert isinstance(await decide(deciding(db), click(draft, make_token(dsn, draft), "U0BOB")), Decided)
    await dispatch(db, Scripted())
    effect = rows(
        dsn, "SELECT effect_id, state FROM effect_outbox WHERE draft_id = %(d)s", d=draft["draft_id"]
    )[0]
    assert effect["state"] == "completed"
    return draft | {"effect_id": effect["effect_id"]}


def pressing(dsn: str, draft: dict[str, Any], user: str = "U0ALICE", **more: Any) -> Click:
    """A press of Undo on the card of a delivered draft."""
    token = make_token(dsn, draft, "undo", effect_id=draft["effect_id"])
    return click(draft, token, user, **{"decision": Decision.UNDO} | more)


def undos(dsn: str) -> list[dict[str, Any]]:
    return rows(dsn, "SELECT * FROM effect_outbox WHERE undo_of IS NOT NULL ORDER BY effect_id")


def ends(dsn: str) -> tuple[str, str]:
    found = rows(dsn, "SELECT d.status, r.state FROM drafts AS d JOIN workflow_runs AS r USING (run_id)")[0]
    return found["status"], found["state"]


async def title(db: Database, draft: dict[str, Any]) -> str:
    """The card's headline and buttons, as text."""
    async with db.connection() as conn:
        (card,) = await showing.read_draft_cards(conn, [draft["draft_id"]])
    return json.dumps(draw(card, Scene(actions_enabled=True)).blocks, ensure_ascii=False)


# One press makes one effect more, of what the revision and the provider say; run and draft stay so.
async def test_undo(dsn: str, db: Database) -> None:
    draft = await sent(dsn, db)
    card = await title(db, draft)
    assert "stet.undo" in card
    assert "take it back: request to n8n.example for amy@example.test." in card
    assert await undo(deciding(db), pressing(dsn, draft)) == Undoing()
    (made,) = undos(dsn)
    assert (made["undo_of"], made["undo_by"][-7:], made["target"]) == (draft["effect_id"], "U0ALICE", BACK)
    card = await title(db, draft)
    assert "Being undone" in card
    assert "stet.undo" not in card
    sink = Scripted()
    await dispatch(db, sink)
    (call,) = sink.calls
    body = json.loads(call.body)
    assert body["undoes"] == {
        "effect_id": str(draft["effect_id"]),
        "effect_type": "http",
        "provider_id": "msg-1",
    }
    assert body["output"] == {
        "subject": "About your parcel",
        "body": "It ships Monday.",
        "note": "taken back",
    }
    assert (body["effect_id"], body["approved_by"][-7:]) == (str(made["effect_id"]), "U0ALICE")
    assert (call.recipient, call.target) == ("amy@example.test", BACK)
    assert ends(dsn) == ("sent", "completed")
    assert "Undone" in await title(db, draft)
    async with db.connection() as conn:
        chain = await audit.read_chain(conn, draft["key"])
    assert [line.action for line in chain] == [
        "approved",
        "effect_completed",
        "undo_asked",
        "effect_completed",
    ]
    assert not audit.faults_of(chain)


# Ten presses at once, of several people: one counts, the others hear whose; never a second effect.
async def test_once(dsn: str, db: Database) -> None:
    draft = await sent(dsn, db)
    presses = [pressing(dsn, draft, user) for user in ("U0ALICE", "U0BOB") * 5]
    answers = await asyncio.gather(*(undo(deciding(db), one) for one in presses))
    assert answers.count(Undoing()) == 1
    assert {one.why for one in answers if isinstance(one, NotDecided)} == {Why.UNDONE}
    assert len(undos(dsn)) == 1
    await dispatch(db, Scripted())
    late = await undo(deciding(db), pressing(dsn, draft))
    assert isinstance(late, NotDecided)
    assert late.why == Why.UNDONE
    assert len(undos(dsn)) == 1


# A stranger, a wrong surface, a token for something else, an erased text: nothing is taken back.
async def test_refused(dsn: str, db: Database) -> None:
    draft = await sent(dsn, db)
    answers = [
        await undo(deciding(db), pressing(dsn, draft, "U0EVE")),
        await undo(deciding(db), pressing(dsn, draft, channel="C0OTHER")),
        await undo(deciding(db), click(draft, make_token(dsn, draft), decision=Decision.UNDO)),
    ]
    assert [one.why for one in answers if isinstance(one, NotDecided)] == [
        Bar.UNKNOWN,
        Why.WRONG_SURFACE,
        Why.WRONG_SURFACE,
    ]
    change(dsn, "UPDATE revisions SET body = NULL, erased_at = now()")
    erased = await undo(deciding(db), pressing(dsn, draft))
    assert isinstance(erased, NotDecided)
    assert erased.why == Why.NOT_UNDOABLE
    assert not undos(dsn)


# Not proven undone is unknown, like any send; a person settles it, and the run stays completed all the while.
@pytest.mark.parametrize(
    ("choice", "word"), [(Choice.DELIVERED, "Undone"), (Choice.GIVE_UP, "Undo given up")]
)
async def test_unknown(dsn: str, db: Database, choice: Choice, word: str) -> None:
    draft = await sent(dsn, db)
    await undo(deciding(db), pressing(dsn, draft))
    await dispatch(db, Scripted(Unknown("timeout")))
    assert "Unknown whether it was undone" in await title(db, draft)
    (made,) = undos(dsn)
    async with db.connection() as conn:
        (asked,) = await showing.read_effect_cards(conn, [made["effect_id"]])
    assert "taken back" in json.dumps(unknown.render(unknown_view(asked, Scene(actions_enabled=True))))
    await settle_unknown(db, made["effect_id"], made["version"], choice=choice, by="slack:T0:U0ADMIN")
    assert word in await title(db, draft)
    assert ends(dsn) == ("sent", "completed")


# Failed for good is said so, and since it never left it may be asked for again, still once.
async def test_failed(dsn: str, db: Database) -> None:
    draft = await sent(dsn, db)
    await undo(deciding(db), pressing(dsn, draft))
    await dispatch(db, Scripted(Refused("http_404")))
    card = await title(db, draft)
    assert "Undo failed" in card
    assert "stet.undo" in card
    assert ends(dsn) == ("sent", "completed")
    answers = await asyncio.gather(*(undo(deciding(db), pressing(dsn, draft)) for _ in range(5)))
    assert answers.count(Undoing()) == 1
    assert sorted(one["state"] for one in undos(dsn)) == ["cancelled", "pending"]
    card = await title(db, draft)
    assert "Being undone" in card
    assert "stet.undo" not in card
    sink = Scripted()
    await dispatch(db, sink)
    assert len(sink.calls) == 1
    assert "Undone" in await title(db, draft)


# One that may have left is settled by a person, and what they gave up is not asked for again.
async def test_given_up(dsn: str, db: Database) -> None:
    draft = await sent(dsn, db)
    await undo(deciding(db), pressing(dsn, draft))
    await dispatch(db, Scripted(Unknown("http_500")))
    (made,) = undos(dsn)
    await settle_unknown(db, made["effect_id"], made["version"], choice=Choice.GIVE_UP, by="slack:T0:U0ADMIN")
    assert "stet.undo" not in await title(db, draft)
    answer = await undo(deciding(db), pressing(dsn, draft))
    assert isinstance(answer, NotDecided)
    assert answer.why == Why.UNDONE
    assert [one["state"] for one in undos(dsn)] == ["failed"]


# The switch holds it; too old by then, it is over and may be asked for anew, still once.
async def test_held_and_stale(dsn: str, db: Database) -> None:
    draft = await sent(dsn, db)
    await undo(deciding(db), pressing(dsn, draft))
    change(dsn, "UPDATE kill_switch SET open = false")
    sink = Scripted()
    await dispatch(db, sink)
    assert not sink.calls
    change(dsn, "UPDATE effect_outbox SET fresh_until = now() WHERE undo_of IS NOT NULL")
    await withdraw.run_once(Withdrawing(db))
    assert [(one["state"], one["reason"]) for one in undos(dsn)] == [("cancelled", "stale")]
    assert ends(dsn) == ("sent", "completed")
    assert "stet.undo" in await title(db, draft)
    assert await undo(deciding(db), pressing(dsn, draft)) == Undoing()
    change(dsn, "UPDATE kill_switch SET open = true")
    await dispatch(db, sink)
    assert [one["state"] for one in undos(dsn)] == ["cancelled", "completed"]


# A newer event outdates no undo; a newer draft's effect waits until that is over, by the outbox's rule.
async def test_beside_a_newer_event(dsn: str, db: Database) -> None:
    draft = await sent(dsn, db)
    await undo(deciding(db), pressing(dsn, draft))
    newer = make_draft(dsn, run={"version": 18})
    assert isinstance(await decide(deciding(db), click(newer, make_token(dsn, newer), "U0BOB")), Decided)
    sink = Scripted(Unknown("timeout"))
    await dispatch(db, sink)
    await dispatch(db, sink)
    assert [one.target for one in sink.calls] == [BACK]
    (made,) = undos(dsn)
    await settle_unknown(
        db, made["effect_id"], made["version"], choice=Choice.DELIVERED, by="slack:T0:U0ADMIN"
    )
    await dispatch(db, sink)
    assert [one.target for one in sink.calls] == [BACK, SNAPSHOT["effect"]["target"]]


# An effect without a reversal in its policy has no button, and a press of a forged one takes nothing back.
async def test_no_reversal(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    await decide(deciding(db), click(draft, make_token(dsn, draft), "U0BOB"))
    await dispatch(db, Scripted())
    (effect,) = rows(dsn, "SELECT effect_id FROM effect_outbox")
    assert "stet.undo" not in await title(db, draft)
    answer = await undo(deciding(db), pressing(dsn, draft | {"effect_id": effect["effect_id"]}))
    assert isinstance(answer, NotDecided)
    assert answer.why == Why.NOT_UNDOABLE


# A newer event at the same moment: both count, and the undo leaves although a newer version is known by then.
@pytest.mark.parametrize("round_", range(5))
async def test_against_a_newer_event(dsn: str, db: Database, round_: int) -> None:
    draft = await sent(dsn, db, run={"entity": "cust-77", "version": 6})
    receiver = Receiver(db, Tally(db), wake=lambda _: None, release="1.2.3")
    answer, _ = await asyncio.gather(undo(deciding(db), pressing(dsn, draft)), receiver.receive(arrival(7)))
    await receiver.close()
    assert answer == Undoing()
    await dispatch(db, Scripted())
    assert [one["state"] for one in undos(dsn)] == ["completed"]


# Whoever upstream waits later hears the outcome as it was: the undo is no part of it.
async def test_not_told(dsn: str, db: Database) -> None:
    draft = await sent(dsn, db)
    await undo(deciding(db), pressing(dsn, draft))
    await dispatch(db, Scripted())
    change(
        dsn,
        "INSERT INTO waiters (waiter_id, run_id, resume_url, url_hash)"
        " SELECT gen_random_uuid(), run_id, 'https://n8n.example/r', '0' FROM workflow_runs",
    )
    change(dsn, "UPDATE workflow_runs SET is_waited = true")
    await announce(Announcing(db))
    (told,) = rows(
        dsn,
        "SELECT body FROM effect_payloads JOIN effect_outbox USING (effect_id) WHERE effect_type = 'resume'",
    )
    outcome = json.loads(bytes(told["body"]))
    assert outcome["outcome"] == "sent"
    assert [one["effect_id"] for one in outcome["effects"]] == [str(draft["effect_id"])]


# The card of a correction says what was sent before and, as soon as that is so, that it was taken back.
async def test_corrections_are_told(dsn: str, db: Database) -> None:
    draft = await sent(dsn, db, run={"entity": "cust-77", "version": 6})
    made = make_draft(dsn, run={"entity": "cust-77", "version": 7, "replaces": draft["run_id"]})
    before = await title(db, made)
    assert "Already sent for it" in before
    assert "Taken back since" not in before
    assert isinstance(await undo(deciding(db), pressing(dsn, draft)), Undoing)
    wanted = "SELECT wanted_version FROM cards WHERE draft_id = %(d)s"
    (was,) = rows(dsn, wanted, d=made["draft_id"])
    await dispatch(db, Scripted(Sent("undo-1")))
    (now,) = rows(dsn, wanted, d=made["draft_id"])
    assert now["wanted_version"] > was["wanted_version"]
    told = await title(db, made)
    assert "Taken back since" in told
    assert "undo-1" not in told
