"""Buttons on cards and in modals: each press is answered, and at most one of them decides.

Not here: the rules of deciding (tests/flow/test_decide) or submitted modals (test_modals).
"""

import asyncio
import json
import logging
from typing import Any

import psycopg
import pytest

from bot.contracts.click import ButtonValue, encode_value
from bot.demo.slack_faults import says
from bot.demo.slack_payloads import Forge, click_payload, sign_interaction
from bot.demo.slack_workspace import (
    C_OPS,
    C_REVIEW,
    OTHER_TEAM,
    U_ADMIN,
    U_ALICE,
    U_BOB,
    U_GUEST,
    U_MEMBER,
    U_STRANGER,
)
from bot.policy.tokens import mint_token
from store.database import Database
from tests.doors.slack_world import World, doors_on, plain, serving, show
from tests.makers import change, make_effect, rows

NOT_OURS = encode_value(ButtonValue("A" * 43, 1))  # well formed, and never handed out


# Twenty clicks of two people, replays and an old timestamp make one decision; the others hear whose it was.
async def test_one_decision(world: World) -> None:
    card = world.card()
    replies = await asyncio.gather(*(card.click((U_ALICE, U_BOB)[n % 2]) for n in range(20)))
    assert all(reply.kept for reply in replies)
    for _ in range(3):
        assert (await world.slack.actor.send(replies[0].request)).status == 200
    assert (await card.click(U_ALICE, forge=Forge(age_seconds=360))).status == 401
    assert world.counters() == (1, 1)
    notes = [*await world.heard(U_ALICE), *await world.heard(U_BOB)]
    assert len(notes) == 22
    [winner] = rows(world.dsn, "SELECT approver_subject FROM approvals")
    assert all(
        winner["approver_subject"].endswith(user) for user in [U_ALICE, U_BOB] if f"<@{user}>" in notes[0]
    )
    assert all(note.startswith("Already approved by <@U0") for note in notes)
    assert {"show", "dispatch"} <= set(world.woken)


# Approve and reject at the same instant, from two processes: one of them decides, the other hears which.
@pytest.mark.parametrize("round_", range(5))
async def test_approve_against_reject(world: World, dsn: str, round_: int) -> None:
    card = world.card()
    await card.click(U_BOB, "reject")
    first = world.slack.actor.events_url
    other = Database(dsn)
    await other.open()
    async with doors_on(other, world.slack, []):
        second = world.slack.actor.events_url
        assert first != second
        acts = [card.click(U_ALICE), world.slack.actor.submit(U_BOB, {"stet.answer": "No"})]
        replies = await asyncio.gather(*(acts if round_ % 2 else reversed(acts)))
    await other.close()
    assert all(reply.kept for reply in replies)
    [run] = rows(dsn, "SELECT state FROM workflow_runs")
    decided, effects = world.counters()
    assert decided == 1
    assert effects == (run["state"] == "approved")
    lines = [line.action for line in await world.chain(card.draft["key"])]
    assert sum(line in ("approved", "rejected") for line in lines) == 1
    if run["state"] == "approved":
        assert "Already approved by" in plain(world.window(U_BOB))
    else:
        assert (await world.heard(U_ALICE))[0].startswith("Already rejected by <@U0BOB>")


# The button of an older revision, remembered by a client, releases nothing newer.
async def test_older_revision(world: World, dsn: str) -> None:
    card = world.card()
    change(dsn, "UPDATE drafts SET revision = 2")
    change(
        dsn,
        "INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)"
        " SELECT draft_id, 2, run_id, body, body_hash, author FROM revisions",
    )
    await card.click(U_ALICE)
    assert world.counters() == (0, 0)
    assert await world.heard(U_ALICE) == [
        "There is a newer revision. Nothing was decided. Please read the card again."
    ]
    assert rows(dsn, "SELECT status, revision FROM drafts") == [{"status": "pending", "revision": 2}]


# F021: whoever asked for an action may not approve it, whoever wrote it neither; somebody else may.
async def test_duties_are_separated(world: World) -> None:
    card = world.card(run={"inputs": {"requested_by": U_ALICE}})
    await card.click(U_ALICE)
    assert world.counters() == (0, 0)
    assert await world.heard(U_ALICE) == ["You asked for this, so somebody else has to approve it."]
    await card.click(U_BOB)
    assert world.counters() == (1, 1)
    lines = [(line.actor[-5:], line.action) for line in await world.chain(card.draft["key"])]
    assert lines == [("ALICE", "refused"), ("U0BOB", "approved")]


