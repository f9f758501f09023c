"""The Slack doors with a workspace around them."""

from collections.abc import AsyncIterator

import pytest_asyncio

from bot.demo.slack_server import SlackStandIn
from store.database import Database
from tests.doors.slack_world import World, doors_on


@pytest_asyncio.fixture
async def world(dsn: str, db: Database) -> AsyncIterator[World]:
    """One process of ours, one workspace, one database."""
    woken: list[str] = []
    async with SlackStandIn(rate_factor=None) as slack:
        async with doors_on(db, slack, woken) as doors:
            yield World(dsn, db, slack, doors, woken)
