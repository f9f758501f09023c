"""Finds every connector and gate by looking in their rooms, and refuses to start on a clash.

Not here: the contracts (connectors/connector, gates/gate) or what is done with what was found.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType

from bot import connectors, gates
from bot.connectors.connector import Connector, Kit
from bot.gates.gate import Judge
from bot.policy.clauses import EffectPolicy


class RegistryError(Exception):
    """Two files claim one name, or a file lacks its half of the contract."""


@dataclass(frozen=True, slots=True)
class Registry:
    """Connectors by effect type, gates by mode."""

    connectors: Mapping[str, Connector]
    gates: Mapping[str, Judge]


def build_registry(kit: Kit) -> Registry:
    """Find and build everything. Raises RegistryError."""
    return Registry(
        connectors=MappingProxyType({name: module.build(kit) for name, module in find_connectors().items()}),
        gates=MappingProxyType({name: module.judge for name, module in find_gates().items()}),
    )


def find_connectors() -> dict[str, ModuleType]:
    """Modules of the connectors' room by their EFFECT_TYPE. Raises RegistryError."""
    found = find(connectors, name="EFFECT_TYPE", maker="build")
    for module in found.values():
        if not getattr(module, "OUTCOMES", ()):
            raise RegistryError(
                f"{module.__name__} has no OUTCOMES: say in a table what each answer comes to"
            )
    return found


def find_addresses(effect: EffectPolicy) -> dict[str, str]:
    """Which URLs sending this effect would call, by the key that says so. Raises RegistryError."""
    module = find_connectors().get(effect.type)
    probe = {} if effect.probe is None else {"probe.url": effect.probe.example()}
    return dict(getattr(module, "addresses", lambda _: {})(effect)) | probe


def find_effect_types() -> frozenset[str]:
    """What a policy may name as `effect.type`: every connector but those that follow from an outcome.

    Raises RegistryError.
    """
    return frozenset(
        name for name, module in find_connectors().items() if not getattr(module, "FOLLOWS_OUTCOME", False)
    )


def find_gate_modes() -> frozenset[str]:
    """What a policy may name as `gate`. Raises RegistryError."""
    return frozenset(find_gates())


def find_gates() -> dict[str, ModuleType]:
    """Modules of the gates' room by their MODE. Raises RegistryError."""
    return find(gates, name="MODE", maker="judge")


def find(room: ModuleType, *, name: str, maker: str) -> dict[str, ModuleType]:
    """Modules of a room that carry `name`; ground files carry none. Raises RegistryError."""
    found: dict[str, ModuleType] = {}
    for info in sorted(pkgutil.iter_modules(room.__path__, f"{room.__name__}."), key=lambda info: info.name):
        module = importlib.import_module(info.name)
        claimed = getattr(module, name, None)
        if claimed is None:
            continue
        if claimed in found:
            first = found[claimed].__name__
            raise RegistryError(
                f"{first} and {info.name} both say {name} = {claimed!r}; rename or remove one"
            )
        if not callable(getattr(module, maker, None)):
            raise RegistryError(f"{info.name} has {name} but no {maker}(); see the contract in its room")
        found[claimed] = module
    return found
