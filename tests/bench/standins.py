"""Slack, the model and the outside world, answering trivially: nothing is waited for that is not measured.
Not here: their behaviour (bot/demo has stand-ins that behave). They run in the bench's own process.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.types import Receive, Scope, Send

from tests.bench.sockets import listening
from tests.bench.traffic import TEAM

FLAGS = ("deleted", "is_bot", "is_restricted", "is_ultra_restricted", "is_stranger")


@dataclass(slots=True)
class Outside:
    """What was asked of the outside. `posted`: channel, ts and the value of approve of each card."""

    port: int = 0
    posted: list[tuple[str, str, str]] = field(default_factory=list)
    sent: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until enough has been asked of the outside."""
        while not reached():
            self.changed.clear()
            await self.changed.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the model never does."""
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        path = scope["path"]
        if path.startswith("/v1/"):
            await asyncio.Event().wait()
        if path.startswith("/api/"):
            answer = self._slack(path.removeprefix("/api/"), _fields(scope, body))
        else:
            self.sent += 1
            answer = {"id": f"out-{self.sent}"}
        self.changed.set()
        told = json.dumps(answer).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(told))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": told})

    def _slack(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "auth.test":
                return {"ok": True, "team_id": TEAM, "user_id": "U0BOT", "bot_id": "B0BOT"}
            case "users.info":
                user = {"id": given["user"], "team_id": TEAM, "name": "alice", "profile": {}}
                return {"ok": True, "user": user | dict.fromkeys(FLAGS, False)}
            case "chat.postMessage":
                ts = f"1700000000.{len(self.posted):06d}"
                self.posted.append((given["channel"], ts, _approve(given.get("blocks"))))
                return {"ok": True, "channel": given["channel"], "ts": ts}
            case "chat.update":
                return {"ok": True, "channel": given["channel"], "ts": given["ts"]}
            case _:
                return {"ok": True, "messages": [], "users": []}


@asynccontextmanager
async def outside() -> AsyncIterator[Outside]:
    """Serve them for as long as the block runs."""
    made = Outside()
    with listening() as listener:
        made.port = listener.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(made, log_config=None, lifespan="off", access_log=False))
        serving = asyncio.create_task(server._serve(sockets=[listener]))
        try:
            yield made
        finally:
            server.should_exit = server.force_exit = True
            await serving


def _fields(scope: Scope, body: bytes) -> dict[str, Any]:
    kind = dict(scope["headers"]).get(b"content-type", b"")
    if kind.startswith(b"application/json"):
        return dict(json.loads(body))
    return {name: values[0] for name, values in parse_qs(body.decode()).items()}


def _approve(blocks: Any) -> str:
    """The value of the button that approves, wherever it stands."""
    found = json.loads(blocks) if isinstance(blocks, str) else blocks
    elements = [each for block in found or [] for each in block.get("elements", []) if isinstance(each, dict)]
    return next((str(e["value"]) for e in elements if e.get("action_id") == "stet.approve"), "")
