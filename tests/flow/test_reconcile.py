"""Unknown effects: asked about, proven, or settled by a person.

Not here: how they became unknown (test_dispatch, test_recover).
"""

from uuid import UUID

import pytest

from bot.contracts.outcome import Absent, Found, LookUpOutcome, NoAnswer, Unknown
from bot.flow.reconcile import Choice, NotResolved, Reconciling, Resolved, run_once, settle_unknown
from store.database import Database
from store.ids import new_id
from tests import makers
from tests.flow.outlets import Scripted, actions, dispatch, effect_row, make_due

ANN = "slack:T1:U0ANN"


def unknown(dsn: str, wait: str = "-1 second") -> UUID:
    """An unknown effect with its card in the ops channel, due to be asked about."""
    effect_id = makers.make_effect(dsn, state="unknown", attempts=1)
    makers.change(dsn, "UPDATE effect_outbox SET next_attempt_at = now() + %(wait)s::interval", wait=wait)
    makers.change(
        dsn,
        "INSERT INTO cards (card_id, effect_id, channel, shown_version)"
        " VALUES (%(card)s, %(id)s, 'C0OPS', 1)",
        card=new_id(),
        id=effect_id,
    )
    return effect_id


def behind(dsn: str) -> bool:
    """Whether the ops card is asked to be drawn again."""
    return len(makers.rows(dsn, "SELECT FROM cards WHERE channel = 'C0OPS' AND wanted_version > 1")) == 1


# Found at the provider, it completes: draft, run, cards and record follow.
async def test_found(db: Database, dsn: str) -> None:
    sink = Scripted()
    sink.found = Found("msg-3")
    effect_id = unknown(dsn)
    assert await run_once(Reconciling(db, {"http": sink})) == 1
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["provider_id"]) == ("completed", "msg-3")
    assert sink.asked[0].created_at == row["created_at"]
    assert (row["draft_status"], row["run_state"], behind(dsn)) == ("sent", "completed", True)
    assert actions(dsn, row["idempotency_key"]) == [("system", "effect_completed")]


# An answer that proves nothing is written down, changes no version, and the waits between look-ups grow.
@pytest.mark.parametrize(
    ("answer", "word"),
    [(Absent(), "absent"), (NoAnswer("http_503"), "http_503"), (NoAnswer("no_lookup"), "no_lookup")],
)
async def test_not_found(db: Database, dsn: str, answer: LookUpOutcome, word: str) -> None:
    sink = Scripted()
    sink.found = answer
    effect_id = unknown(dsn)
    waits = []
    for _ in range(3):
        assert await run_once(Reconciling(db, {"http": sink})) == 1
        waits.append(effect_row(dsn, effect_id)["wait"].total_seconds())
        make_due(dsn)
    row = effect_row(dsn, effect_id)
    looked = makers.rows(dsn, "SELECT asked, last_answer FROM effect_look_ups")[0]
    assert (row["state"], row["version"], looked["asked"], looked["last_answer"]) == ("unknown", 1, 3, word)
    assert waits == sorted(waits)
    assert waits[0] > 50
    assert behind(dsn)


# Within the settle window nobody asks.
async def test_settle_window(db: Database, dsn: str) -> None:
    unknown(dsn, "5 seconds")
    assert await run_once(Reconciling(db, {"http": Scripted()})) == 0


SAID = {
    Choice.DELIVERED: ("completed", "sent", "completed"),
    Choice.GIVE_UP: ("failed", "failed", "failed_terminal"),
    Choice.RESEND: ("pending", "approved", "approved"),
}


# A person settles it: what they said is done, and stands in the record under their name.
@pytest.mark.parametrize("choice", SAID)
async def test_person(db: Database, dsn: str, choice: Choice) -> None:
    effect_id = unknown(dsn)
    resolved = await settle_unknown(db, effect_id, 1, choice=choice, by=ANN)
    row = effect_row(dsn, effect_id)
    assert resolved == Resolved(row["idempotency_key"], SAID[choice][0])
    assert (row["state"], row["draft_status"], row["run_state"]) == SAID[choice]
    assert actions(dsn, row["idempotency_key"]) == [(ANN, "effect_resolved")]
    assert behind(dsn)


