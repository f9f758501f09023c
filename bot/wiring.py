"""Runs one process: starts what was built from the settings, serves it, and stops it in order.

Not here: building the parts (assembly) or any behaviour.
"""

import asyncio
import gc
import logging
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import uvicorn
from pydantic import SecretStr

from bot.assembly import Process, build_process
from bot.connectors.reach import ReachError
from bot.examination.mail import missing_mail
from bot.examination.named import find_named_problems
from bot.logs import set_up_logs
from bot.policy.kinds import Policy, load_policy
from bot.policy.switch import ALL_SCOPE
from bot.registry import RegistryError, find_effect_types, find_gate_modes
from bot.settings import Settings, SettingsError
from bot.variables import Variables
from store import migrate
from store.errors import DatabaseAway
from store.reached import database_of
from store.switch import want_waiting_cards

log = logging.getLogger(__name__)

SHUTDOWN_SECONDS: Final = 3  # Events and clicks in hand are answered within it; a click takes 2.5 s at most.
CLAIMING_SECONDS: Final = 1  # A claim in hand is one statement; what it claimed is given back by its owner.
COLLECTED_AFTER: Final = (
    10_000,
    20,
    50,
)  # The default looks every 700 objects: a batch of events makes thousands.
TICK_SECONDS: Final = 1.0  # How often the Date header moves; uvicorn would look around ten times as often.
BACKLOG: Final = 2048  # n8n opens a connection an event; a burst waits here while one batch is stored.


class CannotStart(Exception):
    """A setting is well formed and does not work; the sentence names it and the mend."""


async def serve(settings: Settings, *, ready: Callable[[int], None] = lambda _port: None) -> None:
    """Run one process until SIGTERM or SIGINT; `ready` hears the port once it answers.

    Raises:
        CannotStart: the policy file or the Slack token does not work.
        PolicyError: what is wrong in the policy file, all of it.
        SettingsError: a variable that the policy names cannot be used.
        StetError: the database cannot be reached, or its schema is not ours.

    """
    policy = _read_policy(settings)
    variables = Variables.read()
    kept_out = [*_secrets(settings), *variables.secrets(policy)]
    set_up_logs(level=settings.log_level, form=settings.log_format, secrets=kept_out)
    wrong = tuple(find_named_problems(policy, variables))
    if wrong:
        raise SettingsError(wrong)
    with database_of(settings.database_url, settings.data_dir) as dsn:
        if settings.database_url is None:
            await asyncio.to_thread(migrate.migrate, dsn)
        await asyncio.to_thread(migrate.check, dsn)
        try:
            process = build_process(settings, policy, variables, dsn=dsn, owner=_owner())
        except (ReachError, RegistryError) as fault:
            raise CannotStart(str(fault)) from fault
        await _run(process, settings, ready)


async def _run(process: Process, settings: Settings, ready: Callable[[int], None]) -> None:
    parts = process.parts
    await parts.db.open()
    await parts.outside.slack.open()
    try:
        hopeless = await parts.outside.identity.ask()
        if hopeless is not None:
            raise CannotStart(f"SLACK_BOT_TOKEN is refused by Slack ({hopeless}): copy the bot token again")
        # What can stop the start comes before the first step: restarts in a loop would do and undo work.
        with _listening(settings) as listener:
            await _connect(process)
            await _show_switch(process)
            process.wire.start()
            process.timer.start()
            _leave_alone_what_stays()
            ready(listener.getsockname()[1])
            await _serve_http(process, listener)
    finally:
        await _stop(process)


async def _connect(process: Process) -> None:
    """Open the line of Socket Mode, if it is on; Slack being away is no reason not to start."""
    hopeless = await process.parts.doors.connect()
    if hopeless is not None:
        raise CannotStart(
            f"SLACK_APP_TOKEN is refused by Slack ({hopeless}): make one with connections:write"
        )


def _leave_alone_what_stays() -> None:
    """Spare the garbage collector what was imported and built: it lives as long as we do."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


async def _show_switch(process: Process) -> None:
    """Draw again what waits to be sent: the setting may have changed since the cards were drawn."""
    try:
        async with process.parts.db.connection() as conn:
            await want_waiting_cards(conn, ALL_SCOPE)
    except DatabaseAway:
        log.warning("the cards of waiting effects were not asked for: the database is away")


async def _serve_http(process: Process, listener: socket.socket) -> None:
    """Serve until a signal; then answer what is in hand."""
    server = _Server(
        uvicorn.Config(
            process.app,
            log_config=None,
            access_log=False,
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
    )
    with _heeding_signals(server):
        log.info("serving", extra={"port": listener.getsockname()[1]})
        await server._serve(sockets=[listener])  # noqa: SLF001 - serve() would take the signals for itself
    log.info("stopping")


class _Server(uvicorn.Server):
    """Serves until it is told to leave, and sleeps in between."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """Answer what is in hand, and take no more."""
        self.should_exit = True
        self._leaving.set()

    async def main_loop(self) -> None:
        """Keep the Date header."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._leaving.wait()


@contextmanager
def _heeding_signals(server: _Server) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.leave)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def _stop(process: Process) -> None:
    """Stop in order: nothing new begins, model calls are given back, sends have their grace.

    A step that waits for Slack or for a look-up has no more time than the sends; its work is found again.
    """
    parts = process.parts
    steps = asyncio.create_task(process.timer.stop())
    await parts.doors.hang_up(SHUTDOWN_SECONDS)
    await asyncio.wait({steps}, timeout=CLAIMING_SECONDS)
    await asyncio.gather(
        parts.doors.settle(),
        parts.receiver.close(),
        parts.drafter.stop(),
        parts.redrafter.stop(),
        parts.dispatcher.stop(),
        return_exceptions=True,
    )
    process.timer.abandon()
    await steps
    await asyncio.gather(parts.counts.flush(), process.wire.stop(), return_exceptions=True)
    await asyncio.gather(
        parts.outside.model.aclose(), parts.outside.slack.close(), parts.db.close(), return_exceptions=True
    )


@contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """Bind the address before anything else is promised. Raises OSError if it is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY on what it accepts.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as fault:
            raise CannotStart(
                f"HOST, PORT: {settings.host}:{settings.port} cannot be had ({fault.strerror})"
            ) from fault
        listener.listen(BACKLOG)
        listener.setblocking(False)  # noqa: FBT003 - the standard library has no keyword for it
        yield listener


def _read_policy(settings: Settings) -> Policy:
    try:
        text = settings.policy_file.read_text(encoding="utf-8")
    except OSError as fault:
        raise CannotStart(f"POLICY_FILE: {settings.policy_file} cannot be read ({fault.strerror})") from fault
    except UnicodeDecodeError as fault:
        raise CannotStart(f"POLICY_FILE: {settings.policy_file} is not UTF-8: save it as such") from fault
    policy = load_policy(text, effect_types=find_effect_types(), gates=find_gate_modes())
    missing = missing_mail(settings, policy)
    if missing is not None:
        raise CannotStart(f"SMTP_URL: {missing}")
    return policy


def _owner() -> str:
    """Name this process for its leases; fresh at every start, so that orphans are never its own."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def _secrets(settings: Settings) -> Iterator[str]:
    """Every secret value, for the logs to remove."""
    for _, value in settings:
        if isinstance(value, SecretStr):
            yield value.get_secret_value()
    for named in (*settings.intake_tokens, *settings.intake_signing_secrets):
        yield named.secret.decode("utf-8", "replace")
    if settings.smtp_url is not None and settings.smtp_url.password is not None:
        yield settings.smtp_url.password.get_secret_value()
