"""What Slack sends to an app when somebody acts: payloads and signatures, exactly as documented.

Who acts and what comes of the answer is in `slack_actor`. Source: Slack's pages of the block_actions,
view_submission and view_closed payloads, slash commands, the Events API and verifying requests.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from bot.demo.slack_state import Message, SlackState, View, team_of
from bot.demo.slack_typing import CannotDo, find_buttons
from bot.demo.slack_workspace import APP_ID, TEAM, U_STET

DOMAIN: Final = "stand-in"
VERIFICATION_TOKEN: Final = "stand-in-deprecated"
_FORM: Final = "application/x-www-form-urlencoded"
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Signed:
    """One request as it goes over the wire; sent again unchanged it is a replay."""

    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Forge:
    """How a request differs from an honest one.

    `value`: another button value. `team`: another team for the person. `seen`: the message as the person
    still has it on the screen. `age_seconds`: an older timestamp (signed all the same). `signature`: another
    signature. `change`: anything else, done to the payload before it is signed.
    """

    value: str | None = None
    team: str | None = None
    seen: Mapping[str, Any] | None = None
    age_seconds: float = 0.0
    signature: str | None = None
    change: Callable[[dict[str, Any]], None] | None = None


HONEST: Final = Forge()


def sign(state: SlackState, body: bytes, *, kind: str, forge: Forge = HONEST) -> Signed:
    """Sign raw bytes: v0, HMAC-SHA256 over `v0:timestamp:body`."""
    timestamp = str(int(state.now() - forge.age_seconds))
    base = b"v0:" + timestamp.encode() + b":" + body
    digest = hmac.new(state.workspace.signing_secret.encode(), base, hashlib.sha256).hexdigest()
    return Signed(
        body,
        {
            "content-type": kind,
            "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            "x-slack-request-timestamp": timestamp,
            "x-slack-signature": forge.signature or f"v0={digest}",
        },
    )


def sign_interaction(state: SlackState, payload: dict[str, Any], forge: Forge) -> Signed:
    """An interaction travels as a form with one field of JSON."""
    if forge.change is not None:
        forge.change(payload)
    return sign(state, urlencode({"payload": json.dumps(payload)}).encode(), kind=_FORM, forge=forge)


def sign_form(state: SlackState, form: dict[str, Any], forge: Forge) -> Signed:
    """A slash command travels as a plain form."""
    if forge.change is not None:
        forge.change(form)
    return sign(state, urlencode(form).encode(), kind=_FORM, forge=forge)


def sign_event(state: SlackState, event: dict[str, Any], forge: Forge) -> Signed:
    """An event travels as JSON."""
    if forge.change is not None:
        forge.change(event)
    return sign(state, json.dumps(event).encode(), kind=_JSON, forge=forge)


def click_payload(
    state: SlackState, user: str, message: Message, button: str | int, forge: Forge
) -> dict[str, Any]:
    """block_actions for a button on a message, ephemeral ones included."""
    seen = dict(forge.seen) if forge.seen is not None else message.as_slack()
    whispered = message.only_for is not None
    payload = _interaction(state, "block_actions", user, forge)
    payload |= {
        "container": {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": message.channel,
            "is_ephemeral": whispered,
            **({"thread_ts": message.thread_ts} if message.thread_ts else {}),
        },
        "trigger_id": state.new_trigger(user),
        "channel": _channel(state, message.channel),
        "state": {"values": {}},
        "actions": [_action(state, seen.get("blocks") or [], button, forge)],
    }
    return payload if whispered else {**payload, "message": seen}


def press_payload(
    state: SlackState, user: str, view: View, button: str | int, forge: Forge
) -> dict[str, Any]:
    """block_actions for a button in a modal or on a Home."""
    return {
        **_interaction(state, "block_actions", user, forge),
        "container": {"type": "view", "view_id": view.id},
        "trigger_id": state.new_trigger(user, view.id),
        "view": view.as_slack(),
        "actions": [_action(state, view.content["blocks"], button, forge)],
    }


def submission_payload(state: SlackState, user: str, view: View, forge: Forge) -> dict[str, Any]:
    """view_submission."""
    return {
        **_interaction(state, "view_submission", user, forge),
        "trigger_id": state.new_trigger(user, view.id),
        "view": view.as_slack(),
        "response_urls": [],
    }


def closed_payload(state: SlackState, user: str, view: View, forge: Forge) -> dict[str, Any]:
    """view_closed, sent only when the view asked for it."""
    payload = _interaction(state, "view_closed", user, forge)
    return {**payload, "view": view.as_slack(), "is_cleared": False}


def command_form(state: SlackState, user: str, channel: str, command: str, text: str) -> dict[str, Any]:
    """A slash command's form."""
    return {
        "token": VERIFICATION_TOKEN,
        "team_id": TEAM,
        "team_domain": DOMAIN,
        "channel_id": channel,
        "channel_name": _channel(state, channel)["name"],
        "user_id": user,
        "user_name": _name(state, user),
        "command": command,
        "text": text,
        "api_app_id": APP_ID,
        "is_enterprise_install": "false",
        "trigger_id": state.new_trigger(user),
    }


def home_event(state: SlackState, user: str) -> dict[str, Any]:
    """app_home_opened."""
    event: dict[str, Any] = {
        "type": "app_home_opened",
        "user": user,
        "channel": "D" + user[1:],
        "tab": "home",
        "event_ts": state.new_ts(),
    }
    if user in state.homes:
        event["view"] = state.homes[user].as_slack()
    return {
        "token": VERIFICATION_TOKEN,
        "team_id": TEAM,
        "api_app_id": APP_ID,
        "event": event,
        "type": "event_callback",
        "event_id": "Ev" + secrets.token_hex(5).upper(),
        "event_time": int(state.now()),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": TEAM,
                "user_id": U_STET,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
    }


def _interaction(state: SlackState, kind: str, user: str, forge: Forge) -> dict[str, Any]:
    name = _name(state, user)
    team = forge.team or team_of(state.workspace, user)
    return {
        "type": kind,
        "team": {"id": TEAM, "domain": DOMAIN},
        "user": {"id": user, "username": name, "name": name, "team_id": team},
        "api_app_id": APP_ID,
        "token": VERIFICATION_TOKEN,
        "enterprise": None,
        "is_enterprise_install": False,
    }


def _action(state: SlackState, blocks: list[Any], button: str | int, forge: Forge) -> dict[str, Any]:
    """One entry of `actions`: the n-th thing to press, or the one with this action id."""
    present = find_buttons(blocks)
    if isinstance(button, int):
        chosen = present[button : button + 1]
    else:
        chosen = [pair for pair in present if pair[1]["action_id"] == button]
    if not chosen and (isinstance(button, int) or forge.value is None):
        raise CannotDo(f"no such button: {button}")
    block, element = chosen[0] if chosen else ({"block_id": "gone"}, {"type": "button", "action_id": button})
    action = {key: value for key, value in element.items() if key not in {"confirm", "options", "url"}}
    if forge.value is not None:
        action["value"] = forge.value
    return {**action, "block_id": block["block_id"], "action_ts": state.new_ts()}


def _channel(state: SlackState, channel: str) -> dict[str, str]:
    known = state.workspace.channels.get(channel)
    return {"id": channel, "name": known.name if known else "unknown"}


def _name(state: SlackState, user: str) -> str:
    known = state.workspace.users.get(user)
    return known.name.lower() if known else "somebody"