# The second click, another choice, and a card that is behind change nothing.
async def test_settled_once(db: Database, dsn: str) -> None:
    effect_id = unknown(dsn)
    assert await settle_unknown(db, effect_id, 7, choice=Choice.GIVE_UP, by=ANN) is NotResolved.SETTLED
    await settle_unknown(db, effect_id, 1, choice=Choice.DELIVERED, by=ANN)
    for choice in Choice.DELIVERED, Choice.RESEND, Choice.GIVE_UP:
        assert await settle_unknown(db, effect_id, 1, choice=choice, by=ANN) is NotResolved.SETTLED
    row = effect_row(dsn, effect_id)
    assert (row["state"], actions(dsn, row["idempotency_key"])) == ("completed", [(ANN, "effect_resolved")])
    assert await settle_unknown(db, new_id(), 1, choice=Choice.DELIVERED, by=ANN) is NotResolved.GONE


# Sent again, it is fresh anew, has all its tries again, and leaves with the same key and bytes.
async def test_send_again(db: Database, dsn: str) -> None:
    effect_id = unknown(dsn)
    makers.change(dsn, "UPDATE effect_outbox SET attempts = 5, fresh_until = now() - interval '1 hour'")
    await settle_unknown(db, effect_id, 1, choice=Choice.RESEND, by=ANN)
    fresh = makers.rows(dsn, "SELECT fresh_until > now() + interval '23 hours' AS fresh FROM effect_outbox")
    sink = Scripted()
    await dispatch(db, sink)
    row = effect_row(dsn, effect_id)
    assert fresh[0]["fresh"]
    assert (row["state"], row["attempts"], [call.effect_id for call in sink.calls]) == (
        "completed",
        1,
        [effect_id],
    )


# Sent again and unknown once more, its card asks once more.
async def test_unknown_once_more(db: Database, dsn: str) -> None:
    effect_id = unknown(dsn)
    await settle_unknown(db, effect_id, 1, choice=Choice.RESEND, by=ANN)
    makers.change(dsn, "UPDATE cards SET wanted_version = 1 WHERE effect_id IS NOT NULL")
    await dispatch(db, Scripted(Unknown("timeout")))
    assert effect_row(dsn, effect_id)["state"] == "unknown"
    assert behind(dsn)


# While a newer version waits, sending again is not offered; dropping it lets the newer run go on.
async def test_newer_waits(db: Database, dsn: str) -> None:
    effect_id = unknown(dsn)
    assert await settle_unknown(db, effect_id, 1, choice=Choice.DROP, by=ANN) is NotResolved.NOTHING_NEWER
    makers.change(dsn, "UPDATE draft_heads SET source_version = 18")
    assert await settle_unknown(db, effect_id, 1, choice=Choice.RESEND, by=ANN) is NotResolved.NEWER_WAITS
    await settle_unknown(db, effect_id, 1, choice=Choice.DROP, by=ANN)
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["draft_status"], row["run_state"]) == ("cancelled", "cancelled", "superseded")


# An unknown resume effect is settled alone, and the record says so.
async def test_resume(db: Database, dsn: str) -> None:
    draft = makers.make_draft(dsn, status="sent")
    effect_id = makers.make_effect(
        dsn, state="unknown", draft=draft, effect_type="resume", target="https://n.example"
    )
    await settle_unknown(db, effect_id, 1, choice=Choice.GIVE_UP, by=ANN)
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["run_state"], row["draft_status"]) == ("failed", "completed", "sent")
    assert actions(dsn, row["idempotency_key"]) == [(ANN, "effect_resolved")]
