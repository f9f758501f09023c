"""Alerts: the operators' channel hears each occasion, once as far as Slack lets us know.

Not here: what raises them, or the golden words (tests/cards).
"""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from bot.demo import slack_faults as fault
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import C_OPS
from bot.flow import alert
from bot.flow.alert import Alerting, draw_alert
from bot.slack.client import SlackClient
from bot.slack.pace import Pace
from store.alerts import raise_alert
from store.database import Database
from tests.flow.screens import HISTORY, POST, QUICK, said, seen
from tests.makers import change, rows

NewAlerting = Callable[..., Alerting]


@pytest.fixture
def alerting(db: Database, slack_client: SlackClient) -> NewAlerting:
    def make(channel: str | None = C_OPS, *, pace: Pace | None = None) -> Alerting:
        return Alerting(db, slack_client, pace or Pace(QUICK), channel)

    return make


async def raised(db: Database, key: str = "one", name: str = "payload_conflict", **facts: Any) -> bool:
    async with db.connection() as conn:
        return await raise_alert(conn, key=key, name=name, facts=facts or {"key": "n8n:mail:1"})


def hurry(dsn: str) -> None:
    change(dsn, "UPDATE alerts SET next_attempt_at = now() - interval '1 second'")


def unsent(dsn: str) -> int:
    return int(rows(dsn, "SELECT count(*) AS n FROM alerts WHERE sent_at IS NULL")[0]["n"])


# One occasion is one message, however often it is raised.
async def test_one_occasion_one_message(
    dsn: str, db: Database, slack: SlackStandIn, alerting: NewAlerting
) -> None:
    assert await raised(db)
    assert not await raised(db)
    assert await alert.run_once(alerting()) == 1
    hurry(dsn)
    assert await alert.run_once(alerting()) == 0
    (message,) = seen(slack, C_OPS)
    assert "Same key, other content." in said(message)
    assert "n8n:mail:1" in said(message)
    assert unsent(dsn) == 0


# A lost answer: the message is looked for, and not said again.
async def test_lost_answer(dsn: str, db: Database, slack: SlackStandIn, alerting: NewAlerting) -> None:
    await raised(db)
    slack.faults.order(POST, fault.dropped(after_work=True))
    await alert.run_once(alerting())
    assert unsent(dsn) == 1
    hurry(dsn)
    await alert.run_once(alerting())
    assert (slack.journal.count(POST), slack.journal.count(HISTORY)) == (1, 1)
    assert len(seen(slack, C_OPS)) == 1
    assert unsent(dsn) == 0


# What Slack refuses or cannot be told waits longer each time, and comes in the end.
@pytest.mark.parametrize(
    "trouble", [fault.says("not_in_channel"), fault.dropped(after_work=False), fault.server_error(503)]
)
async def test_trouble_is_tried_again(
    dsn: str, db: Database, slack: SlackStandIn, alerting: NewAlerting, trouble: fault.Fault
) -> None:
    await raised(db)
    slack.faults.always(POST, trouble)
    waits = []
    for _ in range(3):
        await alert.run_once(alerting())
        assert await alert.run_once(alerting()) == 0
        row = rows(dsn, "SELECT extract(epoch FROM next_attempt_at - now())::float AS s FROM alerts")[0]
        waits.append(row["s"])
        hurry(dsn)
    assert waits == sorted(waits)
    assert waits[-1] > 2 * waits[0]
    slack.faults.clear()
    await alert.run_once(alerting())
    assert len(seen(slack, C_OPS)) == 1
    assert unsent(dsn) == 0


# Retry-After is kept, and waiting is no failed try.
async def test_retry_after(dsn: str, db: Database, slack: SlackStandIn, alerting: NewAlerting) -> None:
    await raised(db)
    slack.faults.order(POST, fault.limited("40"))
    await alert.run_once(alerting())
    row = rows(dsn, "SELECT attempts, extract(epoch FROM next_attempt_at - now())::float AS s FROM alerts")[0]
    assert row["attempts"] == 0
    assert 35 < row["s"] <= 40


# A burst goes out at Slack's pace: one at once, the others wait for their turn.
async def test_burst(dsn: str, db: Database, slack: SlackStandIn, alerting: NewAlerting) -> None:
    for n in range(4):
        await raised(db, key=str(n))
    deps = alerting(pace=Pace())
    assert await alert.run_once(deps) == 4
    assert await alert.run_once(deps) == 0
    assert slack.journal.count(POST) == 1
    assert unsent(dsn) == 3


# Without an ops channel the log says so, by name and key alone, and the alert is done.
async def test_no_channel(
    dsn: str, db: Database, slack: SlackStandIn, alerting: NewAlerting, caplog: pytest.LogCaptureFixture
) -> None:
    await raised(db, name="switch_closed", scope="all", who="slack:T0STET:U0ADMIN", reason="Smells")
    with caplog.at_level(logging.WARNING):
        await alert.run_once(alerting(None))
    assert unsent(dsn) == 0
    assert slack.journal.count(POST) == 0
    assert "Smells" not in caplog.text
    assert [record.alert for record in caplog.records if hasattr(record, "alert")] == ["switch_closed"]


FACTS: dict[str, dict[str, Any]] = {
    "payload_conflict": {"key": "k", "known_hash": "x"},
    "drafting_failed": {"key": "k", "reason": "wrong JSON", "detail": None},
    "quota": {"key": "k", "reason": "quota gone"},
    "budget": {"scope": "all"},
    "takeovers": {"key": "k", "count": 3},
    "channel_missing": {"channel": "C0X", "reason": "is_archived"},
    "card_refused": {"key": "k", "reason": "invalid_blocks"},
    "unknown_first": {"key": "k", "at": "2026-03-02T09:15:00+00:00"},
    "unknown_day": {"key": "k"},
    "switch_closed": {"scope": "all", "who": "slack:T0:U0ADA", "reason": "<!channel>"},
    "a name nobody knows": {"key": "k"},
    "effect_failed": {"nothing": "that its sentence wants"},
    "undo_failed": {"key": "k", "because": "connection_refused"},
    "arrived_late": {"key": "k"},
    "resume_away": {"key": "k", "because": "connection_refused"},
    "resume_failed": {"key": "k", "because": "http_404"},
}


# Why something failed is said as on its card: a status by its number.
@pytest.mark.parametrize(
    ("because", "said"),
    [("http_422", "the target answered 422"), ("connection_refused", "connection refused")],
)
def test_reasons_are_said(because: str, said: str) -> None:
    text, _ = draw_alert("effect_failed", {"key": "k", "because": because}, "en")
    assert said in text


# Every alert is drawn, with or without a sentence of its own, and pings nobody.
@pytest.mark.parametrize("name", FACTS)
def test_every_alert_is_drawn(name: str) -> None:
    text, blocks = draw_alert(name, FACTS[name], "en")
    assert text
    assert len(blocks) == 1
    assert "<!channel>" not in text
    assert "<@" not in text
