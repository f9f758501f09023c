"""The Slack app's manifest: what it asks for is what the code uses, and nothing more."""

import ast
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from bot.doors.listeners import COMMAND, EVENTS
from bot.doors.slack_door import PATH

ROOT = Path(__file__).parents[1]
MANIFEST: dict[str, Any] = yaml.safe_load((ROOT / "manifest.yml").read_text("utf-8"))
# What a bot token must have for each method (Slack's method pages), in channels and with people.
SCOPES = {
    "apps.connections.open": set(),  # by the app-level token, which has connections:write
    "auth.test": set(),
    "chat.postMessage": {"chat:write"},
    "chat.update": {"chat:write"},
    "chat.postEphemeral": {"chat:write"},
    "conversations.history": {"channels:history", "groups:history", "im:history"},
    "conversations.replies": {"channels:history", "groups:history"},
    "conversations.info": {"channels:read", "groups:read"},
    "conversations.open": {"im:write"},
    "usergroups.list": {"usergroups:read"},
    "usergroups.users.list": {"usergroups:read"},
    "users.info": {"users:read"},
    "views.open": set(),
    "views.push": set(),
    "views.update": set(),
    "views.publish": set(),
}


def methods_called() -> set[str]:
    """Every Web API method that the one holder of a client names."""
    tree = ast.parse((ROOT / "bot" / "slack" / "client.py").read_text("utf-8"))
    return {
        call.args[0].value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in {"_write", "_read"}
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }


# The scopes are those of the methods called, and of the command; least means none more.
def test_scopes() -> None:
    called = methods_called()
    assert called == SCOPES.keys()
    needed = {"commands"}.union(*(SCOPES[method] for method in called))
    scopes = MANIFEST["oauth_config"]["scopes"]
    assert list(scopes) == ["bot"]
    assert scopes["bot"] == sorted(needed)


# Slack sends the commands and events that somebody listens to.
def test_commands_and_events() -> None:
    assert [each["command"] for each in MANIFEST["features"]["slash_commands"]] == [COMMAND]
    assert tuple(MANIFEST["settings"]["event_subscriptions"]["bot_events"]) == EVENTS


# Everything arrives at the one address that is mounted, over https.
def test_addresses() -> None:
    settings = MANIFEST["settings"]
    addresses = [
        *(each["url"] for each in MANIFEST["features"]["slash_commands"]),
        settings["event_subscriptions"]["request_url"],
        settings["interactivity"]["request_url"],
    ]
    assert {(urlsplit(each).scheme, urlsplit(each).path) for each in addresses} == {("https", PATH)}


# Buttons, the Home and posting as ourselves are switched on, Socket Mode is not.
def test_features() -> None:
    assert MANIFEST["settings"]["interactivity"]["is_enabled"] is True
    assert MANIFEST["settings"]["socket_mode_enabled"] is False
    assert MANIFEST["features"]["app_home"]["home_tab_enabled"] is True
    assert MANIFEST["features"]["bot_user"]["display_name"] == "stet"


# Texts keep Slack's limits (docs, app manifest).
@pytest.mark.parametrize(
    ("text", "most"),
    [
        (MANIFEST["display_information"]["name"], 35),
        (MANIFEST["display_information"]["description"], 140),
        (MANIFEST["features"]["slash_commands"][0]["command"], 32),
        (MANIFEST["features"]["slash_commands"][0]["description"], 2000),
        (MANIFEST["features"]["bot_user"]["display_name"], 80),
    ],
)
def test_lengths(text: str, most: int) -> None:
    assert 0 < len(text) <= most
