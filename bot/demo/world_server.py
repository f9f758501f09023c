"""The outside world on a real socket: accepts, reads, answers, and breaks off as ordered.

Not here: what the world knows and does (world). A web framework would hide the moments that matter here.
"""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from http import HTTPStatus

import h11

from bot.demo.world import (
    CUT,
    DROP,
    DROP_UNREAD,
    HANG,
    HOLD,
    RESET,
    RUBBISH,
    STALL,
    Fault,
    Received,
    Reply,
    Request,
    World,
    answer,
)

CONTROL = "/control/"
READ_BYTES = 64 * 1024


class WorldServer:
    """One listening socket over a World. Use `serve_world`."""

    def __init__(self, world: World, host: str, port: int) -> None:
        self.world = world
        self.connections = 0  # accepted, whatever became of them
        self._socket = socket.create_server((host, port), backlog=512)
        self._socket.setblocking(False)  # noqa: FBT003 - socket takes it so
        self._released = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrivals: list[tuple[str, int, asyncio.Future[None]]] = []
        self._loop = asyncio.get_running_loop()
        self._accepting = asyncio.create_task(self._accept())
        world.listen(self._tell)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """Where it is reached, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def hang_before_accept(self) -> None:
        """Accept nothing from now on: the kernel completes connections, nobody reads them."""
        self._accepting.cancel()

    def release(self) -> None:
        """Accept again, and answer every request that is held."""
        if self._accepting.cancelled() or self._accepting.cancelling():
            self._accepting = asyncio.create_task(self._accept())
        self._released.set()
        self._released = asyncio.Event()

    async def arrived(self, count: int = 1, *, path: str = "/") -> None:
        """Wait until that many requests under `path` have been received, earlier ones included."""
        if self._count(path) < count:
            waiter = self._loop.create_future()
            self._arrivals.append((path, count, waiter))
            await waiter

    async def _accept(self) -> None:
        while True:
            connection, _ = await self._loop.sock_accept(self._socket)
            self.connections += 1
            task = asyncio.create_task(self._converse(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Close the socket and every conversation."""
        for task in (self._accepting, *self._tasks):
            task.cancel()
        await asyncio.gather(self._accepting, *self._tasks, return_exceptions=True)
        self._socket.close()

    async def _converse(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, h11.RemoteProtocolError):
            return  # the client went away
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = h11.Connection(h11.SERVER)
        request = await _next_request(wire, reader)
        if request is None:
            return
        path = request.target.decode()
        fault = None if path.startswith(CONTROL) else self.world.next_fault(path)
        if fault is not None and fault.kind == DROP_UNREAD:
            _reset(writer)
            return
        body = await _read_body(wire, reader)
        method = request.method.decode()
        if path.startswith(CONTROL):
            reply = self._control(method, path.removeprefix(CONTROL), body)
        else:
            headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
            reply = self.world.receive(Request(method, path, headers, body), fault)
        await self._answer(wire, writer, reply)

    async def _answer(self, wire: h11.Connection, writer: asyncio.StreamWriter, reply: Reply) -> None:
        match reply.fault:
            case fault if fault == HANG:
                await asyncio.Event().wait()
            case fault if fault == HOLD:
                await self._released.wait()
            case fault if fault == DROP:
                return
            case fault if fault == RESET:
                _reset(writer)
                return
            case fault if fault == RUBBISH:
                writer.write(reply.body)
                await writer.drain()
                return
        await _write(wire, writer, reply)

    def _control(self, method: str, order: str, body: bytes) -> Reply:
        """Orders from another process: journal, faults, release, behave, wait."""
        given = json.loads(body) if body else {}
        match method, order:
            case "GET", "journal":
                return answer(HTTPStatus.OK, {"received": [asdict(each) for each in self.world.journal]})
            case "POST", "faults":
                path, times = given.pop("path", "/"), given.pop("times", None)
                self.world.misbehave(path, Fault(**given), times=times)
            case "POST", "release":
                self.release()
            case "POST", "behave":
                self.world.behave()
            case "POST", "wait":
                return answer(HTTPStatus.OK, {"path": self.world.wait_at(given.pop("execution"), **given)})
            case _:
                return answer(HTTPStatus.NOT_FOUND, {"message": "no such order"})
        return answer(HTTPStatus.OK, {"ok": True})

    def _count(self, path: str) -> int:
        return sum(each.path.startswith(path) for each in self.world.journal)

    def _tell(self, received: Received) -> None:
        self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for path, count, waiter in self._arrivals:
            if not waiter.done() and self._count(path) >= count:
                waiter.set_result(None)
        self._arrivals = [each for each in self._arrivals if not each[2].done()]


@asynccontextmanager
async def serve_world(
    world: World | None = None, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[WorldServer]:
    """A world on a free port of this machine, in the running loop."""
    server = WorldServer(world or World(), host, port)
    try:
        yield server
    finally:
        await server.close()


async def _next_request(wire: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    while True:
        event = wire.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is not h11.NEED_DATA:
            return None
        wire.receive_data(await reader.read(READ_BYTES))


async def _read_body(wire: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        event = wire.next_event()
        if isinstance(event, h11.Data):
            body += event.data
        elif event is h11.NEED_DATA:
            wire.receive_data(await reader.read(READ_BYTES))
        else:
            return bytes(body)


async def _write(wire: h11.Connection, writer: asyncio.StreamWriter, reply: Reply) -> None:
    headers = [("connection", "close"), ("content-length", str(len(reply.body))), *reply.headers.items()]
    writer.write(wire.send(h11.Response(status_code=reply.status, headers=headers)) or b"")
    if reply.fault in (CUT, STALL):
        writer.write(reply.body[: len(reply.body) // 2])
        await writer.drain()
        if reply.fault == STALL:
            await asyncio.Event().wait()
        return
    writer.write(wire.send(h11.Data(data=reply.body)) or b"")
    writer.write(wire.send(h11.EndOfMessage()) or b"")
    await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST, as a process that dies with unread bytes does."""
    wire = writer.get_extra_info("socket")
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
