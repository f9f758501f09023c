"""Editing in a modal: what was typed is what is stored, and nothing of it is ever lost.

Not here: which fields a form has (tests/policy/test_editing) or races (tests/flow/test_edit).
"""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bot.demo.slack_payloads import Forge
from bot.demo.slack_typing import CannotDo
from bot.demo.slack_workspace import U_ALICE, U_BOB, U_MEMBER
from tests.doors.slack_world import POLICY, CardBefore, World, doors_on, plain
from tests.makers import change, make_run, rows

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["subject", "body"],
    "properties": {
        "subject": {"type": "string", "minLength": 1, "maxLength": 60},
        "body": {"type": "string", "minLength": 1},
        "label": {"type": "string", "enum": ["shipping", "refund"]},
        "urgent": {"type": "boolean"},
        "amount": {"type": "number", "minimum": 0},
        "copies": {"type": "integer"},
        "due": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
BODY = {
    "subject": "About your parcel",
    "body": "It ships Monday.",
    "label": "shipping",
    "urgent": False,
    "amount": 1.5,
    "copies": 1,
    "due": "2026-05-04",
    "tags": ["a", "b"],
}
LAST_TO_EDIT = "You were the last to edit this draft, so somebody else has to approve it."
FROZEN = {"output": SCHEMA, "editable": None}


def field(name: str) -> str:
    return f"stet.edit.{name}"


async def submit(world: World, user: str = U_ALICE, **typed: Any) -> dict[str, Any] | None:
    """Save the open form with these fields changed."""
    values = {field(name): text for name, text in typed.items()}
    reply = await world.slack.actor.submit(user, values, checked=False)
    assert reply.status == 200
    answer: dict[str, Any] | None = reply.json
    return answer


async def opened(world: World, **more: Any) -> CardBefore:
    """Alice has the form before her."""
    card = world.card(FROZEN | more.pop("snapshot", {}), **({"body": BODY} | more))
    await card.click(U_ALICE, "edit")
    return card


def newest(world: World) -> dict[str, Any]:
    return rows(world.dsn, "SELECT * FROM revisions ORDER BY revision DESC LIMIT 1")[0]


def errors(answer: dict[str, Any] | None) -> dict[str, str]:
    assert answer is not None
    assert answer["response_action"] == "errors"
    found: dict[str, str] = answer["errors"]
    return found


# A changed draft becomes the next revision with a question of its own; the rest stays as it is.
async def test_edit(world: World) -> None:
    card = await opened(world)
    before = rows(world.dsn, "SELECT expires_at FROM drafts")
    await submit(world, body="It ships Tuesday.", label="refund", urgent="true", amount="2", due="2026-05-05")
    assert "Saved as revision 2" in plain(world.window(U_ALICE))
    made = newest(world)
    changed = {
        "body": "It ships Tuesday.",
        "label": "refund",
        "urgent": True,
        "amount": 2,
        "due": "2026-05-05",
    }
    assert made["body"] == BODY | changed
    assert (made["revision"], made["author"]) == (2, f"slack:T0STET:{U_ALICE}")
    assert rows(world.dsn, "SELECT state FROM workflow_runs") == [{"state": "awaiting_human"}]
    questions = rows(world.dsn, "SELECT revision, end_reason, consumed_at FROM approvals ORDER BY revision")
    assert questions == [
        {"revision": 1, "end_reason": "edited", "consumed_at": None},
        {"revision": 2, "end_reason": None, "consumed_at": None},
    ]
    assert rows(world.dsn, "SELECT expires_at FROM drafts") == before
    assert world.counters() == (0, 0)
    assert "show" in world.woken
    lines = await world.chain(card.draft["key"])
    assert [line.action for line in lines] == ["edited"]
    detail = lines[0].detail or ""
    assert '"fields":["amount","body","due","label","urgent"]' in detail
    assert "Tuesday" not in detail


# The form offers each field in the way its schema asks for, as it stands, and names what it cannot hold.
async def test_form(world: World) -> None:
    await opened(world)
    view = world.slack.actor.top_view(U_ALICE).content
    inputs = {block["block_id"]: block["element"] for block in view["blocks"] if block["type"] == "input"}
    assert list(inputs)[:2] == [field("subject"), field("body")]
    assert {name: one["type"] for name, one in inputs.items()} == {
        field("subject"): "plain_text_input",
        field("body"): "plain_text_input",
        field("label"): "static_select",
        field("urgent"): "static_select",
        field("amount"): "number_input",
        field("copies"): "number_input",
        field("due"): "datepicker",
    }
    assert not inputs[field("subject")]["multiline"]
    assert inputs[field("body")]["multiline"]
    assert inputs[field("body")]["initial_value"] == "It ships Monday."
    assert not inputs[field("copies")]["is_decimal_allowed"]
    assert "this stays: Tags" in plain(world.window(U_ALICE))


# Saving without a change stores nothing and says so, also where Slack does not give the line ends back.
@pytest.mark.parametrize("text", ["It ships Monday.", "one\r\ntwo\rthree", " trailing  ", "1.50"])
async def test_unchanged(world: World, text: str) -> None:
    await opened(world, body=BODY | {"body": text})
    await submit(world, body=text.replace("\r\n", "\n").replace("\r", "\n"))
    assert "Nothing was changed" in plain(world.window(U_ALICE))
    assert rows(world.dsn, "SELECT count(*) AS n FROM revisions") == [{"n": 1}]
    assert rows(world.dsn, "SELECT count(*) AS n FROM approvals") == [{"n": 1}]


TEXTS = st.text(min_size=1, max_size=200).filter(lambda text: "\0" not in text and not _lone(text))


def _lone(text: str) -> bool:
    return any(0xD800 <= ord(char) <= 0xDFFF for char in text)


# Whatever is typed is stored to the character: emoji, right-to-left, signs like entities, white space.
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS)
@example("<!channel> &amp; <@U0BOB> AT&T ")
@example("שלום עולם \u202e abc\u202c")
@example("👩‍👩‍👧‍👦 🇩🇪 \u200b end\n\n")
@example("one\r\ntwo\rthree\n")
@example("  \t leading and trailing \n ")
@example('{"body": "json"} \\u0041 %s')
async def test_stored_exactly(world: World, text: str) -> None:
    card = await opened(world)
    await submit(world, body=text)
    made = newest(world)
    assert made["body"]["body"] == (text if made["revision"] == 2 else "It ships Monday.")
    assert made["revision"] == (1 if text == "It ships Monday." else 2)
    wipe(world, card)


