"""What a test needs to make cards and to look at them in the Slack stand-in.

Not here: the fixtures (conftest) or other rows (tests/makers).
"""

import json
from collections.abc import Callable
from typing import Any

from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message
from bot.demo.slack_workspace import C_REVIEW
from bot.flow.show import Shower
from bot.slack.pace import LIMITS, Limit
from tests.makers import change, make_draft, rows

POST, UPDATE, HISTORY = "chat.postMessage", "chat.update", "conversations.history"
QUICK: dict[str, tuple[Limit, ...]] = {method: (Limit(60_000, 1_000),) for method in LIMITS}

NewShower = Callable[..., Shower]


def new_draft(dsn: str, **more: Any) -> dict[str, Any]:
    """A draft whose card was asked for and never shown."""
    draft = make_draft(dsn, **more)
    change(dsn, "UPDATE cards SET ts = NULL, shown_version = 0 WHERE card_id = %(id)s", id=draft["card_id"])
    return draft | {"ts": None}


def want(dsn: str) -> None:
    """Something changed that every card shows."""
    change(dsn, "UPDATE cards SET wanted_version = wanted_version + 1, next_attempt_at = now()")


def hurry(dsn: str) -> None:
    """Let everything that waits be due."""
    change(dsn, "UPDATE cards SET next_attempt_at = now() - interval '1 second'")


def card_row(dsn: str, draft: dict[str, Any]) -> dict[str, Any]:
    return rows(dsn, "SELECT * FROM cards WHERE card_id = %(id)s", id=draft["card_id"])[0]


def seen(slack: SlackStandIn, channel: str = C_REVIEW) -> list[Message]:
    return slack.state.channel_messages(channel)


def said(message: Message) -> str:
    """All the text of a message."""
    return json.dumps(message.blocks, ensure_ascii=False)


def buttons(message: Message) -> dict[str, str]:
    """The values of a message's buttons by action id."""
    found = [element for block in message.blocks or [] for element in block.get("elements", [])]
    return {one["action_id"]: one["value"] for one in found if one.get("type") == "button"}


def is_current(dsn: str, draft: dict[str, Any]) -> bool:
    row = card_row(dsn, draft)
    return row["shown_version"] == row["wanted_version"] and row["lease_owner"] is None


def revise(dsn: str, draft: dict[str, Any], revision: int, *, author: str = "model") -> None:
    """Give a draft another revision and a new question."""
    change(
        dsn,
        "WITH d AS (UPDATE drafts SET revision = %(n)s, approval_id = gen_random_uuid() RETURNING *),"
        " e AS (UPDATE approvals SET ended_at = now(), end_reason = 'superseded' WHERE ended_at IS NULL),"
        " a AS (INSERT INTO approvals (approval_id, draft_id, revision, run_id, quorum)"
        " SELECT approval_id, draft_id, revision, run_id, 1 FROM d)"
        " INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)"
        " SELECT draft_id, revision, run_id, %(body)s, 'x', %(author)s FROM d",
        n=revision,
        body=json.dumps({"subject": f"Take {revision}", "body": "It ships Friday."}),
        author=author,
    )
    want(dsn)


def texts(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [found for item in node for found in texts(item)]
    if not isinstance(node, dict):
        return []
    own = [node] if node.get("type") == "text" else []
    return own + [found for value in node.values() for found in texts(value)]
