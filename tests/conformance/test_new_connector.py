"""A new connector is one new file: suite, table, registry, policy and doctor take it up as it is.

Not here: the suite itself (test_connectors). What a far side is for a new connector stands in far.
"""

import inspect
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bot import connectors
from bot.connectors.answers import write_outcomes
from bot.connectors.connector import Effect
from bot.demo.world_server import serve_world
from bot.doctor import examine
from bot.policy.effective import describe
from bot.policy.kinds import load_policy
from bot.registry import build_registry, find_connectors, find_effect_types
from bot.settings import Settings
from store.database import Database
from tests.conformance import test_connectors as suite
from tests.conformance.far import FarSide
from tests.conformance.far_http import SCENES, HttpHarness
from tests.connectors.effects import make_effect, make_kit
from tests.policy.samples import policy_text

SAMPLE = '''"""The connector for `effect.type = "pigeon"`: a sample."""

from bot.connectors import answers
from bot.connectors.exchange import Call, Exchange, Failed
from bot.contracts.outcome import NoAnswer
from store.database import outside_transaction

EFFECT_TYPE = "pigeon"
LEFT_OUT = ("no_response_id", "not_confirmed", "variable_not_set")
OUTCOMES = tuple(row for row in answers.OUTCOMES if row.cause not in LEFT_OUT)


class Pigeon:
    effect_type = EFFECT_TYPE

    def __init__(self, exchange, clock):
        self.exchange, self.clock = exchange, clock

    def idempotent(self, effect):
        return False

    async def send(self, effect):
        outside_transaction()
        call = Call("POST", effect.target, {"idempotency-key": str(effect.effect_id)}, effect.body)
        answer = await self.exchange.call(call, within_seconds=effect.policy.timeout_seconds)
        if isinstance(answer, Failed):
            return answers.settle(answer.cause)
        return answers.judge(answer, response_id=None, now=self.clock())

    async def look_up(self, effect):
        outside_transaction()
        return NoAnswer("no_lookup")


def addresses(policy):
    return {"target": policy.target}


def build(kit):
    return Pigeon(Exchange(kit.reach, resolve=kit.resolve, tls=kit.tls), kit.clock)
'''
SUITE = {
    name: test
    for name, test in inspect.getmembers(suite, inspect.iscoroutinefunction)
    if name.startswith("test_") and "harness" in inspect.signature(test).parameters
}
LEFT_OUT = {"no_response_id", "not_confirmed", "variable_not_set"}
CAUSES = sorted(set(SCENES) - LEFT_OUT)


class PigeonHarness(HttpHarness):
    """The demo's world for pigeons, which cannot look up."""

    def effect(self, **policy: Any) -> Effect:
        return HttpHarness.effect(self, **{"type": "pigeon", **policy})

    def at(self, url: str, **policy: Any) -> Effect:
        return make_effect(url, **{"type": "pigeon", "timeout_seconds": 5, **policy})


@pytest.fixture
def pigeon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The one new file, put where the connectors are."""
    (tmp_path / "pigeon.py").write_text(SAMPLE)
    monkeypatch.setattr(connectors, "__path__", [*connectors.__path__, str(tmp_path)])
    yield find_connectors()["pigeon"]
    del sys.modules["bot.connectors.pigeon"]
    del connectors.pigeon  # type: ignore[attr-defined]


def far_side(pigeon: ModuleType) -> FarSide:
    @asynccontextmanager
    async def harness() -> AsyncIterator[HttpHarness]:
        async with serve_world() as world:
            yield PigeonHarness(world, pigeon.build(make_kit()), can_look_up=False)

    return FarSide(harness, SCENES)


# The suite has nothing in it that holds for our own connectors only.
@pytest.mark.parametrize("name", sorted(SUITE))
async def test_whole_suite(
    name: str, pigeon: ModuleType, caplog: pytest.LogCaptureFixture, db: Database
) -> None:
    given: dict[str, Any] = {"caplog": caplog, "db": db}
    async with far_side(pigeon).harness() as harness:
        wanted = inspect.signature(SUITE[name]).parameters
        await SUITE[name](harness, **{key: given[key] for key in wanted if key != "harness"})


# So do the rows of its table.
@pytest.mark.parametrize("cause", [cause for cause in CAUSES if cause not in ("crowded", "connect_timeout")])
async def test_rows(cause: str, pigeon: ModuleType) -> None:
    await suite.check_row(pigeon, far_side(pigeon), cause)


# A row that nobody brings about fails.
async def test_row_without_scene(pigeon: ModuleType) -> None:
    side = far_side(pigeon)
    bare = FarSide(side.harness, {})
    with pytest.raises(AssertionError, match="does not bring sent about"):
        await suite.check_row(pigeon, bare, "sent")


# Registry, policy, the table's print and the doctor know it, and nothing else was edited.
async def test_taken_up(pigeon: ModuleType, tmp_path: Path) -> None:
    assert build_registry(make_kit()).connectors["pigeon"].effect_type == "pigeon"
    assert "pigeon" in find_effect_types()
    text = policy_text(effect='{ type = "pigeon", target = "https://loft.example/fly" }')
    (kind,) = load_policy(text, effect_types=find_effect_types()).kinds.values()
    assert "pigeon, to https://loft.example/fly" in describe(kind)
    assert "| `cut` | unknown |" in write_outcomes(pigeon.OUTCOMES)
    (tmp_path / "policy.toml").write_text(text)
    env = {"POLICY_FILE": str(tmp_path / "policy.toml"), "EFFECT_ALLOWED_HOSTS": "loft.example"}
    env |= {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x", "SLACK_API_URL": "http://127.0.0.1:1/api/"}
    settings, problems = Settings.read(env, env_file=tmp_path / "no.env")
    said: list[str] = []
    await examine(settings, problems, said.append)
    assert [line for line in said if line.endswith(".effect.target: loft.example")], said


# A connector without a table of its answers stops the start.
def test_without_table(pigeon: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(pigeon, "OUTCOMES")
    with pytest.raises(Exception, match=r"bot\.connectors\.pigeon has no OUTCOMES"):
        find_connectors()
