"""What a card says in each state of its draft or effect.

Not here: how it gets into Slack (test_show) or its exact blocks (tests/cards).
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import C_OPS
from store import audit
from store.database import Database
from tests.flow.screens import NewShower, buttons, new_draft, said, seen, texts, want
from tests.makers import change, make_draft, make_effect, rows

STATES: dict[str, tuple[dict[str, Any] | None, str]] = {
    "queued": ({}, "waiting to be sent"),
    "tried": ({"attempts": 2, "reason": "connection_refused"}, "Tries so far: 2"),
    "held": ({"held_since": datetime(2026, 3, 2, tzinfo=UTC), "reason": "timeout"}, "cannot be checked"),
    "claimed, not started": ({"state": "sending"}, "waiting to be sent"),
    "sending": ({"state": "sending", "started": True}, "Sending"),
    "unknown": ({"state": "unknown", "reason": "timeout"}, "Unknown whether it was sent"),
}


UNSTARTED = {"queued", "held", "tried", "claimed, not started"}


# An approved draft's card says how far its effect is, in settled facts; not started, it can be cancelled.
@pytest.mark.parametrize("case", STATES)
async def test_life_of_an_effect(dsn: str, slack: SlackStandIn, shower: NewShower, case: str) -> None:
    effect, words = STATES[case]
    draft = new_draft(dsn, status="approved")
    make_effect(dsn, draft=draft, **(effect or {}))
    await shower().run_once()
    assert words in said(seen(slack)[0])
    assert set(buttons(seen(slack)[0])) == ({"stet.cancel"} if case in UNSTARTED else set())


# With a newer event behind it the card says that this one waits, until the effect is over; no later.
@pytest.mark.parametrize(
    ("status", "effect", "waits"),
    [
        ("approved", {"state": "sending", "started": True}, True),
        ("approved", {"state": "unknown", "reason": "timeout"}, True),
        ("sent", {"state": "completed"}, False),
        ("failed", {"state": "failed", "reason": "http_422"}, False),
    ],
)
async def test_newer_event_behind_it(
    dsn: str, slack: SlackStandIn, shower: NewShower, *, status: str, effect: dict[str, Any], waits: bool
) -> None:
    draft = new_draft(dsn, status=status)
    make_effect(dsn, draft=draft, **effect)
    change(dsn, "UPDATE draft_heads SET source_version = 18")
    await shower().run_once()
    assert ("A newer event arrived" in said(seen(slack)[0])) is waits


# A sent draft's card has the provider's id, a failed one the reason.
@pytest.mark.parametrize(
    ("status", "effect", "words"),
    [
        ("sent", {"state": "completed", "provider_id": "msg-882"}, "msg-882"),
        ("failed", {"state": "failed", "reason": "http_422"}, "the target answered 422"),
    ],
)
async def test_ends_of_an_effect(
    dsn: str, slack: SlackStandIn, shower: NewShower, *, status: str, effect: dict[str, Any], words: str
) -> None:
    draft = new_draft(dsn, status=status)
    make_effect(dsn, draft=draft, **effect)
    await shower().run_once()
    assert words in said(seen(slack)[0])


# An approved draft that the switch or the setting holds back says which.
async def test_paused_by_the_switch(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn, status="approved")
    make_effect(dsn, draft=draft)
    change(
        dsn, "INSERT INTO kill_switch (scope, open, changed_by) VALUES ('kind:customer_email', false, 'x')"
    )
    await shower().run_once()
    assert "kind:customer_email" in said(seen(slack)[0])
    want(dsn)
    await shower(enabled=False).run_once()
    assert "AI_ACTIONS_ENABLED" in said(seen(slack)[0])
    change(dsn, "DELETE FROM kill_switch WHERE scope <> 'all'")
    want(dsn)
    await shower().run_once()
    assert "paused" not in said(seen(slack)[0])


REDRAFT = (
    "INSERT INTO redrafts (redraft_id, draft_id, revision, requested_by, wish)"
    " SELECT gen_random_uuid(), draft_id, 1, 'slack:T0STET:U0BOB', 'Shorter' FROM drafts"
)


# What is open again or blocked says why; blocked, redrafted and overdue cards have no way to decide.
@pytest.mark.parametrize(
    ("statement", "words", "can_decide"),
    [
        ("UPDATE draft_heads SET source_version = 18", "A newer draft is coming", False),
        ("UPDATE drafts SET notice = 'withdrawn_stale'", "The approval got too old", True),
        ("UPDATE drafts SET notice = 'newer_failed'", "no draft could be made for it", True),
        ("UPDATE drafts SET expires_at = now()", "Waiting for approval", False),
        (
            REDRAFT,
            "Bob asked for a new draft",
            False,
        ),
    ],
)
async def test_open_states(
    dsn: str, slack: SlackStandIn, shower: NewShower, *, statement: Any, words: str, can_decide: bool
) -> None:
    new_draft(dsn)
    change(dsn, statement)
    await shower().run_once()
    (message,) = seen(slack)
    text = "".join(part["text"] for part in texts(message.blocks))
    assert words in text
    assert ("stet.approve" in buttons(message)) is can_decide


# A fresh draft after a rejection names it, a correction what it corrects and what was sent for it.
async def test_history_on_the_card(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    old = make_draft(dsn, status="rejected")
    change(
        dsn,
        "UPDATE approvals SET consumed_at = now(), ended_at = now(), decision = 'reject',"
        " approver_subject = 'slack:T0STET:U0BOB', reason = 'Wrong tone'",
    )
    sent = make_draft(dsn, status="sent", run={"entity": "customer:7"})
    make_effect(dsn, draft=sent, state="completed", provider_id="msg-1")
    new_draft(dsn, run={"version": 18, "replaces": sent["run_id"], "inputs": {"reason": "wrong amount"}})
    change(dsn, "UPDATE drafts SET earlier_id = %(old)s WHERE status = 'pending'", old=old["draft_id"])
    await shower().run_once()
    text = said(seen(slack)[0])
    for words in ("Wrong tone", "Bob", sent["key"], "wrong amount", "msg-1"):
        assert words in text


# An unknown effect has a card in the operators' channel; once settled it says how, without buttons.
async def test_unknown_effect(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = make_draft(dsn, status="approved")
    effect_id = make_effect(dsn, draft=draft, state="unknown", reason="timeout", attempts=1)
    change(
        dsn,
        "INSERT INTO cards (card_id, effect_id, channel) VALUES (gen_random_uuid(), %(id)s, %(ops)s)",
        id=effect_id,
        ops=C_OPS,
    )
    one = shower()
    await one.run_once()
    (message,) = seen(slack, C_OPS)
    assert set(buttons(message).values()) == {f"{effect_id}.1"}
    assert len(buttons(message)) == 3
    assert "amy@example.test" in said(message)
    change(dsn, "UPDATE effect_outbox SET state = 'completed', provider_id = 'msg-9', version = 2")
    want(dsn)
    await one.run_once()
    (message,) = seen(slack, C_OPS)
    assert not buttons(message)
    assert "msg-9" in said(message)


CHOICES = {
    "delivered": ("completed", "Delivered"),
    "resend": ("pending", "To be sent again"),
    "drop": ("cancelled", "Not delivered, dropped"),
    "give_up": ("failed", "Given up"),
}


# An unknown effect that a person settled says who and how, and still why nobody knew.
@pytest.mark.parametrize("choice", CHOICES)
async def test_person_settles(
    dsn: str, db: Database, slack: SlackStandIn, shower: NewShower, choice: str
) -> None:
    state, words = CHOICES[choice]
    draft = make_draft(dsn, status="approved")
    effect_id = make_effect(dsn, draft=draft, state="unknown", reason="timeout", attempts=2)
    change(
        dsn,
        "INSERT INTO cards (card_id, effect_id, channel) VALUES (gen_random_uuid(), %(id)s, %(ops)s)",
        id=effect_id,
        ops=C_OPS,
    )
    died = {"effect_id": str(effect_id), "reason": "timeout", "attempts": 2}
    resolved = {"effect_id": str(effect_id), "choice": choice}
    async with db.transaction() as conn:
        await audit.append(conn, [audit.Entry(draft["key"], "system", "effect_unknown", died)])
        await audit.append(
            conn, [audit.Entry(draft["key"], "slack:T0STET:U0BOB", "effect_resolved", resolved)]
        )
    change(dsn, "UPDATE effect_outbox SET state = %(s)s, reason = %(c)s, version = 2", s=state, c=choice)
    await shower().run_once()
    (message,) = seen(slack, C_OPS)
    text = "".join(part["text"] for part in texts(message.blocks))
    for part in (words, "By Bob", "no answer in time", "try 2"):
        assert part in text
    assert not buttons(message)


# What comes of an effect that a person sent again changes nothing on the card of its unknown past.
async def test_sent_again_goes_on(dsn: str, db: Database, slack: SlackStandIn, shower: NewShower) -> None:
    await test_person_settles(dsn, db, slack, shower, "resend")
    before = rows(dsn, "SELECT shown_hash FROM cards WHERE effect_id IS NOT NULL")
    change(
        dsn,
        "UPDATE effect_outbox"
        " SET state = 'sending', lease_owner = 'me', lease_expires_at = now(), version = 3",
    )
    change(
        dsn,
        "UPDATE effect_outbox SET state = 'completed', provider_id = 'msg-9', lease_owner = NULL,"
        " lease_expires_at = NULL, version = 4, updated_at = now() + interval '1 hour'",
    )
    want(dsn)
    await shower().run_once()
    assert rows(dsn, "SELECT shown_hash FROM cards WHERE effect_id IS NOT NULL") == before


# Whoever asked for it is named as text, which pings nobody; a subject that is no account stands as it is.
@pytest.mark.parametrize(
    ("asked", "shown"), [("U0RITA", "Rita"), ("slack:T0STET:U0RITA", "Rita"), ("crm import", "crm import")]
)
async def test_who_asked(dsn: str, slack: SlackStandIn, shower: NewShower, asked: str, shown: str) -> None:
    new_draft(dsn, run={"inputs": {"requested_by": asked}})
    await shower().run_once()
    card = said(seen(slack)[0])
    assert shown in card
    assert "U0RITA" not in card
