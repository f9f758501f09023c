"""Real `serve` processes against stand-ins for Slack, the model and the outside: started, killed, waited for.
Not here: waiting for rows and making them old (tests/watching), or what is promised (tests/crash, race).
"""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from bot.demo.model import ModelServer, serve_model
from bot.demo.slack_actor import Reply, SlackActor
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message
from bot.demo.slack_workspace import C_OPS, C_REVIEW, U_ALICE, U_RITA
from bot.demo.stage import Addresses, Secrets, environment
from bot.demo.world import World
from bot.demo.world_server import WorldServer, serve_world

ROOT = Path(__file__).parents[1]
CAMPAIGN = os.environ.get("STET_CAMPAIGN") == "1"  # `make crash`: more rounds, and chance.
PATIENCE_SECONDS = 60  # A net under a hang, never a measure.
LOOK_UP = "/webhook/sent/"
# The demo's policy with shorter deadlines, so that what hangs is over soon.
QUICKER = {
    'timeout = "5s"': 'timeout = "3s"',
    'settle = "10s"': 'settle = "1s"',
    'timeout = "20s"': 'timeout = "4s"',
}


class Ended(Exception):
    """The process is over, while it was still wanted."""


class Nursery:
    """Starts processes: from a fork that has everything imported, or (`plain`) as a user would."""

    def __init__(self, folder: Path, *, plain: bool = False) -> None:
        self._folder = folder
        self._plain = plain
        self._process: asyncio.subprocess.Process | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._codes: dict[str, asyncio.Future[int]] = {}
        self._pids: dict[str, asyncio.Future[int]] = {}
        self._made = 0

    async def start(self) -> None:
        """Be ready for orders."""
        if self._plain:
            return
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.nursery",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
        )
        assert self._process.stdout
        assert json.loads(await self._process.stdout.readline()) == {"ready": True}
        self._hearing = asyncio.create_task(self._hear(self._process.stdout))

    async def stop(self) -> None:
        """End everything that was started here."""
        if self._process is None or self._hearing is None:
            return
        assert self._process.stdin
        self._process.stdin.close()
        await self._process.wait()
        await self._hearing

    async def run(self, words: list[str], env: dict[str, str]) -> "Bot":
        """Start one command in exactly that environment."""
        self._made += 1
        name, loop = f"bot-{self._made}", asyncio.get_running_loop()
        log = self._folder / f"{name}.log"
        os.mkfifo(log)
        # Opened for both, or it would wait for the writer; the other end is let go once the writer is there.
        ends = os.open(log, os.O_RDWR | os.O_NONBLOCK)
        reader = asyncio.StreamReader()
        reading = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb"))
        self._codes[name], self._pids[name] = loop.create_future(), loop.create_future()
        if self._process is None:
            await self._exec(name, words, env, log)
        else:
            assert self._process.stdin
            order = {"name": name, "words": words, "env": env, "log": str(log)}
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
        return Bot(await self._pids[name], self._codes[name], reader, ends)

    async def _exec(self, name: str, words: list[str], env: dict[str, str], log: Path) -> None:
        with log.open("wb") as written:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "bot", *words, env=env, cwd=self._folder, stdout=written, stderr=written
            )
        self._pids[name].set_result(process.pid)
        ending = asyncio.create_task(process.wait())
        ending.add_done_callback(lambda done: self._codes[name].set_result(done.result()))

    async def _hear(self, news: asyncio.StreamReader) -> None:
        while line := await news.readline():
            told = json.loads(line)
            kept = self._codes if "code" in told else self._pids
            kept[told["name"]].set_result(told.get("code", told["pid"]))


