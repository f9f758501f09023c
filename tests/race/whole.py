"""One whole process in this loop, its steps run by hand, with Slack, a model and a world around it.

Not here: what people and the world do to it (test_any_sequence) or what must hold then (always).
"""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2

from bot import assembly
from bot.assembly import Process, build_process
from bot.contracts.click import decode_value
from bot.demo.model import ModelServer, serve_model
from bot.demo.model_script import TALK, Step
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message
from bot.demo.slack_workspace import C_OPS, C_REVIEW, S_REVIEWERS, make_workspace
from bot.demo.stage import Addresses, Secrets, environment
from bot.demo.world import World
from bot.demo.world_server import WorldServer, serve_world
from bot.drafting.model import ModelClient
from bot.drafting.model import Pace as ModelPace
from bot.flow.naming import Names
from bot.policy.kinds import Kind, load_policy
from bot.policy.tokens import hash_token
from bot.registry import find_effect_types, find_gate_modes
from bot.settings import Settings
from bot.slack.pace import Pace
from bot.variables import Variables
from tests.conftest import empty
from tests.doors.slack_world import serving
from tests.flow.screens import QUICK
from tests.makers import change
from tests.processes import PATIENCE_SECONDS

KINDS = ("customer_email", "refund", "note", "notice", "order")
TARGET = "/webhook/act-"
# The order of what follows an event; each runs until all of them find nothing more to do.
STEPS = (
    *("withdraw", "expire", "draft", "redraft", "places", "show", "dispatch", "recover", "resume"),
    *("alert", "home", "count", "switched", "sweep", "tell"),
)
MOST_ROUNDS = 60  # A net under steps that never come to rest.

_POLICY = """
[kinds.{name}]
gate = {gate}
sources = ["n8n"]
channel = "{channel}"
reviewers = ["{reviewers}"]
quorum = {quorum}
separate_duties = {separate}
confirm = "{confirm}"
redrafts = 3
prompt = "Answer. {{payload}}"
[kinds.{name}.output]
type = "object"
required = ["subject", "body", "label"]
[kinds.{name}.output.properties.subject]
type = "string"
[kinds.{name}.output.properties.body]
type = "string"
[kinds.{name}.output.properties.label]
type = "string"
[[kinds.{name}.rules]]
level = "allow"
path = "output.label"
op = "in"
value = ["shipping"]
message = "About a parcel."
"""
_EFFECT = """
[kinds.{name}.effect]
type = "http"
target = "{world}{target}{name}"
recipient = "payload.to"
response_id = "id"
lookup = "{world}/webhook/sent/{{effect_id}}"
"""
_EFFECTS = """
[[kinds.{name}.effects]]
name = "mail"
type = "http"
target = "{world}{target}{name}"
recipient = "payload.to"
response_id = "id"
lookup = "{world}/webhook/sent/{{effect_id}}"
[kinds.{name}.effects.undo]
type = "http"
target = "{world}{target}{name}-undo"
recipient = "payload.to"
response_id = "id"
lookup = "{world}/webhook/sent/{{effect_id}}"
[[kinds.{name}.effects]]
name = "entry"
after = "mail"
type = "http"
target = "{world}{target}{name}-entry"
response_id = "id"
lookup = "{world}/webhook/sent/{{effect_id}}"
[[kinds.{name}.effects]]
name = "news"
type = "http"
target = "{world}{target}{name}-news"
response_id = "id"
[kinds.{name}.effects.undo]
type = "http"
target = "{world}{target}{name}-old"
response_id = "id"
"""
_EARNED = """
[kinds.notice.earned]
decisions = 5
threshold = 0.5
sample = 0.0
"""
_DUE = (
    "UPDATE cards SET next_attempt_at = now() WHERE next_attempt_at > now()",
    # A post whose answer was lost is believed absent only after a while.
    "UPDATE cards SET post_started_at = post_started_at - interval '60 seconds' WHERE ts IS NULL",
    "UPDATE alerts SET next_attempt_at = now() WHERE sent_at IS NULL AND next_attempt_at > now()",
)


