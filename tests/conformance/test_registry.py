"""Tests of finding connectors and gates by looking in their rooms.

Not here: what is found (test_connectors, test_gates).
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bot.policy.clauses import EFFECT_TYPES
from bot.registry import (
    RegistryError,
    build_registry,
    find,
    find_connectors,
    find_effect_types,
    find_gates,
)
from tests.connectors.effects import make_kit


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """An empty room named `annex`, forgotten afterwards."""
    (tmp_path / "annex").mkdir()
    (tmp_path / "annex" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    made = __import__("annex")
    yield made
    for name in [name for name in sys.modules if name.split(".")[0] == "annex"]:
        del sys.modules[name]


def put(room: ModuleType, name: str, text: str) -> None:
    (Path(next(iter(room.__path__))) / f"{name}.py").write_text(text)


# The two rooms hold at least what the demo needs, each under its own name.
def test_rooms() -> None:
    assert find_connectors()["http"].__name__ == "bot.connectors.http"
    assert find_gates()["approve_first"].__name__ == "bot.gates.approve_first"


# What a policy may name is what there is, save what only follows from an outcome.
def test_effect_types() -> None:
    assert find_effect_types() == EFFECT_TYPES == set(find_connectors()) - {"resume"}


# Everything found is built from one kit, and the registry cannot be changed afterwards.
def test_build() -> None:
    registry = build_registry(make_kit())
    assert {name: each.effect_type for name, each in registry.connectors.items()} == {
        name: name for name in find_connectors()
    }
    assert set(registry.gates) == set(find_gates())
    with pytest.raises(TypeError):
        registry.gates["late"] = registry.gates["approve_first"]  # type: ignore[index]


# One new file is enough; files without the name are ground files and stay out.
def test_one_new_file(room: ModuleType) -> None:
    put(room, "ground", "X = 1\n")
    put(room, "pigeon", "EFFECT_TYPE = 'pigeon'\ndef build(kit): return kit\n")
    assert set(find(room, name="EFFECT_TYPE", maker="build")) == {"pigeon"}


# Two files of one name stop the start, and both are named.
def test_clash(room: ModuleType) -> None:
    put(room, "pigeon", "MODE = 'same'\ndef judge(draft, kind): ...\n")
    put(room, "raven", "MODE = 'same'\ndef judge(draft, kind): ...\n")
    with pytest.raises(RegistryError, match=r"annex\.pigeon and annex\.raven"):
        find(room, name="MODE", maker="judge")


# A file with the name but without its half of the contract stops the start.
def test_half_a_contract(room: ModuleType) -> None:
    put(room, "pigeon", "EFFECT_TYPE = 'pigeon'\n")
    with pytest.raises(RegistryError, match=r"build\(\)"):
        find(room, name="EFFECT_TYPE", maker="build")
