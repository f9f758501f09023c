"""Variables that policy.toml names, from the environment to the start of a process.

Not here: the requests they go into (tests/connectors/test_dress).
"""

from pathlib import Path

import pytest

from bot.policy.kinds import load_policy
from bot.settings import Settings, SettingsError
from bot.variables import Variables
from bot.wiring import serve
from tests.policy.samples import policy_text

EFFECT = '{ type = "http", target = "https://n8n.example/", headers = { X-Api-Key = "CRM_API_KEY" } }'


# The environment goes before `.env`, and a name set to nothing is not set.
def test_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CRM_API_KEY=from-file\nOTHER=x\nEMPTY=\n")
    read = Variables.read({"CRM_API_KEY": "from-environment"}, tmp_path / ".env")
    assert (read.get("CRM_API_KEY"), read.get("OTHER"), read.get("EMPTY")) == ("from-environment", "x", None)


# The logs are told which values to remove.
def test_secrets() -> None:
    policy = load_policy(policy_text(effect=EFFECT))
    variables = Variables({"CRM_API_KEY": "s3cret", "OTHER": "x"})
    assert list(variables.secrets(policy)) == ["s3cret"]
    assert "s3cret" not in repr(variables) + str(vars(variables))


# A missing variable stops the start with one sentence, before anything is connected to.
async def test_missing_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CRM_API_KEY", raising=False)
    (tmp_path / "policy.toml").write_text(policy_text(effect=EFFECT))
    given = {
        "POLICY_FILE": str(tmp_path / "policy.toml"),
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x",
    }
    settings, _ = Settings.read(given, env_file=tmp_path / "no.env")
    with pytest.raises(SettingsError) as stopped:
        await serve(settings)
    (problem,) = stopped.value.problems
    assert str(problem).startswith("CRM_API_KEY is not set, and kinds.customer_email.effect.headers.")
