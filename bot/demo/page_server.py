"""The demo's page over HTTP: static files, one picture, and what its buttons do.

Not here: what is in the picture (page_view), acts inside Slack (slack_page), the stage (stage).
"""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import httpx2
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.demo.events import SOURCE, Desk, key_of
from bot.demo.page_view import Board, Posted, choices
from bot.demo.slack_page import SlackPage

FILES: Final = Path(__file__).with_name("page")
# Nothing from elsewhere, nothing inline: text that slipped through as markup could do nothing.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
ANSWER_SECONDS: Final = 10.0
# A page elsewhere could let its name point at this machine; it cannot make the browser say one of these.
HOSTS: Final = ["127.0.0.1", "localhost"]
Act = Callable[[dict[str, Any]], Awaitable[Response]]


class Page:
    """The page's routes. `board.bot_url` must be set before an event is sent."""

    def __init__(self, board: Board, desk: Desk, intake_token: str) -> None:
        self._board = board
        self._desk = desk
        headers = {"authorization": f"Bearer {intake_token}"}
        self._http = httpx2.AsyncClient(headers=headers, timeout=ANSWER_SECONDS, trust_env=False)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    def application(self) -> Starlette:
        """The whole page; answers only to names of this machine."""
        return Starlette(
            routes=[
                Route("/api/choices", self._choices),
                Route("/api/state", self._state),
                Route("/api/history", self._history),
                Route("/api/event", _act(self._send_event), methods=["POST"]),
                Route("/api/mood", _act(self._set_mood), methods=["POST"]),
                *SlackPage(self._board.slack.api, self._board.slack.actor).routes(),
                Mount("/", StaticFiles(directory=FILES, html=True)),
            ],
            middleware=[
                Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS, www_redirect=False),
                Middleware(_Guarded),
            ],
        )

    async def _choices(self, _: Request) -> Response:
        return JSONResponse(choices())

    async def _state(self, request: Request) -> Response:
        """The picture for `user`, or 204 if `seen` is still how things stand."""
        if request.query_params.get("seen") == self._board.version():
            return Response(status_code=204)
        return JSONResponse(self._board.draw(request.query_params.get("user", "")))

    async def _history(self, request: Request) -> Response:
        """A key's history, as an upstream system would ask for it."""
        source, _, rest = request.query_params.get("key", "").partition(":")
        kind, _, event_key = rest.partition(":")
        if source != SOURCE or not event_key:
            return JSONResponse({"message": "A key looks like n8n:customer_email:ticket-1-v1."}, 404)
        try:
            answer = await self._http.get(
                f"{self._board.bot_url}/runs", params={"kind": kind, "event_key": event_key}
            )
        except httpx2.HTTPError:
            return JSONResponse({"message": "Stet does not answer."}, 502)
        return JSONResponse(_read(answer), answer.status_code)

    async def _send_event(self, said: dict[str, Any]) -> Response:
        event = self._desk.make(str(said.get("button")))
        self._expect(event)
        started = time.monotonic()
        try:
            answer = await self._http.post(f"{self._board.bot_url}/events", json=event)
            status, told = answer.status_code, _read(answer)
        except httpx2.HTTPError:
            status, told = 0, {"message": "Stet does not answer."}
        posted = Posted(
            number=len(self._board.posted) + 1,
            button=str(said["button"]),
            key=key_of(event),
            status=status,
            answer=told,
            seconds=time.monotonic() - started,
        )
        self._board.posted.append(posted)
        return JSONResponse(posted.as_json())

    def _expect(self, event: dict[str, Any]) -> None:
        """The automation waits for the outcome: one execution for each ticket."""
        execution = str(event.get("resume_url", "")).rpartition("/")[2]
        if execution:
            self._board.moods.world_server.world.wait_at(execution)

    async def _set_mood(self, said: dict[str, Any]) -> Response:
        if said.get("whose") == "model":
            self._board.moods.set_model(str(said.get("mood")))
        else:
            await self._board.moods.set_world(str(said.get("mood")))
        return JSONResponse({"done": True})


def _read(answer: httpx2.Response) -> Any:  # noqa: ANN401 - any JSON
    try:
        return answer.json()
    except ValueError:
        return {"message": "The answer is no JSON."}


def _act(act: Act) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        # A page of another origin cannot send this type without asking first, and we do not answer that.
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return JSONResponse({"message": "send application/json"}, 415)
        said = await request.json()
        try:
            return await act(said if isinstance(said, dict) else {})
        except KeyError:
            return JSONResponse({"message": "there is no such button"}, 404)

    return endpoint


class _Guarded:
    """Adds the security headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        await self._app(scope, receive, guarded)
