"""Fixtures of tests with real processes: one nursery a run, a stage and a watched database a test.
Not here: what they are made of (tests/processes, tests/watching).
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.processes import Nursery, Stage, staged
from tests.watching import Watch, watching

# Two rooms take these fixtures, and a nursery takes seconds to get ready: they share it.
_shared: list[Nursery] = []


@pytest.fixture(scope="session")
async def nursery(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Nursery]:
    """Starts processes; with STET_PLAIN=1 each as a user would, which takes seconds."""
    if not _shared:
        _shared.append(Nursery(tmp_path_factory.mktemp("logs"), plain=os.environ.get("STET_PLAIN") == "1"))
        await _shared[0].start()
    yield _shared[0]
    await _shared[0].stop()


@pytest.fixture
async def stage(own_dsn: str, tmp_path: Path, nursery: Nursery) -> AsyncIterator[Stage]:
    """Stand-ins and settings on this test's own database."""
    async with staged(own_dsn, tmp_path, nursery) as made:
        yield made


@pytest.fixture
async def watch(own_dsn: str) -> AsyncIterator[Watch]:
    """The same database, watched."""
    async with watching(own_dsn) as made:
        yield made