def policy_text(world_url: str) -> str:
    """Every gate, one voter and two, every way to confirm; one effect and several, which can be undone."""
    kinds = {
        "customer_email": ('"approve_first"', 1, "true", "none"),
        "refund": ('"approve_first"', 2, "false", "typed"),
        "note": ('"delayed"\ncancel_window = "10m"', 1, "false", "dialog"),
        "notice": ('"by_exception"', 2, "false", "none"),
        "order": ('"approve_first"', 1, "false", "none"),
    }
    where = {"channel": C_REVIEW, "reviewers": S_REVIEWERS, "world": world_url, "target": TARGET}
    names = ("gate", "quorum", "separate", "confirm")
    tables = [
        _POLICY.format(name=name, **where, **dict(zip(names, terms, strict=True)))
        for name, terms in kinds.items()
    ]
    effects = [(_EFFECTS if name == "order" else _EFFECT).format(name=name, **where) for name in kinds]
    return "".join((*tables, *effects, _EARNED))


@dataclass(frozen=True, slots=True)
class Beside:
    """A button's value and what stood beside it; `whole`: exactly that is what its hash is of."""

    value: str
    blocks: list[dict[str, Any]]
    whole: bool


@dataclass
class Whole:
    """One process of ours and everything around it."""

    dsn: str
    process: Process
    slack: SlackStandIn
    model: ModelServer
    world: WorldServer
    http: httpx2.AsyncClient
    kinds: dict[str, Kind]
    names: Names
    made: int = 0
    seen: dict[str, "Beside"] = field(default_factory=dict)
    """The buttons that people had before them, by the hash of their tokens."""

    async def reset(self) -> None:
        """Everything as on the first day."""
        empty(self.dsn)
        state = self.slack.state
        for kept in (state.messages, state.ephemerals, state.views, state.open_views, state.homes):
            kept.clear()
        self.seen.clear()
        state.workspace.groups = make_workspace().groups
        self.forget_people()
        self.slack.faults.clear()
        world = self.world.world
        world.behave()
        world._journal.clear()
        world._ids.clear()
        self.model.script.reset()
        self.made = 0
        for _ in range(5):
            change(
                self.dsn,
                "INSERT INTO agreements (ground, decided_at, run_id, unedited)"
                " VALUES (%(ground)s, clock_timestamp(), gen_random_uuid(), true)",
                ground=self.kinds["notice"].ground,
            )

    def forget_people(self) -> None:
        """Let a change of a group be known at once, as after a minute."""
        people = self.process.parts.outside.people
        people._groups._known.clear()
        people._people._known.clear()

    def new_words(self, name: str) -> str:
        """Words that stand nowhere else."""
        self.made += 1
        return f"{name}-{self.made}-end"

    def saw(self, blocks: list[dict[str, Any]], *, whole: bool) -> None:
        """Remember what stood beside each button; not `whole`: more was shown than one button is about."""
        for value in values_of(blocks):
            self.saw_beside(value, Beside(value, json.loads(json.dumps(blocks)), whole))

    def saw_beside(self, value: str, beside: "Beside") -> None:
        """Remember what stood beside one value."""
        carried = decode_value(value)
        if carried is not None:
            self.seen[hash_token(carried.token)] = beside

    def cards(self) -> list[Message]:
        """Every message of the reviewers' channel, and every card of an unknown effect."""
        ops = self.slack.state.channel_messages(C_OPS)
        unknown = [one for one in ops if (one.metadata or {}).get("event_type") == "stet_card"]
        return [*self.slack.state.channel_messages(C_REVIEW), *unknown]

    async def draw(self) -> None:
        """Draw the cards that are behind, and do nothing else."""
        while await self.process.timer._steps["show"].step.run_once():
            change(self.dsn, _DUE[0])
            self.process.parts.outside.pace._held_until.clear()

    async def settle(self, *more: str) -> None:
        """Run every step until there is nothing more to do now; `more` once before the others."""
        await self.process.parts.doors.settle()
        steps = self.process.timer._steps
        handled: dict[str, int] = {}
        for _ in range(MOST_ROUNDS):
            for statement in _DUE:
                change(self.dsn, statement)
            self.process.parts.outside.pace._held_until.clear()
            handled.clear()
            for name in (*more, *STEPS):
                handled[name] = await steps[name].step.run_once()
                await self._drain(name)
            more = ()
            if not any(handled.values()):
                return
        raise AssertionError(f"these never come to rest: {handled}")

    async def _drain(self, name: str) -> None:
        parts = self.process.parts
        match name:
            case "draft":
                await parts.drafter.drain()
            case "redraft":
                await parts.redrafter.drain()
            case "dispatch":
                await parts.dispatcher.quiet()
            case "home":
                await parts.doors.settle()


