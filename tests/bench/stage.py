"""Databases, server processes and the load generator of one run; what a process costs, read from the kernel.
Not here: what is measured (paths) or the rows (rows).
"""

import asyncio
import json
import os
import signal
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from bot.policy.kinds import Kind, load_policy
from store.ids import new_id
from store.migrate import migrate
from tests.bench.standins import Outside
from tests.bench.traffic import CHANNEL, INTAKE_SECRET, REVIEWER, SLACK_SECRET, TOKEN

ROOT = Path(__file__).parents[2]
APART = 10_000_000  # Between the rows of two paths on one database.
CHANNELS = 20  # Kinds with a channel each, for paths that post cards.
_POLICY = """
[kinds.{kind}]
gate = "approve_first"
sources = ["n8n"]
channel = "{channel}"
reviewers = ["{reviewer}", "U0BOB"]
prompt = "Answer this mail. {{payload}}"
timeout = "300s"
[kinds.{kind}.output]
type = "object"
additionalProperties = false
required = ["subject", "body"]
properties = {{ subject = {{ type = "string" }}, body = {{ type = "string" }} }}
[kinds.{kind}.effect]
type = "http"
target = "{url}/send"
recipient = "payload.to"
response_id = "id"
"""


@dataclass(slots=True)
class Ground:
    """A database, and the number from which on rows may be made in it."""

    dsn: str
    base: int


@dataclass(slots=True)
class Bench:
    """What every path works with."""

    server: str
    template: str
    folder: Path
    outside: Outside
    seconds: float
    past: "Ground | None" = None

    @contextmanager
    def ground(self) -> Iterator["Ground"]:
        """A database for one path: its own and empty, or the common one with a long past."""
        if self.past is not None:
            self.past.base += APART
            yield self.past
            return
        name = f"stet_bench_{new_id().hex}"
        _manage(self.server, "CREATE DATABASE {} TEMPLATE {}", name, self.template)
        try:
            yield Ground(make_conninfo(self.server, dbname=name), APART)
        finally:
            _manage(self.server, "DROP DATABASE {} WITH (FORCE)", name)

    @property
    def policy(self) -> str:
        """The kinds: one for most paths, and some with a channel of their own."""
        named = [("customer_email", CHANNEL), *((f"mail_{n}", f"C0MAIL{n}") for n in range(CHANNELS))]
        return "".join(
            _POLICY.format(kind=kind, channel=channel, reviewer=REVIEWER, url=self.outside.url)
            for kind, channel in named
        )

    @property
    def kind(self) -> Kind:
        """The kind of most paths."""
        return load_policy(self.policy).kinds["customer_email"]

    @asynccontextmanager
    async def stet(self, dsn: str, **more: str) -> AsyncIterator["Server"]:
        """Serve Stet on a database."""
        file = self.folder / "policy.toml"
        file.write_text(self.policy, "utf-8")
        settings = {
            "DATABASE_URL": dsn,
            "HOST": "127.0.0.1",
            "PORT": "0",
            "SLACK_API_URL": f"{self.outside.url}/api/",
            "SLACK_BOT_TOKEN": "xoxb-bench",
            "SLACK_SIGNING_SECRET": SLACK_SECRET,
            "OPENAI_API_KEY": "pretend",
            "OPENAI_BASE_URL": f"{self.outside.url}/v1",
            "OPENAI_MODEL": "pretend",
            "INTAKE_TOKENS": f"n8n:{TOKEN}",
            "INTAKE_SIGNING_SECRETS": f"n8n:{_whsec(INTAKE_SECRET)}",
            "EFFECT_ALLOWED_HOSTS": f"127.0.0.1:{self.outside.port}",
            "EFFECT_SIGNING_SECRET": _whsec(b"what leaves is signed with this"),
            "AI_ACTIONS_ENABLED": "true",
            "POLICY_FILE": str(file),
            "LOG_LEVEL": "ERROR",
        }
        async with served("tests.bench.serve", environment=settings | more) as server:
            yield server

    async def load(self, server: "Server", file: Path, **how: Any) -> dict[str, Any]:
        """Ask a server, from a process of its own, until the time is up or (`once`) nothing is left."""
        order = {"connections": 16, "once": False, "gap_ms": 0, "seconds": self.seconds}
        order |= how | {"port": server.port, "file": str(file)}
        return await run("tests.bench.load", order)


@dataclass(frozen=True, slots=True)
class Server:
    """A process that listens."""

    pid: int
    port: int

    def cpu_seconds(self) -> float:
        """Processor time of all its threads so far."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def megabytes(self) -> float:
        """Resident memory."""
        status = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in status if line.startswith("VmRSS"))) / 1024


@asynccontextmanager
async def served(
    module: str, *words: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Server]:
    """Run a module that prints its port and serves; it is asked to end afterwards."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *words),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=_environment() | dict(environment or {}),
    )
    assert process.stdout
    try:
        line = await process.stdout.readline()
        if not line:
            raise RuntimeError(f"{module} did not start")
        yield Server(process.pid, int(line))
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def run(module: str, order: Mapping[str, Any]) -> dict[str, Any]:
    """Run a module that takes an order and gives a result."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=_environment(),
    )
    result, _ = await process.communicate(json.dumps(order).encode())
    if process.returncode:
        raise RuntimeError(f"{module} ended with {process.returncode}")
    return dict(json.loads(result))


@contextmanager
def template(server: str) -> Iterator[str]:
    """A migrated, empty database that is only cloned."""
    name = f"stet_bench_template_{os.getpid()}"
    _manage(server, "CREATE DATABASE {}", name)
    try:
        migrate(make_conninfo(server, dbname=name))
        yield name
    finally:
        _manage(server, "DROP DATABASE {} WITH (FORCE)", name)


def _manage(server: str, statement: Any, *names: str) -> None:
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _whsec(secret: bytes) -> str:
    return "whsec_" + b64encode(secret).decode()


def _environment() -> dict[str, str]:
    kept = {
        name: os.environ[name] for name in ("PATH", "HOME", "LANG", "BENCH_PROFILE") if name in os.environ
    }
    return kept | {"PYTHONPATH": str(ROOT)}
