"""The pretend model: an OpenAI-compatible server on a real socket, obedient over HTTP and in Python.

Not here: which steps exist (model_script) and what it writes when nothing is ordered (model_words).

    POST /v1/chat/completions, GET /v1/models       as OpenAI
    GET  /control/journal                           {"requests": n, "heard": [...]}
    POST /control/steps   {"steps": [{...Step}]}    the next replies
    POST /control/always  {...Step} or null         every reply after them
    POST /control/release, /control/reset
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bot.demo.model_script import CUT, DROP_UNREAD, HANG, HOLD, MODEL_NAME, TALK, Script, Step, write_body

STOP_SECONDS = 1  # for requests that still hang when the server is told to stop


class _Break(Response):
    """Breaks the connection off instead of answering: at once, after reading, or inside the body."""

    def __init__(self, how: str, body: bytes) -> None:
        super().__init__(body)
        self._how = how

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # ASGI has no word for it; uvicorn hands out the bound method of the object that holds the socket.
        transport: asyncio.Transport = receive.__self__.transport  # type: ignore[attr-defined]
        if self._how == CUT:
            head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            half = bytes(self.body)[: len(self.body) // 2]
            await send(head)
            await send({"type": "http.response.body", "body": half, "more_body": True})
        if self._how == DROP_UNREAD:
            transport.abort()
        else:
            transport.close()
        while (await receive())["type"] != "http.disconnect":
            pass


def model_app(script: Script) -> Starlette:
    """The pretend model as an ASGI application; must be served by uvicorn for the broken connections."""

    async def complete(request: Request) -> Response:
        body = await request.json()
        authorized = request.headers.get("authorization", "").startswith("Bearer ")
        released = script.released()
        step = script.hear(body, authorized=authorized)
        text = write_body(step, body, script.requests)
        if step.how in (HANG, HOLD):
            await _wait(released, request)
        if step.how in (TALK, HOLD):
            headers = {"content-type": "application/json", **step.headers}
            return Response(text, status_code=step.status, headers=headers)
        return _Break(step.how, text.encode())

    async def models(_request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL_NAME, "object": "model"}]})

    async def journal(_request: Request) -> Response:
        return JSONResponse({"requests": script.requests, "heard": [asdict(each) for each in script.journal]})

    async def order(request: Request) -> Response:
        return _order(script, request.path_params["order"], await request.body())

    return Starlette(
        routes=[
            Route("/v1/chat/completions", complete, methods=["POST"]),
            Route("/v1/models", models),
            Route("/control/journal", journal),
            Route("/control/{order}", order, methods=["POST"]),
        ]
    )


def _order(script: Script, order: str, raw: bytes) -> Response:
    given: Any = json.loads(raw) if raw else None
    match order:
        case "steps":
            script.then(*(Step(**each) for each in given["steps"]))
        case "always":
            script.always(Step(**given) if given else None)
        case "release":
            script.release()
        case "reset":
            script.reset()
        case _:
            return JSONResponse({"message": "no such order"}, status_code=HTTPStatus.NOT_FOUND)
    return JSONResponse({"ok": True})


async def _wait(released: asyncio.Event, request: Request) -> None:
    """Wait for the release, or for the client to go away."""
    waits = {asyncio.ensure_future(released.wait()), asyncio.ensure_future(_gone(request))}
    _, late = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for each in late:
        each.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


async def _gone(request: Request) -> None:
    with contextlib.suppress(ClientDisconnect):
        while (await request.receive())["type"] != "http.disconnect":
            pass


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A running pretend model: its address and its script."""

    script: Script
    port: int

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL is set to."""
        return f"http://127.0.0.1:{self.port}/v1"


class _Server(uvicorn.Server):
    """uvicorn as a guest: says when it listens, and leaves the signals to its host."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@contextlib.asynccontextmanager
async def serve_model(script: Script | None = None, *, port: int = 0) -> AsyncIterator[ModelServer]:
    """A pretend model on a free port of this machine, in the running loop."""
    script = script or Script()
    listener = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(
        model_app(script),
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await server.listening.wait()
        yield ModelServer(script, listener.getsockname()[1])
    finally:
        script.release()
        server.should_exit = True
        await serving
        listener.close()
