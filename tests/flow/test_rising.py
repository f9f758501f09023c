"""People are told again of an unknown effect until one of them decides: where, how often, in what words.

Not here: other alerts (test_alert) or settling (test_reconcile).
"""

import asyncio
from uuid import UUID

import pytest

from bot.demo import slack_faults as fault
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message
from bot.demo.slack_workspace import C_OPS
from bot.flow import alert, rising
from bot.flow.alert import Alerting
from bot.flow.reconcile import Choice, Resolved, settle_unknown
from bot.flow.rising import Rising
from bot.slack.client import SlackClient
from bot.slack.pace import Pace
from store import cards, homes
from store.database import Database
from tests import makers
from tests.flow.outlets import effect_row
from tests.flow.screens import POST, QUICK, NewShower, said, seen

AGES = "UPDATE effect_outbox SET updated_at = now() - %(age)s * interval '1 second'"


async def make_unknown(db: Database, dsn: str, shower: NewShower) -> UUID:
    """An unknown effect whose card stands in the operators' channel."""
    draft = makers.make_draft(dsn, status="approved")
    effect_id = makers.make_effect(dsn, state="unknown", draft=draft, reason="timeout")
    async with db.connection() as conn:
        await cards.open_card(conn, channel=C_OPS, effect_id=effect_id)
    await shower().run_once()
    return effect_id


def alerting(db: Database, client: SlackClient, channel: str | None = C_OPS) -> Alerting:
    return Alerting(db, client, Pace(QUICK), channel, admins=("S0ADMINS", "U0ADMIN"))


def age(dsn: str, seconds: int) -> None:
    makers.change(dsn, AGES, age=seconds)


def replies(slack: SlackStandIn) -> list[Message]:
    (card,) = seen(slack, C_OPS)
    return slack.state.thread(C_OPS, card.ts)


# After the settle window, an hour, four hours and a day, in the card's thread, ever more urgent, each once.
async def test_rises(
    db: Database, dsn: str, slack: SlackStandIn, shower: NewShower, slack_client: SlackClient
) -> None:
    await make_unknown(db, dsn, shower)
    told = []
    for seconds in (30, 61, 3_601, 14_401, 86_401, 100_000, 172_801, 10_000_000, 20_000_000):
        age(dsn, seconds)
        told.append(await rising.run_once(Rising(db)))
        assert await rising.run_once(Rising(db)) == 0
        await alert.run_once(alerting(db, slack_client))
    assert told == [0, 1, 1, 1, 1, 0, 1, 1, 0]
    words = [said(one) for one in replies(slack)]
    assert [
        next(word for word in ("Still unknown", "An hour", "Four hours", "A day or more") if word in one)
        for one in words
    ] == ["Still unknown", "An hour", "Four hours", *["A day or more"] * 3]
    assert ["S0ADMINS" in one for one in words] == [False, False, *[True] * 4]


# After a long standstill only the newest step is told.
async def test_missed_steps(db: Database, dsn: str, shower: NewShower) -> None:
    await make_unknown(db, dsn, shower)
    age(dsn, 20_000)
    assert await rising.run_once(Rising(db)) == 1
    assert await rising.run_once(Rising(db)) == 0
    (raised,) = makers.rows(dsn, "SELECT name FROM alerts")
    assert raised["name"] == "unknown_hours"


# Ten processes at once tell once.
async def test_once_over_all(db: Database, dsn: str, shower: NewShower) -> None:
    await make_unknown(db, dsn, shower)
    age(dsn, 4_000)
    assert sum(await asyncio.gather(*(rising.run_once(Rising(db)) for _ in range(10)))) == 1
    assert len(makers.rows(dsn, "SELECT 1 FROM alerts")) == 1


# Once somebody decided nothing more is said, not even what was already on its way.
async def test_decided(
    db: Database, dsn: str, slack: SlackStandIn, shower: NewShower, slack_client: SlackClient
) -> None:
    effect_id = await make_unknown(db, dsn, shower)
    age(dsn, 4_000)
    assert await rising.run_once(Rising(db)) == 1
    version = effect_row(dsn, effect_id)["version"]
    settled = await settle_unknown(db, effect_id, version, choice=Choice.DELIVERED, by="slack:T0STET:U0ADMIN")
    assert isinstance(settled, Resolved)
    await alert.run_once(alerting(db, slack_client))
    assert replies(slack) == []
    assert makers.rows(dsn, "SELECT 1 FROM alerts WHERE sent_at IS NULL") == []


# Unknown anew after "send again" it rises anew: that is another question.
async def test_unknown_again(db: Database, dsn: str, shower: NewShower) -> None:
    await make_unknown(db, dsn, shower)
    age(dsn, 4_000)
    assert await rising.run_once(Rising(db)) == 1
    makers.change(dsn, "UPDATE effect_outbox SET version = version + 3")
    assert await rising.run_once(Rising(db)) == 1


# A lost answer is looked for in the thread before it is posted again; a card not posted yet is waited for.
@pytest.mark.parametrize("is_posted", [True, False])
async def test_lost_answer(
    db: Database,
    dsn: str,
    slack: SlackStandIn,
    shower: NewShower,
    slack_client: SlackClient,
    *,
    is_posted: bool,
) -> None:
    await make_unknown(db, dsn, shower)
    age(dsn, 4_000)
    await rising.run_once(Rising(db))
    if is_posted:
        slack.faults.order(POST, fault.dropped(after_work=True))
    else:
        makers.change(dsn, "UPDATE cards SET ts = NULL WHERE effect_id IS NOT NULL")
    for _ in range(3):
        await alert.run_once(alerting(db, slack_client))
        makers.change(dsn, "UPDATE alerts SET next_attempt_at = now() - interval '1 second'")
    assert len(replies(slack)) == int(is_posted)
    assert bool(makers.rows(dsn, "SELECT 1 FROM alerts WHERE sent_at IS NULL")) is not is_posted


# An untold outcome blocks nothing newer, so Home offers to send it again, never to drop it.
@pytest.mark.parametrize(("effect_type", "drops"), [("http", True), ("resume", False)])
async def test_home_offers_what_can_be_done(db: Database, dsn: str, effect_type: str, *, drops: bool) -> None:
    makers.make_effect(dsn, state="unknown", effect_type=effect_type)
    makers.change(dsn, "UPDATE draft_heads SET source_version = source_version + 1")
    async with db.connection() as conn:
        (row,) = await homes.list_unsettled(conn, most=5)
    assert row.newer_waits is drops
