"""The Slack stand-in as a real HTTP server: inside a test's event loop, or as a process of its own.

`python -m bot.demo.slack_server --port 4000 --events http://127.0.0.1:3000/slack/events` runs it by hand.
What it answers is in `slack_web_api` and `slack_page`.
"""

import argparse
import asyncio
import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.demo.slack_actor import ANSWER_SECONDS, SlackActor
from bot.demo.slack_faults import Faults, Journal
from bot.demo.slack_page import SlackPage
from bot.demo.slack_rates import Rates
from bot.demo.slack_socket import SlackSocket
from bot.demo.slack_state import SlackState
from bot.demo.slack_web_api import SlackWebApi
from bot.demo.slack_workspace import Workspace

HOST: Final = "127.0.0.1"


class _Protocol(H11Protocol):
    """Shows each request its transport, so that a fault can pull the plug."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "transport": transport}


class SlackStandIn:
    """Slack, pretend: `async with SlackStandIn() as slack:` runs it.

    - `slack.api_url` and `slack.state.workspace.token` go to the bot, `slack.actor.events_url` comes from it;
    - `slack.state` is what people see, `slack.actor` acts as one of them;
    - `slack.socket` is its side of Socket Mode, which `slack.actor.socket` set to it makes the actor use;
    - `slack.faults` takes orders for trouble, `slack.journal` counts the calls.

    `rate_factor` widens Slack's rate limits, None lifts them. `now` is the time of day in seconds,
    `monotonic` the clock of the rate limits.
    """

    def __init__(
        self,
        workspace: Workspace | None = None,
        *,
        rate_factor: float | None = 1.0,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.state = SlackState(workspace, now=now)
        self.socket = SlackSocket(self.state)
        self.rates = Rates(rate_factor)
        self.api = SlackWebApi(self.state, self.rates, monotonic=monotonic)
        # Named by its protocol: asyncio sets TCP_NODELAY only then, and without it each answer takes 40 ms.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._answer_seconds = answer_seconds
        self._server: uvicorn.Server | None = None

    @property
    def faults(self) -> Faults:
        """Trouble on order."""
        return self.api.faults

    @property
    def journal(self) -> Journal:
        """Every call so far."""
        return self.api.journal

    @property
    def url(self) -> str:
        """Where the server listens."""
        return f"http://{HOST}:{self._socket.getsockname()[1]}"

    @property
    def api_url(self) -> str:
        """What SLACK_API_URL must be."""
        return f"{self.url}/api/"

    async def start(self, port: int = 0) -> Self:
        """Listen; port 0 takes a free one."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((HOST, port))
        self._socket.listen(256)
        self.actor = SlackActor(self.state, f"{self.url}/response/", answer_seconds=self._answer_seconds)
        await self.socket.start(HOST)
        config = uvicorn.Config(
            self.application(), http=_Protocol, ws="none", lifespan="off", log_config=None, access_log=False
        )
        config.load()
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=[self._socket])
        return self

    async def stop(self) -> None:
        """Cut every line and let go of the port, whoever still hangs."""
        self.faults.clear()
        if self._server is not None:
            for server in self._server.servers:
                server.close()
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()
            await asyncio.gather(*self._server.server_state.tasks, return_exceptions=True)
            self._server = None
            await self.actor.close()
        await self.socket.stop()
        self._socket.close()

    def application(self) -> Starlette:
        """The routes: `/api/`, `/response/` and the page's `/_stand_in/`."""
        return Starlette(
            routes=[
                Route("/api/{method}", self.api.call, methods=["GET", "POST"]),
                Route("/response/{name}", self.api.respond, methods=["POST"]),
                *SlackPage(self.api, self.actor).routes(),
            ]
        )

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


async def _serve(port: int, events_url: str) -> None:
    slack = await SlackStandIn().start(port)
    slack.actor.events_url = events_url
    print(f"Slack stand-in: SLACK_API_URL={slack.api_url}", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await slack.stop()


def main() -> None:
    """Run until interrupted."""
    parser = argparse.ArgumentParser(description="A stand-in for Slack.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--events", default=f"http://{HOST}:3000/slack/events")
    chosen = parser.parse_args()
    try:
        asyncio.run(_serve(chosen.port, chosen.events))
    except KeyboardInterrupt:
        print("stopped")


if __name__ == "__main__":
    main()
