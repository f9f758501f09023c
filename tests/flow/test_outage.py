"""Slack away for an hour: what waited is drawn when it is back, once each, in order and at Slack's pace.

Not here: one card whose post or edit fails (test_show), or places in a channel (test_places).
"""

import time
from collections.abc import Callable
from typing import Any

import pytest

from bot.demo import slack_faults
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message
from bot.demo.slack_workspace import C_REVIEW
from bot.flow import show
from bot.flow.naming import Names
from bot.flow.show import Shower, Showing
from bot.slack.client import SlackClient
from bot.slack.pace import Pace
from store.database import Database
from tests.flow.screens import POST, UPDATE, seen
from tests.makers import change, make_waiting, rows

HOUR = 3600
TOGETHER = 10  # A burst of edits.
STEADY = 40  # Edits a minute, once a burst is spent: some below Slack's 50.
Passing = Callable[[float], None]


AWAY = {
    "dropped": slack_faults.dropped(after_work=False),
    "server_error": slack_faults.server_error(),
    "limited": slack_faults.limited("30"),
}


class Clock:
    """The real one, as the database has it, and what was passed over."""

    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.passed


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def _larger_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is small for the sake of people, who are not here."""
    monkeypatch.setattr(show, "BATCH", 64)


@pytest.fixture
def passes(dsn: str, clock: Clock) -> Passing:
    """Let seconds pass for our pace, for Slack's, and for what waits in the database."""

    def let_pass(seconds: float) -> None:
        clock.passed += seconds
        change(
            dsn,
            "UPDATE cards SET next_attempt_at = next_attempt_at - %(s)s * interval '1 second',"
            " lease_expires_at = lease_expires_at - %(s)s * interval '1 second',"
            " post_started_at = post_started_at - %(s)s * interval '1 second'"
            " WHERE wanted_version > shown_version",
            s=seconds,
        )

    return let_pass


def make_shown(dsn: str, slack: SlackStandIn, count: int) -> list[dict[str, Any]]:
    """Cards that people have before them, made in another order than they expire in."""
    made = make_waiting(dsn, count, first_expires_in_seconds=2 * HOUR)
    for one in sorted(made, key=lambda one: one["entity"][::-1]):
        one["ts"] = slack.state.add(Message(C_REVIEW, slack.state.new_ts(), "as it was")).ts
        change(
            dsn,
            "UPDATE cards SET ts = %(ts)s, shown_version = 1, wanted_version = 1, noted_revision = 1,"
            " waits_until = NULL WHERE card_id = %(id)s",
            ts=one["ts"],
            id=one["card_id"],
        )
    return made


# An hour without Slack and several changes of each card: afterwards one edit a card and no second card, in
# Slack's limits, and whoever expires first is told first.
@pytest.mark.parametrize(("fault", "count"), [("dropped", 500), ("server_error", 60), ("limited", 60)])
async def test_an_hour_without_slack(
    dsn: str, db: Database, clock: Clock, passes: Passing, *, fault: str, count: int
) -> None:
    async with SlackStandIn(monotonic=clock) as slack:
        made = make_shown(dsn, slack, count)
        client = SlackClient(slack.state.workspace.token, base_url=slack.api_url, deadline_seconds=30)
        pace = Pace()
        one = Shower(Showing(db, "one", client, pace, Names(client, pace, clock=clock), True, clock=clock))
        slack.faults.always(UPDATE, AWAY[fault])
        for _ in range(3):
            change(
                dsn,
                "UPDATE cards SET wanted_version = wanted_version + 1,"
                " next_attempt_at = least(next_attempt_at, now())",
            )
            await rest(one)
            passes(HOUR / 3)
        slack.faults.clear()
        before, seconds = len(slack.journal.calls), 0
        while rows(dsn, "SELECT FROM cards WHERE wanted_version > shown_version LIMIT 1"):
            await rest(one)
            passes(15)
            seconds += 15
            assert seconds <= count / STEADY * 60 + 120, "it takes longer than Slack's pace"
        await client.close()
        edits = [call for call in slack.journal.calls[before:] if call.method == UPDATE]
        assert {call.outcome for call in edits} == {"ok"}
        told = {call.arguments["ts"]: place for place, call in enumerate(edits)}
        assert len(told) == len(edits) == count
        # Calls that go out together arrive in any order, and a busy machine makes some miss their turn: few,
        # and by the time above none for long.
        late = [abs(told[card["ts"]] - place) for place, card in enumerate(made)]
        assert sum(places > TOGETHER for places in late) <= count / 10
        assert not slack.journal.count(POST)
        assert len(seen(slack)) == count


async def rest(shower: Shower) -> None:
    """Draw what may be drawn now."""
    while await shower.run_once():
        pass
