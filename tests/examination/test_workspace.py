"""Slack as the doctor sees it: every fault that a token can see has its line and its mend.

Not here: whether clicks arrive (test_click).
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bot.demo.slack_faults import limited, says
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import (
    C_NOT_JOINED,
    C_OPS,
    C_REVIEW,
    C_SHARED,
    C_SUPPORT,
    S_ADMINS,
    S_EMPTY,
    S_LEADS,
    S_REVIEWERS,
    U_ALICE,
    U_BOB,
    U_GONE,
    U_GUEST,
    U_STET,
    Workspace,
)
from bot.examination.manifest import MANIFEST, compare_scopes, read_scopes
from bot.examination.workspace import examine_workspace, people_of
from bot.policy.kinds import load_policy
from bot.policy.terms import Kind
from bot.settings import Settings

POLICY = f"""
[kinds.customer_email]
gate = "approve_first"
sources = ["n8n"]
channel = "{C_REVIEW}"
reviewers = ["{S_REVIEWERS}", "{U_ALICE}"]
escalate_to = "{S_LEADS}"
prompt = "Answer the customer. {{payload}}"
[kinds.customer_email.output]
type = "object"
[kinds.customer_email.effect]
type = "http"
target = "https://n8n.example/webhook/send-mail"
recipient = "payload.to"
"""
MESSAGE = f"""
{POLICY[: POLICY.index("[kinds.customer_email.effect]")]}
properties = {{ text = {{ type = "string" }} }}
[kinds.customer_email.effect]
type = "slack_message"
target = "TARGET"
"""
KIND = load_policy(POLICY).kinds["customer_email"]


@pytest_asyncio.fixture
async def slack() -> AsyncIterator[SlackStandIn]:
    async with SlackStandIn(rate_factor=None) as stand_in:
        yield stand_in


async def examined(slack: SlackStandIn, kind: Kind = KIND, **more: str) -> list[str]:
    """The lines about Slack."""
    values = {
        "SLACK_BOT_TOKEN": slack.state.workspace.token,
        "SLACK_SIGNING_SECRET": slack.state.workspace.signing_secret,
        "SLACK_API_URL": slack.api_url,
        "INTAKE_TOKENS": "n8n:0123456789abcdef",
        "OPS_CHANNEL": C_OPS,
        "ADMIN_USERS": S_ADMINS,
        "KILL_USERS": U_BOB,
    }
    settings = Settings.load(values | more, env_file=Path("no.env"))
    return [str(finding) async for finding in examine_workspace(settings, [kind])]


# All that the policy and the settings name is tried, each once, and all is well.
async def test_well(slack: SlackStandIn) -> None:
    slack.state.workspace.scopes.add("pins:read")
    said = await examined(slack, SLACK_APP_TOKEN=slack.state.workspace.app_token)
    assert said == [
        "ok     SLACK_BOT_TOKEN: stet in Stand-in",
        "ok     SLACK_BOT_TOKEN scopes: all of manifest.yml, and pins:read, which Stet does not use",
        f"ok     channel {C_OPS}",
        f"ok     channel {C_REVIEW}",
        f"ok     user group {S_ADMINS} (ADMIN_USERS): 1 people",
        f"ok     user group {S_LEADS} (kinds.customer_email.escalate_to): 1 people",
        f"ok     user group {S_REVIEWERS} (kinds.customer_email.reviewers): 4 people",
        f"ok     user {U_ALICE} (kinds.customer_email.reviewers)",
        f"ok     user {U_BOB} (KILL_USERS)",
        "ok     App Home",
        "ok     SLACK_APP_TOKEN: Socket Mode; Slack sends nothing by HTTP then",
    ]
    assert slack.socket.links == []
    assert list(slack.state.homes) == [U_STET]


# A channel that the last reminder is put to is tried as a channel, not taken for a person.
async def test_escalation_to_a_channel(slack: SlackStandIn) -> None:
    kind = load_policy(POLICY.replace(S_LEADS, C_SUPPORT)).kinds["customer_email"]
    said = [line for line in await examined(slack, kind) if C_SUPPORT in line]
    assert said == [f"ok     channel {C_SUPPORT}"]
    slack.state.workspace.channels[C_SUPPORT].is_member = False
    said = [line for line in await examined(slack, kind) if C_SUPPORT in line]
    assert said == [f"wrong  channel {C_SUPPORT}: the bot is not in it: /invite it there"]


# So is where a Slack message always goes: a channel, or a person, who need not be one that may decide.
@pytest.mark.parametrize(
    ("place", "line"),
    [
        (C_SUPPORT, "ok     channel C0SUPPORT"),
        (C_SHARED, "wrong  channel C0SHARED: it is shared with another company: name one of your own"),
        (C_NOT_JOINED, "wrong  channel C0NOTJOINED: the bot is not in it: /invite it there"),
        (U_GUEST, "ok     user U0GUEST (kinds.customer_email.effect.target)"),
        (U_GONE, "wrong  user U0GONE (kinds.customer_email.effect.target): deactivated: name somebody else"),
        (
            "U0NOBODY",
            "wrong  user U0NOBODY (kinds.customer_email.effect.target): user_not_found: check the id",
        ),
    ],
)
async def test_message_targets(slack: SlackStandIn, place: str, line: str) -> None:
    kind = load_policy(MESSAGE.replace("TARGET", place)).kinds["customer_email"]
    assert line in await examined(slack, kind)


# Where the event names the place, there is nothing to try beforehand.
async def test_message_recipients(slack: SlackStandIn) -> None:
    said = MESSAGE.replace("TARGET", U_GONE) + 'recipient = "payload.who"\n'
    kind = load_policy(said).kinds["customer_email"]
    assert not any(U_GONE in line for line in await examined(slack, kind))


def _lacks(scope: str) -> Callable[[Workspace], None]:
    return lambda workspace: workspace.scopes.discard(scope)


def _home_off(workspace: Workspace) -> None:
    workspace.home_enabled = False


def _free_plan(workspace: Workspace) -> None:
    workspace.paid_plan = False


def _kicked(workspace: Workspace) -> None:
    workspace.channels[C_REVIEW].is_member = False


def _private(workspace: Workspace) -> None:
    workspace.channels[C_REVIEW].is_member = False
    workspace.channels[C_REVIEW].is_private = True


def _archived(workspace: Workspace) -> None:
    workspace.channels[C_OPS].is_archived = True


def _shared(workspace: Workspace) -> None:
    workspace.channels[C_REVIEW].is_ext_shared = True


def _emptied(workspace: Workspace) -> None:
    workspace.groups[S_REVIEWERS] = []


def _left(workspace: Workspace) -> None:
    workspace.users[U_ALICE].deleted = True


# Each fault in the workspace is one line that says what to do.
@pytest.mark.parametrize(
    ("break_it", "line"),
    [
        (_lacks("channels:history"), "SLACK_BOT_TOKEN scopes: it lacks channels:history: add them under"),
        (_home_off, "App Home: it is off: switch on the Home Tab under App Home"),
        (
            _free_plan,
            f"user group {S_REVIEWERS} (kinds.customer_email.reviewers): user groups need a paid plan",
        ),
        (_kicked, f"channel {C_REVIEW}: the bot is not in it: /invite it there"),
        (_private, f"channel {C_REVIEW}: channel_not_found: check the id, and invite the bot"),
        (_archived, f"channel {C_OPS}: it is archived: unarchive it or name another"),
        (_shared, f"channel {C_REVIEW}: it is shared with another company: name one of your own"),
        (_emptied, f"user group {S_REVIEWERS} (kinds.customer_email.reviewers): nobody is in it"),
        (_left, f"user {U_ALICE} (kinds.customer_email.reviewers): deactivated: such an account may never"),
        (_lacks("usergroups:read"), f"user group {S_ADMINS} (ADMIN_USERS): missing_scope (usergroups:read)"),
        (_lacks("users:read"), f"user {U_BOB} (KILL_USERS): missing_scope (users:read): check the id"),
    ],
)
async def test_each_fault(slack: SlackStandIn, break_it: Callable[[Workspace], None], line: str) -> None:
    break_it(slack.state.workspace)
    said = await examined(slack)
    assert [each for each in said if each.startswith(f"wrong  {line}")], said


# Whoever may never decide is no reviewer: guests, strangers, bots, and ids that are nobody.
@pytest.mark.parametrize(
    ("user", "why"),
    [
        ("U0GUEST", "guest"),
        ("U0STRANGER", "stranger"),
        ("U0ROBOT", "bot"),
        ("U0GONE", "deactivated"),
        ("U0NOSUCH", "user_not_found"),
    ],
)
async def test_people(slack: SlackStandIn, user: str, why: str) -> None:
    said = await examined(slack, KILL_USERS=user)
    [line] = [each for each in said if each.startswith("wrong")]
    assert line.startswith(f"wrong  user {user} (KILL_USERS): {why}")


# A token that Slack refuses, or a Slack that is away, ends it with one line.
@pytest.mark.parametrize("word", ["invalid_auth", "account_inactive", "internal_error"])
async def test_token(slack: SlackStandIn, word: str) -> None:
    slack.faults.always("auth.test", says(word))
    [line] = await examined(slack)
    assert line.startswith("wrong  SLACK_BOT_TOKEN: ")
    assert word in line


# What Slack does not tell is not made up: an App Home that cannot be tried is said to be so, and is no fault.
async def test_home_unknown(slack: SlackStandIn) -> None:
    slack.faults.always("views.publish", says("some_new_error"))
    said = await examined(slack)
    assert said[-1] == "ok     App Home: cannot be tried from here (some_new_error); open it in Slack to see"


# Told to wait by Slack it waits, and asks again.
async def test_limited(slack: SlackStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("bot.examination.workspace.sleep", wait)
    slack.faults.order("usergroups.users.list", limited("7"), nth=2)
    assert all(line.startswith("ok") for line in await examined(slack))
    assert waited == [7.0]


# An app token of the wrong kind is told by Slack's word.
async def test_app_token(slack: SlackStandIn) -> None:
    slack.faults.always("apps.connections.open", says("not_allowed_token_type"))
    said = await examined(slack, SLACK_APP_TOKEN=slack.state.workspace.app_token)
    assert said[-1] == (
        "wrong  SLACK_APP_TOKEN: not_allowed_token_type: make one under Basic Information,"
        " App-Level Tokens, with connections:write"
    )


# Whoever is named several times is tried once, under the first name.
def test_people_once() -> None:
    settings = Settings.read({"ADMIN_USERS": f"{U_ALICE},{S_LEADS}", "KILL_USERS": U_ALICE})[0]
    regulated = KIND.model_copy(update={"qualified": (S_EMPTY, U_ALICE)})
    assert people_of(settings, [regulated, replace_name(regulated)]) == {
        S_REVIEWERS: "kinds.customer_email.reviewers",
        U_ALICE: "kinds.customer_email.reviewers",
        S_EMPTY: "kinds.customer_email.qualified",
        S_LEADS: "kinds.customer_email.escalate_to",
    }


def replace_name(kind: Kind) -> Kind:
    return kind.model_copy(update={"name": "other"})


# The manifest is read as data; one that is not there or not a manifest is said to be so.
@pytest.mark.parametrize(
    "text",
    [None, "", "[", "oauth_config: {}", "oauth_config: {scopes: {bot: chat}}", "- a", "a: !!python/none"],
)
def test_no_manifest(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "manifest.yml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert "manifest.yml cannot be read" in compare_scopes(frozenset({"chat:write"}), path).mend


# Our own manifest is where the doctor looks for it.
def test_own_manifest() -> None:
    wanted: Any = read_scopes(MANIFEST)
    assert "chat:write" in wanted
    assert compare_scopes(wanted).mend == ""
    assert compare_scopes(wanted - {"commands"}).mend.startswith("it lacks commands: ")