# A draft that expired is refused although no sweep ran yet, and the person hears when it expired.
async def test_late_click(world: World) -> None:
    card = world.card(expires_in_seconds=-1)
    await card.click(U_ALICE)
    assert world.counters() == (0, 0)
    assert (await world.heard(U_ALICE))[0].startswith("Too late: this draft expired <!date^")
    assert [line.action for line in await world.chain(card.draft["key"])] == ["refused"]


# F023: while somebody holds the row Slack is answered in time, and the person hears: nothing was decided.
async def test_held_lock(world: World, dsn: str) -> None:
    card = world.card()
    with psycopg.connect(dsn) as holder:
        holder.execute("SELECT * FROM draft_heads FOR UPDATE")
        reply = await card.click(U_ALICE)
        holder.rollback()
    assert reply.status == 200  # Without an answer within 3 s the actor reports 0.
    assert await world.heard(U_ALICE) == ["That took too long. Nothing was decided. Please try again."]
    assert world.counters() == (0, 0)


# Nobody decides who may not, and each hears why; a stranger of a shared channel and a guest among them.
@pytest.mark.parametrize(
    ("user", "says"),
    [
        (U_MEMBER, "Only reviewers"),
        (U_GUEST, "Guests may not"),
        (U_STRANGER, "Only members of this workspace"),
    ],
)
async def test_foreign_clicks(world: World, user: str, says: str) -> None:
    card = world.card()
    for action in ("approve", "reject"):
        assert (await card.click(user, action)).kept
    assert world.counters() == (0, 0)
    heard = await world.heard(user)
    assert [note[: len(says)] for note in heard] == [says, says]
    assert world.slack.state.view_on_top(user) is None
    refused = [*await world.chain(card.draft["key"]), *await world.chain("system")]
    assert [line.action for line in refused] == ["refused", "refused"]


# Whatever is refused to somebody stands on the record of the key it is about, the windows among it.
@pytest.mark.parametrize("confirm", ["none", "typed"])
@pytest.mark.parametrize("action", ["approve", "reject", "read", "edit", "redraft"])
async def test_refusals_are_on_the_key(world: World, action: str, confirm: str) -> None:
    card = world.card({"confirm": confirm})
    await card.click(U_MEMBER, action)
    await world.heard(U_MEMBER)
    lines = await world.chain(card.draft["key"])
    assert [(line.actor, line.action) for line in lines] == [(f"slack:T0STET:{U_MEMBER}", "refused")]
    said = json.loads(lines[0].detail or "")
    assert said == {"decision": action, "revision": 1, "why": "not_reviewer"}
    assert await world.chain("system") == []


# So does a window that was asked for too late.
@pytest.mark.parametrize("action", ["reject", "edit", "redraft"])
async def test_late_windows_are_on_the_key(world: World, action: str) -> None:
    card = world.card()
    await card.click(U_ALICE)
    await card.click(U_BOB, action)
    assert (await world.heard(U_BOB))[0].startswith("Already approved by")
    lines = await world.chain(card.draft["key"])
    assert [line.action for line in lines] == ["approved", "refused"]
    assert json.loads(lines[1].detail or "") == {"decision": action, "revision": 1, "why": "approved"}


# A person of another team under the name of a reviewer is nobody.
async def test_borrowed_name(world: World) -> None:
    card = world.card()
    await card.click(U_ALICE, forge=Forge(team=OTHER_TEAM))
    assert world.counters() == (0, 0)
    assert await world.heard(U_ALICE) == [
        "I could not check who you are just now. Nothing was decided. Please try again."
    ]


# A vote short of the quorum is told how many there are; the last one decides and needs no words.
async def test_quorum(world: World) -> None:
    card = world.card({"quorum": 2})
    await card.click(U_ALICE)
    await card.click(U_ALICE)
    assert world.counters() == (0, 0)
    await card.click(U_BOB)
    assert world.counters() == (1, 1)
    assert await world.heard(U_ALICE) == [
        "Your approval counts: 1 of 2.",
        "Your approval already counts: 1 of 2 so far.",
    ]
    assert await world.heard(U_BOB) == []


