"""One line of Socket Mode: hears envelopes until it ends, and answers each on the line it came by.

Which lines there are, and when another is wanted, is in `socket`. Source: Slack's page "Using Socket Mode".
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

CROWDED: Final = 8  # Slack allows ten lines an app; what is counted and not ours swallows clicks.
LINK_DISABLED: Final = "link_disabled"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Envelope:
    """One thing that Slack sends: `interactive`, `slash_commands` or `events_api`, and what it carries."""

    kind: str
    payload: Any = field(repr=False)


Take = Callable[[Envelope], Awaitable[Mapping[str, Any] | None]]
"""What an envelope is handed to; gives the body of the answer, None for an empty one, and never raises."""


class Line:
    """One WebSocket. `leaving` is set when Slack wants it replaced, and when it has ended."""

    def __init__(self, wire: aiohttp.ClientWebSocketResponse, take: Take) -> None:
        self._wire = wire
        self._take = take
        self._greeted = asyncio.Event()
        self._in_hand: set[asyncio.Task[None]] = set()
        self.leaving = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @property
    def is_live(self) -> bool:
        """Whether Slack has greeted us on it and it has not ended: envelopes may come."""
        return self._greeted.is_set() and not self._wire.closed and not self._reading.done()

    async def greeted(self) -> bool:
        """Wait for Slack's hello; false if the line ended before."""
        greeting = asyncio.create_task(self._greeted.wait())
        try:
            await asyncio.wait({greeting, self._reading}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            greeting.cancel()
        return self._greeted.is_set()

    async def idle(self) -> None:
        """Wait until nothing is in hand."""
        while self._in_hand:
            await asyncio.wait(set(self._in_hand))

    async def ended(self) -> None:
        """Wait until Slack has closed it, and what came by it is answered."""
        await asyncio.wait({self._reading})
        await self.idle()

    async def close(self) -> None:
        """Say goodbye, so that Slack does not count it any more; what is in hand goes unanswered."""
        await self._wire.close()
        for task in (self._reading, *self._in_hand):
            task.cancel()
        await asyncio.gather(self._reading, *self._in_hand, return_exceptions=True)

    async def _read(self) -> None:
        try:
            async for message in self._wire:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    break
                self._hear(message.data)
        finally:
            self.leaving.set()

    def _hear(self, text: str) -> None:
        try:
            said = json.loads(text)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            return log.warning("Slack's socket said something that is no JSON object")
        match said.get("type"), said.get("envelope_id"):
            case "hello", _:
                self._greet(said.get("num_connections"))
            case "disconnect", _:
                self._leave(said.get("reason"))
            case str(kind), str(envelope_id):
                task = asyncio.create_task(self._meet(Envelope(kind, said.get("payload")), envelope_id, said))
                self._in_hand.add(task)
                task.add_done_callback(self._in_hand.discard)
        return None

    def _greet(self, count: object) -> None:
        if isinstance(count, int) and count > CROWDED:
            log.warning("Slack counts many sockets of this app; it allows ten", extra={"count": count})
        self._greeted.set()

    def _leave(self, reason: object) -> None:
        """Slack closes it within seconds; until then it is heard."""
        if reason == LINK_DISABLED:
            log.error(
                "Socket Mode was switched off for this app: switch it on again, or unset SLACK_APP_TOKEN"
            )
        self.leaving.set()

    async def _meet(self, envelope: Envelope, envelope_id: str, said: Mapping[str, Any]) -> None:
        body = await self._take(envelope)
        answer: dict[str, Any] = {"envelope_id": envelope_id}
        if body is not None and said.get("accepts_response_payload"):
            answer["payload"] = body
        try:
            await self._wire.send_str(json.dumps(answer))
        except (aiohttp.ClientError, OSError) as fault:
            # Slack tells the person that it failed; what was decided stands, and the card shows it.
            log.warning("an answer found its line closed", extra={"fault": type(fault).__name__})
