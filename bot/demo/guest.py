"""A web server that lives in somebody else's process: says when it listens, and leaves signals alone.

Not here: what it serves.
"""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn


class GuestServer(uvicorn.Server):
    """uvicorn as a guest of another server's loop."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them to the host, who stops us."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self.listening.set()