# The whole draft is read in a modal with its own Approve, whose result is said in that modal.
async def test_read_and_approve(world: World) -> None:
    card = world.card()
    await card.click(U_ALICE, "read")
    assert "It ships Monday." in world.window(U_ALICE)
    await world.slack.actor.press(U_ALICE, "stet.approve")
    await world.doors.settle()
    assert "Approved." in world.window(U_ALICE)
    assert world.counters() == (1, 1)
    spent = rows(
        world.dsn, "SELECT t.surface, t.holder FROM approvals a JOIN approval_tokens t USING (token_hash)"
    )
    assert spent == [{"surface": "view", "holder": f"slack:T0STET:{U_ALICE}"}]


# A long draft is turned page by page, in one modal.
async def test_pages(world: World) -> None:
    card = world.card(body={"subject": "Long", "body": "word " * 14_000})
    await card.click(U_ALICE, "read")
    for part in ("2", "3", "2"):
        reply = await world.slack.actor.press(U_ALICE, f"stet.read.part.{part}")
        assert reply.kept
        await world.doors.settle()
        assert f"Part {part} of 3" in plain(world.window(U_ALICE))
    assert len(world.slack.state.open_views[U_ALICE]) == 1


# Buttons of a modal that somebody else's hand sends are refused: they belong to the one they were drawn for.
async def test_another_persons_modal(world: World) -> None:
    card = world.card()
    await card.click(U_ALICE, "read")
    view = world.slack.actor.top_view(U_ALICE)
    view.user = U_BOB
    world.slack.state.open_views[U_BOB] = [view.id]
    await world.slack.actor.press(U_BOB, "stet.approve")
    await world.doors.settle()
    assert world.counters() == (0, 0)
    assert "another message" in plain(world.window(U_BOB))


# When Slack cannot open the window any more, under either spelling, the person is asked to click again.
@pytest.mark.parametrize("word", ["expired_trigger_id", "trigger_exchanged"])
@pytest.mark.parametrize("action", ["reject", "read"])
async def test_late_window(world: World, word: str, action: str) -> None:
    card = world.card()
    world.slack.faults.order("views.open", says(word))
    assert (await card.click(U_ALICE, action)).kept
    assert await world.heard(U_ALICE) == ["Slack could not open the window in time. Please click again."]


# A window that Slack refuses for itself is our fault, not a late click: the person is told so, and the log.
@pytest.mark.parametrize("action", ["reject", "read"])
async def test_refused_window(world: World, caplog: pytest.LogCaptureFixture, action: str) -> None:
    card = world.card()
    world.slack.faults.order("views.open", says("invalid_arguments"))
    assert (await card.click(U_ALICE, action)).kept
    (said,) = await world.heard(U_ALICE)
    assert said.startswith("Slack refused to open the window. Nothing was decided.")
    assert "Slack refuses a window" in caplog.text


# A kind that wants the entity typed is not approved by a press: a window asks, and takes nothing else.
async def test_typed(world: World) -> None:
    card = world.card({"confirm": "typed"})
    await card.click(U_ALICE)
    assert world.counters() == (0, 0)
    await world.slack.actor.submit(U_ALICE, {"stet.answer": "customer:43"})
    assert world.slack.actor.top_view(U_ALICE).errors == {
        "stet.typed.input": "That is not the name above. Nothing was decided. Please type it as it stands."
    }
    assert world.counters() == (0, 0)
    await world.slack.actor.submit(U_ALICE, {"stet.answer": "customer:42"})
    assert world.counters() == (1, 1)
    assert world.slack.state.view_on_top(U_ALICE) is None


