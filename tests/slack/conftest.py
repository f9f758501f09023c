"""The Slack stand-in and our client against it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from bot.demo.slack_server import SlackStandIn
from bot.slack.client import SlackClient


@pytest_asyncio.fixture
async def slack() -> AsyncIterator[SlackStandIn]:
    async with SlackStandIn(rate_factor=None) as stand_in:
        yield stand_in


@pytest_asyncio.fixture
async def client(slack: SlackStandIn) -> AsyncIterator[SlackClient]:
    ours = SlackClient(slack.state.workspace.token, base_url=slack.api_url, deadline_seconds=30)
    await ours.open()
    yield ours
    await ours.close()
