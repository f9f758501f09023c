"""Acting as a person: payloads that Bolt takes, real signatures, and what Slack does with the answers."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest
import pytest_asyncio
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.demo.slack_payloads import Forge
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message
from bot.demo.slack_typing import CannotDo
from bot.demo.slack_workspace import C_REVIEW, OTHER_TEAM, TEAM, U_ALICE, U_STRANGER

BUTTONS = [
    {
        "type": "actions",
        "block_id": "r1",
        "elements": [
            {
                "type": "button",
                "action_id": f"stet.{name}",
                "text": {"type": "plain_text", "text": name},
                "value": f"{name}.1",
            }
            for name in ("approve", "reject")
        ],
    }
]
MODAL = {
    "type": "modal",
    "callback_id": "stet.reject",
    "title": {"type": "plain_text", "text": "Reject"},
    "submit": {"type": "plain_text", "text": "Send"},
    "blocks": [
        {
            "type": "input",
            "block_id": "reason",
            "label": {"type": "plain_text", "text": "Why?"},
            "element": {"type": "plain_text_input", "action_id": "text", "max_length": 20},
        }
    ],
}
Answer = Callable[[dict[str, Any]], Response]


class Listener:
    """A bot that keeps what it is told and answers as the test wants."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.requests: list[tuple[bytes, dict[str, str]]] = []
        self.answer: Answer = lambda _: Response()

    async def __call__(self, request: Request) -> Response:
        body = await request.body()
        self.requests.append((body, dict(request.headers)))
        if request.headers["content-type"] == "application/json":
            told = json.loads(body)
        else:
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            told = json.loads(form["payload"]) if "payload" in form else form
        self.heard.append(told)
        return self.answer(told)


@pytest_asyncio.fixture
async def slack() -> AsyncIterator[SlackStandIn]:
    async with SlackStandIn(rate_factor=None) as stand_in:
        yield stand_in


async def connect(slack: SlackStandIn, endpoint: Callable[[Request], Awaitable[Response]]) -> None:
    """Let the actor talk to an app in this process."""
    app = Starlette(routes=[Route("/slack/events", endpoint, methods=["POST"])])
    await slack.actor.close()
    slack.actor._http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app))
    slack.actor.events_url = "http://bot.test/slack/events"


@pytest_asyncio.fixture
async def listener(slack: SlackStandIn) -> Listener:
    listening = Listener()

    async def endpoint(request: Request) -> Response:
        return await listening(request)

    await connect(slack, endpoint)
    return listening


@pytest.fixture
def card(slack: SlackStandIn) -> Message:
    marks = {"event_type": "stet_card", "event_payload": {"draft": "ab"}}
    return slack.state.add(
        Message(
            C_REVIEW, slack.state.new_ts(), "card", blocks=json.loads(json.dumps(BUTTONS)), metadata=marks
        )
    )


# A click carries who, where, what and the button's value, signed so that Slack's own verifier is content.
async def test_click(slack: SlackStandIn, listener: Listener, card: Message) -> None:
    reply = await slack.actor.click(U_ALICE, C_REVIEW, card.ts, "stet.reject")
    assert reply.kept
    [payload] = listener.heard
    assert payload["user"]["team_id"] == payload["team"]["id"] == TEAM
    assert payload["container"] == {
        "type": "message",
        "message_ts": card.ts,
        "channel_id": C_REVIEW,
        "is_ephemeral": False,
    }
    assert payload["message"]["metadata"] == card.metadata
    [action] = payload["actions"]
    assert (action["action_id"], action["block_id"], action["value"]) == ("stet.reject", "r1", "reject.1")
    body, headers = listener.requests[0]
    assert SignatureVerifier(slack.state.workspace.signing_secret).is_valid_request(body, headers)