# Values and actions that we never wrote change nothing and are answered in private.
@pytest.mark.parametrize(
    ("action", "value"),
    [
        ("stet.approve", "x"),
        ("stet.approve", NOT_OURS),
        ("stet.approve", "\x00'; DROP TABLE drafts; --"),
        ("stet.reject", "x"),
        ("stet.reject", NOT_OURS),
        ("stet.read", "x"),
        ("stet.read.part.2", NOT_OURS),
        ("stet.unknown.resend", "x"),
        ("stet.nothing", "x"),
        ("", ""),
    ],
)
async def test_forged_values(world: World, action: str, value: str) -> None:
    card = world.card()

    def forge(payload: dict[str, Any]) -> None:
        payload["actions"][0]["action_id"] = action

    reply = await card.click(U_ALICE, forge=Forge(value=value, change=forge))
    assert reply.status == 200
    assert await world.heard(U_ALICE) == [
        "This button is no longer valid. Please use the card in the channel."
    ]
    assert world.counters() == (0, 0)


# A token counts only for its own button, and only from its own message.
@pytest.mark.parametrize("wrong", ["button", "message"])
async def test_wrong_surface(world: World, wrong: str) -> None:
    card = world.card()
    ts = card.draft["ts"]
    value = encode_value(ButtonValue(card.tokens["reject" if wrong == "button" else "approve"], 1))
    if wrong == "message":
        ts = world.slack.state.new_ts()
        show(world.slack, C_REVIEW, ts, {"stet.approve": value})
    await world.slack.actor.click(U_ALICE, C_REVIEW, ts, "stet.approve", Forge(value=value))
    assert world.counters() == (0, 0)
    assert (await world.heard(U_ALICE))[0].startswith("This button belongs to another message.")


CHANGES: dict[str, Any] = {
    "no actions": lambda body: body.pop("actions"),
    "empty actions": lambda body: body.update(actions=[]),
    "two actions": lambda body: body["actions"].append(body["actions"][0]),
    "an action that is a word": lambda body: body.update(actions=["approve"]),
    "an action without id": lambda body: body["actions"][0].pop("action_id"),
    "no container": lambda body: body.pop("container"),
    "a container of another kind": lambda body: body["container"].update(type="file"),
    "a channel that is a number": lambda body: body["container"].update(channel_id=7),
    "a ts with words": lambda body: body["container"].update(message_ts="now"),
    "a value that is a list": lambda body: body["actions"][0].update(value=["x"]),
    "another type": lambda body: body.update(type="message_action", callback_id="x"),
    "an unknown type": lambda body: body.update(type="never_heard_of"),
    "a shortcut without callback": lambda body: body.update(type="shortcut"),
    "options": lambda body: body.update(type="block_suggestion", action_id="x"),
    "an event that is a word": lambda body: body.update(event="x"),
}


# A signed request of any shape gets an answer of 200 and a private note, never an exception.
@pytest.mark.parametrize("name", CHANGES)
async def test_strange_shapes(world: World, name: str, caplog: pytest.LogCaptureFixture) -> None:
    card = world.card()
    reply = await card.click(U_ALICE, forge=Forge(change=CHANGES[name]))
    assert reply.status == 200
    heard = await world.heard(U_ALICE)
    if name == "an event that is a word":
        assert heard == []  # Bolt does not look at it in a press, so it is a press like any other.
        assert world.counters() == (1, 1)
    else:
        assert len(heard) == 1
        assert world.counters() == (0, 0)
    assert "Traceback" not in caplog.text


# A person who cannot be made out is told nothing, and nothing happens.
@pytest.mark.parametrize("user", [None, "U0ALICE", {"id": 5}, {"id": "<@U0ALICE>"}, {}])
async def test_nobody(world: World, user: object) -> None:
    card = world.card()
    reply = await card.click(U_ALICE, forge=Forge(change=lambda body: body.update(user=user)))
    assert reply.status == 200
    assert world.counters() == (0, 0)


# What is no form, no JSON or no text is refused before anything else; so is any other method, and too much.
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"payload=%7B", 401),
        (b"payload=[1]", 401),
        (b"payload=" + b"[" * 100_000, 401),
        (b"{", 401),
        (b"\xff\xfe", 401),
        (b"", 401),
        (b"x" * (2 * 1024 * 1024 + 1), 413),
    ],
)
async def test_unreadable_bodies(world: World, body: bytes, status: int) -> None:
    request = (await world.card().click(U_ALICE, forge=Forge(signature="v0=0"))).request
    headers = dict(request.headers)
    answer = await world.slack.actor._http.post(world.slack.actor.events_url, content=body, headers=headers)
    assert answer.status_code == status
    assert (await world.slack.actor._http.get(world.slack.actor.events_url)).status_code == 405


