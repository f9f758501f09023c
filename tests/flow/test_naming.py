"""Names of people and user groups: asked for seldom, kept while Slack is silent, and never a mention.

Not here: how a name is drawn (tests/cards), or who may decide, which hangs on no name.
"""

from typing import Any

import pytest

from bot.demo.slack_faults import says
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import S_LEADS, S_REVIEWERS, U_ALICE
from bot.flow.naming import GROUPS_METHOD, KNOWN_SECONDS, METHOD, UNKNOWN_SECONDS, Names
from bot.slack.client import SlackClient
from bot.slack.pace import Pace
from tests.flow.screens import NewShower, new_draft, said, seen

EVERYBODY = {U_ALICE, S_REVIEWERS, S_LEADS}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def names(slack_client: SlackClient, clock: Clock) -> Names:
    return Names(slack_client, Pace(), clock=clock)


# People and groups have their names; an hour goes by before any of them is asked for again.
async def test_names(slack: SlackStandIn, names: Names, clock: Clock) -> None:
    found = {U_ALICE: "Alice", S_REVIEWERS: "Reviewers", S_LEADS: "Leads"}
    assert await names.of({*EVERYBODY, "a word", "", "C0REVIEW"}) == found
    clock.now += KNOWN_SECONDS - 1
    assert await names.of(EVERYBODY) == found
    assert (slack.journal.count(METHOD), slack.journal.count(GROUPS_METHOD)) == (1, 1)
    slack.state.workspace.group_names[S_LEADS] = ("Team leads", "leads")
    clock.now += 1
    assert (await names.of(EVERYBODY))[S_LEADS] == "Team leads"
    assert slack.journal.count(GROUPS_METHOD) == 2


# Without groups on a card nobody asks for them.
async def test_no_groups(slack: SlackStandIn, names: Names) -> None:
    await names.of({U_ALICE})
    assert slack.journal.count(GROUPS_METHOD) == 0


# What cannot be read has no name, and is asked for again after minutes; an old name stays.
@pytest.mark.parametrize("trouble", [says("internal_error"), says("missing_scope"), says("ratelimited")])
async def test_unreadable(slack: SlackStandIn, names: Names, clock: Clock, trouble: Any) -> None:
    slack.faults.order(GROUPS_METHOD, trouble)
    assert await names.of({S_LEADS}) == {}
    assert await names.of({S_LEADS}) == {}
    assert slack.journal.count(GROUPS_METHOD) == 1
    clock.now += UNKNOWN_SECONDS
    assert await names.of({S_LEADS}) == {S_LEADS: "Leads"}
    clock.now += KNOWN_SECONDS
    slack.faults.order(GROUPS_METHOD, trouble)
    assert await names.of({S_LEADS}) == {S_LEADS: "Leads"}


# A workspace without user groups, a group that is gone, a name of blanks: the id stands for it.
async def test_nameless(slack: SlackStandIn, names: Names, clock: Clock) -> None:
    slack.state.workspace.group_names[S_LEADS] = (" ", " leads ")
    assert await names.of({S_LEADS, "S0GONE"}) == {S_LEADS: "leads"}
    slack.state.workspace.paid_plan = False
    clock.now += UNKNOWN_SECONDS
    assert await names.of({"S0GONE"}) == {}


# The card says which group may decide by its name, as text: whatever it is called, nobody is notified.
async def test_on_the_card(dsn: str, slack: SlackStandIn, shower: NewShower) -> None:
    slack.state.workspace.group_names[S_REVIEWERS] = ("<!channel> @here", "reviewers")
    new_draft(dsn, snapshot={"reviewers": [S_REVIEWERS, S_LEADS, "S0GONE"]})
    await shower().run_once()
    [message] = seen(slack)
    drawn = said(message)
    assert '{"type": "text", "text": " <!channel> @here, Leads, S0GONE"}' in drawn
    assert S_LEADS not in drawn
    assert not {"usergroup", "broadcast", "mrkdwn"} & set(drawn.split('"'))
    assert "<!channel>" not in message.text