def wipe(world: World, card: CardBefore) -> None:
    """Make room for the next example: one draft of a key is open at most."""
    run_id = card.draft["run_id"]
    change(world.dsn, "DELETE FROM revisions")
    change(world.dsn, "DELETE FROM approvals")
    change(world.dsn, "DELETE FROM cards")
    change(world.dsn, "DELETE FROM drafts")
    change(world.dsn, "DELETE FROM workflow_runs WHERE run_id = %(run_id)s", run_id=run_id)
    world.slack.state.messages.clear()
    world.slack.state.open_views.clear()


WRONG: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "an emptied field that is required": ({"body": ""}, {"body": "Please fill this in."}),
    "a text too long": ({"subject": "x" * 61}, {"subject": "Please use at most 60 characters."}),
    "a header of two lines": ({"subject": "one\ntwo"}, {"subject": "Please use one line"}),
    "a NUL": ({"body": "a\0b"}, {"body": "There is a character in this that cannot be sent."}),
    "half a pair": ({"body": "a\ud800b"}, {"body": "There is a character in this that cannot be sent."}),
    "no number": ({"amount": "1,5"}, {"amount": "Please write a number."}),
    "no whole number": ({"copies": "1.5"}, {"copies": "Please write a whole number."}),
    "a number too small": ({"amount": "-1"}, {"amount": "This must be 0 at least."}),
    "two at once": ({"body": "", "amount": "-1"}, {"body": "Please", "amount": "This must"}),
}


