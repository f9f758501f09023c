"""Showing: Slack agrees with the rows, one message a draft, whatever Slack does.

Not here: what a card looks like (tests/cards) or what a click does (tests/flow/test_decide).
"""

import asyncio
from collections.abc import Callable

import psycopg
import pytest

from bot.contracts.answer import NotDecided, Why
from bot.contracts.click import ACTION_DECISIONS, READ_ACTION, decode_value
from bot.demo import slack_faults as fault
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import C_ARCHIVED, C_REVIEW
from bot.flow.decide import Decided, decide
from bot.policy.tokens import hash_token
from bot.slack.pace import Pace
from store.cards import CardHold, Shown, record_shown
from store.database import Database
from store.errors import LostRace
from tests.flow.screens import (
    HISTORY,
    POST,
    UPDATE,
    NewShower,
    buttons,
    card_row,
    hurry,
    is_current,
    new_draft,
    revise,
    said,
    seen,
    want,
)
from tests.flow.test_decide import click, deciding
from tests.makers import change, make_draft, make_token, rows


# A new draft's card is posted once, with opaque metadata, and its row says what is shown where.
async def test_new_card_is_posted(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    one = shower()
    assert await one.run_once() == 1
    assert await one.run_once() == 0
    (message,) = seen(slack)
    row = card_row(dsn, draft)
    assert (row["ts"], row["post_id"], row["attempts"]) == (message.ts, None, 0)
    assert is_current(dsn, draft)
    assert message.metadata is not None
    assert list(message.metadata["event_payload"]) == ["card"]
    assert "It ships Monday." in said(message)
    assert "Alice" in said(message)
    assert "U0ALICE" not in said(message)
    assert slack.journal.count(POST) == 1
    assert slack.journal.count(UPDATE) == 0


# Each button has its own token; only the hash is stored, bound to card, approval and what was shown.
async def test_tokens_are_bound(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    await shower().run_once()
    shown = buttons(seen(slack)[0])
    stored = {row["token_hash"]: row for row in rows(dsn, "SELECT * FROM approval_tokens")}
    assert set(shown) == {"stet.approve", "stet.reject", "stet.edit"}
    for action_id, value in shown.items():
        decoded = decode_value(value)
        assert decoded is not None
        row = stored.pop(hash_token(decoded.token))
        assert row["decision"] == ACTION_DECISIONS[action_id]
        assert (row["approval_id"], row["card_id"]) == (draft["approval_id"], draft["card_id"])
        assert (row["surface"], row["holder"]) == ("message", None)
        assert row["shown_hash"] == card_row(dsn, draft)["shown_hash"]
    assert not stored


# The approve button of the posted card approves, and the hash of what it showed goes on the record.
async def test_shown_button_decides(dsn: str, db: Database, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    one = shower()
    await one.run_once()
    (message,) = seen(slack)
    value = decode_value(buttons(message)["stet.approve"])
    assert value is not None
    answer = await decide(deciding(db), click(draft, value.token, ts=message.ts))
    assert isinstance(answer, Decided)
    assert (
        rows(dsn, "SELECT shown_hash FROM approvals")[0]["shown_hash"] == card_row(dsn, draft)["shown_hash"]
    )
    await one.run_once()
    assert slack.journal.count(UPDATE) == 1
    assert set(buttons(seen(slack)[0])) == {"stet.cancel"}
    assert "Approved" in said(seen(slack)[0])


# F016: Slack took the post, the answer was lost, the bot restarted: the message is found and stays alone.
@pytest.mark.parametrize(
    "trouble",
    [
        fault.dropped(after_work=True),
        fault.says("internal_error", after_work=True),
        fault.says("fatal_error", after_work=True),
        fault.server_error(500, after_work=True),
    ],
    ids=["dropped", "internal_error", "fatal_error", "http_500"],
)
async def test_lost_answer_is_looked_for(
    dsn: str, slack: SlackStandIn, shower: NewShower, trouble: fault.Fault
) -> None:
    draft = new_draft(dsn)
    slack.faults.order(POST, trouble)
    await shower("before").run_once()
    assert card_row(dsn, draft)["post_id"] is not None
    hurry(dsn)
    await shower("after the restart").run_once()
    assert slack.journal.count(POST) == 1
    assert slack.journal.count(HISTORY) == 1
    (message,) = seen(slack)
    assert card_row(dsn, draft)["ts"] == message.ts
    assert is_current(dsn, draft)


# The same after a crash between post and record: the lease runs out, the next one looks before it posts.
async def test_crash_after_the_post(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    await shower("dead").run_once()
    (message,) = seen(slack)
    assert message.metadata is not None
    change(
        dsn,
        "UPDATE cards SET ts = NULL, shown_version = 0, post_id = %(post)s, post_started_at = now(),"
        " lease_owner = 'dead', lease_expires_at = now() - interval '1 second', next_attempt_at = now()",
        post=message.metadata["event_payload"]["card"],
    )
    await shower("next").run_once()
    assert slack.journal.count(POST) == 1
    assert len(seen(slack)) == 1
    assert is_current(dsn, draft)


# A post that cannot be found is not believed absent before it had time to appear; then it is made again.
async def test_absent_post_is_made_again_later(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    slack.faults.order(POST, fault.dropped(after_work=False))
    one = shower()
    await one.run_once()
    hurry(dsn)
    await one.run_once()
    assert slack.journal.count(POST) == 1
    assert not seen(slack)
    wait = rows(dsn, "SELECT next_attempt_at > now() + interval '20 seconds' AS later FROM cards")[0]
    assert wait["later"]
    change(dsn, "UPDATE cards SET post_started_at = now() - interval '31 seconds'")
    hurry(dsn)
    await one.run_once()
    assert slack.journal.count(POST) == 2
    assert len(seen(slack)) == 1
    assert is_current(dsn, draft)


# While the history cannot be read nothing is posted: a late card is better than a second one.
async def test_unreadable_history_posts_nothing(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    new_draft(dsn)
    slack.faults.order(POST, fault.dropped(after_work=True))
    slack.faults.order(HISTORY, fault.server_error(503))
    one = shower()
    await one.run_once()
    change(dsn, "UPDATE cards SET post_started_at = now() - interval '1 hour'")
    hurry(dsn)
    await one.run_once()
    assert slack.journal.count(POST) == 1
    hurry(dsn)
    await one.run_once()
    assert (slack.journal.count(POST), len(seen(slack))) == (1, 1)


# Many changes make one edit, and it shows the last of them.
async def test_many_changes_one_edit(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    one = shower()
    await one.run_once()
    for _ in range(20):
        want(dsn)
    change(dsn, "UPDATE drafts SET status = 'rejected', approval_id = NULL")
    assert await one.run_once() == 1
    assert await one.run_once() == 0
    assert slack.journal.count(UPDATE) == 1
    assert "Rejected" in said(seen(slack)[0])
    assert is_current(dsn, draft)


# A change that comes during a call is drawn afterwards: the version recorded is the one that was read.
async def test_change_during_the_call(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    held = slack.faults.order(POST, fault.hanging())
    one = shower()
    drawing = asyncio.create_task(one.run_once())
    await held.reached.wait()
    change(dsn, "UPDATE drafts SET status = 'rejected', approval_id = NULL")
    want(dsn)
    held.release.set()
    await drawing
    assert not is_current(dsn, draft)
    assert await one.run_once() == 1
    assert "Rejected" in said(seen(slack)[0])
    assert is_current(dsn, draft)


# A deleted card is posted anew, once.
async def test_deleted_card_is_posted_anew(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    one = shower()
    await one.run_once()
    slack.state.messages[C_REVIEW].clear()
    want(dsn)
    while await one.run_once():
        pass
    (message,) = seen(slack)
    assert card_row(dsn, draft)["ts"] == message.ts
    assert (slack.journal.count(POST), slack.journal.count(UPDATE)) == (2, 1)
    assert is_current(dsn, draft)


# Retry-After is honoured by the row and by the pace: nothing is called before, not even for another change.
@pytest.mark.parametrize("method", [POST, UPDATE])
async def test_retry_after(dsn: str, slack: SlackStandIn, shower: NewShower, method: str) -> None:
    draft = new_draft(dsn)
    one = shower()
    if method == UPDATE:
        await one.run_once()
        want(dsn)
    slack.faults.order(method, fault.limited("30"))
    assert await one.run_once() == 1
    row = rows(
        dsn,
        "SELECT next_attempt_at - now() AS wait, post_id, attempts, lease_owner FROM cards",
    )[0]
    assert 20 < row["wait"].total_seconds() <= 30
    assert (row["post_id"], row["attempts"], row["lease_owner"]) == (None, 0, None)
    assert await one.run_once() == 0
    want(dsn)
    assert await one.run_once() == 1
    assert slack.journal.count(method) == 1
    hurry(dsn)
    await shower("after thirty seconds").run_once()
    assert slack.journal.count(method) == 2
    assert is_current(dsn, draft)


# Cards that must wait for their turn are given times of their own, one after the other, and nobody spins.
async def test_pace_spreads_posts(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    for n in range(4):
        new_draft(dsn, run={"entity": f"customer:{n}"}, expires_in_seconds=3600 - n)
    one = shower(pace=Pace())
    assert await one.run_once() == 4
    assert await one.run_once() == 0
    assert slack.journal.count(POST) == 1
    waits = rows(
        dsn,
        "SELECT extract(epoch FROM next_attempt_at - now())::float AS s FROM cards WHERE shown_version = 0"
        " ORDER BY next_attempt_at",
    )
    assert [round(row["s"]) for row in waits] in ([1, 2, 3], [1, 2, 4])
    assert "customer:3" in said(seen(slack)[0])


# An archived or missing channel: ops hears once, the card waits longer each time, and the draft is untouched.
async def test_archived_channel(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    drafts = [
        new_draft(dsn, snapshot={"channel": C_ARCHIVED}, run={"entity": f"customer:{n}"}) for n in range(3)
    ]
    one = shower()
    for _ in range(3):
        await one.run_once()
        hurry(dsn)
    raised = rows(dsn, "SELECT name, facts FROM alerts")
    assert raised == [{"name": "channel_missing", "facts": {"channel": C_ARCHIVED, "reason": "is_archived"}}]
    row = card_row(dsn, drafts[0])
    assert (row["problem"], row["attempts"], row["post_id"]) == ("is_archived", 3, None)
    assert {row["status"] for row in rows(dsn, "SELECT status FROM drafts")} == {"pending"}
    slack.state.workspace.channels[C_ARCHIVED].is_archived = False
    await one.run_once()
    assert card_row(dsn, drafts[0])["problem"] is None
    assert len(seen(slack, C_ARCHIVED)) == 3


# What Slack refuses to draw becomes a plain card to read from, never to approve on, and ops hears once.
@pytest.mark.parametrize("error", ["invalid_blocks", "msg_too_long", "msg_blocks_too_long"])
async def test_refused_blocks(dsn: str, slack: SlackStandIn, shower: NewShower, error: str) -> None:
    draft = new_draft(dsn)
    slack.faults.order(POST, fault.says(error))
    one = shower()
    while await one.run_once():
        pass
    (message,) = seen(slack)
    assert set(buttons(message)) == {READ_ACTION}
    assert is_current(dsn, draft)
    assert [row["name"] for row in rows(dsn, "SELECT name FROM alerts")] == ["card_refused"]
    slack.faults.order(UPDATE, fault.says(error))
    want(dsn)
    while await one.run_once():
        pass
    assert len(rows(dsn, "SELECT name FROM alerts")) == 1
    want(dsn)
    await one.run_once()
    assert set(buttons(seen(slack)[0])) == {"stet.approve", "stet.reject", "stet.edit"}


# A card that Slack refuses for ever undoes no decision.
async def test_failing_card_keeps_the_decision(
    dsn: str, db: Database, slack: SlackStandIn, shower: NewShower
) -> None:
    draft = make_draft(dsn)
    slack.faults.always(UPDATE, fault.says("edit_window_closed"))
    answer = await decide(deciding(db), click(draft, make_token(dsn, draft)))
    assert isinstance(answer, Decided)
    one = shower()
    for _ in range(3):
        await one.run_once()
        hurry(dsn)
    assert rows(dsn, "SELECT status FROM drafts")[0]["status"] == "approved"
    assert card_row(dsn, draft)["problem"] == "edit_window_closed"


# A draft too long for its card has Read all in place of Approve.
async def test_long_draft_has_no_approve(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    new_draft(dsn, body={"subject": "Long", "body": "A long letter. " * 900})
    await shower().run_once()
    assert set(buttons(seen(slack)[0])) == {READ_ACTION, "stet.reject", "stet.edit"}
    allowed = {row["decision"] for row in rows(dsn, "SELECT decision FROM approval_tokens")}
    assert allowed == {"read", "reject", "edit"}


# A new revision edits the card, shows what changed and leaves one line in the thread, whatever comes later.
async def test_new_revision_leaves_one_line(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    one = shower()
    await one.run_once()
    revise(dsn, draft, 2, author="slack:T0STET:U0BOB")
    for _ in range(3):
        await one.run_once()
        want(dsn)
    (message,) = seen(slack)
    assert "Friday" in said(message)
    assert "Changed since revision 1" in said(message)
    (line,) = slack.state.thread(C_REVIEW, message.ts)
    assert "Revision 2, edited by Bob" in line.text
    assert card_row(dsn, draft)["noted_revision"] == 2


# A line whose answer was lost is not said again; a card first posted at revision 2 has none.
async def test_lost_line_is_not_repeated(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    one = shower()
    revise(dsn, draft, 2)
    await one.run_once()
    (message,) = seen(slack)
    assert not slack.state.thread(C_REVIEW, message.ts)
    revise(dsn, draft, 3)
    slack.faults.order(POST, fault.dropped(after_work=False))
    await one.run_once()
    want(dsn)
    await one.run_once()
    assert slack.journal.count(POST) == 2
    assert not slack.state.thread(C_REVIEW, message.ts)
    assert is_current(dsn, draft)


# Without a turn for the line the card is edited at once, and the line follows when its turn comes.
async def test_line_waits_for_its_turn(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    one = shower(pace=Pace())
    await one.run_once()
    revise(dsn, draft, 2)
    await one.run_once()
    (message,) = seen(slack)
    assert "Friday" in said(message)
    assert not slack.state.thread(C_REVIEW, message.ts)
    assert not is_current(dsn, draft)
    assert await one.run_once() == 0
    hurry(dsn)
    await shower("a second later").run_once()
    assert len(slack.state.thread(C_REVIEW, message.ts)) == 1
    assert is_current(dsn, draft)


# F019: after a newer revision the old card's button is told so, and decides nothing.
async def test_button_of_the_old_revision(
    dsn: str, db: Database, slack: SlackStandIn, shower: NewShower
) -> None:
    draft = new_draft(dsn)
    one = shower()
    await one.run_once()
    old = decode_value(buttons(seen(slack)[0])["stet.approve"])
    assert old is not None
    revise(dsn, draft, 2)
    await one.run_once()
    answer = await decide(deciding(db), click(draft, old.token, ts=seen(slack)[0].ts))
    assert isinstance(answer, NotDecided)
    assert answer.why == Why.NEWER_REVISION
    new = decode_value(buttons(seen(slack)[0])["stet.approve"])
    assert new is not None
    assert new.revision == 2


# Redrawing the same question leaves earlier buttons of it good: a person may hold an older picture.
async def test_several_live_tokens(dsn: str, db: Database, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    one = shower()
    await one.run_once()
    first = decode_value(buttons(seen(slack)[0])["stet.approve"])
    want(dsn)
    await one.run_once()
    assert first is not None
    answer = await decide(deciding(db), click(draft, first.token, ts=seen(slack)[0].ts))
    assert isinstance(answer, Decided)


# A click that comes before the post's answer is recorded decides, and its message stays the card's.
async def test_click_before_the_record(
    dsn: str, db: Database, slack: SlackStandIn, shower: NewShower
) -> None:
    draft = new_draft(dsn)
    slack.faults.order(POST, fault.dropped(after_work=True))
    one = shower()
    await one.run_once()
    (message,) = seen(slack)
    value = decode_value(buttons(message)["stet.approve"])
    assert value is not None
    assert isinstance(await decide(deciding(db), click(draft, value.token, ts=message.ts)), Decided)
    assert card_row(dsn, draft)["ts"] == message.ts
    hurry(dsn)
    await one.run_once()
    assert (slack.journal.count(POST), slack.journal.count(UPDATE)) == (1, 1)
    assert "Approved" in said(message)
    assert card_row(dsn, draft)["post_id"] is None


# A click that tells where the message is, before the history does, keeps us from posting again.
async def test_click_during_the_look_up(
    dsn: str, db: Database, slack: SlackStandIn, shower: NewShower
) -> None:
    draft = new_draft(dsn)
    slack.faults.order(POST, fault.dropped(after_work=True))
    one = shower()
    await one.run_once()
    change(dsn, "UPDATE cards SET post_started_at = now() - interval '1 hour'")
    hurry(dsn)
    (message,) = seen(slack)
    message.metadata = None
    held = slack.faults.order(HISTORY, fault.hanging(after_work=True))
    looking = asyncio.create_task(one.run_once())
    await held.reached.wait()
    value = decode_value(buttons(message)["stet.approve"])
    assert value is not None
    assert isinstance(await decide(deciding(db), click(draft, value.token, ts=message.ts)), Decided)
    held.release.set()
    await looking
    await one.run_once()
    assert (slack.journal.count(POST), slack.journal.count(UPDATE)) == (1, 1)
    assert "Approved" in said(message)


# Two workers on the same cards: one message a draft.
async def test_two_showers(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    for n in range(12):
        new_draft(dsn, run={"entity": f"customer:{n}"})
    one, two = shower("one"), shower("two")
    while sum(await asyncio.gather(one.run_once(), two.run_once())):
        pass
    assert len(seen(slack)) == 12
    assert slack.journal.count(POST) == 12
    assert slack.journal.count(UPDATE) == 0


# A card that another worker is about to take is passed over, not waited for.
async def test_locked_card_is_passed_over(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    locked, free = (new_draft(dsn, run={"entity": f"customer:{n}"}) for n in range(2))
    async with await psycopg.AsyncConnection.connect(dsn) as other:
        await other.execute("SELECT FROM cards WHERE card_id = %s FOR UPDATE", [locked["card_id"]])
        assert await shower().run_once() == 1
        await other.rollback()
    assert is_current(dsn, free)
    assert card_row(dsn, locked)["ts"] is None


# A worker that comes back after its lease was taken over writes nothing, and its post is found by the other.
async def test_stale_owner(dsn: str, db: Database, slack: SlackStandIn, shower: NewShower) -> None:
    draft = new_draft(dsn)
    held = slack.faults.order(POST, fault.hanging(after_work=True))
    late = asyncio.create_task(shower("late").run_once())
    await held.reached.wait()
    change(dsn, "UPDATE cards SET lease_expires_at = now() - interval '1 second'")
    hurry(dsn)
    await shower("other").run_once()
    recorded = card_row(dsn, draft)
    change(dsn, "UPDATE drafts SET status = 'rejected', approval_id = NULL")
    want(dsn)
    held.release.set()
    await late
    (message,) = seen(slack)
    row = card_row(dsn, draft)
    assert (row["ts"], row["shown_version"]) == (message.ts, recorded["shown_version"])
    assert row["wanted_version"] > row["shown_version"]
    assert slack.journal.count(POST) == 1
    with pytest.raises(LostRace):
        async with db.connection() as conn:
            await record_shown(conn, CardHold(draft["card_id"], "late"), Shown("1.1", 9, "x", 9))


# Whatever happened, once everything due was drawn the card says what the database says.
@pytest.mark.parametrize("script", range(8))
async def test_card_equals_database(dsn: str, slack: SlackStandIn, shower: NewShower, script: int) -> None:
    draft = new_draft(dsn)
    one, two = shower("one"), shower("two")
    troubles: list[Callable[[], object]] = [
        lambda: None,
        lambda: slack.faults.order(UPDATE, fault.dropped(after_work=True)),
        lambda: slack.faults.order(UPDATE, fault.says("message_not_found")),
        lambda: slack.faults.order(POST, fault.dropped(after_work=True)),
        lambda: slack.faults.order(POST, fault.says("internal_error")),
    ]
    changes: list[Callable[[], object]] = [
        lambda: revise(dsn, draft, rows(dsn, "SELECT revision FROM drafts")[0]["revision"] + 1),
        lambda: want(dsn),
        lambda: slack.state.messages.get(C_REVIEW, {}).clear(),
    ]
    for step in range(5):
        troubles[(script + 2 * step) % len(troubles)]()
        changes[(script + step) % len(changes)]()
        await (one if step % 2 else two).run_once()
        hurry(dsn)
    slack.faults.clear()
    change(dsn, "UPDATE cards SET post_started_at = now() - interval '1 minute'")
    want(dsn)
    for _ in range(4):
        await one.run_once()
    revision = rows(dsn, "SELECT revision FROM drafts")[0]["revision"]
    live = [m for m in seen(slack) if m.ts == card_row(dsn, draft)["ts"]]
    assert len(live) == 1
    assert is_current(dsn, draft)
    assert f"Revision {revision}" in said(live[0])
    value = decode_value(buttons(live[0])["stet.approve"])
    assert value is not None
    stored = rows(
        dsn, "SELECT approval_id FROM approval_tokens WHERE token_hash = %(h)s", h=hash_token(value.token)
    )
    assert stored[0]["approval_id"] == rows(dsn, "SELECT approval_id FROM drafts")[0]["approval_id"]


# A card whose rows cannot be read is left for later, alone: the others of its batch are drawn.
async def test_one_unreadable_row(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    drafts = [new_draft(dsn, run={"entity": f"customer:{n}"}) for n in range(3)]
    change(
        dsn,
        "UPDATE revisions SET warnings = '{}' WHERE draft_id = %(id)s",
        id=drafts[1]["draft_id"],
    )
    assert await shower().run_once() == 3
    assert len(seen(slack)) == 2
    assert [is_current(dsn, draft) for draft in drafts] == [True, False, True]
    row = card_row(dsn, drafts[1])
    assert (row["attempts"], row["lease_owner"]) == (1, None)
    hurry(dsn)
    change(dsn, "UPDATE revisions SET warnings = '[]'")
    assert await shower().run_once() == 1
    assert len(seen(slack)) == 3
