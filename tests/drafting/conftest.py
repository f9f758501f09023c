"""One pretend model on a real socket for the room's tests, and a client whose waits are recorded, not waited.

Not here: the pretend model itself (bot/demo/model).
"""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from bot.demo.model import ModelServer, serve_model
from bot.demo.model_script import Script
from bot.drafting.model import Ask, Endpoint, ModelClient, Pace

NOON = 1_800_000_000.0  # a fixed Unix time
D0 = {"subject": "About your parcel", "body": "It ships Monday.", "label": "shipping", "needs_human": False}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "subject": {"type": "string", "minLength": 1, "maxLength": 120},
        "body": {"type": "string", "minLength": 1},
        "label": {"enum": ["shipping", "refund", "other"]},
        "needs_human": {"type": "boolean"},
    },
    "required": ["subject", "body", "label", "needs_human"],
}
PAYLOAD = {"to": "amy@example.test", "subject": "Late parcel", "text": "Where is it?"}
ASK = Ask(
    kind="customer_email",
    prompt="Answer the customer: {payload}",
    output=SCHEMA,
    payload=PAYLOAD,
    timeout_seconds=30,
    max_tokens=500,
)


@dataclass
class Naps:
    """The waits that were asked for; none is waited."""

    seconds: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def pace(self) -> Pace:
        return Pace(sleep=self.sleep, chance=lambda: 0.5, now=lambda: NOON)


@pytest.fixture(scope="session")
async def model_server() -> AsyncIterator[ModelServer]:
    async with serve_model() as server:
        yield server


@pytest.fixture
def script(model_server: ModelServer) -> Script:
    model_server.script.reset()
    return model_server.script


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
async def client(model_server: ModelServer, naps: Naps) -> AsyncIterator[ModelClient]:
    endpoint = Endpoint(api_key="sk-pretend", base_url=model_server.base_url, model="stand-in-1")
    async with ModelClient(endpoint, pace=naps.pace()) as asking:
        yield asking


@pytest.fixture
def d0() -> str:
    return json.dumps(D0)


@pytest.fixture
def changed() -> Callable[..., str]:
    """D0 with some fields changed, as JSON text."""
    return lambda **fields: json.dumps({**D0, **fields})


@pytest.fixture
def hasty() -> Ask:
    """The same question with a deadline that passes at once."""
    return replace(ASK, timeout_seconds=0.05)
