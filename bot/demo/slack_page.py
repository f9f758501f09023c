"""What the demo's web page asks of the stand-in: one picture of the workspace, and acts as a person.

Same acts as `slack_actor`, by JSON over HTTP; the page itself is served elsewhere.
"""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.demo.slack_actor import Reply, SlackActor
from bot.demo.slack_faults import Fault
from bot.demo.slack_method import Refusal
from bot.demo.slack_state import Message, SlackState, View
from bot.demo.slack_typing import CannotDo
from bot.demo.slack_web_api import SlackWebApi
from bot.demo.slack_workspace import C_REVIEW

CALLS_SHOWN: Final = 50
Act = Callable[[dict[str, Any]], Awaitable[Reply | None]]


class SlackPage:
    """Routes under `/_stand_in/`."""

    def __init__(self, api: SlackWebApi, actor: SlackActor) -> None:
        self._api = api
        self._state = api.state
        self._actor = actor

    def routes(self) -> list[Route]:
        """GET state; POST one act each."""
        acts: dict[str, Act] = {
            "click": lambda said: self._actor.click(
                said["user"], said["channel"], said["ts"], said.get("button", 0)
            ),
            "press": lambda said: self._actor.press(said["user"], said.get("button", 0)),
            "press_home": lambda said: self._actor.press_home(said["user"], said.get("button", 0)),
            "submit": lambda said: self._actor.submit(said["user"], said.get("values", {})),
            "dismiss": lambda said: self._actor.dismiss(said["user"]),
            "home": lambda said: self._actor.open_home(said["user"]),
            "slash": lambda said: self._actor.slash(
                said["user"],
                said.get("text", ""),
                command=said.get("command", "/stet"),
                channel=said.get("channel", C_REVIEW),
            ),
        }
        return [
            Route("/_stand_in/state", self._show, methods=["GET"]),
            Route("/_stand_in/fault", self._order, methods=["POST"]),
            *(Route(f"/_stand_in/{name}", self._acting(act), methods=["POST"]) for name, act in acts.items()),
        ]

    async def _show(self, request: Request) -> Response:
        """The workspace as one person sees it: `?user=U…`."""
        return JSONResponse(picture(self._state, self._api, request.query_params.get("user", "")))

    async def _order(self, request: Request) -> Response:
        """Trouble on order: `{method, fault: {…} | null}`; without a fault all of it ends."""
        said = await request.json() if _is_json(request) else {}
        if not said.get("method") or not said.get("fault"):
            self._api.faults.clear()
        else:
            self._api.faults.order(said["method"], Fault(**said["fault"]), nth=int(said.get("nth", 1)))
        return JSONResponse({"done": True})

    def _acting(self, act: Act) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if not _is_json(request):  # A page of another origin cannot send this type without asking first.
                return JSONResponse({"done": False, "why": "send application/json"}, status_code=415)
            try:
                reply = await act(await request.json())
            except (CannotDo, Refusal, KeyError) as why:
                return JSONResponse({"done": False, "why": str(why)}, status_code=409)
            told = (
                {}
                if reply is None
                else {"status": reply.status, "kept": reply.kept, "seconds": reply.seconds}
            )
            return JSONResponse({"done": True, **told})

        return endpoint


def picture(state: SlackState, api: SlackWebApi, user: str) -> dict[str, Any]:
    """Everything a page draws. `version` grows with every change."""
    home = state.homes.get(user)
    return {
        "version": state.version,
        "users": [asdict(account) for account in state.workspace.users.values()],
        "groups": state.workspace.groups,
        "channels": [_channel(state, channel) for channel in state.workspace.channels],
        "ephemerals": [_message(state, message) for message in state.ephemerals_of(user)],
        "views": [_view(state.views[name]) for name in state.open_views.get(user, [])],
        "home": _view(home) if home else None,
        "calls": [
            {"method": call.method, "outcome": call.outcome, "channel": call.channel}
            for call in api.journal.calls[-CALLS_SHOWN:]
        ],
    }


def _channel(state: SlackState, name: str) -> dict[str, Any]:
    messages = [_message(state, message) for message in state.channel_messages(name)]
    return {**asdict(state.workspace.channels[name]), "messages": messages}


def _message(state: SlackState, message: Message) -> dict[str, Any]:
    replies = [] if message.thread_ts else state.thread(message.channel, message.ts)
    return {
        **message.as_slack(),
        "channel": message.channel,
        "revisions": message.revisions,
        "replies": [reply.as_slack() for reply in replies],
    }


def _view(view: View) -> dict[str, Any]:
    return {**view.as_slack(), "errors": view.errors}


def _is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
