"""Groups callers that come together: while one group is being worked on, the next one collects.

Not here: what the work is. A caller that comes alone is served at once; nobody waits for a timer.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")
AnswerT = TypeVar("AnswerT")


class Batcher(Generic[ItemT, AnswerT]):
    """Hands waiting items to `work` in order of arrival, at most `most` at once and one group at a time.

    `work` answers each item in its place; an exception in an answer's place is raised to that caller alone,
    one that escapes `work` is raised to the whole group.
    """

    def __init__(
        self, work: Callable[[list[ItemT]], Awaitable[Sequence[AnswerT | Exception]]], most: int
    ) -> None:
        self._work = work
        self._most = most
        self._waiting: deque[tuple[ItemT, asyncio.Future[AnswerT]]] = deque()
        self._running: asyncio.Task[None] | None = None

    def add(self, item: ItemT) -> asyncio.Future[AnswerT]:
        """Queue an item; await what is given back for its answer."""
        answer: asyncio.Future[AnswerT] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._running is None:
            self._running = asyncio.create_task(self._drain())
        return answer

    async def close(self) -> None:
        """Wait until everything that was queued is answered."""
        while self._running is not None:
            await asyncio.wait([self._running])

    async def _drain(self) -> None:
        try:
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
                await self._serve(group)
        finally:
            self._running = None

    async def _serve(self, group: list[tuple[ItemT, asyncio.Future[AnswerT]]]) -> None:
        answers: Sequence[AnswerT | Exception]
        try:
            answers = await self._work([item for item, _ in group])
        except Exception as fault:  # noqa: BLE001 - handed on: it is raised in each caller
            answers = [fault] * len(group)
        except BaseException:
            for _, future in group:
                future.cancel()
            raise
        for (_, future), answer in zip(group, answers, strict=True):
            if future.done():  # the caller went away
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
