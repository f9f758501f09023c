"""A listening socket on a free port, with the settings that Stet gives its own.
Not here: what is served on it.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

BACKLOG = 2048


@contextmanager
def listening() -> Iterator[socket.socket]:
    """Bind any free port of this machine; with the protocol named, asyncio sets TCP_NODELAY."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(BACKLOG)
        listener.setblocking(False)
        yield listener
