"""A TCP proxy that misbehaves on demand, for the database and HTTP alike.

Not here: what the far end does (bot/demo) or the database itself (tests/conftest).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from psycopg.conninfo import conninfo_to_dict, make_conninfo

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Proxy:
    """Passes bytes on between a port of its own and a target, until it is told to spoil something."""

    def __init__(self, connect: Callable[[], Awaitable[Streams]]) -> None:
        self.port = 0
        self.dropped = asyncio.Event()  # a fault was worked on some connection
        self._connect = connect
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._lose_reply_to: bytes | None = None
        self._lose: bytes | None = None
        self._budget: int | None = None
        self._swallowing = False
        self._flowing = asyncio.Event()
        self._flowing.set()

    def lose_reply_to(self, words: bytes) -> None:
        """Let a request with these words through, and cut when its answer comes."""
        self._lose_reply_to = words

    def lose(self, words: bytes) -> None:
        """Cut instead of passing on a request with these words."""
        self._lose = words

    def cut_after(self, answered: int) -> None:
        """Cut once so many more bytes of answers were passed on."""
        self._budget = answered

    def black_hole(self) -> None:
        """Take requests and answer nothing, with the connection open."""
        self._swallowing = True

    def stall(self) -> None:
        """Hold everything back until `flow`."""
        self._flowing.clear()

    def flow(self) -> None:
        """Pass on what was held back."""
        self._flowing.set()

    def cut(self) -> None:
        """Break every connection now."""
        for writer in list(self._open):
            writer.transport.abort()

    async def refuse(self) -> None:
        """Listen no more: new connections are refused."""
        if self._server is not None:
            self._server.close()

    async def listen(self) -> None:
        """Listen, on the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await self._connect()
        except OSError:
            writer.transport.abort()
            return
        ends = (writer, far_writer)
        self._open.update(ends)
        losing = asyncio.Event()
        try:
            await asyncio.gather(
                self._ask(reader, far_writer, losing), self._answer(far_reader, writer, losing)
            )
        except (OSError, EOFError):
            pass
        finally:
            self._open.difference_update(ends)
            for end in ends:
                end.transport.abort()

    async def _ask(
        self, reader: asyncio.StreamReader, far: asyncio.StreamWriter, losing: asyncio.Event
    ) -> None:
        while data := await reader.read(65536):
            await self._flowing.wait()
            if self._lose is not None and self._lose in data:
                self._spoiled()
            if self._lose_reply_to is not None and self._lose_reply_to in data:
                losing.set()
            if not self._swallowing:
                far.write(data)
                await far.drain()
        raise EOFError

    async def _answer(
        self, far: asyncio.StreamReader, writer: asyncio.StreamWriter, losing: asyncio.Event
    ) -> None:
        while data := await far.read(65536):
            await self._flowing.wait()
            if losing.is_set():
                self._spoiled()
            if self._budget is not None:
                data, self._budget = data[: self._budget], self._budget - len(data)
            writer.write(data)
            await writer.drain()
            if self._budget is not None and self._budget <= 0:
                self._spoiled()
        raise EOFError

    def _spoiled(self) -> None:
        # Each fault strikes once: what connects after it is served well.
        self._lose = self._lose_reply_to = self._budget = None
        self.dropped.set()
        raise EOFError


@asynccontextmanager
async def proxy_to(connect: Callable[[], Awaitable[Streams]]) -> AsyncIterator[Proxy]:
    """A proxy that listens; `connect` reaches what it stands in front of."""
    proxy = Proxy(connect)
    await proxy.listen()
    yield proxy
    await proxy.refuse()
    proxy.cut()


@asynccontextmanager
async def proxied(dsn: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy in front of a database, and the DSN that goes through it in plain text."""
    parts = conninfo_to_dict(dsn)
    host, port = str(parts.get("host") or "127.0.0.1"), int(parts.get("port") or 5432)

    async def connect() -> Streams:
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async with proxy_to(connect) as proxy:
        plain = make_conninfo(dsn, host="127.0.0.1", port=proxy.port, sslmode="disable", gssencmode="disable")
        yield proxy, plain
