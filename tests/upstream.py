"""An upstream system that talks to our HTTP in this process, over the real database.

Not here: rows (tests/makers) or fixtures (tests/conftest).
"""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from starlette.routing import Router

from bot.connectors.reach import Reach
from bot.contracts.event import Event, Origin
from bot.doors import health, intake, runs
from bot.doors.answers import NotFound
from bot.doors.openapi import describe
from bot.doors.senders import Senders
from bot.flow.arrive import Arrival, make_arrival
from bot.flow.receive import Receiver
from bot.flow.tally import Tally
from bot.policy.kinds import Policy, load_policy
from bot.policy.signatures import NamedSecret, SignedMessage, sign
from store.database import Database
from store.migrate import migrations

PUBLIC_URL = "https://stet.example"
TOKEN = "n8n-secret"
SECRET = b"a secret whose bytes are text"

E0: dict[str, Any] = {
    "event_key": "evt-1001",
    "kind": "customer_email",
    "entity": "cust-77",
    "source_version": 7,
    "payload": {"to": "amy@example.test", "subject": "Late parcel", "text": "Where is it?"},
}

_KIND = """
[kinds."{name}"]
gate = "approve_first"
sources = {sources}
channel = "C0REVIEW"
reviewers = ["U0ALICE", "U0BOB"]
{prompt}
[kinds."{name}".output]
type = "object"
required = ["subject", "body"]
[kinds."{name}".output.properties.subject]
type = "string"
[kinds."{name}".output.properties.body]
type = "string"
[kinds."{name}".effect]
type = "http"
target = "https://n8n.example/webhook/send-mail"
recipient = "payload.to"
[[kinds."{name}".rules]]
level = "hard"
path = "output.body"
op = "matches"
value = "[^!]*"
message = "No exclamation marks."
"""
_PROMPT = 'prompt = "Answer. {payload}"'
POLICY = "".join(
    _KIND.format(name=name, sources=sources, prompt=prompt)
    for name, sources, prompt in (
        ("customer_email", '["n8n", "signed", "other"]', _PROMPT),
        ("order.paid", '["n8n"]', _PROMPT),
        ("order.shipped", '["n8n"]', _PROMPT),
        ("brought", '["n8n"]', ""),
    )
)


def policy() -> Policy:
    return load_policy(POLICY)


@dataclass
class Upstream:
    """One process of ours and a client that posts to it."""

    client: httpx2.AsyncClient
    receiver: Receiver
    tally: Tally
    woken: list[str]
    ready: dict[str, bool] = field(default_factory=lambda: {"slack": True, "scheduler": True})

    async def post(
        self, event: dict[str, Any] | bytes, *, token: str | None = TOKEN, **headers: str
    ) -> httpx2.Response:
        """Deliver an event, or raw bytes, with a bearer token."""
        raw = event if isinstance(event, bytes) else json.dumps(event).encode()
        every = {"content-type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
        if token is not None:
            every["authorization"] = f"Bearer {token}"
        return await self.client.post("/events", content=raw, headers=every)

    async def get(self, path: str, *, token: str = TOKEN) -> httpx2.Response:
        return await self.client.get(path, headers={"authorization": f"Bearer {token}"})


def signed(raw: bytes, *, secret: bytes = SECRET, age_seconds: int = 0) -> dict[str, str]:
    """Standard Webhooks headers over raw bytes."""
    stamp = str(int(time.time()) - age_seconds)
    signature = sign(secret, SignedMessage("evt", stamp, raw))
    return {"webhook-id": "evt", "webhook-timestamp": stamp, "webhook-signature": signature}


@asynccontextmanager
async def upstream(db: Database, **limits: int) -> AsyncIterator[Upstream]:
    """Serve our HTTP over this pool, as one process does."""
    woken: list[str] = []
    tally = Tally(db)
    receiver = Receiver(db, tally, wake=woken.append, release="test")
    senders = Senders(
        tokens=(NamedSecret("n8n", TOKEN.encode()), NamedSecret("other", b"other-secret")),
        signing=(NamedSecret("signed", b"an older secret"), NamedSecret("signed", SECRET)),
    )
    reach = Reach.parse("n8n.example")
    ready = {"slack": True, "scheduler": True}
    every = [
        *intake.routes(intake.IntakeDeps(receiver, senders, policy(), reach, PUBLIC_URL, **limits)),
        *runs.routes(runs.RunsDeps(db, senders, PUBLIC_URL)),
        *health.routes(
            health.HealthDeps(
                db,
                tally,
                schema_number=len(migrations()),
                slack_known=lambda: ready["slack"],
                scheduler_beating=lambda: ready["scheduler"],
                document=describe(public_url=PUBLIC_URL, release="test"),
            )
        ),
    ]
    app = Router(every, redirect_slashes=False, default=NotFound())
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=PUBLIC_URL) as client:
        yield Upstream(client, receiver, tally, woken, ready)
        await receiver.close()


def arrival(
    version: int = 7,
    *,
    key: str | None = None,
    entity: str = "cust-77",
    source: str = "n8n",
    **more: Any,
) -> Arrival:
    """An event that passed the door."""
    event = Event(
        source=source,
        kind="customer_email",
        event_key=key or f"evt-{version}",
        entity=entity,
        source_version=version,
        payload=more.pop("payload", {"to": "amy@example.test"}),
        **more,
    )
    return make_arrival(event, Origin())
