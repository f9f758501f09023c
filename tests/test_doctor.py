"""The doctor on a whole installation: one line each, what is wrong and how to mend it, and the exit code.

Not here: Slack's side of it (tests/examination), or how settings are read (test_settings).
"""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import time_machine

from bot.__main__ import main
from bot.demo.model import serve_model
from bot.demo.model_script import MODEL_NAME
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import C_OPS, C_REVIEW, S_ADMINS, S_REVIEWERS
from bot.doctor import examine
from bot.settings import Settings

ALLOWED = "n8n.example, hooks.example, crm.example"
PROBED = "effect.probe.url: crm.example"
POLICY = f"""
[kinds.customer_email]
gate = "approve_first"
sources = ["n8n"]
channel = "{C_REVIEW}"
reviewers = ["{S_REVIEWERS}"]
prompt = "Answer the customer. {{payload}}"
[kinds.customer_email.output]
type = "object"
[kinds.customer_email.effect]
type = "http"
target = "https://n8n.example/webhook/send-mail"
recipient = "payload.to"
lookup = "https://hooks.example/webhook/sent/{{effect_id}}"
probe = {{ url = "https://crm.example/{{entity}}", version = "version" }}
"""


@pytest_asyncio.fixture
async def slack() -> AsyncIterator[SlackStandIn]:
    async with SlackStandIn(rate_factor=None) as stand_in:
        yield stand_in


def environment(slack: SlackStandIn, dsn: str, folder: Path) -> dict[str, str]:
    """An installation in which all is well."""
    policy = folder / "policy.toml"
    policy.write_text(POLICY, encoding="utf-8")
    return {
        "DATABASE_URL": dsn,
        "DATA_DIR": str(folder),
        "SLACK_BOT_TOKEN": slack.state.workspace.token,
        "SLACK_SIGNING_SECRET": slack.state.workspace.signing_secret,
        "SLACK_API_URL": slack.api_url,
        "INTAKE_TOKENS": "n8n:0123456789abcdef",
        "EFFECT_ALLOWED_HOSTS": ALLOWED,
        "AI_ACTIONS_ENABLED": "true",
        "POLICY_FILE": str(policy),
        "ADMIN_USERS": S_ADMINS,
        "OPS_CHANNEL": C_OPS,
    }


def drafting_at(url: str) -> dict[str, str]:
    """The settings of a model that answers."""
    return {"OPENAI_API_KEY": "pretend", "OPENAI_BASE_URL": url, "OPENAI_MODEL": MODEL_NAME}


async def examined(env: dict[str, str], folder: Path, **more: Any) -> tuple[int, list[str]]:
    """The exit code and the lines."""
    settings, problems = Settings.read(env, env_file=folder / "no.env")
    said: list[str] = []
    return await examine(settings, problems, said.append, **more), said


# All is well: every line says so, and the exit code is 0.
async def test_well(slack: SlackStandIn, dsn: str, tmp_path: Path) -> None:
    async with serve_model() as model:
        env = environment(slack, dsn, tmp_path) | drafting_at(model.base_url)
        code, said = await examined(env, tmp_path)
    assert said[-1] == "all is well", said
    assert code == 0
    assert all(line.startswith("ok     ") for line in said[:-1])
    for part in ("DATABASE_URL", "POLICY_FILE", "SLACK_BOT_TOKEN: ", "scopes", C_REVIEW, C_OPS, S_REVIEWERS):
        assert any(part in line for line in said), part
    for part in (
        S_ADMINS,
        "App Home",
        f"OPENAI_MODEL: {MODEL_NAME}",
        "effect.target: n8n.example",
        "effect.probe.url: crm.example",
    ):
        assert any(part in line for line in said), part