class Bot:
    """One running process."""

    def __init__(self, pid: int, code: asyncio.Future[int], log: asyncio.StreamReader, ends: int) -> None:
        self.pid = pid
        self.port = 0
        self.dies_at = ""
        self.lines: list[dict[str, Any]] = []
        self._code = code
        self._serving: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._heard = asyncio.Event()
        self._ends: int | None = ends
        self._log = log
        self._reading = asyncio.create_task(self._read())
        code.add_done_callback(lambda _code: self._let_go())

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._code.done()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def ready(self) -> None:
        """Wait until it listens. Raises Ended if it dies before."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            is_serving = await self._serving
        if not is_serving:
            raise Ended(self.told())

    async def over(self) -> int:
        """Wait until it has ended; give its exit code, negative for a signal."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            code = await asyncio.shield(self._code)
            await self._reading
        return code

    async def said(self, event: str) -> None:
        """Wait until it has logged this. Raises Ended if it dies before."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not any(line.get("event") == event for line in self.lines):
                if self._reading.done():
                    raise Ended(self.told())
                self._heard.clear()
                await self._heard.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if not self.is_over:
            with suppress(ProcessLookupError):  # It is over, and the news of it is on its way.
                os.kill(self.pid, number)

    async def kill(self) -> None:
        """End it as a power cut would."""
        self.signal(signal.SIGKILL)
        await self.over()

    def told(self) -> str:
        """All that it has logged, for a failing test."""
        return "\n".join(json.dumps(line) for line in self.lines)

    def faults(self) -> list[dict[str, Any]]:
        """What it logged that nobody expects of a healthy process."""
        return [line for line in self.lines if line.get("level") in {"error", "critical"} or "raw" in line]

    async def _read(self) -> None:
        while line := await self._log.readline():
            try:
                said = json.loads(line)
            except ValueError:
                said = {"raw": line.decode("utf-8", "replace").rstrip()}
            self.lines.append(said)
            self._heard.set()
            if said.get("event") == "serving":
                self.port = said["port"]
                self._serving.set_result(True)
        if not self._serving.done():
            self._serving.set_result(False)
        self._heard.set()

    def _let_go(self) -> None:
        if self._ends is not None:
            os.close(self._ends)
            self._ends = None


@dataclass(slots=True)
class Stage:
    """The stand-ins, the settings, and the processes that were started on one database."""

    dsn: str
    folder: Path
    slack: SlackStandIn
    model: ModelServer
    world: WorldServer
    secrets: Secrets
    nursery: Nursery
    env: dict[str, str]
    bots: list[Bot] = field(default_factory=list)
    _people: dict[int, SlackActor] = field(default_factory=dict)
    _http: httpx2.AsyncClient = field(
        default_factory=lambda: httpx2.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False)
    )

    async def start(self, kill_at: str = "", **more: str) -> Bot:
        """Start a process, which dies at the named checkpoint; `ready` it before use."""
        env = self.env | more | ({"STET_KILL_AT": kill_at} if kill_at else {})
        bot = await self.nursery.run(["serve"], env)
        bot.dies_at = kill_at
        self.bots.append(bot)
        return bot

    async def started_with_clock(self, off_seconds: int) -> Bot:
        """Start a process on a host whose clock is wrong by so much, and wait until it listens."""
        return await self.started(STET_CLOCK_OFF_SECONDS=str(off_seconds))

    async def started(self, kill_at: str = "", **more: str) -> Bot:
        """Start a process and wait until it listens."""
        bot = await self.start(kill_at, **more)
        await bot.ready()
        return bot

    async def run(self, *words: str) -> tuple[int, str]:
        """Run another command to its end; its exit code and what it said."""
        bot = await self.nursery.run(list(words), self.env)
        return await bot.over(), bot.told()

    async def post(self, bot: Bot, event: dict[str, Any]) -> httpx2.Response | None:
        """Post an event as upstream does; None if the line went dead, as when the process dies."""
        try:
            return await self._http.post(
                f"{bot.url}/events", json=event, headers={"authorization": f"Bearer {self.secrets.intake}"}
            )
        except httpx2.HTTPError:
            return None

    async def refused(self, bot: Bot) -> None:
        """Wait until it takes no new connections, as a process that was told to stop."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    await self._http.get(f"{bot.url}/healthz", headers={"connection": "close"})
        except httpx2.HTTPError:
            return

    async def clear(self) -> None:
        """End every process and hang up."""
        for bot in self.bots:
            await bot.kill()
        for person in self._people.values():
            await person.close()
        await self._http.aclose()

    def change_policy(self, changes: Mapping[str, str]) -> None:
        """Replace words of the policy file, for processes that start from now on."""
        policy = Path(self.env["POLICY_FILE"])
        text = policy.read_text("utf-8")
        for before, after in changes.items():
            text = text.replace(before, after)
        policy.write_text(text, "utf-8")

    def limit(self, line: str) -> None:
        """Let the policy limit mails, for processes that start from now on."""
        effect = "[kinds.customer_email.effect]\n"
        self.change_policy({effect: f"[kinds.customer_email.limits]\n{line}\n{effect}"})

    def actor(self, bot: Bot) -> SlackActor:
        """People whose Slack sends its requests to this process."""
        made = self._people.get(bot.pid)
        if made is None:
            made = self._people[bot.pid] = SlackActor(
                self.slack.state,
                f"{self.slack.url}/response/",
                events_url=f"{bot.url}/slack/events",
                answer_seconds=PATIENCE_SECONDS,
            )
        return made

    async def click(self, bot: Bot, key: str, button: str = "stet.approve", *, user: str = U_ALICE) -> Reply:
        """Press a button on the card of a key."""
        (card,) = self.cards(key)
        return await self.actor(bot).click(user, C_REVIEW, card.ts, button)

    def cards(self, key: str) -> list[Message]:
        """Every message in the channel that is about this key; more than one is a broken promise."""
        return [
            each for each in self.slack.state.channel_messages(C_REVIEW) if key in json.dumps(each.blocks)
        ]

    def ops(self) -> list[Message]:
        """What ops was shown."""
        return self.slack.state.channel_messages(C_OPS)

    def asked(self, number: int) -> int:
        """How often the model was asked about one event."""
        return sum(marker(number) in json.dumps(each.body) for each in self.model.script.journal)

    def sent(self) -> Counter[str]:
        """How often the outside did the work of each effect: the truth that counts."""
        done = [each for each in self.world.world.journal if each.done and not each.path.startswith(LOOK_UP)]
        return Counter(str(each.effect_id) for each in done)