# A signature that cannot even be checked is a bad one: refused, and nobody is told anything in our name.
@pytest.mark.parametrize("stamp", ["soon", "17e8", "9" * 400, ""])
async def test_a_timestamp_that_is_none(world: World, stamp: str) -> None:
    request = (await world.card().click(U_MEMBER, forge=Forge(signature="v0=0"))).request
    headers = {**request.headers, "x-slack-request-timestamp": stamp}
    actor = world.slack.actor
    answer = await actor._http.post(actor.events_url, content=request.body, headers=headers)
    assert answer.status_code == 401
    assert await world.heard(U_MEMBER) == []


# Notes go to Slack's own addresses only; another is never called, and the person is told in the channel.
async def test_strange_response_url(world: World) -> None:
    called: list[str] = []

    async def elsewhere(scope: dict[str, Any], receive: Any, send: Any) -> None:
        called.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    async with serving(elsewhere) as strange:
        card = world.card()
        await card.click(U_MEMBER, forge=Forge(change=lambda body: body.update(response_url=strange)))
        assert (await world.heard(U_MEMBER))[0].startswith("Only reviewers")
    assert called == []
    assert world.slack.journal.count("chat.postEphemeral") == 1


# An address of the interaction that is used up or too old is no way to anybody: the channel is, in private.
@pytest.mark.parametrize("word", ["used_url", "expired_url"])
async def test_dead_response_url(world: World, word: str) -> None:
    card = world.card()
    world.slack.faults.order("response_url", says(word))
    assert (await card.click(U_MEMBER)).kept
    assert (await world.heard(U_MEMBER))[0].startswith("Only reviewers")
    assert world.slack.journal.count("chat.postEphemeral") == 1


# A card that somebody deletes while another one presses: the press counts all the same, as it was shown.
async def test_deleted_card(world: World) -> None:
    card = world.card()
    actor, shown = world.slack.actor, world.slack.state.messages[C_REVIEW][card.draft["ts"]]
    payload = click_payload(actor.state, U_ALICE, shown, "stet.approve", Forge())
    del world.slack.state.messages[C_REVIEW][shown.ts]
    assert (await actor.send(sign_interaction(actor.state, payload, Forge()))).kept
    assert world.counters() == (1, 1)


# A window may stay open for as long as its question is: an hour later it decides, after the term it does not.
@pytest.mark.parametrize(("left", "decided"), [("1 minute", 1), ("-1 minute", 0)])
async def test_window_open_for_long(world: World, left: str, decided: int) -> None:
    card = world.card()
    await card.click(U_ALICE, "read")
    change(world.dsn, "UPDATE approval_tokens SET minted_at = minted_at - interval '1 hour'")
    change(world.dsn, "UPDATE drafts SET expires_at = now() + %(left)s::interval", left=left)
    assert (await world.slack.actor.press(U_ALICE, "stet.approve")).kept
    await world.doors.settle()
    assert world.counters() == (decided, decided)
    assert ("Approved." if decided else "Too late") in plain(world.window(U_ALICE))


# No click waits for auth.test: it was asked for at the start, and Slack may be away since.
async def test_no_auth_test(world: World) -> None:
    before = world.slack.journal.count("auth.test")
    await world.card().click(U_ALICE)
    assert world.slack.journal.count("auth.test") == before == 1


# Neither a token nor the body of a badly signed request reaches a log, the record or an answer, at any level.
async def test_marks(world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.DEBUG)
    for name in logging.root.manager.loggerDict:
        if name.startswith(("slack", "stet", "bot", "aiohttp", "uvicorn")):
            monkeypatch.setattr(logging.getLogger(name), "level", logging.DEBUG)
    card = world.card()
    mark = ("MARK3" + mint_token())[:43]
    make_token_called(world, card.draft, mark)
    replies = [
        await card.click(U_ALICE, forge=Forge(value=f"{mark}.1")),
        await card.click(U_BOB, forge=Forge(value=f"{mark}.1")),
        await card.click(U_ALICE, forge=Forge(value=f"{mark}.1", signature="v0=" + "0" * 64)),
        await card.click(U_ALICE, forge=Forge(value="MARK4", signature="v0=" + "0" * 64)),
        await card.click(U_ALICE, forge=Forge(change=lambda body: body.update(type="MARK4"))),
        await card.click(U_ALICE, forge=Forge(change=lambda body: body.update(actions="MARK4"))),
    ]
    assert [reply.status for reply in replies] == [200, 200, 401, 401, 200, 200]
    notes = [*await world.heard(U_ALICE), *await world.heard(U_BOB)]
    said = [caplog.text, *(reply.body.decode() for reply in replies), *notes]
    said += [json.dumps(rows(world.dsn, "SELECT * FROM audit_details"), default=str)]
    assert world.counters() == (1, 1)
    assert [text for text in said if "MARK3" in text or "MARK4" in text] == []