# Each wrong setting is named with its mend, the exit code is 1, and all the others are still examined.
@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"SLACK_BOT_TOKEN": "xoxb-wrong"}, "wrong  SLACK_BOT_TOKEN: invalid_auth: copy the Bot User"),
        (
            {"SLACK_API_URL": "http://127.0.0.1:1/api/"},
            "wrong  SLACK_BOT_TOKEN: Slack does not answer (connection_refused): check the network",
        ),
        ({"SLACK_APP_TOKEN": "xapp-wrong"}, "wrong  SLACK_APP_TOKEN: invalid_auth: make one under Basic"),
        ({"POLICY_FILE": "nowhere.toml"}, "wrong  POLICY_FILE: cannot be read"),
        ({"OPS_CHANNEL": "C0ARCHIVED"}, "wrong  channel C0ARCHIVED: it is archived"),
        (
            {"ADMIN_USERS": "S0NOBODY"},
            "wrong  user group S0NOBODY (ADMIN_USERS): there is no such user group",
        ),
        (
            {"EFFECT_ALLOWED_HOSTS": "hooks.example, crm.example"},
            "wrong  kinds.customer_email.effect.target: EFFECT_ALLOWED_HOSTS",
        ),
        (
            {"EFFECT_ALLOWED_HOSTS": "n8n.example, hooks.example, crm.example:8443"},
            "wrong  kinds.customer_email.effect.probe.url: EFFECT_ALLOWED_HOSTS",
        ),
        ({"OPENAI_MODEL": ""}, "wrong  OPENAI_MODEL: not set, so nothing can be drafted for customer_email"),
        ({"OPENAI_MODEL": "other"}, "wrong  OPENAI_MODEL: the endpoint does not list other"),
        (
            {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""},
            "wrong  OPENAI_API_KEY: not set, so nothing can be drafted for customer_email",
        ),
        ({"AI_ACTIONS_ENABLED": "yes"}, "wrong  AI_ACTIONS_ENABLED must be exactly true or false"),
        ({"SLACK_BOT_TOKEN": ""}, "wrong  SLACK_BOT_TOKEN is not set"),
        ({"DATABASE_URL": "postgresql://postgres@127.0.0.1:1/x"}, "wrong  DATABASE_URL: cannot be used"),
    ],
)
async def test_each_fault(
    slack: SlackStandIn, dsn: str, tmp_path: Path, change: dict[str, str], line: str
) -> None:
    async with serve_model() as model:
        full = environment(slack, dsn, tmp_path) | drafting_at(model.base_url) | change
        code, said = await examined({name: value for name, value in full.items() if value}, tmp_path)
    assert code == 1
    assert [each for each in said if each.startswith(line)], said
    assert said[-1] == "1 things to mend"
    assert sum(each.startswith("wrong") for each in said) == 1


# An endpoint of one's own may need no key.
async def test_no_key_needed(slack: SlackStandIn, dsn: str, tmp_path: Path) -> None:
    async with serve_model() as model:
        env = environment(slack, dsn, tmp_path) | drafting_at(model.base_url)
        code, said = await examined({name: env[name] for name in env if name != "OPENAI_API_KEY"}, tmp_path)
    assert (code, said[-1]) == (0, "all is well"), said


# No line holds a secret, whatever is wrong with it.
async def test_no_secret(slack: SlackStandIn, dsn: str, tmp_path: Path) -> None:
    wrong = {
        "SLACK_BOT_TOKEN": "xoxb-4711",
        "SLACK_APP_TOKEN": "xapp-4711",
        "SLACK_SIGNING_SECRET": "4711 ",
        "OPENAI_API_KEY": "sk-4711",
        "OPENAI_BASE_URL": slack.url,
        "OPENAI_MODEL": "some",
        "DATABASE_URL": "postgresql://postgres:4711@127.0.0.1:1/x",
        "EFFECT_SIGNING_SECRET": "whsec_4711!",
    }
    code, said = await examined(environment(slack, dsn, tmp_path) | wrong, tmp_path)
    assert code == 1
    assert len([line for line in said if line.startswith("wrong")]) >= 5
    assert "4711" not in "\n".join(said)


# A host whose clock is wrong is told so, in seconds and direction: it would refuse every signature.
@pytest.mark.parametrize(("off_seconds", "how"), [(-3600, "behind"), (3600, "ahead of")])
async def test_wrong_clock(slack: SlackStandIn, dsn: str, tmp_path: Path, off_seconds: int, how: str) -> None:
    env = environment(slack, dsn, tmp_path) | {"OPENAI_API_KEY": ""}
    with time_machine.travel(time.time() + off_seconds, tick=True):
        code, said = await examined(env, tmp_path)
    assert code == 1
    (line,) = [line for line in said if line.startswith("wrong  clock: ")]
    assert f" s {how} the database's: set both by NTP" in line


# A database whose schema is not ours is told by its mend.
async def test_schema(slack: SlackStandIn, server: str, tmp_path: Path) -> None:
    code, said = await examined(environment(slack, server, tmp_path), tmp_path)
    assert code == 1
    assert any(line.startswith("wrong  DATABASE_URL: ") and "migrate" in line for line in said)


# The command gives the same code, and without a single setting it says what to set.
def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("DATABASE_URL", "postgresql://postgres@127.0.0.1:1/x")
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    for name in ("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "INTAKE_TOKENS", "POLICY_FILE", "DATABASE_URL"):
        assert f"wrong  {name}" in said