def marker(number: int) -> str:
    """The words by which an event is told in whatever was made of it."""
    return f"marker-{number}-end"


def event(number: int, *, draft: bool = False, version: int = 1) -> dict[str, Any]:
    """Make an event of its own; `draft`: with a draft, so that no model is asked."""
    made: dict[str, Any] = {
        "event_key": f"ticket-{number}-v{version}",
        "kind": "customer_email",
        "entity": f"customer:{number}",
        "source_version": version,
        "requested_by": U_RITA,
        "payload": {
            "ticket_id": number,
            "name": "amy",
            "to": "amy@customer.example",
            "subject": "a parcel",
            "text": f"Where is it? {marker(number)}",
        },
    }
    if draft:
        text = {"subject": f"Found {number}", "body": f"It ships on Monday. {marker(number)}"}
        made["draft"] = text | {"label": "shipping", "needs_human": False}
    return made


def key_of(number: int, version: int = 1) -> str:
    """The idempotency key of such an event."""
    return f"n8n:customer_email:ticket-{number}-v{version}"


@asynccontextmanager
async def staged(dsn: str, folder: Path, nursery: Nursery, **more: str) -> AsyncIterator[Stage]:
    """Stand-ins in this loop for processes of a nursery; all that was started is gone afterwards."""
    async with AsyncExitStack() as stack:
        known = Secrets()
        slack = await stack.enter_async_context(
            SlackStandIn(rate_factor=None, answer_seconds=PATIENCE_SECONDS)
        )
        model = await stack.enter_async_context(serve_model())
        world = await stack.enter_async_context(serve_world(World(signing_secret=known.effects)))
        addresses = Addresses(slack.api_url, model.base_url, world.url)
        workspace = slack.state.workspace
        tokens = (workspace.token, workspace.signing_secret)
        env = dict(environment(addresses, known, tokens, folder=folder, port=0))
        env |= {
            "DATABASE_URL": dsn,
            "LOG_LEVEL": "INFO",
            "LOG_FORMAT": "json",
            "PYTHONPATH": str(ROOT),
        } | more
        stage = Stage(dsn, folder, slack, model, world, known, nursery, env)
        stage.change_policy(QUICKER)
        stack.push_async_callback(stage.clear)
        yield stage