def values_of(node: Any) -> list[str]:
    """The values of all buttons in some blocks."""
    if isinstance(node, list):
        return [value for each in node for value in values_of(each)]
    if not isinstance(node, dict):
        return []
    own = [node["value"]] if node.get("type") == "button" and "value" in node else []
    return own + [value for each in node.values() for value in values_of(each)]


async def _no_wait(_seconds: float) -> None:
    """Between two tries nothing is waited in tests."""


def _speak_in_new_words(model: ModelServer, whole: Whole) -> None:
    """Let each answer of the model be another."""
    hear = model.script.hear

    def hear_and_invent(body: dict[str, Any], *, authorized: bool) -> Step:
        step = hear(body, authorized=authorized)
        if step.how != TALK or step.content is not None or step.raw is not None:
            return step
        words = whole.new_words("model")
        return replace(
            step, content=json.dumps({"subject": "Re: parcel", "body": words, "label": "shipping"})
        )

    model.script.hear = hear_and_invent  # type: ignore[method-assign]


@asynccontextmanager
async def one_whole(dsn: str, folder: Path) -> AsyncIterator[Whole]:
    """Build a process on a database of its own, and open its doors; its clock does not run."""
    async with AsyncExitStack() as stack:
        known = Secrets()
        slack = await stack.enter_async_context(
            SlackStandIn(rate_factor=None, answer_seconds=PATIENCE_SECONDS)
        )
        model = await stack.enter_async_context(serve_model())
        world = await stack.enter_async_context(serve_world(World(signing_secret=known.effects)))
        tokens = (slack.state.workspace.token, slack.state.workspace.signing_secret)
        addresses = Addresses(slack.api_url, model.base_url, world.url)
        env = environment(addresses, known, tokens, folder=folder, port=0)
        settings = Settings.load({**env, "DATABASE_URL": dsn})
        policy = load_policy(
            policy_text(world.url), effect_types=find_effect_types(), gates=find_gate_modes()
        )
        pace = partial(Pace, QUICK)
        patient = partial(ModelClient, pace=ModelPace(sleep=_no_wait))
        with mock.patch.object(assembly, "Pace", pace), mock.patch.object(assembly, "ModelClient", patient):
            process = build_process(settings, policy, Variables(), dsn=dsn, owner="one")
        process.timer._leaving.set()  # Nothing runs but what the test runs.
        parts = process.parts
        await parts.db.open()
        stack.push_async_callback(parts.db.close)
        await parts.outside.slack.open()
        stack.push_async_callback(parts.outside.slack.close)
        stack.push_async_callback(parts.outside.model.aclose)
        assert await parts.outside.identity.ask() is None
        url = await stack.enter_async_context(serving(process.app))
        slack.actor.events_url = f"{url}/slack/events"
        bearer = {"authorization": f"Bearer {known.intake}"}
        http = await stack.enter_async_context(
            httpx2.AsyncClient(base_url=url, headers=bearer, trust_env=False)
        )
        names = Names(parts.outside.slack, Pace(QUICK))
        whole = Whole(dsn, process, slack, model, world, http, dict(policy.kinds), names)
        _speak_in_new_words(model, whole)
        yield whole
        await parts.receiver.close()
        await parts.doors.settle()
