"""The wire between processes on one database: coalesced NOTIFY, on a connection of its own.

Not here: what is woken (bot/doors/wake). Losing a message costs nothing: every step also polls.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

import psycopg

from store.queries import Connection, query

log = logging.getLogger(__name__)

GATHER_SECONDS = 0.05  # What is said within it is one NOTIFY, however many commits it was.
WHOLE_SECONDS = 1.0  # What began to arrive is a whole message within it, or was none.
RECONNECT_SECONDS = 5.0  # Polling covers the gap, so there is no hurry.

_NOTIFY = query("wake_others")
_LISTEN = query("listen_for_wakes")


class Wire:
    """Tells other processes which steps have work, and hears them."""

    def __init__(self, dsn: str, owner: str, heard: Callable[[Iterable[str]], None]) -> None:
        self._dsn = dsn
        self._owner = owner
        self._heard = heard
        self._waiting: set[str] = set()
        self._something = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to listen and to tell."""
        self._tasks = [
            asyncio.create_task(self._keep(self._listen)),
            asyncio.create_task(self._keep(self._tell)),
        ]

    async def stop(self) -> None:
        """Hang up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def say(self, names: Iterable[str]) -> None:
        """Tell the others soon; returns at once and never fails."""
        self._waiting.update(names)
        self._something.set()

    async def _keep(self, talk: Callable[[Connection], Awaitable[None]]) -> None:
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    self._dsn, autocommit=True, connect_timeout=5, application_name="stet-wire"
                ) as conn:
                    await talk(conn)
            except (psycopg.Error, OSError):
                log.info("the wire between processes broke; polling goes on")
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self, conn: Connection) -> None:
        await _LISTEN.run(conn)
        while True:
            await _readable(conn)  # Waiting in notifies() would look ten times a second.
            async for message in conn.notifies(timeout=WHOLE_SECONDS, stop_after=1):
                sender, _, names = message.payload.partition(" ")
                if sender != self._owner:
                    self._heard(names.split(","))

    async def _tell(self, conn: Connection) -> None:
        while True:
            await self._something.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._something.clear()
            names, self._waiting = self._waiting, set()
            try:
                await _NOTIFY.value(conn, {"message": f"{self._owner} {','.join(sorted(names))}"})
            except psycopg.Error:
                self.say(names)  # An idle connection that was cut is noticed only now.
                raise


async def _readable(conn: Connection) -> None:
    """Wait until the server says something, or hangs up."""
    loop = asyncio.get_running_loop()
    heard = asyncio.Event()
    number = conn.fileno()
    loop.add_reader(number, heard.set)
    try:
        await heard.wait()
    finally:
        loop.remove_reader(number)
