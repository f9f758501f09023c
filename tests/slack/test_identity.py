"""Who we are in Slack.

Not here: who other people are (test_people).
"""

from bot.demo.slack_faults import dropped
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import BOT_TOKEN, TEAM
from bot.slack.client import SlackClient
from bot.slack.identity import Identity


# Slack may be away while we start: until it answers nobody is at home, then the team is known.
async def test_asked_until_known() -> None:
    async with SlackStandIn() as slack:
        slack.faults.order("auth.test", dropped(after_work=False))
        client = SlackClient(BOT_TOKEN, base_url=slack.api_url)
        identity = Identity(client)
        await identity.run_once()
        assert not identity.known()
        assert identity.home_team() == ""
        await identity.run_once()
        assert identity.home_team() == TEAM
        await identity.run_once()
        assert slack.journal.count("auth.test") == 2
        await client.close()


# A token that will never work is told apart from Slack being away.
async def test_hopeless_token() -> None:
    async with SlackStandIn() as slack:
        client = SlackClient("xoxb-wrong", base_url=slack.api_url)
        identity = Identity(client)
        assert await identity.ask() == "invalid_auth"
        assert not identity.known()
        await client.close()
