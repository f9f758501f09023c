"""Starts the demo: stand-ins for Slack, the model and the outside world, the page, and `serve` between.

Not here: what they do. Everything lives in one process and one folder, and is gone when it ends.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import uvicorn

from bot import wiring
from bot.demo.events import Desk
from bot.demo.guest import GuestServer
from bot.demo.mail import serve_mail
from bot.demo.model import serve_model
from bot.demo.moods import Moods
from bot.demo.page_server import Page
from bot.demo.page_view import Board
from bot.demo.slack_server import SlackStandIn
from bot.demo.stage import Addresses, Secrets, environment, free_port, language_in
from bot.demo.world import WAITING, World
from bot.demo.world_server import WorldServer
from bot.settings import Settings
from store import embedded
from store.database import Database
from store.errors import StetError
from store.switch import read_switch

BOT_PORT: Final = 3000
PAGE_PORT: Final = 3001
SOCKET_SWITCH: Final = "STET_DEMO_SOCKET"  # "true": the pretend Slack is heard by Socket Mode.
SWITCH_SECONDS: Final = 0.5  # How late the page may show that sending was stopped.
SLACK_RATE_FACTOR: Final = 3.0  # One person clicks faster than a team would.


async def run(port: int = PAGE_PORT) -> None:
    """Run the demo until SIGINT or SIGTERM; the page is at `port`, or at another one if that is taken.

    Raises what `wiring.serve` raises.
    """
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(_folder())
        known = Secrets()
        slack = await stack.enter_async_context(SlackStandIn(rate_factor=SLACK_RATE_FACTOR))
        model = await stack.enter_async_context(serve_model())
        post = await stack.enter_async_context(serve_mail())
        moods = Moods(model.script, WorldServer(World(signing_secret=known.effects), "127.0.0.1", 0))
        stack.push_async_callback(moods.stop)
        moods.start()
        world = moods.world_server.url
        by_socket = os.environ.get(SOCKET_SWITCH) == "true"
        settings = Settings.load(
            environment(
                Addresses(slack.api_url, model.base_url, world, f"127.0.0.1:{post.port}"),
                known,
                (slack.state.workspace.token, slack.state.workspace.signing_secret),
                folder=folder,
                port=free_port(BOT_PORT),
            )
            | ({"SLACK_APP_TOKEN": slack.state.workspace.app_token} if by_socket else {})
            | language_in(os.environ),
            env_file=folder / ".env",  # absent: the settings of a real installation stay out of this
        )
        board = Board(slack, moods, bot_url=settings.public_url)
        post.listen(board.note_mail)
        slack.actor.events_url = f"{settings.public_url}/slack/events"
        slack.actor.socket = slack.socket if by_socket else None
        page = Page(board, Desk(resume_base=f"{world}{WAITING}"), known.intake)
        stack.push_async_callback(page.close)
        page_url = await stack.enter_async_context(_serve_page(page, free_port(port)))
        dsn = await asyncio.to_thread(stack.enter_context, embedded.server(settings.data_dir))
        ready = asyncio.Event()
        await stack.enter_async_context(_watch_switch(board, dsn, ready))

        def tell(_port: int) -> None:
            ready.set()
            print(
                f"\n  Stet's demo is ready: {page_url}\n  Ctrl-C ends it, and nothing is kept.\n", flush=True
            )

        await wiring.serve(settings, ready=tell)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder of our own, gone with everything in it."""
    path = Path(tempfile.mkdtemp(prefix="stet-demo-"))
    path.chmod(0o711)  # As root the database runs as somebody else, who must get through.
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@asynccontextmanager
async def _serve_page(page: Page, port: int) -> AsyncIterator[str]:
    config = uvicorn.Config(
        page.application(),
        host="127.0.0.1",
        port=port,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = GuestServer(config)
    serving = asyncio.create_task(server.serve())
    try:
        await server.listening.wait()
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def _watch_switch(board: Board, dsn: str, ready: asyncio.Event) -> AsyncIterator[None]:
    """Keep the board's copy of the kill switch fresh, from the moment there is a schema."""
    db = Database(dsn, max_size=1, name="stet-demo")

    async def watch() -> None:
        await ready.wait()
        await db.open()
        while True:
            with suppress(StetError):
                async with db.connection() as conn:
                    rows = await read_switch(conn)
                closed = [{"scope": row.scope, "reason": row.reason} for row in rows if not row.open]
                shut = not any(row.scope == "all" and row.open for row in rows)
                board.switch = {
                    "state": "closed" if shut else "partly" if closed else "open",
                    "closed": closed,
                }
            await asyncio.sleep(SWITCH_SECONDS)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await db.close()


def main() -> None:
    """Run the demo from the command line."""
    with suppress(KeyboardInterrupt):
        asyncio.run(run())


if __name__ == "__main__":
    main()
