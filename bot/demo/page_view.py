"""What the page draws beside Slack: people, what the outside world received, the counts, the moods.

Not here: the routes (page_server) and Slack's own picture (slack_page). Nothing in this file waits.
"""

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bot.demo import slack_workspace as workspace
from bot.demo.events import BUTTONS
from bot.demo.mail import Mail
from bot.demo.moods import MODEL_MOODS, WORLD_MOODS, Moods
from bot.demo.slack_page import picture
from bot.demo.slack_server import SlackStandIn
from bot.demo.world import LOOK_UP, WAITING, Received

# Who one can be, and why one would; the order is that of the chooser.
ROLES: Final[dict[str, str]] = {
    workspace.U_ALICE: "reviewer",
    workspace.U_BOB: "reviewer, asks for refunds",
    workspace.U_CAROL: "reviewer and lead",
    workspace.U_GRID: "reviews refunds, Enterprise Grid",
    workspace.U_ADMIN: "admin, no reviewer",
    workspace.U_RITA: "asks for mails",
    workspace.U_MEMBER: "member, no reviewer",
    workspace.U_GUEST: "guest",
    workspace.U_ULTRA: "single-channel guest",
    workspace.U_STRANGER: "from another company",
    workspace.U_GONE: "account deactivated",
    workspace.U_ROBOT: "another app's bot",
}
CHANNELS: Final = (workspace.C_REVIEW, workspace.C_OPS)
EFFECTS_SHOWN: Final = 60
POSTS_SHOWN: Final = 30


@dataclass(frozen=True, slots=True)
class Posted:
    """One event that the page sent, and what n8n would have seen."""

    number: int
    button: str
    key: str
    status: int
    answer: Any
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """As the page reads it."""
        return {
            "number": self.number,
            "label": BUTTONS[self.button][0],
            "key": self.key,
            "status": self.status,
            "answer": self.answer,
            "ms": round(self.seconds * 1000),
        }


@dataclass(slots=True)
class Board:
    """Everything the page shows, gathered from the stand-ins."""

    slack: SlackStandIn
    moods: Moods
    posted: list[Posted] = field(default_factory=list)
    switch: Mapping[str, Any] = field(default_factory=lambda: {"state": "starting", "closed": []})
    bot_url: str = ""
    mails: list[dict[str, Any]] = field(default_factory=list)

    def note_mail(self, mail: Mail) -> None:
        """Show a mail among what the outside world received."""
        self.mails.append(_letter(mail, time.time()))

    def version(self) -> str:
        """Another text after every change that the page would show."""
        world = self.moods.world_server.world
        parts = (
            self.slack.state.version,
            len(world.journal),
            len(self.mails),
            self.moods.script.requests,
            len(self.posted),
            self.moods.model,
            self.moods.world,
            json.dumps(self.switch, sort_keys=True),
        )
        return "|".join(map(str, parts))

    def draw(self, user: str) -> dict[str, Any]:
        """The whole picture for one person."""
        slack = picture(self.slack.state, self.slack.api, user)
        received = self.moods.world_server.world.journal
        return {
            "version": self.version(),
            "slack": {
                **slack,
                "channels": [each for each in slack["channels"] if _is_shown(each)],
                "users": {each["id"]: each["name"] for each in slack["users"]},
                "named": {each["id"]: each["name"] for each in slack["channels"]},
                "calls": None,
            },
            "world": sorted([*gather(received), *self.mails], key=_arrived, reverse=True)[:EFFECTS_SHOWN],
            "posted": [each.as_json() for each in self.posted[-POSTS_SHOWN:][::-1]],
            "counts": self._counts(received),
            "moods": {"model": self.moods.model, "world": self.moods.world},
            "switch": self.switch,
            "bot_url": self.bot_url,
        }

    def _counts(self, received: Iterable[Received]) -> dict[str, int]:
        answers = Counter(_word(each) for each in self.posted)
        done = Counter(each.effect_id for each in received if each.done and not _is_resume(each))
        done.update(each["id"] for each in self.mails)
        return {
            "events": len(self.posted),
            "accepted": answers["accepted"],
            "duplicate": answers["duplicate"],
            "stale": answers["stale"],
            "conflict": answers["conflict"],
            "model_calls": self.moods.script.requests,
            "delivered": len(done),
            "twice": sum(count > 1 for count in done.values()),
        }


def choices() -> dict[str, Any]:
    """What never changes: buttons, moods, people."""
    return {
        "buttons": [{"id": name, "label": label, "hint": hint} for name, (label, hint) in BUTTONS.items()],
        "model_moods": [{"id": name, "hint": mood[0]} for name, mood in MODEL_MOODS.items()],
        "world_moods": [{"id": name, "hint": mood[0]} for name, mood in WORLD_MOODS.items()],
        "people": [{"id": user, "role": role} for user, role in ROLES.items()],
    }


def gather(received: Iterable[Received]) -> list[dict[str, Any]]:
    """What arrived in the outside world, one entry an effect, the newest first."""
    entries: dict[str, dict[str, Any]] = {}
    for each in received:
        name = each.effect_id or f"{each.method} {each.path.partition('?')[0]}"
        entry = entries.get(name)
        if each.path.startswith(LOOK_UP):
            if entry is not None:
                entry["look_ups"] += 1
            continue
        if entry is None:
            entry = entries[name] = _entry(name, each)
        entry["tries"] += 1
        entry["done"] += each.done
        entry["provider_id"] = each.provider_id or entry["provider_id"]
    return list(entries.values())[::-1]


def _entry(name: str, each: Received) -> dict[str, Any]:
    try:
        body = json.loads(each.body)
    except ValueError:
        body = {}
    body = body if isinstance(body, dict) else {}
    return {
        "id": name,
        "resume": _is_resume(each),
        "path": each.path.partition("?")[0],
        "key": body.get("key"),
        "at": each.at,
        "body": body,
        "signed": each.signed,
        "tries": 0,
        "done": 0,
        "look_ups": 0,
        "provider_id": None,
    }


def _letter(mail: Mail, at: float) -> dict[str, Any]:
    """A mail as an entry; its Message-ID is what would tell a repeated one."""
    read = mail.parsed()
    text = read.get_body(("plain",))
    body = str(text.get_content()) if text is not None else ""
    output = {"subject": str(read["Subject"]), "body": body.rstrip()}
    return {
        "id": str(read["Message-ID"]),
        "resume": False,
        "path": "/mail",
        "key": None,
        "at": at,
        "body": {"recipient": ", ".join(mail.recipients), "output": output},
        "signed": None,
        "tries": 1,
        "done": 1,
        "look_ups": 0,
        "provider_id": None,
    }


def _arrived(entry: Mapping[str, Any]) -> float:
    return float(entry["at"])


def _is_resume(each: Received) -> bool:
    return each.path.startswith(WAITING)


def _is_shown(channel: Mapping[str, Any]) -> bool:
    return channel["id"] in CHANNELS or bool(channel["messages"])


def _word(posted: Posted) -> str:
    if isinstance(posted.answer, dict):
        word = str(posted.answer.get("status", ""))
        return "conflict" if str(posted.answer.get("type", "")).endswith("payload-conflict") else word
    return ""
