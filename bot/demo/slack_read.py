"""The stand-in's reading methods: who we are, people, groups, channels and what was said in them.

Source: Slack's pages of auth.test, users.info, usergroups.* and conversations.*.
"""

from typing import Any, Final

from bot.demo.slack_method import Arguments, Method, Refusal, find_channel, find_user, flag, whole
from bot.demo.slack_state import Message, SlackState
from bot.demo.slack_workspace import APP_ID, BOT_ID, TEAM, U_STET

HISTORY_AT_MOST: Final = 999
_LATEST: Final = "9999999999.999999"


def auth_test(_state: SlackState, _arguments: Arguments) -> dict[str, Any]:
    """auth.test."""
    return {
        "url": "https://stand-in.slack.com/",
        "team": "Stand-in",
        "user": "stet",
        "team_id": TEAM,
        "user_id": U_STET,
        "bot_id": BOT_ID,
        "app_id": APP_ID,
        "is_enterprise_install": False,
    }


def users_info(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """users.info, by U… or, on Grid, by W…."""
    user = find_user(state, str(arguments["user"]))
    told = user.locale is not None and flag(arguments, "include_locale")
    return {"user": user.as_slack() | ({"locale": user.locale} if told else {})}


def list_groups(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """usergroups.list: only in paid plans; who stands in them only if asked for."""
    if not state.workspace.paid_plan:
        raise Refusal("plan_upgrade_required")
    with_users = flag(arguments, "include_users")
    return {
        "usergroups": [
            {
                "id": group_id,
                "team_id": TEAM,
                "is_usergroup": True,
                "name": name,
                "description": "",
                "handle": handle,
                "date_delete": 0,
                "user_count": len(members),
                **({"users": list(members)} if with_users else {}),
            }
            for group_id, members in state.workspace.groups.items()
            for name, handle in [state.workspace.group_names.get(group_id, (group_id, group_id.lower()))]
        ]
    }


def group_users(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """usergroups.users.list: only in paid plans."""
    if not state.workspace.paid_plan:
        raise Refusal("plan_upgrade_required")
    group = state.workspace.groups.get(str(arguments["usergroup"]))
    if group is None:
        raise Refusal("no_such_subteam")
    return {"users": list(group)}


def conversation_info(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """conversations.info."""
    return {"channel": find_channel(state, arguments).as_slack()}


def open_conversation(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """conversations.open, with one person."""
    user = find_user(state, str(arguments["users"]))
    if user.deleted:
        raise Refusal("user_disabled")
    channel = state.workspace.conversation_with(user)
    return {"channel": channel.as_slack() if flag(arguments, "return_im") else {"id": channel.id}}


def members(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """conversations.members, in one page."""
    channel = find_channel(state, arguments)
    people = [user for user in state.workspace.users if state.workspace.is_in(user, channel.id)]
    return {"members": people, "response_metadata": {"next_cursor": ""}}


def history(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """conversations.history: newest first, replies left out."""
    channel = find_channel(state, arguments)
    if not channel.is_member:
        raise Refusal("not_in_channel")
    return _page(list(reversed(state.channel_messages(channel.id))), arguments)


def replies(state: SlackState, arguments: Arguments) -> dict[str, Any]:
    """conversations.replies: the parent, then its replies, oldest first."""
    channel = find_channel(state, arguments)
    if not channel.is_member:
        raise Refusal("not_in_channel")
    parent = state.messages.get(channel.id, {}).get(str(arguments["ts"]))
    if parent is None:
        raise Refusal("thread_not_found")
    page = _page(state.thread(channel.id, parent.ts), arguments)
    shown = parent.as_slack(all_metadata=flag(arguments, "include_all_metadata"))
    return {**page, "messages": [shown, *page["messages"]]}


def _page(messages: list[Message], arguments: Arguments) -> dict[str, Any]:
    """`oldest` and `latest` are left out themselves unless `inclusive`; the cursor is a place in the list."""
    oldest, latest = arguments.get("oldest") or "0", arguments.get("latest") or _LATEST
    inclusive = flag(arguments, "inclusive")
    limit = whole(arguments, "limit", 100)
    start = whole(arguments, "cursor", 0)
    if not 1 <= limit <= HISTORY_AT_MOST:
        raise Refusal("invalid_limit")
    try:
        low, high = _micros(oldest), _micros(latest)
    except ValueError:
        raise Refusal("invalid_ts_oldest") from None
    within = [
        message
        for message in messages
        if low < _micros(message.ts) < high or (inclusive and _micros(message.ts) in (low, high))
    ]
    all_metadata = flag(arguments, "include_all_metadata")
    more = len(within) > start + limit
    return {
        "messages": [
            message.as_slack(all_metadata=all_metadata) for message in within[start : start + limit]
        ],
        "has_more": more,
        "response_metadata": {"next_cursor": str(start + limit) if more else ""},
    }


def _micros(ts: object) -> int:
    seconds, _, micros = str(ts).partition(".")
    return int(seconds) * 1_000_000 + int((micros or "0").ljust(6, "0")[:6])


_PAGE: Final = ("cursor", "inclusive", "include_all_metadata", "latest", "limit", "oldest")
READ_METHODS: Final = (
    Method("auth.test", auth_test, None),
    Method("users.info", users_info, "users:read", ("user",), ("include_locale",), reads=True),
    Method(
        "usergroups.list",
        list_groups,
        "usergroups:read",
        (),
        ("include_count", "include_disabled", "include_users", "team_id"),
        reads=True,
    ),
    Method(
        "usergroups.users.list",
        group_users,
        "usergroups:read",
        ("usergroup",),
        ("include_disabled", "team_id"),
        reads=True,
    ),
    Method(
        "conversations.info",
        conversation_info,
        "*:read",
        ("channel",),
        ("include_locale", "include_num_members"),
        reads=True,
    ),
    Method("conversations.members", members, "*:read", ("channel",), ("cursor", "limit"), reads=True),
    Method(
        "conversations.open",
        open_conversation,
        "im:write",
        ("users",),
        ("prevent_creation", "return_im"),
    ),
    Method("conversations.history", history, "*:history", ("channel",), _PAGE, reads=True),
    Method("conversations.replies", replies, "*:history", ("channel", "ts"), _PAGE, reads=True),
)
