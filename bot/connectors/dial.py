"""Connecting to the very address that was checked, and to no other.

Not here: what may be reached (reach) or what is said once connected (exchange).
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpcore2

from bot.connectors.addresses import Address, read_address
from bot.connectors.reach import Reach

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

CANDIDATES = 4  # Addresses tried for one connection: two of each family; they share the connect timeout.
# Resolver threads of our own: a name server that never answers must not eat the loop's six default threads.
_RESOLVERS = ThreadPoolExecutor(max_workers=16, thread_name_prefix="stet-resolve")


class NotResolved(Exception):
    """The name has no address, or the resolver said none that can be read."""


class NotPermitted(Exception):
    """An address that the name led to is of a class that may not be reached."""


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Addresses of a name, in the system's order of preference. Raises OSError."""
    found = await asyncio.get_running_loop().run_in_executor(
        _RESOLVERS, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    return [str(answer[4][0]) for answer in found]


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens TCP connections for httpcore2: resolves, checks every candidate, connects to a checked one.

    httpcore2 goes on to use the host name for the Host header, for SNI and for verifying the certificate. It
    forgets the connection when cancelled in a handshake, so whoever uses a backend must `close` it.
    """

    def __init__(self, reach: Reach, resolve: Resolve = resolve_host) -> None:
        self._reach = reach
        self._resolve = resolve
        # pyrefly sees the stand-in that httpcore2 defines for machines without anyio; we need it always.
        self._tcp: httpcore2.AsyncNetworkBackend = httpcore2.AnyIOBackend()  # pyrefly: ignore[bad-assignment]
        self._opened: list[httpcore2.AsyncNetworkStream] = []

    async def connect_tcp(  # pyrefly: ignore[missing-override-decorator] - typing has it from 3.12 on
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore2's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first candidate that answers. Raises NotResolved, NotPermitted, httpcore2's own."""
        candidates = await self._candidates(host, port)
        share = None if timeout is None else timeout / len(candidates)
        failure: Exception | None = None
        for address in candidates:
            try:
                stream = await self._tcp.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = failure or error
            else:
                self._opened.append(stream)
                return stream
        raise failure or NotResolved

    async def close(self) -> None:
        """Close what was opened, at once: bytes that still wait to be written are dropped."""
        while self._opened:
            await self._opened.pop().aclose()

    async def _candidates(self, host: str, port: int) -> list[Address]:
        """The addresses to try. One that is not permitted refuses all: such an answer is no accident."""
        literal = read_address(host)
        texts = [host] if literal else await self._ask(host, port)
        addresses = [address for text in dict.fromkeys(texts) if (address := read_address(text))]
        if not addresses or len(addresses) != len(dict.fromkeys(texts)):
            raise NotResolved
        if not all(self._reach.permits(host, port, address) for address in addresses):
            raise NotPermitted
        return addresses[:CANDIDATES]

    async def _ask(self, host: str, port: int) -> Sequence[str]:
        try:
            return await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise NotResolved from error