# What does not pass stays in the form with a sentence at its field, and nothing is stored.
@pytest.mark.parametrize("case", WRONG)
async def test_errors_stand_at_their_field(world: World, case: str) -> None:
    typed, said = WRONG[case]
    await opened(world)
    found = errors(await submit(world, **typed))
    assert set(found) == {field(name) for name in said}
    assert all(found[field(name)].startswith(sentence) for name, sentence in said.items())
    assert rows(world.dsn, "SELECT count(*) AS n FROM revisions") == [{"n": 1}]
    assert world.slack.actor.top_view(U_ALICE).errors == found


RULES = """
[[kinds.customer_email.rules]]
level = "hard"
path = "output.body"
op = "matches"
value = "(?s).*parcel.*"
message = "Name the parcel."
[[kinds.customer_email.rules]]
level = "hard"
path = "output.tags"
op = "present"
message = "Some tag is needed."
[[kinds.customer_email.rules]]
level = "warn"
path = "output.label"
op = "equals"
value = "refund"
message = "The customer asks for money back."
"""


# A hard rule holds for a person as for the model, in the policy's words; a warning is put on the revision.
async def test_rules(world: World) -> None:
    async with doors_on(world.db, world.slack, [], policy=POLICY + RULES):
        await opened(world)
        assert errors(await submit(world, body="No.")) == {field("body"): "Name the parcel."}
        await submit(world, body="The parcel ships.", label="refund")
    assert newest(world)["warnings"] == ["The customer asks for money back."]


# What is wrong outside the form is said at its first field: Slack takes no other place.
async def test_wrong_elsewhere(world: World) -> None:
    async with doors_on(world.db, world.slack, [], policy=POLICY + RULES):
        await opened(world, body={"subject": "s", "body": "parcel"})
        answer = await submit(world, body="The parcel ships.")
    said = errors(answer)[field("subject")]
    assert said == "Another part of the draft does not fit (Tags): Some tag is needed."


# Whoever wrote the words may not approve them, nor what the model makes of them; somebody else may.
async def test_editor_may_not_approve(world: World) -> None:
    card = await opened(world, run={"inputs": {"requested_by": U_ALICE}})
    await submit(world, body="Mine now.")
    await approve_newest(world, card, U_ALICE)
    assert world.counters() == (0, 0)
    change(world.dsn, "UPDATE run_inputs SET requested_by = NULL")
    await approve_newest(world, card, U_ALICE)
    assert (await world.heard(U_ALICE))[-1] == LAST_TO_EDIT
    revise_by_model(world)
    await approve_newest(world, card, U_ALICE)
    assert (await world.heard(U_ALICE))[-1] == LAST_TO_EDIT
    assert world.counters() == (0, 0)
    await approve_newest(world, card, U_BOB)
    assert world.counters() == (1, 1)
    lines = [(line.actor[-5:], line.action) for line in await world.chain(card.draft["key"])]
    refused = ("ALICE", "refused")
    assert lines == [("ALICE", "edited"), refused, refused, refused, ("U0BOB", "approved")]


def revise_by_model(world: World) -> None:
    """What a redraft of the edited words leaves behind."""
    change(world.dsn, "UPDATE drafts SET revision = revision + 1")
    change(world.dsn, "UPDATE approvals SET revision = revision + 1 WHERE ended_at IS NULL")
    change(
        world.dsn,
        "INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)"
        " SELECT draft_id, revision + 1, run_id, body, body_hash, 'model' FROM revisions"
        " ORDER BY revision DESC LIMIT 1",
    )


async def approve_newest(world: World, card: CardBefore, user: str) -> None:
    """Press Approve of the newest revision's question, as its card will show it."""
    from_newest = rows(world.dsn, "SELECT approval_id, revision FROM drafts")[0]
    await card.press_as(user, "approve", **from_newest)