# An unknown effect is settled by an admin's press in the version shown; a second press hears that it moved.
async def test_unknown_effect(world: World) -> None:
    effect_id = make_effect(world.dsn, state="unknown")
    ts = world.unknown_card(effect_id, 1, "delivered", "resend", "give_up")
    await world.slack.actor.click(U_ADMIN, C_OPS, ts, "stet.unknown.delivered")
    await world.slack.actor.click(U_ADMIN, C_OPS, ts, "stet.unknown.resend")
    assert rows(world.dsn, "SELECT state FROM effect_outbox") == [{"state": "completed"}]
    assert await world.heard(U_ADMIN) == [
        "Recorded.",
        "This was settled or has changed in the meantime. The card shows how.",
    ]


# Whoever is no admin settles nothing, and that they tried is on the record of the effect's key.
async def test_unknown_effect_by_others(world: World) -> None:
    effect_id = make_effect(world.dsn, state="unknown")
    ts = world.unknown_card(effect_id, 1, "delivered")
    for user in (U_ALICE, U_GUEST, U_STRANGER):
        await world.slack.actor.click(user, C_OPS, ts, "stet.unknown.delivered")
    assert rows(world.dsn, "SELECT state FROM effect_outbox") == [{"state": "unknown"}]
    assert await world.heard(U_ALICE) == ["Only admins may do this."]
    assert await world.heard(U_GUEST) == ["Guests may not decide. Nothing was decided."]
    assert await world.chain("system") == []
    (effect,) = rows(world.dsn, "SELECT idempotency_key FROM effect_outbox")
    lines = await world.chain(effect["idempotency_key"])
    assert [line.actor for line in lines] == [
        f"slack:T0STET:{U_ALICE}",
        f"slack:T0STET:{U_GUEST}",
        f"slack:{OTHER_TEAM}:{U_STRANGER}",
    ]
    assert {line.action for line in lines} == {"refused"}


# While a newer event waits "send again" is not possible, and "drop it" only then.
async def test_unknown_effect_overtaken(world: World, dsn: str) -> None:
    effect_id = make_effect(dsn, state="unknown")
    ts = world.unknown_card(effect_id, 1, "resend", "drop")
    await world.slack.actor.click(U_ADMIN, C_OPS, ts, "stet.unknown.drop")
    change(dsn, "UPDATE draft_heads SET source_version = source_version + 1")
    await world.slack.actor.click(U_ADMIN, C_OPS, ts, "stet.unknown.resend")
    assert rows(dsn, "SELECT state FROM effect_outbox") == [{"state": "unknown"}]
    await world.slack.actor.click(U_ADMIN, C_OPS, ts, "stet.unknown.drop")
    assert rows(dsn, "SELECT state FROM effect_outbox") == [{"state": "cancelled"}]


# With the database away a press is answered, and says so.
async def test_database_away(world: World) -> None:
    card = world.card()
    await world.db.close()
    assert (await card.click(U_ALICE)).status == 200
    assert await world.heard(U_ALICE) == [
        "The database is away. Nothing was decided. Please try again in a minute."
    ]


def make_token_called(world: World, draft: dict[str, Any], token: str) -> None:
    """Let a known text be the token of the card's approve button."""
    from_hash = "UPDATE approval_tokens SET token_hash = encode(sha256(convert_to(%(token)s, 'UTF8')), 'hex')"
    change(world.dsn, from_hash + " WHERE decision = 'approve'", token=token)
