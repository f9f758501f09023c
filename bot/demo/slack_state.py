"""What has happened in the pretend workspace: messages, ephemerals, views, Homes, triggers, addresses.

Who may call what is checked in `slack_web_api`; each method's rules are in `slack_chat` and `slack_views`.
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bot.demo.slack_workspace import APP_ID, BOT_ID, OTHER_TEAM, TEAM, U_STET, Workspace, make_workspace

TRIGGER_SECONDS: Final = 3.0
RESPONSE_SECONDS: Final = 1800.0
RESPONSE_USES: Final = 5
VIEWS_AT_MOST: Final = 3


@dataclass(slots=True)
class Message:
    """One message of ours as it stands now; `revisions` counts what became of it."""

    channel: str
    ts: str
    text: str
    user: str = U_STET
    blocks: list[dict[str, Any]] | None = None
    metadata: dict[str, Any] | None = None
    thread_ts: str | None = None
    edited: dict[str, str] | None = None
    revisions: int = 1
    only_for: str | None = None

    def as_slack(self, *, all_metadata: bool = True) -> dict[str, Any]:
        """The message object; without the flag Slack shows no more of metadata than its event type."""
        message: dict[str, Any] = {"type": "message", "ts": self.ts, "user": self.user, "text": self.text}
        message |= {"team": TEAM, "bot_id": BOT_ID, "app_id": APP_ID} if self.user == U_STET else {}
        if self.blocks is not None:
            message["blocks"] = self.blocks
        if self.thread_ts is not None:
            message["thread_ts"] = self.thread_ts
        if self.edited is not None:
            message["edited"] = self.edited
        if self.metadata:
            shown = self.metadata if all_metadata else {"event_type": self.metadata["event_type"]}
            message["metadata"] = shown
        return message


@dataclass(slots=True)
class View:
    """One modal or Home as it stands now."""

    id: str
    user: str
    content: dict[str, Any]
    hash: str
    root_id: str
    previous_id: str | None = None
    errors: dict[str, str] = field(default_factory=dict)
    typed: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_slack(self) -> dict[str, Any]:
        """The view object of answers and payloads."""
        return {
            "id": self.id,
            "team_id": TEAM,
            "title": None,
            "close": None,
            "submit": None,
            "private_metadata": "",
            "callback_id": "",
            "external_id": "",
            "clear_on_close": False,
            "notify_on_close": False,
            **self.content,
            "state": {"values": self.typed},
            "hash": self.hash,
            "previous_view_id": self.previous_id,
            "root_view_id": self.root_id,
            "app_id": APP_ID,
            "app_installed_team_id": TEAM,
            "bot_id": BOT_ID,
        }


@dataclass(slots=True)
class Trigger:
    """The right to open one view, for three seconds."""

    user: str
    expires_at: float
    view: str | None = None
    used: bool = False


@dataclass(slots=True)
class ResponseAddress:
    """The right to answer an interaction five times in half an hour, past all posting permissions."""

    user: str
    channel: str
    expires_at: float
    ts: str | None = None
    uses_left: int = RESPONSE_USES


class SlackState:
    """Everything, in memory, in one event loop."""

    def __init__(self, workspace: Workspace | None = None, *, now: Callable[[], float] = time.time) -> None:
        self.workspace = workspace or make_workspace()
        self.now = now
        self.messages: dict[str, dict[str, Message]] = {}
        self.ephemerals: list[Message] = []
        self.views: dict[str, View] = {}
        self.open_views: dict[str, list[str]] = {}
        self.homes: dict[str, View] = {}
        self.triggers: dict[str, Trigger] = {}
        self.responses: dict[str, ResponseAddress] = {}
        self.socket_url = ""
        """Where lines of Socket Mode are opened, and the tickets that open one each."""
        self.tickets: set[str] = set()
        self.version = 0
        """Grows with every change, so that a page knows when to draw again."""
        self._last_micros = 0
        self._changes = 0

    def changed(self) -> None:
        """Note that something is different from before."""
        self.version += 1

    def new_ts(self) -> str:
        """A message's name and time: unique and growing, even while the clock stands still."""
        self._last_micros = max(self._last_micros + 1, int(self.now() * 1_000_000))
        return f"{self._last_micros // 1_000_000}.{self._last_micros % 1_000_000:06d}"

    def add(self, message: Message) -> Message:
        """Put a message into its channel, or before one person's eyes."""
        if message.only_for is None:
            self.messages.setdefault(message.channel, {})[message.ts] = message
        else:
            self.ephemerals.append(message)
        self.changed()
        return message

    def channel_messages(self, channel: str) -> list[Message]:
        """The channel as people see it, oldest first, thread replies left out."""
        return [message for message in self.messages.get(channel, {}).values() if message.thread_ts is None]

    def thread(self, channel: str, ts: str) -> list[Message]:
        """The replies under a message, oldest first."""
        return [message for message in self.messages.get(channel, {}).values() if message.thread_ts == ts]

    def ephemerals_of(self, user: str) -> list[Message]:
        """What was told to one person alone, oldest first."""
        return [message for message in self.ephemerals if message.only_for == user]

    def view_on_top(self, user: str) -> View | None:
        """The modal a person has before them."""
        stack = self.open_views.get(user, [])
        return self.views[stack[-1]] if stack else None

    def new_trigger(self, user: str, view: str | None = None) -> str:
        """A trigger id for one interaction."""
        name = f"{secrets.randbelow(10**12)}.{secrets.randbelow(10**12)}.{secrets.token_hex(16)}"
        self.triggers[name] = Trigger(user, self.now() + TRIGGER_SECONDS, view)
        return name

    def new_response(self, user: str, channel: str, ts: str | None) -> str:
        """The name of a fresh response address."""
        name = secrets.token_hex(12)
        self.responses[name] = ResponseAddress(user, channel, self.now() + RESPONSE_SECONDS, ts)
        return name

    def new_view(self, user: str, content: Mapping[str, Any], *, previous: View | None = None) -> View:
        """Keep a view that has passed the checks."""
        name = "V" + secrets.token_hex(5).upper()
        root = previous.root_id if previous else name
        view = View(name, user, self.with_block_ids(content), self.new_hash(name), root)
        view.previous_id = previous.id if previous else None
        self.views[name] = view
        self.changed()
        return view

    def replace_view(self, view: View, content: Mapping[str, Any]) -> View:
        """Show something else in the same view; what was typed into blocks that stay is kept."""
        view.content = self.with_block_ids(content)
        view.hash = self.new_hash(view.id)
        view.errors = {}
        kept = {block["block_id"] for block in view.content["blocks"]}
        view.typed = {block_id: values for block_id, values in view.typed.items() if block_id in kept}
        self.changed()
        return view

    def new_hash(self, name: str) -> str:
        """A view's hash: another one after each change."""
        self._changes += 1
        return f"{int(self.now())}." + hashlib.sha256(f"{name}{self._changes}".encode()).hexdigest()[:8]

    def with_block_ids(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Slack names blocks, and elements that act, that came without a name."""
        return {**content, "blocks": name_blocks(content.get("blocks") or [])}


def name_blocks(blocks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Blocks with an id each, as Slack gives them back."""
    return [_named(block) for block in blocks]


def _named(block: Mapping[str, Any]) -> dict[str, Any]:
    named = {**block, "block_id": block.get("block_id") or secrets.token_urlsafe(4)[:5]}
    for key in ("accessory", "element"):
        if key in named:
            named[key] = _with_action_id(named[key])
    if named.get("type") == "actions":
        named["elements"] = [_with_action_id(element) for element in named["elements"]]
    return named


def _with_action_id(element: Mapping[str, Any]) -> dict[str, Any]:
    if element.get("type") == "image":
        return dict(element)
    return {**element, "action_id": element.get("action_id") or secrets.token_urlsafe(4)[:5]}


def team_of(workspace: Workspace, user: str) -> str:
    """The team a person belongs to; whoever is not in the workspace is from elsewhere."""
    known = workspace.users.get(user)
    return known.team_id if known else OTHER_TEAM
