"""The database dies under load and comes back: what was accepted is there, and no process starts anew.
Not here: single lost connections (tests/store/test_database) or our own death (test_checkpoints).
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from store.embedded import Embedded
from store.migrate import migrate
from tests.processes import Bot, Nursery, Stage, event, key_of, staged
from tests.watching import Watch, check_promises, watching

POSTS = 30
CARD = """SELECT count(*) = 1 AND bool_and(c.shown_version = c.wanted_version AND c.ts IS NOT NULL)
            FROM cards AS c JOIN workflow_runs AS r USING (draft_id) WHERE r.idempotency_key = %(key)s"""
STATUS = """SELECT status FROM drafts AS d JOIN workflow_runs AS r USING (run_id)
             WHERE r.idempotency_key = %(key)s"""


class Server:
    """A PostgreSQL of this test alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._embedded = Embedded(folder, durable=False)
        self.dsn = self._embedded.start()

    def die(self, how: signal.Signals) -> None:
        """End its postmaster: SIGKILL as the kernel does when memory is short, SIGQUIT as `-m immediate`."""
        written = (self._folder / "postgres" / "pgdata" / "postmaster.pid").read_text("utf-8")
        os.kill(int(written.splitlines()[0]), how)

    def live(self) -> None:
        """Start it again on the same data."""
        self._embedded.leave()
        self._embedded.start()

    def stop(self) -> None:
        """End it for good."""
        self._embedded.stop()


@pytest.fixture
def postgres() -> Iterator[Server]:
    """A server that may be killed."""
    with tempfile.TemporaryDirectory(prefix="stet-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        server = Server(Path(folder))
        migrate(server.dsn)
        yield server
        server.stop()


@pytest.fixture
async def mortal(postgres: Server, tmp_path: Path, nursery: Nursery) -> AsyncIterator[Stage]:
    """A stage on it."""
    async with staged(postgres.dsn, tmp_path, nursery) as made:
        yield made


async def insist(stage: Stage, bot: Bot, number: int) -> tuple[int, list[int]]:
    """Post as upstream does, again until there is a 2xx; what was answered on the way."""
    answers = []
    while True:
        answer = await stage.post(bot, event(number, draft=True))
        answers.append(0 if answer is None else answer.status_code)
        if answers[-1] in {200, 202}:
            return number, answers


# F035: the server is killed amid events and clicks: every 202 is kept, a click is answered, all goes on.
@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGKILL])
async def test_database_dies_under_load(postgres: Server, mortal: Stage, how: signal.Signals) -> None:
    stage = mortal
    bot = await stage.started()
    async with watching(postgres.dsn) as watch:
        await stage.post(bot, event(0, draft=True))
        await watch.until(CARD, key=key_of(0))
    posting = [asyncio.create_task(insist(stage, bot, number)) for number in range(1, POSTS)]
    await asyncio.wait(posting, return_when=asyncio.FIRST_COMPLETED)
    clicking = asyncio.create_task(stage.click(bot, key_of(0)))
    postgres.die(how)
    click = await clicking
    await asyncio.to_thread(postgres.live)
    answers = dict(await asyncio.gather(*posting))
    assert {code for codes in answers.values() for code in codes} <= {200, 202, 503}
    async with watching(postgres.dsn, told=False) as watch:
        await see_all(stage, watch, bot, kept=click.kept)
    assert not bot.is_over
    assert not bot.faults()


async def see_all(stage: Stage, watch: Watch, bot: Bot, *, kept: bool) -> None:
    stored = await watch.rows("SELECT idempotency_key AS key FROM workflow_runs")
    assert {row["key"] for row in stored} == {key_of(number) for number in range(POSTS)}
    assert kept  # Slack got its 200, and the person a sentence.
    await watch.until("SELECT count(*) = %(n)s FROM drafts", hurry=True, n=POSTS)
    if await watch.value(STATUS, key=key_of(0)) == "pending":
        await watch.until(CARD, hurry=True, key=key_of(0))
        assert (await stage.click(bot, key_of(0))).kept
    await watch.until("SELECT count(*) = 1 FROM effect_outbox WHERE state = 'completed'", hurry=True)
    await watch.until(CARD, hurry=True, key=key_of(0))
    assert stage.sent().total() == 1
    await check_promises(stage, watch)
