"""Socket Mode: keeps a line to Slack open, opens another when one ends, and says whether there is one.

What is done with an envelope is in `bot/doors`; one line by itself is in `line`.
"""

import asyncio
import logging
import secrets
import time
from asyncio import sleep
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from bot.slack.answer import SlackLimited, SlackNotDelivered, SlackOk, SlackRefused, SlackUnknown
from bot.slack.client import SlackClient, is_loopback
from bot.slack.line import Line, Take

HEARTBEAT_SECONDS: Final = 10.0  # A ping so often, and 5 s for its pong: a dead line is seen within 15 s.
HELLO_SECONDS: Final = 10.0  # From the first byte to Slack's hello; a line without it hears nothing.
LEAVING_SECONDS: Final = 20.0  # Slack ends a line about 10 s after its warning; longer, it is a ghost.
STEADY_SECONDS: Final = 60.0  # A line that held so long was no failure: the next one is opened at once.
# Between tries; the first is at once, for Slack renews every line once in some hours. Then seldom:
# one page says that apps.connections.open is of the lowest tier.
PAUSES_SECONDS: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
CLOSE_SECONDS: Final = 2.0  # For Slack to say goodbye too.
MOST_BYTES: Final = 2 * 1024 * 1024  # As for the same payloads over HTTP.
# What Slack says of an app token that will never work (docs, apps.connections.open).
HOPELESS: Final = frozenset(
    {
        "invalid_auth",
        "not_authed",
        "account_inactive",
        "token_revoked",
        "token_expired",
        "not_allowed_token_type",
        "missing_scope",
    }
)

log = logging.getLogger(__name__)


class Socket:
    """Holds a line open, by a client that has the app-level token.

    `fault` is the word for why the last try failed, None while there is a line.
    """

    def __init__(
        self,
        client: SlackClient,
        take: Take,
        *,
        pauses_seconds: Sequence[float] = PAUSES_SECONDS,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._client = client
        self._take = take
        self._pauses_seconds = pauses_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._lines: set[Line] = set()
        self._farewells: set[asyncio.Task[None]] = set()
        self._running: asyncio.Task[None] | None = None
        self._failures = 0
        self._held_seconds = 0.0
        self.fault: str | None = "not_started"

    def connected(self) -> bool:
        """Whether Slack can reach us now."""
        return any(line.is_live for line in self._lines)

    async def start(self) -> str | None:
        """Open a line and keep one open from now on; give Slack's word if the token will never do."""
        await self._client.open()
        first = await self._connect()
        if self.fault in HOPELESS:
            return self.fault
        self._running = asyncio.create_task(self._keep(first))
        return None

    async def stop(self, grace_seconds: float) -> None:
        """Answer what is in hand, say goodbye, and open nothing more."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        try:
            async with asyncio.timeout(grace_seconds):
                await asyncio.gather(*(line.idle() for line in self._lines))
        except TimeoutError:
            log.warning("an envelope of Slack's took too long to be answered")
        for farewell in self._farewells:
            farewell.cancel()
        await asyncio.gather(
            *self._farewells, *(line.close() for line in self._lines), return_exceptions=True
        )
        self._lines.clear()
        await self._client.close()

    async def _keep(self, line: Line | None) -> None:
        """Replace each line when it leaves; the old one is heard until Slack closes it."""
        since = time.monotonic()
        while True:
            if line is not None:
                await line.leaving.wait()
                self._farewell(line)
                if time.monotonic() - since > STEADY_SECONDS:
                    self._failures = 0
            await self._pause()
            since = time.monotonic()
            line = await self._connect()

    async def _pause(self) -> None:
        """Wait longer after each failure, and not in step with other processes."""
        at_most = self._pauses_seconds[min(self._failures, len(self._pauses_seconds) - 1)]
        self._failures += 1
        await sleep(max(self._held_seconds, at_most * (0.5 + secrets.randbelow(500) / 1000)))

    async def _connect(self) -> Line | None:
        """One try; what came of it stands in `fault`."""
        self._held_seconds = 0.0
        answer = await self._client.open_socket()
        match answer:
            case SlackOk(data={"url": str(url)}) if is_slack_socket(url, self._client.sdk.base_url):
                return await self._open(url)
            case SlackOk():
                self._failed("unreadable")
            case SlackLimited(retry_after_seconds=seconds):
                self._held_seconds = seconds
                self._failed("limited")
            case SlackRefused(error=word) | SlackUnknown(reason=word) | SlackNotDelivered(reason=word):
                self._failed(word)
        return None

    async def _open(self, url: str) -> Line | None:
        line: Line | None = None
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                line = Line(await self._dial(url), self._take)
                self._lines.add(line)
                if await line.greeted():
                    self.fault = None
                    log.info("the socket to Slack is open")
                    return line
        except (TimeoutError, aiohttp.ClientError, OSError):
            pass  # The exception's text holds the address, and that holds a ticket.
        self._failed("no_line")
        if line is not None:
            self._lines.discard(line)
            await line.close()
        return None

    async def _dial(self, url: str) -> aiohttp.ClientWebSocketResponse:
        session = self._client.sdk.session
        if session is None:
            raise ConnectionError("the client is closed")
        return await session.ws_connect(
            url,
            heartbeat=self._heartbeat_seconds,
            proxy=self._client.sdk.proxy,
            max_msg_size=MOST_BYTES,
            timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
        )

    def _failed(self, word: str) -> None:
        self.fault = word
        log.warning("the socket to Slack could not be opened", extra={"reason": word})

    def _farewell(self, line: Line) -> None:
        task = asyncio.create_task(self._see_off(line))
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    async def _see_off(self, line: Line) -> None:
        """Hear a line that is being replaced to its end, and end it where Slack does not."""
        try:
            async with asyncio.timeout(LEAVING_SECONDS):
                await line.ended()
        except TimeoutError:
            log.info("a line of the socket was closed by us")
        await line.close()
        self._lines.discard(line)


def is_slack_socket(url: str, base_url: str) -> bool:
    """Whether an address is fit to be told a ticket: encrypted, or beside a stand-in on this machine."""
    scheme = urlsplit(url).scheme
    return scheme == "wss" or (scheme == "ws" and is_loopback(base_url) and is_loopback(url))