# The same bytes can be sent again; a forged click carries whatever the forger wants, honestly signed.
async def test_replay_and_forgery(slack: SlackStandIn, listener: Listener, card: Message) -> None:
    first = await slack.actor.click(U_ALICE, C_REVIEW, card.ts)
    await slack.actor.send(first.request)
    assert listener.requests[0] == listener.requests[1]
    card.blocks = []
    old = Forge(value="remembered.1", team=OTHER_TEAM)
    await slack.actor.click(U_ALICE, C_REVIEW, card.ts, "stet.approve", old)
    forged = listener.heard[2]
    assert (forged["user"]["team_id"], forged["actions"][0]["value"]) == (OTHER_TEAM, "remembered.1")
    with pytest.raises(CannotDo):
        await slack.actor.click(U_ALICE, C_REVIEW, card.ts, "stet.approve")


# A stranger brings their own team; the team of the payload stays the workspace's.
async def test_stranger(slack: SlackStandIn, listener: Listener, card: Message) -> None:
    await slack.actor.click(U_STRANGER, C_REVIEW, card.ts)
    payload = listener.heard[0]
    assert (payload["user"]["team_id"], payload["team"]["id"]) == (OTHER_TEAM, TEAM)


# A signature six minutes old, or a wrong one, is no valid request.
@pytest.mark.parametrize("forge", [Forge(age_seconds=360), Forge(signature="v0=" + "0" * 64)])
async def test_bad_signatures(slack: SlackStandIn, listener: Listener, card: Message, forge: Forge) -> None:
    await slack.actor.click(U_ALICE, C_REVIEW, card.ts, 0, forge)
    body, headers = listener.requests[0]
    assert not SignatureVerifier(slack.state.workspace.signing_secret).is_valid_request(body, headers)


