"""Listens for one click of the doctor's, as `serve` would: over HTTP or by Socket Mode; nothing is behind it.

Not here: the card it is made on, or what its absence means (bot/examination/click).
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import uvicorn
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.cards.answers import usage
from bot.cards.notices import Notice
from bot.doors import slack_door
from bot.doors.answers import NotFound
from bot.doors.listeners import Handlers, build_bolt
from bot.doors.payloads import Caller, Command, Press, Submission
from bot.doors.socket_door import SocketDoor
from bot.doors.whispers import Whispers
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.slack.identity import Identity
from bot.slack.socket import Socket

UNAUTHORIZED: Final = 401
GOODBYE_SECONDS: Final = 2.0


class CannotListen(Exception):
    """Nothing can arrive; the message says why and how to mend it."""


@dataclass(slots=True)
class Rehearsal:
    """What has arrived: the press we wait for, other presses, and what was not signed by our secret."""

    action_id: str
    value: str = field(repr=False)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    by: Caller | None = None
    others: int = 0
    unsigned: int = 0

    def hear(self, press: Press) -> bool:
        """Note one press; whether it is the one."""
        if (press.action_id, press.value) != (self.action_id, self.value):
            self.others += 1
            return False
        self.by = press.place.caller
        self.arrived.set()
        return True


@asynccontextmanager
async def listening(
    settings: Settings, slack: SlackClient, identity: Identity, rehearsal: Rehearsal
) -> AsyncIterator[None]:
    """Be reachable for Slack meanwhile. Raises CannotListen."""
    whispers = Whispers(slack)
    handlers = _handlers(settings, identity, rehearsal, whispers)
    app = build_bolt(handlers)
    if settings.slack_app_token is not None:
        caller = SlackClient(settings.slack_app_token.get_secret_value(), base_url=settings.slack_api_url)
        opened = _by_socket(Socket(caller, SocketDoor(app, handlers).take))
    else:
        routes = Router(slack_door.routes(app, handlers), redirect_slashes=False, default=NotFound())
        opened = _by_http(settings, _Counting(routes, rehearsal))
    async with opened:
        yield
        await whispers.settle()


def _handlers(settings: Settings, identity: Identity, rehearsal: Rehearsal, whispers: Whispers) -> Handlers:
    said = usage("rehearsing", language=settings.language)
    secret = settings.slack_signing_secret

    async def press(pressed: Press) -> None:
        if not rehearsal.hear(pressed):
            whispers.tell(pressed.place, said)

    async def submit(_submission: Submission) -> Mapping[str, Any] | None:
        return None

    async def answer(_command: Command) -> Notice:
        return said

    async def visit(_caller: Caller) -> None:
        return None

    return Handlers(
        signing_secret=secret.get_secret_value() if secret else "",
        ourselves=lambda: identity.ourselves,
        whispers=whispers,
        press=press,
        submit=submit,
        answer=answer,
        visit=visit,
        language_of=lambda _caller: settings.language,
    )


@asynccontextmanager
async def _by_socket(line: Socket) -> AsyncIterator[None]:
    try:
        await line.start()
        if not line.connected():
            raise CannotListen(
                f"no socket to Slack opens ({line.fault}): check SLACK_APP_TOKEN and the network"
            )
        yield
    finally:
        await line.stop(GOODBYE_SECONDS)


@asynccontextmanager
async def _by_http(settings: Settings, app: ASGIApp) -> AsyncIterator[None]:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as fault:
            raise CannotListen(
                f"{settings.host}:{settings.port} cannot be had ({fault.strerror}): stop serve meanwhile"
            ) from fault
        listener.listen()
        listener.setblocking(False)  # noqa: FBT003 - the standard library has no keyword for it
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server._serve(sockets=[listener]))  # noqa: SLF001 - serve() takes the signals
        try:
            yield
        finally:
            server.should_exit = True
            await serving


class _Counting:
    """Notes what was refused because its signature was not good: it arrived, and the secret is wrong."""

    def __init__(self, app: ASGIApp, rehearsal: Rehearsal) -> None:
        self._app = app
        self._rehearsal = rehearsal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def noting(message: Message) -> None:
            self._rehearsal.unsigned += message.get("status") == UNAUTHORIZED
            await send(message)

        await self._app(scope, receive, noting)
