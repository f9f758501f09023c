"""The load generator, a process of its own, the same for the limit and for Stet: raw kept connections.
Not here: what is asked (traffic) or what the answers mean (paths). Run as `python -m tests.bench.load`.

Reads one JSON object from standard input, writes one to standard output. Each connection asks, waits for the
whole answer and asks again; the requests are dealt out in order, from the start again when they run out and
`once` is not set.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, cast

import uvloop

HEAD_END = b"\r\n\r\n"
LATE_SECONDS = 10  # After the time is up, an answer that is still owed may come.


class Deck:
    """The requests, in one file: each after its length in a line."""

    def __init__(self, file: Path, *, once: bool) -> None:
        self._requests = list(read_requests(file.read_bytes()))
        self._once = once
        self._next = 0

    def deal(self) -> bytes | None:
        """The next request; None when there is none left."""
        if self._next >= len(self._requests):
            if self._once:
                return None
            self._next = 0
        self._next += 1
        return self._requests[self._next - 1]


def read_requests(packed: bytes) -> list[bytes]:
    """Read what `traffic.pack` wrote."""
    found, place = [], 0
    while place < len(packed):
        end = packed.index(b"\n", place)
        length = int(packed[place:end])
        found.append(packed[end + 1 : end + 1 + length])
        place = end + 1 + length
    return found


def whole_answer(buffer: bytes) -> int:
    """The status of the answer, if all of it is there; else 0. Answers carry their length."""
    head = buffer.find(HEAD_END)
    if head < 0:
        return 0
    lowered = buffer[:head].lower()
    at = lowered.find(b"content-length:")
    length = 0 if at < 0 else int(lowered[at + 15 :].split(b"\r\n", 1)[0])
    return int(buffer[9:12]) if len(buffer) >= head + len(HEAD_END) + length else 0


class Asker(asyncio.Protocol):
    """One connection."""

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._buffer = b""
        self._asked = 0.0
        self._transport: asyncio.Transport | None = None
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's own is one in all but name
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        status = whole_answer(self._buffer)
        if status:
            self._buffer = b""
            self._run.note(status, time.perf_counter() - self._asked)
            if self._run.gap_seconds:
                asyncio.get_running_loop().call_later(self._run.gap_seconds, self._ask)
            else:
                self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def _ask(self) -> None:
        request = None if self._run.is_over() else self._run.deck.deal()
        if self._transport is None or request is None:
            if self._transport is not None:
                self._transport.close()
            if not self.over.done():
                self.over.set_result(None)
            return
        self._asked = time.perf_counter()
        self._transport.write(request)


class Run:
    """What is asked, for how long, and what was answered."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.deck = Deck(Path(order["file"]), once=order["once"])
        self.gap_seconds: float = order["gap_ms"] / 1000
        self._began = time.perf_counter()
        self._ends: float = self._began + order["seconds"]
        self._statuses: Counter[int] = Counter()
        self._waits: list[float] = []

    def is_over(self) -> bool:
        """Whether the time is up."""
        return time.perf_counter() >= self._ends

    def note(self, status: int, waited: float) -> None:
        """Count one answer."""
        self._statuses[status] += 1
        self._waits.append(waited)

    def result(self) -> dict[str, Any]:
        """What came of it."""
        seconds = time.perf_counter() - self._began
        ranked = sorted(self._waits)
        count = len(ranked)
        return {
            "count": count,
            "seconds": seconds,
            "rate": count / seconds,
            "statuses": {str(status): n for status, n in self._statuses.items()},
            "p50_ms": ranked[count // 2] * 1000 if count else None,
            "p99_ms": ranked[min(count - 1, count * 99 // 100)] * 1000 if count else None,
        }


async def main(order: dict[str, Any]) -> dict[str, Any]:
    """Ask until the time is up or nothing is left."""
    loop = asyncio.get_running_loop()
    run = Run(order)
    askers = []
    for _ in range(order["connections"]):
        _, asker = await loop.create_connection(lambda: Asker(run), "127.0.0.1", order["port"])
        askers.append(asker)
    await asyncio.wait([asker.over for asker in askers], timeout=order["seconds"] + LATE_SECONDS)
    return run.result()


if __name__ == "__main__":
    json.dump(uvloop.run(main(json.load(sys.stdin))), sys.stdout)
