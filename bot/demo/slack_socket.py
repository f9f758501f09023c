"""The stand-in's side of Socket Mode: gives out addresses, greets, hands envelopes to any line, hears acks.

What the envelopes carry is built in `slack_payloads`. Source: Slack's page "Using Socket Mode".
"""

import asyncio
import json
import secrets
import socket
import uuid
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from aiohttp import WSCloseCode, WSMsgType, web

from bot.demo.slack_method import Arguments, Method, Refusal
from bot.demo.slack_payloads import Signed
from bot.demo.slack_state import SlackState
from bot.demo.slack_workspace import APP_ID

LINES_AT_MOST: Final = 10


@dataclass(slots=True, eq=False)
class Link:
    """One WebSocket of the app's. A ghost hears nothing and says nothing, and is still counted."""

    wire: web.WebSocketResponse
    ghost: bool = False
    acks: dict[str, asyncio.Queue[Any]] = field(default_factory=dict)

    async def say(self, **what: Any) -> None:  # noqa: ANN401 - any JSON
        """Send one message."""
        await self.wire.send_str(json.dumps(what))


class SlackSocket:
    """A WebSocket server on a port of its own; `greets` false keeps the hello back from new lines."""

    def __init__(self, state: SlackState) -> None:
        self._state = state
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._runner: web.AppRunner | None = None
        self._turn = 0
        self._changed = asyncio.Event()
        self.links: list[Link] = []
        self.opened = 0
        self.greets = True

    async def start(self, host: str) -> None:
        """Listen on a free port."""
        self._socket.bind((host, 0))
        application = web.Application()
        application.router.add_get("/link/", self._link)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()
        self._state.socket_url = f"ws://{host}:{self._socket.getsockname()[1]}/link/"

    async def stop(self) -> None:
        """Cut every line."""
        self.cut()
        if self._runner is not None:
            await self._runner.cleanup()
        self._socket.close()

    async def wait_for(self, *, opened: int) -> None:
        """Wait until so many lines were greeted in all."""
        while self.opened < opened:
            self._changed.clear()
            await self._changed.wait()

    async def wait_for_lines(self, count: int) -> None:
        """Wait until there are exactly so many lines."""
        while len(self.links) != count:
            self._changed.clear()
            await self._changed.wait()

    async def deliver(self, request: Signed, *, times: int = 1) -> list[Any]:
        """Hand one envelope to one of the lines, as often as asked; give what was answered each time."""
        able = [link for link in self.links if not link.wire.closed]
        if not able:
            raise ConnectionError("the app has no line open")
        self._turn += 1
        link = able[self._turn % len(able)]
        kind, payload = unpack(request)
        envelope_id = str(uuid.uuid4())
        acks = link.acks[envelope_id] = asyncio.Queue()
        for _ in range(times):
            if not link.ghost:
                await link.say(
                    envelope_id=envelope_id,
                    type=kind,
                    payload=payload,
                    accepts_response_payload=kind != "events_api",
                )
        return [await acks.get() for _ in range(times)]

    async def ask_to_leave(self, reason: str = "refresh_requested") -> Link:
        """Tell the oldest line that it will be closed; `close` does that."""
        link = self.links[0]
        await link.say(type="disconnect", reason=reason, debug_info={"host": "stand-in"})
        return link

    async def close(self, link: Link) -> None:
        """Close a line properly."""
        await link.wire.close(code=WSCloseCode.GOING_AWAY)

    def cut(self) -> None:
        """Pull the plug of every line: no goodbye."""
        for link in self.links:
            transport = link.wire._req.transport if link.wire._req else None  # noqa: SLF001 - no other way
            if transport is not None:
                transport.abort()

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        if request.query.get("ticket") not in self._state.tickets or len(self.links) >= LINES_AT_MOST:
            raise web.HTTPForbidden
        self._state.tickets.discard(request.query["ticket"])
        wire = web.WebSocketResponse(autoping=False)
        await wire.prepare(request)
        link = Link(wire)
        self.links.append(link)
        if self.greets:
            await link.say(
                type="hello",
                num_connections=len(self.links),
                connection_info={"app_id": APP_ID},
                debug_info={"host": "stand-in", "approximate_connection_time": 18060},
            )
            self.opened += 1
        self._changed.set()
        try:
            await self._hear(link)
        finally:
            self.links.remove(link)
            self._changed.set()
        return wire

    async def _hear(self, link: Link) -> None:
        async for message in link.wire:
            if message.type is WSMsgType.PING and not link.ghost:
                await link.wire.pong(message.data)
            elif message.type is WSMsgType.TEXT:
                said = json.loads(message.data)
                if said.get("envelope_id") in link.acks:
                    link.acks[said["envelope_id"]].put_nowait(said.get("payload"))


def unpack(request: Signed) -> tuple[str, Any]:
    """What kind of envelope a request over HTTP would be, and its payload."""
    if "json" in request.headers["content-type"]:
        return "events_api", json.loads(request.body)
    form = dict(parse_qsl(request.body.decode(), keep_blank_values=True))
    return ("interactive", json.loads(form["payload"])) if "payload" in form else ("slash_commands", form)


def connections_open(state: SlackState, _arguments: Arguments) -> dict[str, Any]:
    """apps.connections.open: an address that works once."""
    if not state.socket_url:
        raise Refusal("internal_error")
    ticket = secrets.token_hex(16)
    state.tickets.add(ticket)
    return {"url": f"{state.socket_url}?ticket={ticket}&app_id={APP_ID}"}


SOCKET_METHODS: Final = (Method("apps.connections.open", connections_open, None),)
