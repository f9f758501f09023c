"""Notices, answers, modals, the unknown effect's card: each as its golden file, within Slack's limits."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bot.cards import answers, modals, notices, queue, reading, unknown
from bot.cards.lives import Who
from bot.cards.notices import Alert, Done, Notice, Refusal, Thread
from bot.cards.views import Channel, Pending, Rejected
from bot.contracts.click import decode_value
from bot.demo.slack_blocks import block_problems, view_problems
from bot.policy.editing import make_form
from tests.cards.samples import ANNA, DECIDED, OPENED, PLAIN, UNKNOWN_STATES, value, with_body

Golden = Callable[[str, object], None]
PARTS: dict[str, Any] = {
    "who": Who("U0BEN"),
    "at": DECIDED,
    "since": OPENED,
    "expires": OPENED + timedelta(hours=48),
    "count": 2,
    "quorum": 3,
    "revision": 4,
    "key": "n8n:customer_email:42",
    "reason": "http_500",
    "because": "cap_day",
    "target": "https://n8n.example/webhook/send-mail",
    "mend": "retries",
    "scope": "all",
    "channel": "C0SUPPORT",
    "kind": "customer_email",
    "entity": "customer:42",
    "where": Channel("C0SUPPORT"),
    "step": "dispatch",
    "admins": (Who("S0ADMINS"), Who("U0ADMIN")),
}
QUESTION = modals.QuestionView(value("b"), "customer:42")
CLOSED = answers.Closed("effect:smtp", ANNA, DECIDED, "wrong template")
SWITCH = answers.SwitchView(enabled=True, closed=(CLOSED,))
WAITING = answers.Waiting("customer_email", "customer:42", OPENED, OPENED + timedelta(hours=48))

ANSWERS: dict[str, Notice] = {
    "help": answers.help_text(admin=False),
    "help_admin": answers.help_text(admin=True),
    "unknown_word": answers.unknown_word(
        "quue", answers.help_text(admin=False), switch=answers.SwitchView(enabled=True)
    ),
    "usage": answers.usage("scope_unknown", scope="kind:x", known="kind:customer_email"),
    "status_open": answers.status(answers.SwitchView(enabled=True), answers.Counts(3, 2, 1, 0)),
    "status_closed": answers.status(SWITCH, answers.Counts(3, 2, 0, 1)),
    "status_denied": answers.status(
        answers.SwitchView(enabled=False, all_row=False), answers.Counts(0, 0, 0, 0)
    ),
    "queue": answers.queue(
        [WAITING, replace(WAITING, expires=None)], counts={"customer_email": 30, "refund": 1}
    ),
    "queue_empty": answers.queue([]),
    "killed": answers.killed("all", in_flight=["n8n:customer_email:1"], already=False, reason=""),
    "killed_again": answers.killed("all", in_flight=[], already=True, reason="test"),
    "resumed": answers.resumed("all", already=False, still_closed=["llm"]),
    "rerun_final": answers.answer("rerun.final", key="n8n:customer_email:1", state="completed"),
}
FORM = make_form(
    {"subject": "Late", "body": "It ships Monday.\n", "label": "refund", "urgent": False, "tags": ["a"]},
    {
        "required": ["subject", "body"],
        "properties": {
            "subject": {"type": "string"},
            "body": {"type": "string"},
            "label": {"enum": ["shipping", "refund"]},
            "urgent": {"type": "boolean"},
            "due": {"type": "string", "format": "date"},
            "amount": {"type": "integer"},
        },
    },
    ("subject", "body", "label", "urgent", "tags", "due", "amount"),
    fits=modals.can_edit,
)
MODALS = {
    "reject": modals.reject(QUESTION),
    "redraft": modals.redraft(QUESTION),
    "typed": modals.typed(QUESTION),
    "edit": modals.edit(modals.EditView(value("d"), FORM)),
    "overtaken": modals.message(modals.MessageView("modal.overtaken", PLAIN.draft)),
    "read": reading.render(reading.ReadView(replace(PLAIN, warnings=("Check the amount.",)))),
    "read_in_line": reading.render(reading.ReadView(PLAIN, in_line=True)),
    "read_dialog": reading.render(reading.ReadView(replace(PLAIN, confirm="dialog"))),
    "read_settled": reading.render(reading.ReadView(replace(PLAIN, state=Rejected(ANNA, DECIDED, "no")))),
}


# Every state of the unknown effect's card is drawn as its golden file says.
@pytest.mark.parametrize("name", UNKNOWN_STATES)
def test_unknown_states(name: str, golden: Golden) -> None:
    view = UNKNOWN_STATES[name]
    blocks = unknown.render(view)
    golden(f"unknown_{name}", {"text": unknown.fallback(view), "blocks": blocks})
    assert block_problems(blocks) == []
    assert any(block["type"] == "actions" for block in blocks) == name.startswith("open")


# The queue card says how many wait and opens the next; with nobody in line it has no button.
@pytest.mark.parametrize(("name", "count"), [("open", 1_037), ("empty", 0)])
def test_queue_card(name: str, count: int, golden: Golden) -> None:
    view = queue.QueueView(count, version=4)
    blocks = queue.render(view)
    golden(f"queue_{name}", {"text": queue.fallback(view), "blocks": blocks})
    assert block_problems(blocks) == []
    assert any(block["type"] == "actions" for block in blocks) == (count > 0)


# Every refusal, answer, alert and thread line is one block that names nothing it was not given.
def test_notices(golden: Golden) -> None:
    made: dict[str, Notice] = {
        **{f"refused.{word}": notices.refused(word, language="en", **PARTS) for word in Refusal},
        **{f"done.{word}": notices.done(word, language="en", **PARTS) for word in Done},
        **{f"alert.{word}": notices.alert(word, language="en", **PARTS) for word in Alert},
        **{f"thread.{word}": notices.thread(word, language="en", **PARTS) for word in Thread},
    }
    assert [name for name, notice in made.items() if block_problems(notices.render(notice))] == []
    golden("notices", {name: notices.fallback(notice) for name, notice in made.items()})


# Who decided and when are told in the reader's time zone, with a fallback.
def test_already_approved() -> None:
    notice = notices.refused(Refusal.APPROVED, who=Who("slack:T1:U1"), at=DECIDED)
    assert notices.fallback(notice).startswith("Already approved by <@U1>, <!date^1772443620^")
    elements = notices.render(notice)[0]["elements"][0]["elements"]
    assert [element["type"] for element in elements] == ["text", "user", "text", "date", "text"]


# Answers to slash commands are drawn as their golden files say.
@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name: str, golden: Golden) -> None:
    blocks = notices.render(ANSWERS[name])
    golden(f"answer_{name}", {"text": notices.fallback(ANSWERS[name]), "blocks": blocks})
    assert block_problems(blocks) == []


# Modals are drawn as their golden files say; their metadata is one opaque value.
@pytest.mark.parametrize("name", MODALS)
def test_modals(name: str, golden: Golden) -> None:
    view = MODALS[name]
    golden(f"modal_{name}", view)
    assert view_problems(view) == []
    assert name == "overtaken" or decode_value(view["private_metadata"]) is not None


# A long draft is read in parts; the buttons that turn them name the part, and nothing else.
def test_parts() -> None:
    view = with_body("word " * 14_000)
    assert reading.part_count(view) == 3
    drawn = json.dumps(reading.render(reading.ReadView(view, 2)), ensure_ascii=False)
    assert '"stet.read.part.1"' in drawn
    assert '"stet.read.part.3"' in drawn
    assert "stet.approve" not in drawn
    assert reading.part_of_action("stet.read.part.3") == 3
    assert reading.part_of_action("stet.read") is None


# The modal of a draft that no longer waits has no button to decide with.
def test_settled_reading() -> None:
    assert isinstance(PLAIN.state, Pending)
    assert "stet.approve" in json.dumps(MODALS["read"])
    assert "stet.approve" not in json.dumps(MODALS["read_settled"])


# A text too long for Slack's input is not offered for editing.
def test_can_edit() -> None:
    assert modals.can_edit("x" * 3000)
    assert not modals.can_edit("x" * 3001)
