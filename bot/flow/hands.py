"""A bounded number of tasks that each hold one leased row, and give it back when they are stopped.

Ground of draft and redrafter. Not here: the leases (store) or their renewal (holding).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Generic, TypeVar

Held = TypeVar("Held")
Result = TypeVar("Result")

log = logging.getLogger(__name__)


class Hands(Generic[Held, Result]):
    """Up to `most` tasks at once.

    `ended` hears each result, or None of a task that broke off or was stopped.
    """

    def __init__(self, most: int, ended: Callable[[Result | None], None]) -> None:
        self._most = most
        self._ended = ended
        self._working: dict[asyncio.Task[Result], Held] = {}

    @property
    def free(self) -> int:
        """How many more tasks may begin."""
        return self._most - len(self._working)

    def begin(self, held: Held, work: Coroutine[None, None, Result]) -> None:
        """Let `work` run beside the caller; it ends by itself, or with `stop`."""
        task = asyncio.create_task(work)
        self._working[task] = held
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Result]) -> None:
        del self._working[task]
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            # Its lease runs out, and the takeovers are counted; the class is all that a log may be told.
            log.error("drafting broke off", extra={"fault": type(fault).__name__})
        self._ended(None if fault is not None or task.cancelled() else task.result())

    async def drain(self) -> None:
        """Wait until nothing is worked on."""
        while self._working:
            await asyncio.wait(set(self._working))

    async def stop(self) -> list[Held]:
        """Abort what is worked on; give what it held, for the caller to give back.

        Not in the tasks themselves: one that never began to run is cancelled without a word.
        """
        stopping = dict(self._working)
        for task in stopping:
            task.cancel()
        await self.drain()
        return list(stopping.values())