# Overtaken by a decision, another's edit, a newer event: the form says so and keeps what was typed.
@pytest.mark.parametrize("by", ["decision", "edit", "event", "expiry", "redraft"])
async def test_overtaken(world: World, by: str) -> None:
    card = await opened(world)
    if by == "decision":
        await card.click(U_BOB)
    elif by == "edit":
        await card.click(U_BOB, "edit")
        await submit(world, U_BOB, body="Bob's words")
    elif by == "event":
        make_run(world.dsn, version=18)
    elif by == "expiry":
        change(world.dsn, "UPDATE drafts SET expires_at = now()")
    else:
        change(
            world.dsn,
            "INSERT INTO redrafts (redraft_id, draft_id, revision, requested_by, wish)"
            " SELECT gen_random_uuid(), draft_id, 1, 'slack:T0STET:U0BOB', 'Shorter' FROM drafts",
        )
    answer = await submit(world, subject="My subject", body="My long and careful text")
    assert answer is not None
    assert answer["response_action"] == "update"
    said = plain(world.window(U_ALICE))
    assert "What you typed was not used." in said
    assert "My long and careful text" in said
    assert "My subject" in said
    assert newest(world)["revision"] == (2 if by == "edit" else 1)


# From the window in which the draft is read: what lies below an overtaken form is no longer so, and closing
# what the form says closes it.
async def test_overtaken_above_what_was_read(world: World) -> None:
    card = world.card()
    await card.click(U_ALICE, "read")
    await world.slack.actor.press(U_ALICE, "stet.edit")
    await card.click(U_BOB)
    await submit(world, body="My long and careful text")
    assert "My long and careful text" in plain(world.window(U_ALICE))
    await world.slack.actor.dismiss(U_ALICE)
    assert world.slack.state.view_on_top(U_ALICE) is None


# The old card's buttons are dead once somebody edited it: they say that there is a newer revision.
async def test_old_buttons(world: World) -> None:
    card = await opened(world)
    await submit(world, body="Changed.")
    for action in ("approve", "reject", "edit", "redraft"):
        await card.click(U_BOB, action)
    assert world.counters() == (0, 0)
    newer = "There is a newer revision. Nothing was decided. Please read the card again."
    assert await world.heard(U_BOB) == [newer] * 4


# Whoever may not decide gets no form, and a form that somebody else sends saves nothing.
async def test_strangers(world: World) -> None:
    card = await opened(world)
    await card.click(U_MEMBER, "edit")
    assert world.slack.state.view_on_top(U_MEMBER) is None
    assert (await world.heard(U_MEMBER))[0].startswith("Only reviewers")
    view = world.slack.actor.top_view(U_ALICE)
    view.user = U_BOB
    world.slack.state.open_views[U_BOB] = [view.id]
    await submit(world, U_BOB, body="Stolen")
    assert newest(world)["revision"] == 1


# A field that the policy does not list is not in the form, and is not stored when it is sent all the same.
async def test_only_what_may_be_edited(world: World) -> None:
    await opened(world, snapshot={"editable": ["body"]})
    with pytest.raises(CannotDo):
        await world.slack.actor.submit(U_ALICE, {field("subject"): "Mine"})

    def smuggle(payload: dict[str, Any]) -> None:
        values = payload["view"]["state"]["values"]
        values[field("subject")] = {"stet.answer": {"type": "plain_text_input", "value": "Mine"}}

    values = {field("body"): "Changed."}
    await world.slack.actor.submit(U_ALICE, values, checked=False, forge=Forge(change=smuggle))
    assert newest(world)["body"] == BODY | {"body": "Changed."}


# Where nothing of a draft fits into a form, the person hears it at once.
async def test_nothing_to_edit(world: World) -> None:
    await opened(world, body={"tags": ["a"], "body": "x" * 3001}, snapshot={"output": {"type": "object"}})
    assert world.slack.state.view_on_top(U_ALICE) is None
    assert (await world.heard(U_ALICE))[0].startswith("No part of this draft can be edited in Slack.")
