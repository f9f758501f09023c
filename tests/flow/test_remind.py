"""Reminders: one line in the card's thread, edited by later ones, a mention at the last; quiet once decided.

Not here: the words of a reminder (tests/cards) or the end of a draft (test_expire).
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bot.contracts.answer import NotDecided
from bot.demo import slack_faults as fault
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message
from bot.demo.slack_workspace import C_OPS, C_REVIEW
from bot.flow import remind
from bot.flow.decide import decide
from bot.flow.remind import Reminding
from bot.slack.client import SlackClient
from bot.slack.pace import Pace
from store.database import Database
from store.heads import Reopening, lock_heads, reopen_drafts
from tests.flow.screens import POST, QUICK, UPDATE, NewShower, new_draft, seen
from tests.flow.test_decide import click, deciding
from tests.makers import change, make_token, rows

HOUR = 3600


Make = Callable[..., Reminding]


@pytest.fixture
def make(db: Database, slack_client: SlackClient) -> Make:
    """Reminders after so many seconds each."""

    def build(*after: int, escalate_to: str | None = None, pace: Pace | None = None) -> Reminding:
        times = after or (HOUR, 2 * HOUR, 3 * HOUR)
        kind = SimpleNamespace(remind_after_seconds=times, escalate_to=escalate_to)
        policy: Any = SimpleNamespace(kinds={"customer_email": kind})
        return Reminding(db, slack_client, pace or Pace(QUICK), policy)

    return build


async def shown_draft(dsn: str, shower: NewShower, **more: Any) -> dict[str, Any]:
    """A draft with its card in the channel, that was asked just now and lives for two days."""
    draft = new_draft(dsn, **({"expires_in_seconds": 48 * HOUR} | more))
    await shower().run_once()
    return draft


def wait_hours(dsn: str, hours: float) -> None:
    """Let every open draft have waited so long since it was asked."""
    change(dsn, "UPDATE drafts SET asked_at = now() - %(h)s * interval '1 hour'", h=hours)


def thread(slack: SlackStandIn) -> list[Message]:
    (card,) = seen(slack)
    return slack.state.thread(C_REVIEW, card.ts)


# Before its time nothing is said; then one line stands in the thread, once, and says when the draft expires.
async def test_first_reminder(dsn: str, slack: SlackStandIn, shower: NewShower, make: Make) -> None:
    await shown_draft(dsn, shower)
    deps = make()
    assert await remind.run_once(deps) == 0
    wait_hours(dsn, 1.1)
    assert await remind.run_once(deps) == 1
    assert await remind.run_once(deps) == 0
    (line,) = thread(slack)
    assert line.text.startswith("Still waiting for a decision. Expires <!date^")


# A second reminder edits the first one's line: reminders do not pile up.
async def test_later_reminders_edit(dsn: str, slack: SlackStandIn, shower: NewShower, make: Make) -> None:
    await shown_draft(dsn, shower)
    deps = make()
    for hours in (1.1, 2.1, 3.1, 30):
        wait_hours(dsn, hours)
        await drain(deps)
    (line,) = thread(slack)
    assert line.text.startswith("Still waiting for a decision, reminder 3.")
    assert (slack.journal.count(POST), slack.journal.count(UPDATE)) == (2, 2)


async def drain(deps: Reminding) -> None:
    """Run the step to its end."""
    while await remind.run_once(deps):
        pass


# The last reminder mentions whom the kind names, in a line of its own: an edit would notify nobody.
async def test_escalation(dsn: str, slack: SlackStandIn, shower: NewShower, make: Make) -> None:
    draft = await shown_draft(dsn, shower)
    deps = make(HOUR, 2 * HOUR, escalate_to="S0LEADS")
    wait_hours(dsn, 1.1)
    await remind.run_once(deps)
    wait_hours(dsn, 2.1)
    await remind.run_once(deps)
    first, last = thread(slack)
    assert first.text.startswith("Still waiting for a decision. Expires")
    assert last.text.startswith("<!subteam^S0LEADS>: still waiting for a decision. Expires")
    assert slack.journal.count(UPDATE) == 0
    assert await remind.run_once(deps) == 0
    assert rows(dsn, "SELECT reminded FROM drafts WHERE draft_id = %(id)s", id=draft["draft_id"]) == [
        {"reminded": 2}
    ]


# Escalated to another channel, the line stands there and links to the card's channel.
async def test_escalation_to_a_channel(dsn: str, slack: SlackStandIn, shower: NewShower, make: Make) -> None:
    await shown_draft(dsn, shower, run={"entity": "<!channel> 42"})
    wait_hours(dsn, 5)
    assert await remind.run_once(make(HOUR, escalate_to=C_OPS)) == 1
    assert thread(slack) == []
    (line,) = slack.state.channel_messages(C_OPS)
    said = f"Still waiting for a decision in <#{C_REVIEW}>: Customer email · &lt;!channel&gt; 42."
    assert line.text.startswith(said)


# Of reminders that fell due while nobody was there only the last is posted.
async def test_overslept(dsn: str, slack: SlackStandIn, shower: NewShower, make: Make) -> None:
    await shown_draft(dsn, shower)
    wait_hours(dsn, 10)
    await drain(make(escalate_to="U0BOB"))
    (line,) = thread(slack)
    assert line.text.startswith("<@U0BOB>: still waiting")


# Once it is decided, over or blocked by a newer event, a draft reminds nobody; nor does a kind that is gone.
@pytest.mark.parametrize("end", ["decided", "overdue", "blocked", "redrafting", "kind gone", "no card"])
async def test_quiet(
    dsn: str, db: Database, slack: SlackStandIn, shower: NewShower, make: Make, *, end: str
) -> None:
    draft = await shown_draft(dsn, shower)
    ts = seen(slack)[0].ts
    deps = make()
    wait_hours(dsn, 1.1)
    if end == "decided":
        answer = await decide(deciding(db), click(draft, make_token(dsn, draft), ts=ts))
        assert not isinstance(answer, NotDecided)
    elif end == "kind gone":
        deps = replace(deps, policy=SimpleNamespace(kinds={}))
    else:
        change(
            dsn,
            {
                "overdue": "UPDATE drafts SET expires_at = now()",
                "blocked": "UPDATE draft_heads SET source_version = 99",
                "redrafting": "INSERT INTO redrafts (redraft_id, draft_id, revision, requested_by)"
                " SELECT gen_random_uuid(), draft_id, 1, 'slack:T0STET:U0BOB' FROM drafts",
                "no card": "UPDATE cards SET ts = NULL",
            }[end],
        )
    assert await remind.run_once(deps) == 0
    assert thread(slack) == []


# A draft that comes back to its reviewers is a new term: reminders count from then, with a line of their own.
async def test_new_term(dsn: str, db: Database, slack: SlackStandIn, shower: NewShower, make: Make) -> None:
    draft = await shown_draft(dsn, shower)
    deps = make(HOUR)
    wait_hours(dsn, 1.1)
    await remind.run_once(deps)
    change(dsn, "UPDATE drafts SET status = 'approved', approval_id = NULL")
    async with db.transaction() as conn:
        await lock_heads(conn, [draft["draft_key"]])
        await reopen_drafts(conn, [Reopening(draft["draft_id"], "withdrawn_stale")])
    assert await remind.run_once(deps) == 0
    wait_hours(dsn, 1.1)
    assert await remind.run_once(deps) == 1
    assert len(thread(slack)) == 2


# A newer event's failure gives the same draft back without a new term: nobody is reminded twice.
async def test_same_term(dsn: str, db: Database, shower: NewShower, make: Make) -> None:
    draft = await shown_draft(dsn, shower)
    deps = make(HOUR)
    wait_hours(dsn, 1.1)
    await remind.run_once(deps)
    async with db.transaction() as conn:
        await lock_heads(conn, [draft["draft_key"]])
        await reopen_drafts(conn, [Reopening(draft["draft_id"], "newer_failed")])
    assert await remind.run_once(deps) == 0


# Two processes that find the same reminder post it once.
async def test_two_processes(dsn: str, slack: SlackStandIn, shower: NewShower, make: Make) -> None:
    await shown_draft(dsn, shower)
    wait_hours(dsn, 1.1)
    taken = await asyncio.gather(*(remind.run_once(make()) for _ in range(8)))
    assert sum(taken) == 1
    assert len(thread(slack)) == 1


# A reminder that was provably not posted comes again; one whose answer was lost does not.
@pytest.mark.parametrize(
    ("trouble", "lines"),
    [(fault.limited("1"), 1), (fault.dropped(after_work=True), 1), (fault.server_error(500), 0)],
    ids=["limited", "answer lost", "unknown"],
)
async def test_trouble(
    dsn: str, slack: SlackStandIn, shower: NewShower, make: Make, *, trouble: fault.Fault, lines: int
) -> None:
    await shown_draft(dsn, shower)
    wait_hours(dsn, 1.1)
    slack.faults.order(POST, trouble)
    for _ in range(3):
        await remind.run_once(make())
    assert len(thread(slack)) == lines


# An escalation that its channel does not take is told to ops, once, instead of being lost.
async def test_escalation_refused(dsn: str, slack: SlackStandIn, shower: NewShower, make: Make) -> None:
    await shown_draft(dsn, shower)
    wait_hours(dsn, 1.1)
    slack.faults.always(POST, fault.says("not_in_channel"))
    for _ in range(2):
        await remind.run_once(make(HOUR, escalate_to=C_OPS))
    told = rows(dsn, "SELECT name, facts FROM alerts")
    assert told == [{"name": "channel_missing", "facts": {"channel": C_OPS, "reason": "not_in_channel"}}]


# A line that somebody deleted is written anew when the next reminder is due.
async def test_deleted_line(dsn: str, slack: SlackStandIn, shower: NewShower, make: Make) -> None:
    await shown_draft(dsn, shower)
    deps = make()
    wait_hours(dsn, 1.1)
    await remind.run_once(deps)
    (line,) = thread(slack)
    del slack.state.messages[C_REVIEW][line.ts]
    wait_hours(dsn, 2.1)
    await remind.run_once(deps)
    (again,) = thread(slack)
    assert again.text.startswith("Still waiting for a decision, reminder 2.")


# Slack's pace is kept: what has to wait is taken later, not lost.
async def test_pace(dsn: str, slack: SlackStandIn, shower: NewShower, make: Make) -> None:
    await shown_draft(dsn, shower)
    wait_hours(dsn, 1.1)
    pace = Pace()
    pace.hold(POST, channel=C_REVIEW, now=0.0, seconds=60)
    deps = make(pace=pace)
    assert await remind.run_once(replace(deps, clock=lambda: 1.0)) == 0
    assert await remind.run_once(replace(deps, clock=lambda: 61.0)) == 1
    assert len(thread(slack)) == 1
