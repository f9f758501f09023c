"""The stand-in's views.* methods, with Slack's limits and error words.

Source: Slack's pages of views.open, views.push, views.update and views.publish. Submissions: `slack_person`.
"""

from collections.abc import Mapping
from typing import Any, Final

from bot.demo.slack_blocks import view_is_too_large, view_problems
from bot.demo.slack_method import Arguments, Method, Refusal, invalid, structured
from bot.demo.slack_state import VIEWS_AT_MOST, SlackState, Trigger, View


def open_view(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """views.open: a new stack of modals before the person who caused the trigger."""
    content = checked_view(state, structured(arguments, "view", "invalid_arguments"), "modal")
    trigger = _spend_trigger(state, arguments)
    view = state.new_view(trigger.user, content)
    state.open_views[trigger.user] = [view.id]
    return {"view": view.as_slack()}


def push_view(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """views.push: on top of the modal that the trigger came from."""
    content = checked_view(state, structured(arguments, "view", "invalid_arguments"), "modal")
    trigger = _spend_trigger(state, arguments)
    below = state.views.get(trigger.view or "")
    if below is None:
        raise Refusal("invalid_trigger_id")
    return {"view": push(state, below, content).as_slack()}


def push(state: SlackState, below: View, content: Mapping[str, Any]) -> View:
    """Put a checked view on top of another; three at most."""
    stack = state.open_views.setdefault(below.user, [])
    if len(stack) >= VIEWS_AT_MOST:
        raise Refusal("push_limit_reached")
    view = state.new_view(below.user, content, previous=below)
    stack.append(view.id)
    return view


def update_view(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """views.update, by id or external id; with a hash only if nobody was faster."""
    view = _find_view(state, arguments)
    content = checked_view(state, structured(arguments, "view", "invalid_arguments"), "modal", view)
    if arguments.get("hash") not in (None, "", view.hash):
        raise Refusal("hash_conflict")
    return {"view": state.replace_view(view, content).as_slack()}


def publish(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """views.publish: one person's Home."""
    user = str(arguments["user_id"])
    if not state.workspace.home_enabled:
        raise Refusal("not_enabled")
    if user not in state.workspace.users:
        raise invalid("invalid_arguments", ["[ERROR] user_not_found [json-pointer:/user_id]"])
    content = checked_view(state, structured(arguments, "view", "invalid_arguments"), "home")
    home = state.homes.get(user)
    if home is not None and arguments.get("hash") not in (None, "", home.hash):
        raise Refusal("hash_conflict")
    if home is None:
        home = state.homes[user] = state.new_view(user, content)
    else:
        state.replace_view(home, content)
    return {"view": home.as_slack()}


def checked_view(state: SlackState, view: object, kind: str, same: View | None = None) -> Mapping[str, Any]:
    """A view that Slack would take, or its refusal."""
    if view_is_too_large(view):
        raise Refusal("view_too_large")
    problems = view_problems(view)
    if not isinstance(view, Mapping) or view.get("type") != kind:
        problems = [*problems, f"[ERROR] must be of type {kind} [json-pointer:/view/type]"]
    if problems or not isinstance(view, Mapping):
        raise invalid("invalid_arguments", problems)
    external_id = view.get("external_id")
    open_now = [state.views[name] for stack in state.open_views.values() for name in stack]
    if external_id and any(
        other.content.get("external_id") == external_id for other in open_now if other is not same
    ):
        raise Refusal("duplicate_external_id")
    return view


def _spend_trigger(state: SlackState, arguments: Arguments) -> Trigger:
    """Three seconds, once. The method pages say expired_trigger_id and exchanged_trigger_id."""
    trigger = state.triggers.get(str(arguments["trigger_id"]))
    if trigger is None:
        raise Refusal("invalid_trigger_id")
    if trigger.used:
        raise Refusal("exchanged_trigger_id")
    if state.now() > trigger.expires_at:
        raise Refusal("expired_trigger_id")
    trigger.used = True
    return trigger


def _find_view(state: SlackState, arguments: Arguments) -> View:
    for view in state.views.values():
        is_open = view.id in state.open_views.get(view.user, [])
        external_id = arguments.get("external_id")
        named = arguments.get("view_id") == view.id
        if is_open and (named or (external_id and external_id == view.content.get("external_id"))):
            return view
    raise Refusal("not_found")


VIEW_METHODS: Final = (
    Method("views.open", open_view, None, ("trigger_id", "view")),
    Method("views.push", push_view, None, ("trigger_id", "view")),
    Method("views.update", update_view, None, ("view",), ("view_id", "external_id", "hash")),
    Method("views.publish", publish, None, ("user_id", "view"), ("hash",)),
)
