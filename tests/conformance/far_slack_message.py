"""The far side of the slack_message connector: the Slack stand-in.

Not here: how Slack's answers are read (tests/slack).
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

from bot.connectors import slack_message
from bot.connectors.connector import Connector, Effect, Kit, perform
from bot.connectors.slack_message import build as build_slack
from bot.contracts.outcome import SendOutcome
from bot.demo import slack_faults as fault
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import C_REVIEW, C_SHARED
from bot.slack.client import SlackClient
from tests.conformance.far import Scene, closed_port
from tests.connectors.effects import make_effect, slept

POST = "chat.postMessage"
LOOK = "conversations.info"
MAIL = b'{"output":{"subject":"About your parcel","body":"It ships Monday."}}'
# What chat.postMessage may answer by Slack's documentation, besides what has a row of its own.
REFUSALS = (  # noqa: SIM905 - as documentation lists them
    "access_denied account_inactive as_user_not_supported block_mismatch blocked_from_dms"
    " cannot_reply_to_message channel_not_found deprecated_endpoint duplicate_channel_not_found"
    " duplicate_message_not_found ekm_access_denied enterprise_is_restricted invalid_arg_name"
    " invalid_arguments invalid_array_arg invalid_auth invalid_blocks invalid_blocks_format"
    " invalid_charset invalid_form_data invalid_metadata_format invalid_metadata_schema"
    " invalid_post_type is_archived is_inactive markdown_text_conflict message_limit_exceeded"
    " messages_tab_disabled metadata_must_be_sent_from_app metadata_too_large method_deprecated"
    " missing_file_data missing_post_type missing_scope msg_blocks_too_long msg_too_long"
    " no_permission no_text not_allowed_token_type not_authed not_in_channel org_login_required"
    " restricted_action restricted_action_non_threadable_channel"
    " restricted_action_read_only_channel restricted_action_thread_locked"
    " restricted_action_thread_only_channel slack_connect_canvas_sharing_blocked"
    " slack_connect_clip_sharing_blocked slack_connect_file_link_sharing_blocked"
    " slack_connect_lists_sharing_blocked team_access_not_granted team_not_found token_expired"
    " token_revoked too_many_attachments too_many_contact_cards two_factor_setup_required"
    " as_new_as_tomorrow"
).split()


@dataclass(slots=True)
class SlackHarness:
    """The slack_message connector against the Slack stand-in."""

    slack: SlackStandIn
    connector: Connector
    nobody: Connector
    can_look_up: bool = True
    hang: fault.Fault = field(default_factory=lambda: fault.hanging(after_work=True))

    def effect(self, **policy: Any) -> Effect:
        made = make_effect(C_REVIEW, body=MAIL, **{"type": "slack_message", "timeout_seconds": 5, **policy})
        return replace(made, recipient=None)

    def healthy(self) -> None:
        self.slack.faults.clear()

    def refusing(self) -> None:
        self.slack.faults.always(POST, fault.says("restricted_action"))

    def losing_answers(self) -> None:
        self.slack.faults.always(POST, fault.dropped(after_work=True))

    def hanging(self) -> None:
        self.slack.faults.always(POST, self.hang)

    async def reached(self) -> None:
        await self.hang.reached.wait()

    def away(self) -> None:
        self.connector = self.nobody

    def done(self) -> int:
        return len(self.slack.state.channel_messages(C_REVIEW))


@asynccontextmanager
async def harness() -> AsyncIterator[SlackHarness]:
    """A Slack, and clients that reach it and nobody."""
    with closed_port() as port:
        async with SlackStandIn(rate_factor=None) as slack:
            here = SlackClient(slack.state.workspace.token, base_url=slack.api_url)
            nowhere = SlackClient(slack.state.workspace.token, base_url=f"http://127.0.0.1:{port}/api/")
            await here.open()
            yield SlackHarness(slack, build_slack(Kit(slack=here)), build_slack(Kit(slack=nowhere)))
            await here.close()


def met(method: str, *troubles: fault.Fault, **policy: Any) -> Scene:
    """One message a trouble of this method."""

    async def scene(harness: SlackHarness) -> list[SendOutcome]:
        outcomes = []
        for trouble in troubles:
            harness.slack.faults.clear()
            harness.slack.faults.order(method, trouble)
            outcomes.append(await perform(harness.connector, harness.effect(**policy)))
        return outcomes

    return scene


def changed(*changes: dict[str, Any]) -> Scene:
    """One message a change of the effect."""

    async def scene(harness: SlackHarness) -> list[SendOutcome]:
        return [await perform(harness.connector, replace(harness.effect(), **change)) for change in changes]

    return scene


def each(*scenes: Scene) -> Scene:
    """One after the other."""

    async def scene(harness: SlackHarness) -> list[SendOutcome]:
        return [outcome for part in scenes for outcome in await part(harness)]

    return scene


def saying(output: Any) -> dict[str, Any]:
    return {"body": json.dumps({"output": output}).encode()}


async def not_set(harness: SlackHarness) -> list[SendOutcome]:
    """No client."""
    return [await perform(build_slack(Kit()), harness.effect())]


async def no_connection(harness: SlackHarness) -> list[SendOutcome]:
    """Nobody listens, or whoever does speaks no TLS."""
    token, port = harness.slack.state.workspace.token, harness.slack.url.rpartition(":")[2]
    plain = SlackClient(token, base_url=f"https://127.0.0.1:{port.strip('/')}/api/")
    return [
        await perform(harness.nobody, harness.effect()),
        await perform(build_slack(Kit(slack=plain)), harness.effect()),
    ]


async def asleep(harness: SlackHarness) -> list[SendOutcome]:
    """A machine that sleeps for an hour between the channel and the message."""
    with mock.patch.object(slack_message, "elapsed_seconds", slept(3600)):
        return [await perform(harness.connector, harness.effect())]


NO_TEXT: tuple[Any, ...] = ({}, {"text": " "}, {"text": 3}, [], {"subject": "x"})
SCENES: dict[str, Scene] = {
    "slack_not_set": not_set,
    "bad_channel": changed({"target": ""}, {"target": "#general"}, {"recipient": "ann@example.com"}),
    "no_text": changed(*(saying(output) for output in NO_TEXT)),
    "shared_channel": changed({"target": C_SHARED}),
    "not_delivered": no_connection,
    "late": asleep,
    "limited": each(
        *(met(way, *(fault.limited(wait) for wait in ("7", "0", "-5", "soon", None))) for way in (POST, LOOK))
    ),
    "not_looked": met(
        LOOK,
        fault.server_error(500),
        fault.says("internal_error"),
        fault.dropped(after_work=False),
        fault.dropped(after_work=True),
        fault.Fault(status=200, body=b"not json"),
    ),
    **{
        word: each(met(POST, fault.says(word)), met(LOOK, fault.says(word)))
        for word in ("external_channel_migrating", "team_added_to_org", "accesslimited")
    },
    "sent": changed({}, saying({"text": "It ships."})),
    "refused": each(met(POST, *map(fault.says, REFUSALS)), met(LOOK, fault.says("channel_not_found"))),
    "no_ts": met(POST, fault.Fault(status=200, body=b'{"ok":true}')),
    "unsure": each(
        met(
            POST,
            *(fault.says(word, after_work=True) for word in ("internal_error", "fatal_error")),
            *map(fault.says, ("service_unavailable", "request_timeout")),
            *(fault.server_error(code) for code in (500, 502, 503, 504)),
            fault.dropped(after_work=False),
            fault.dropped(after_work=True),
            fault.Fault(status=200, body=b"not json"),
            fault.Fault(status=200, body=b"[]"),
        ),
        met(POST, fault.hanging(after_work=True), timeout_seconds=1),
    ),
}
