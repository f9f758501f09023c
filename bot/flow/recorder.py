"""Writes answers to sends down, many in one transaction, and does not give up while the database is away.

Not here: getting the answers (dispatch) or what follows from them (settle).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bot.flow import settle
from bot.flow.checkpoints import reach
from bot.flow.settle import Answer
from bot.policy.limits import CLAIM_BATCH
from store.database import Database
from store.errors import DatabaseAway
from store.queries import Connection

log = logging.getLogger(__name__)

AWAY_WAIT_SECONDS: Final = 0.5  # Answers in hand are offered again this often while the database is away.


@dataclass(slots=True)
class Recorder:
    """Answers gather while a batch is being written; `done` hears which were written, or lost by a fault."""

    db: Database
    owner: str
    ops_channel: str | None
    spawn: Callable[[Coroutine[Any, Any, None]], object]
    done: Callable[[Sequence[Answer]], None]
    _waiting: list[Answer] = field(default_factory=list)
    _is_writing: bool = False

    def hand_in(self, answer: Answer) -> None:
        """Take one answer; it is written soon."""
        self._waiting.append(answer)
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting and not self._is_writing:
            self._is_writing = True
            self.spawn(self._write_all())

    async def _write_all(self) -> None:
        """Write until nothing waits.

        A fault other than an absent database leaves its batch unwritten: the leases run out, those effects
        become unknown, which is the truth. What waits behind them goes on.
        """
        size, is_told = CLAIM_BATCH, False
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:size], self._waiting[size:]
                try:
                    await self._write(batch)
                except DatabaseAway:
                    # Perhaps one locked head held up all: smaller batches find it, and it goes to the end.
                    self._waiting.extend(batch)
                    if not is_told:
                        log.warning("answers to sends wait: the database is away")
                        is_told = True
                    size = max(1, size // 2)
                    await asyncio.sleep(AWAY_WAIT_SECONDS)
                    continue
                except BaseException:
                    self.done(batch)
                    raise
                size = min(CLAIM_BATCH, size * 2)
                self.done(batch)
        except asyncio.CancelledError:
            self._waiting.clear()
            raise
        finally:
            self._is_writing = False
            self._go_on()

    async def _write(self, batch: Sequence[Answer]) -> None:
        async def work(conn: Connection) -> None:
            await settle.record(conn, self.owner, batch, self.ops_channel)
            reach("dispatch.before_record")

        await self.db.retrying(work, pipelined=True)
        reach("dispatch.after_record")