# No answer within Slack's three seconds is told as such, and so is an error.
async def test_late_and_failed_answers(slack: SlackStandIn, listener: Listener, card: Message) -> None:
    listener.answer = lambda _: Response(status_code=500)
    failed = await slack.actor.click(U_ALICE, C_REVIEW, card.ts)
    assert (failed.status, failed.kept) == (500, False)

    def too_late(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("3 s", request=request)

    slack.actor._http = httpx2.AsyncClient(transport=httpx2.MockTransport(too_late))
    late = await slack.actor.click(U_ALICE, C_REVIEW, card.ts)
    assert (late.status, late.kept) == (0, False)


def open_modal(slack: SlackStandIn) -> None:
    view = slack.state.new_view(U_ALICE, MODAL)
    slack.state.open_views[U_ALICE] = [view.id]


# A submission carries what was typed; an empty answer closes the modal.
async def test_submit_closes(slack: SlackStandIn, listener: Listener) -> None:
    open_modal(slack)
    await slack.actor.submit(U_ALICE, {"text": "too cold"})
    view = listener.heard[0]["view"]
    assert view["callback_id"] == "stet.reject"
    assert view["state"]["values"] == {"reason": {"text": {"type": "plain_text_input", "value": "too cold"}}}
    assert slack.state.view_on_top(U_ALICE) is None


# What Slack's window would not send is not sent, unless a forger insists.
@pytest.mark.parametrize("values", [{}, {"reason": ""}, {"reason": "x" * 21}, {"other": "x"}])
async def test_window_refuses(slack: SlackStandIn, listener: Listener, values: dict[str, str]) -> None:
    open_modal(slack)
    with pytest.raises(CannotDo):
        await slack.actor.submit(U_ALICE, values)
    assert listener.heard == []
    await slack.actor.submit(U_ALICE, values, checked=False)
    assert len(listener.heard) == 1


# Errors leave the modal open with the sentence at its field; update, push and clear do what they say.
async def test_response_actions(slack: SlackStandIn, listener: Listener) -> None:
    open_modal(slack)

    async def submit(answer: dict[str, Any]) -> list[str]:
        listener.answer = lambda _: JSONResponse(answer)
        await slack.actor.submit(U_ALICE, {"reason": "no"})
        return slack.state.open_views.get(U_ALICE, [])

    await submit({"response_action": "errors", "errors": {"reason": "say more"}})
    assert slack.actor.top_view(U_ALICE).errors == {"reason": "say more"}
    changed = {**MODAL, "title": {"type": "plain_text", "text": "Changed"}}
    assert len(await submit({"response_action": "update", "view": changed})) == 1
    assert slack.actor.top_view(U_ALICE).content["title"]["text"] == "Changed"
    assert len(await submit({"response_action": "push", "view": MODAL})) == 2
    assert await submit({"response_action": "clear"}) == []


# Closing is told only where the view asked for it.
async def test_dismiss(slack: SlackStandIn, listener: Listener) -> None:
    open_modal(slack)
    assert await slack.actor.dismiss(U_ALICE) is None
    view = slack.state.new_view(U_ALICE, {**MODAL, "notify_on_close": True})
    slack.state.open_views[U_ALICE] = [view.id]
    await slack.actor.dismiss(U_ALICE)
    assert [payload["type"] for payload in listener.heard] == ["view_closed"]


# A command's answer is whispered to the caller, as text or as JSON.
async def test_slash(slack: SlackStandIn, listener: Listener) -> None:
    listener.answer = lambda _: PlainTextResponse("usage")
    await slack.actor.slash(U_ALICE, "kill —reason “storm”")
    assert listener.heard[0]["text"] == "kill —reason “storm”"
    listener.answer = lambda _: JSONResponse({"text": "for you", "response_type": "ephemeral"})
    await slack.actor.slash(U_ALICE, "status")
    assert [message.text for message in slack.state.ephemerals_of(U_ALICE)] == ["usage", "for you"]


# A response address works five times in half an hour, and can replace the message it came from.
async def test_response_address(slack: SlackStandIn, listener: Listener, card: Message) -> None:
    await slack.actor.click(U_ALICE, C_REVIEW, card.ts)
    address = listener.heard[0]["response_url"]
    async with httpx2.AsyncClient(trust_env=False) as http:
        replaced = await http.post(address, json={"text": "done", "replace_original": True})
        told = [(await http.post(address, json={"text": f"{n}"})).status_code for n in range(5)]
    assert replaced.status_code == 200
    assert card.text == "done"
    assert told == [200, 200, 200, 200, 404]
    assert len(slack.state.ephemerals_of(U_ALICE)) == 4


# Bolt takes all of it: signature, click, modal within its trigger, submission, command, Home and respond().
async def test_bolt_is_content(slack: SlackStandIn, card: Message) -> None:
    app = AsyncApp(
        client=AsyncWebClient(slack.state.workspace.token, base_url=slack.api_url, retry_handlers=[]),
        signing_secret=slack.state.workspace.signing_secret,
        process_before_response=True,
    )

    async def on_click(ack: Any, client: Any, body: Any, respond: Any) -> None:
        await client.views_open(trigger_id=body["trigger_id"], view=MODAL)
        await respond("noted")
        await ack()

    async def on_submit(ack: Any) -> None:
        await ack(response_action="errors", errors={"reason": "say more"})

    async def on_command(ack: Any) -> None:
        await ack("usage")

    async def on_home(client: Any, event: Any) -> None:
        await client.views_publish(user_id=event["user"], view={"type": "home", "blocks": BUTTONS})

    app.action("stet.approve")(on_click)
    app.view("stet.reject")(on_submit)
    app.command("/stet")(on_command)
    app.event("app_home_opened")(on_home)
    await connect(slack, AsyncSlackRequestHandler(app).handle)
    actor = slack.actor
    assert (await actor.click(U_ALICE, C_REVIEW, card.ts)).kept
    assert (await actor.click(U_ALICE, C_REVIEW, card.ts, 0, Forge(age_seconds=400))).status == 401
    assert (await actor.submit(U_ALICE, {"reason": "no"})).kept
    assert actor.top_view(U_ALICE).errors == {"reason": "say more"}
    assert (await actor.slash(U_ALICE, "help")).kept
    assert (await actor.open_home(U_ALICE)).kept
    assert (await actor.press_home(U_ALICE, 1)).status == 404
    assert [message.text for message in slack.state.ephemerals_of(U_ALICE)] == ["noted", "usage"]
