"""What a Web API method of the stand-in is: its name, scope and arguments, and how it says no.

The methods themselves are in `slack_chat`, `slack_views` and `slack_read`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.demo.slack_state import SlackState
from bot.demo.slack_workspace import Channel, User

Arguments = Mapping[str, Any]


class Refusal(Exception):
    """`ok: false`, with Slack's own error word and whatever else it says."""

    def __init__(self, error: str, **more: Any) -> None:  # noqa: ANN401 - any JSON
        super().__init__(error)
        self.error = error
        self.more = more


def invalid(error: str, problems: list[str]) -> Refusal:
    """A refusal that lists complaints as Slack does."""
    return Refusal(error, errors=problems, response_metadata={"messages": problems})


@dataclass(frozen=True, slots=True)
class Method:
    """One method. `reads`: GET is allowed. `scope` may depend on the channel's kind."""

    name: str
    work: Callable[[SlackState, Arguments], dict[str, Any]]
    scope: str | None
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    reads: bool = False

    def check(self, state: SlackState, arguments: Arguments) -> None:
        """Refuse missing scopes and arguments, and arguments that the method's page does not name."""
        needed = self._scope(state, arguments)
        if needed and needed not in state.workspace.scopes:
            raise Refusal("missing_scope", needed=needed, provided=",".join(sorted(state.workspace.scopes)))
        missing = [name for name in self.required if arguments.get(name) in (None, "")]
        # Bolt's client sends the team with every call, for apps that are installed across an organisation.
        unknown = sorted(arguments.keys() - {*self.required, *self.optional, "team_id"})
        if missing or unknown:
            lines = [f"[ERROR] missing required field: {name}" for name in missing]
            raise invalid(
                "invalid_arguments", lines + [f"[ERROR] unknown argument: {name}" for name in unknown]
            )

    def _scope(self, state: SlackState, arguments: Arguments) -> str | None:
        if self.scope is None or not self.scope.startswith("*"):
            return self.scope
        channel = state.workspace.channels.get(str(arguments.get("channel")))
        if channel is not None and channel.is_im:
            return "im" + self.scope[1:]
        return ("groups" if channel is not None and channel.is_private else "channels") + self.scope[1:]


def find_channel(state: SlackState, arguments: Arguments) -> Channel:
    """The channel, if it exists for our bot: a private one without us does not."""
    channel = state.workspace.channels.get(str(arguments["channel"]))
    if channel is None or (channel.is_private and not channel.is_member):
        raise Refusal("channel_not_found")
    return channel


def find_user(state: SlackState, wanted: str) -> User:
    """An account by U… or, on Grid, by W…."""
    for user in state.workspace.users.values():
        if wanted in (user.id, user.enterprise_user_id):
            return user
    raise Refusal("user_not_found")


def structured(arguments: Arguments, name: str, error: str) -> Any:  # noqa: ANN401 - any JSON
    """An argument that is JSON: as it is in a JSON body, as text in a form."""
    value = arguments.get(name)
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise Refusal(error) from None


def flag(arguments: Arguments, name: str) -> bool:
    """A boolean, which is text in forms and queries."""
    return str(arguments.get(name, "")).lower() in {"1", "true"}


def whole(arguments: Arguments, name: str, default: int) -> int:
    """A whole number, which is text in forms and queries."""
    try:
        return int(arguments.get(name) or default)
    except (TypeError, ValueError):
        raise Refusal("invalid_arguments") from None
