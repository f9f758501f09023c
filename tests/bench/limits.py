"""What the machine can do without us: the empty endpoint, the empty signed endpoint, the empty Bolt listener.
Not here: Stet (serve). Run as `python -m tests.bench.limits NAME`; the port is printed first.
"""

import re
import sys
from collections.abc import Awaitable, Callable

import uvicorn
import uvloop
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from bot.policy.signatures import NamedSecret, SignedMessage, verify
from tests.bench.sockets import listening
from tests.bench.traffic import INTAKE_SECRET, SLACK_SECRET, TEAM

Endpoint = Callable[[Request], Awaitable[Response]]


async def empty(_request: Request) -> Response:
    """Accept without looking."""
    return Response(status_code=202)


async def signed(request: Request) -> Response:
    """Accept what is well signed, whatever it says."""
    headers = request.headers
    raw = await request.body()
    message = SignedMessage(headers["webhook-id"], headers["webhook-timestamp"], raw)
    now = float(headers["webhook-timestamp"])
    known = (NamedSecret("n8n", INTAKE_SECRET),)
    good = verify(message, headers["webhook-signature"], secrets=known, now=now)
    return Response(status_code=202 if good else 401)


def bolt() -> Endpoint:
    """Answer every press at once."""

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=None, team_id=TEAM, bot_user_id="U0BOT", bot_id="B0BOT")

    app = AsyncApp(signing_secret=SLACK_SECRET, authorize=authorize, process_before_response=True)

    @app.action(re.compile(""))
    async def pressed(ack: AsyncAck) -> None:
        await ack()

    return AsyncSlackRequestHandler(app).handle


async def serve(name: str) -> None:
    """Serve one of them as Stet is served."""
    endpoints: dict[str, Callable[[], Endpoint]] = {
        "empty": lambda: empty,
        "signed": lambda: signed,
        "bolt": bolt,
    }
    path = "/slack/events" if name == "bolt" else "/events"
    app = Router([Route(path, endpoints[name](), methods=["POST"])])
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", proxy_headers=False, server_header=False
    )
    with listening() as listener:
        print(listener.getsockname()[1], flush=True)
        await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
