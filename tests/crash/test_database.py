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

from bot.demo.world import HOLD, Fault
from store.embedded import Embedded
from store.migrate import migrate
from tests.processes import CAMPAIGN, Bot, Nursery, Stage, event, key_of, staged
from tests.watching import Watch, check_promises, watching

POSTS = 61
SENDERS = 6
SEND = "/webhook/send-mail"
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


class Upstream:
    """Senders that post one event after the other, each again until there is a 2xx."""

    def __init__(self, stage: Stage, bot: Bot) -> None:
        self.heard: list[int] = []  # Every answer's status; 0 for a line that went dead.
        self._stage = stage
        self._bot = bot
        self._some = asyncio.Event()

    async def send(self, number: int) -> None:
        """Post every SENDERS-th event from this one on."""
        for each in range(number, POSTS, SENDERS):
            while True:
                answer = await self._stage.post(self._bot, event(each, draft=True))
                self.heard.append(0 if answer is None else answer.status_code)
                self._some.set()
                if self.heard[-1] in {200, 202}:
                    break

    async def hears(self, status: int, count: int = 1) -> None:
        """Wait until there were so many answers with this status."""
        while self.heard.count(status) < count:
            self._some.clear()
            await self._some.wait()


# F035: the server is killed amid events and clicks: every 202 is kept, a click is answered, all goes on.
@pytest.mark.parametrize("how", [signal.SIGKILL, *([signal.SIGQUIT] if CAMPAIGN else [])])
async def test_database_dies_under_load(postgres: Server, mortal: Stage, how: signal.Signals) -> None:
    stage = mortal
    bot = await stage.started()
    async with watching(postgres.dsn) as watch:
        await stage.post(bot, event(0, draft=True))
        await watch.until(CARD, key=key_of(0))
    upstream = Upstream(stage, bot)
    posting = [asyncio.create_task(upstream.send(number)) for number in range(1, SENDERS + 1)]
    await upstream.hears(202, 10)
    clicking = asyncio.create_task(stage.click(bot, key_of(0)))
    postgres.die(how)
    click = await clicking
    await upstream.hears(503)
    await asyncio.to_thread(postgres.live)
    await asyncio.gather(*posting)
    assert set(upstream.heard) <= {200, 202, 503}
    async with watching(postgres.dsn, told=False) as watch:
        await see_all(stage, watch, bot, kept=click.kept)
    assert not bot.is_over
    assert not bot.faults()


async def see_all(stage: Stage, watch: Watch, bot: Bot, *, kept: bool) -> None:
    stored = await watch.rows("SELECT idempotency_key AS key FROM workflow_runs")
    assert {row["key"] for row in stored} == {key_of(number) for number in range(POSTS)}
    assert kept  # Slack got its 200, and the person a sentence.
    # What was being drafted when the line broke is due when its lease ends: at once, here.
    await watch.change(
        "UPDATE workflow_runs SET lease_expires_at = now(), next_attempt_at = now()"
        " WHERE state = 'processing'"
    )
    await watch.until("SELECT count(*) = %(n)s FROM drafts", hurry=True, n=POSTS)
    if await watch.value(STATUS, key=key_of(0)) == "pending":
        await watch.until(CARD, hurry=True, key=key_of(0))
        assert (await stage.click(bot, key_of(0))).kept
    await watch.until("SELECT count(*) = 1 FROM effect_outbox WHERE state = 'completed'", hurry=True)
    await watch.until(CARD, hurry=True, key=key_of(0))
    assert stage.sent().total() == 1
    await check_promises(stage, watch)


# F026: the server dies between the provider's yes and our record of it, and comes back: the effect is not
# sent again. What the process still knows is recorded late; what it cannot record any more the look-up finds.
@pytest.mark.parametrize("process_dies", [False, True])
async def test_database_dies_before_the_record(postgres: Server, mortal: Stage, process_dies: bool) -> None:
    stage = mortal
    stage.world.world.misbehave(SEND, Fault(HOLD))
    bot = await stage.started()
    async with watching(postgres.dsn) as watch:
        await stage.post(bot, event(0, draft=True))
        await watch.until(CARD, key=key_of(0))
    assert (await stage.click(bot, key_of(0))).kept
    await stage.world.arrived(1, path=SEND)
    postgres.die(signal.SIGQUIT)
    stage.world.release()
    await bot.said("answers to sends wait: the database is away")
    if process_dies:
        await bot.kill()
    await asyncio.to_thread(postgres.live)
    async with watching(postgres.dsn, told=False) as watch:
        if process_dies:
            assert await watch.value("SELECT state FROM effect_outbox") == "sending"
            await watch.bury(bot)
            await stage.started()
        await watch.until("SELECT count(*) = 1 FROM effect_outbox WHERE state = 'completed'", hurry=True)
        assert await watch.value("SELECT attempts FROM effect_outbox") == 1
        assert stage.sent().total() == 1
        await check_promises(stage, watch)
