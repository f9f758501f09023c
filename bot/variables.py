"""The values of environment variables that policy.toml names: secrets of targets, and paths of certificates.
Not here: Stet's own settings (settings), or which requests they go into (bot/connectors/dress).
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

from pydantic import SecretStr

from bot import environment as env
from bot.policy.kinds import Policy
from bot.settings import ENV_FILE, SettingProblem, Settings

_OURS = frozenset(name.upper() for name in Settings.model_fields)
_VALUE = re.compile(r"[!-~](?:[ -~]{0,8190}[!-~])?")  # what a header can carry, and most paths


class Variables:
    """Looks values up by name and shows none; Stet's own settings go to no target, whoever names them."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = {name: SecretStr(value) for name, value in (values or {}).items() if name not in _OURS}

    @classmethod
    def read(cls, environ: Mapping[str, str] | None = None, env_file: Path = ENV_FILE) -> Self:
        """All there are, those of the environment over those in `.env`; older policies may name more."""
        return cls(env.merged(os.environ if environ is None else environ, env_file))

    def get(self, name: str) -> str | None:
        """The value, if it is set and can be used."""
        value = self._values.get(name)
        text = "" if value is None else value.get_secret_value()
        return text if _VALUE.fullmatch(text) else None

    def secrets(self, policy: Policy) -> Iterator[str]:
        """The values that this policy's requests carry, for the logs to remove."""
        for kind in policy.kinds.values():
            named = [each for _, effect in kind.all_sends for each in effect.variables()]
            for key, name in named:
                if "headers." in key and (value := self.get(name)) is not None:
                    yield value

    def find_problems(self, names: Iterable[tuple[str, str]]) -> Iterator[SettingProblem]:
        """One sentence for each of these (policy key, variable) that cannot be used; never its value."""
        for key, name in names:
            if name in _OURS:
                yield SettingProblem(name, f"is Stet's own setting, and {key} names it: use another variable")
            elif name not in self._values:
                yield SettingProblem(name, f"is not set, and {key} names it: set it, or remove the key")
            elif self.get(name) is None:
                yield SettingProblem(
                    name, f"({key}) must be visible ASCII without spaces at its ends: set it anew"
                )
