"""The stand-in world for tests of connectors: a real server on a free port.

Not here: the effects sent to it (effects.py).
"""

from collections.abc import AsyncIterator

import pytest

from bot.demo.world import World
from bot.demo.world_server import WorldServer, serve_world
from tests.connectors.effects import SIGNING_SECRET


@pytest.fixture
async def world() -> AsyncIterator[WorldServer]:
    """A world that checks our signature."""
    async with serve_world(World(signing_secret=SIGNING_SECRET)) as server:
        yield server
