"""A policy, gates, a pretend model and a pretend Slack for the steps.

Not here: rows (tests/makers) or the database (tests/conftest).
"""

from collections.abc import AsyncIterator, Callable

import pytest

from bot.demo.model import ModelServer, serve_model
from bot.demo.model_script import Script
from bot.demo.slack_server import SlackStandIn
from bot.drafting.model import Endpoint, ModelClient, Pace
from bot.flow.draft import Drafter, Drafting
from bot.flow.naming import Names
from bot.flow.show import Shower, Showing
from bot.policy.kinds import Policy, load_policy
from bot.registry import find_gates
from bot.slack import pace as slack_pace
from bot.slack.client import SlackClient
from store.database import Database
from tests.flow.screens import QUICK, NewShower

POLICY = """
[kinds.customer_email]
gate = "approve_first"
sources = ["n8n"]
channel = "C0REVIEW"
reviewers = ["U0ALICE", "U0BOB"]
timeout = "5s"
prompt = "Answer the customer. {payload}"
[kinds.customer_email.output]
type = "object"
required = ["subject", "body"]
[kinds.customer_email.output.properties.subject]
type = "string"
[kinds.customer_email.output.properties.body]
type = "string"
[kinds.customer_email.output.properties.label]
type = "string"
[kinds.customer_email.effect]
type = "http"
target = "https://n8n.example/webhook/send-mail"
recipient = "payload.to"
[[kinds.customer_email.rules]]
level = "warn"
path = "output.label"
op = "equals"
value = "refund"
message = "The customer asks for money back."
"""


@pytest.fixture(scope="session")
def policy() -> Policy:
    return load_policy(POLICY)


@pytest.fixture(scope="session")
async def model_server() -> AsyncIterator[ModelServer]:
    async with serve_model() as server:
        yield server


@pytest.fixture
def script(model_server: ModelServer) -> Script:
    model_server.script.reset()
    return model_server.script


async def _no_wait(_seconds: float) -> None:
    """Between two tries nothing is waited in tests."""


@pytest.fixture
async def drafter_on(
    model_server: ModelServer, script: Script, policy: Policy
) -> AsyncIterator[Callable[..., Drafter]]:
    """Make drafters on a database; each counts as a process of its own."""
    endpoint = Endpoint(api_key="sk-test", base_url=model_server.base_url, model="pretend")
    async with ModelClient(endpoint, pace=Pace(sleep=_no_wait)) as model:

        def make(db: Database, owner: str = "one") -> Drafter:
            gates = {name: module.judge for name, module in find_gates().items()}
            return Drafter(Drafting(db, owner, policy, model, gates))

        yield make


@pytest.fixture
async def slack() -> AsyncIterator[SlackStandIn]:
    async with SlackStandIn(rate_factor=None) as stand_in:
        yield stand_in


@pytest.fixture
async def slack_client(slack: SlackStandIn) -> AsyncIterator[SlackClient]:
    client = SlackClient(slack.state.workspace.token, base_url=slack.api_url, deadline_seconds=30)
    await client.open()
    yield client
    await client.close()


@pytest.fixture
def shower(db: Database, slack_client: SlackClient) -> NewShower:
    """Make showers on the database; each counts as a process of its own."""

    def make(owner: str = "one", *, pace: slack_pace.Pace | None = None, enabled: bool = True) -> Shower:
        own = pace or slack_pace.Pace(QUICK)
        return Shower(Showing(db, owner, slack_client, own, Names(slack_client, own), enabled))

    return make
