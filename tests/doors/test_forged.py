"""Presses and submissions that are rightly signed and yet not honest, for each element that is drawn.

Whatever is forged, nothing changes and the person is told; the honest press at the end shows that the element
was live all the time. Not here: shapes that Slack never sends (test_buttons) or races (tests/race).
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from bot.cards import modals
from bot.contracts import click as carried
from bot.contracts.click import ButtonValue, encode_value, undo_action
from bot.demo.slack_actor import Reply
from bot.demo.slack_payloads import Forge
from bot.demo.slack_workspace import (
    C_OPS,
    C_REVIEW,
    OTHER_TEAM,
    TEAM,
    U_ADMIN,
    U_ALICE,
    U_BOB,
    U_GONE,
    U_GUEST,
    U_MEMBER,
    U_ROBOT,
    U_STET,
    U_STRANGER,
    U_ULTRA,
)
from bot.policy.tokens import mint_token
from tests.cards.surfaces import SURFACES
from tests.doors.slack_world import ACTIONS, World
from tests.doors.test_queue import in_line
from tests.makers import SNAPSHOT, change, make_draft, make_effect, make_token, rows

Payload = dict[str, Any]
Change = Callable[[Payload], None]
Press = Callable[[Forge], Awaitable[Reply]]
Prepare = Callable[[World], Awaitable[Press]]

REVIEWED: Final = {"reviewers": ["S0REVIEWERS"]}
BACK: Final = {"target": "https://n8n.example/webhook/take-back", "output": {"note": "taken back"}}
LONG: Final = {"subject": "Long", "body": "word " * 6_200}
NOT_OURS: Final = encode_value(ButtonValue("A" * 43, 1))


def _user(user: str | None, team: str | None = TEAM) -> Change:
    def forge(payload: Payload) -> None:
        payload["user"] = {"id": user, "name": "x", **({"team_id": team} if team else {})}

    return forge


# Somebody else's hand under a payload that is ours in all the rest.
PEOPLE: Final[dict[str, Change]] = {
    "a member": _user(U_MEMBER),
    "a guest": _user(U_GUEST),
    "a single-channel guest": _user(U_ULTRA),
    "a stranger": _user(U_STRANGER, OTHER_TEAM),
    "a stranger as one of us": _user(U_STRANGER),
    "a deactivated account": _user(U_GONE),
    "another app's bot": _user(U_ROBOT),
    "ourselves": _user(U_STET),
    "nobody Slack knows": _user("U0NOBODY"),
    "the same name in another team": _user(U_ALICE, OTHER_TEAM),
    "the same name in an organisation": _user(U_ALICE, "E0OTHER"),
    "an organisation's id": _user("W0OTHER"),
    "an admin's name in another team": _user(U_ADMIN, OTHER_TEAM),
}
# Where it claims to come from.
APPS: Final[dict[str, Change]] = {
    "another app": lambda body: body.update(api_app_id="A0EVIL"),
    "no app": lambda body: body.pop("api_app_id"),
    "another workspace": lambda body: body.update(team={"id": OTHER_TEAM, "domain": "other"}),
    "no workspace": lambda body: body.update(team=None),
    "another organisation": lambda body: body.update(
        team=None, enterprise={"id": "E0OTHER", "name": "other"}, is_enterprise_install=True
    ),
}
# Who cannot be made out cannot be told anything either.
NAMELESS: Final[dict[str, Change]] = {
    "no user": lambda body: body.pop("user"),
    "a user without id": lambda body: body.update(user={"name": "alice", "team_id": TEAM}),
    "a user that is a word": lambda body: body.update(user=U_ALICE),
}


def _container(**parts: str) -> Change:
    return lambda body: body["container"].update(parts)


PLACES: Final[dict[str, Change]] = {
    "another channel": _container(channel_id="C0SUPPORT"),
    "another message": _container(message_ts="1700000009.000900"),
    "copied to another channel": _container(channel_id="C0SUPPORT", message_ts="1700000009.000900"),
    "a direct message": _container(channel_id="D0ALICE"),
    "a modal": lambda body: body.update(container={"type": "view", "view_id": "V1"}, view={"type": "modal"}),
    "a Home": lambda body: body.update(container={"type": "view", "view_id": "V1"}, view={"type": "home"}),
}


def _on_a_message(body: Payload) -> None:
    body.pop("view", None)
    place = {"type": "message", "channel_id": C_REVIEW, "message_ts": "1700000000.000100"}
    body.update(container=place, channel={"id": C_REVIEW})


def _in_a_view(kind: str) -> Change:
    return lambda body: body["view"].update(type=kind)


# A window's or a Home's own button, as if it stood elsewhere before the same person.
ELSEWHERE_BEFORE: Final[dict[str, dict[str, Change]]] = {
    "modal": {"a message": _on_a_message, "a Home": _in_a_view("home")},
    "home": {"a message": _on_a_message, "a modal": _in_a_view("modal")},
}
# A channel's queue card names nothing: its button shows what waits, and to reviewers only.
OPEN_TO_ANY_PLACE: Final = {carried.QUEUE_NEXT_ACTION}


@dataclass(frozen=True, slots=True)
class Element:
    """One thing to press or send. `prepare` puts it before the person anew and gives the way to press it."""

    prepare: Prepare
    decision: str = ""
    user: str = U_ALICE
    answers: bool = True  # An honest press changes something.


async def _card(world: World, action: str, confirm: str = "none", **more: Any) -> Press:
    if not rows(world.dsn, "SELECT 1 AS n FROM drafts"):
        terms = {"redrafts": 3, "prompt_version": "x", "confirm": confirm}
        world.__dict__["before"] = world.card(terms, **more)
    before = world.__dict__["before"]
    return lambda forge: before.click(U_ALICE, action, forge=forge)


def on_card(action: str) -> Prepare:
    async def prepare(world: World) -> Press:
        fresh = "before" not in world.__dict__
        press = await _card(world, action)
        if fresh and action == "cancel":
            await world.__dict__["before"].click(U_BOB)
        return press

    return prepare


def to_undo(number: int) -> Prepare:
    """The button that takes one of two delivered effects back."""

    async def prepare(world: World) -> Press:
        if "before" not in world.__dict__:
            terms = [SNAPSHOT["effect"] | {"name": name, "undo": SNAPSHOT["effect"] | BACK} for name in "ab"]
            before = world.card({"effects": terms}, status="sent")
            made = [
                make_effect(
                    world.dsn,
                    draft=before.draft,
                    state="completed",
                    target=f"https://n8n.example/webhook/{place}",
                    provider_id=f"msg-{place}",
                    clause=f"{{{place}}}",
                )
                for place in range(2)
            ]
            for place, one in enumerate(made):
                token = make_token(world.dsn, before.draft, "undo", effect_id=one)
                before.tokens[undo_action(place).removeprefix("stet.")] = token
            before.show()
            world.__dict__["before"] = before
        action = undo_action(number).removeprefix("stet.")
        return lambda forge: world.__dict__["before"].click(U_ALICE, action, forge=forge)

    return prepare


def in_modal(button: str, action: str = "read", **more: Any) -> Prepare:
    """A button of the modal that the card's button opens."""

    async def prepare(world: World) -> Press:
        world.slack.state.open_views.pop(U_ALICE, None)
        await (await _card(world, action, **more))(Forge())
        return lambda forge: world.slack.actor.press(U_ALICE, button, forge)

    return prepare


def sent(action: str, typed: dict[str, Any], **more: Any) -> Prepare:
    """The modal that the card's button opens, filled in."""

    async def prepare(world: World) -> Press:
        world.slack.state.open_views.pop(U_ALICE, None)
        await (await _card(world, action, **more))(Forge())
        return lambda forge: world.slack.actor.submit(U_ALICE, typed, checked=False, forge=forge)

    return prepare


async def queue_card(world: World) -> Press:
    if "queue" not in world.__dict__:
        world.__dict__["queue"] = in_line(world, 2)
    return lambda forge: world.slack.actor.click(
        U_ALICE, C_REVIEW, world.__dict__["queue"], carried.QUEUE_NEXT_ACTION, forge
    )


async def in_queue_modal(world: World) -> Press:
    world.slack.state.open_views.pop(U_ALICE, None)
    await (await queue_card(world))(Forge())
    return lambda forge: world.slack.actor.press(U_ALICE, carried.QUEUE_NEXT_ACTION, forge)


def at_home(button: str, count: int = 1, **more: Any) -> Prepare:
    async def prepare(world: World) -> Press:
        if not rows(world.dsn, "SELECT 1 AS n FROM drafts"):
            for number in range(count):
                entity = f"customer:{number}"
                make_draft(
                    world.dsn,
                    snapshot=REVIEWED | {"redrafts": 3, "prompt_version": "x"},
                    run={"entity": entity},
                    **more,
                )
        world.slack.state.open_views.pop(U_ALICE, None)
        await world.slack.actor.open_home(U_ALICE)
        await world.doors.settle()
        return lambda forge: world.slack.actor.press_home(U_ALICE, button, forge)

    return prepare


def unknown_card(choice: str) -> Prepare:
    async def prepare(world: World) -> Press:
        if "unknown" not in world.__dict__:
            effect_id = make_effect(world.dsn, state="unknown")
            world.__dict__["unknown"] = world.unknown_card(effect_id, 1, choice)
            if choice == "drop":
                change(world.dsn, "UPDATE draft_heads SET source_version = source_version + 1")
        ts = world.__dict__["unknown"]
        return lambda forge: world.slack.actor.click(U_ADMIN, C_OPS, ts, f"stet.unknown.{choice}", forge)

    return prepare


def unknown_at_home(choice: str) -> Prepare:
    async def prepare(world: World) -> Press:
        if not rows(world.dsn, "SELECT 1 AS n FROM effect_outbox"):
            make_effect(world.dsn, state="unknown")
            if choice == "drop":
                change(world.dsn, "UPDATE draft_heads SET source_version = source_version + 1")
        world.slack.state.open_views.pop(U_ADMIN, None)
        await world.slack.actor.open_home(U_ADMIN)
        await world.doors.settle()
        return lambda forge: world.slack.actor.press_home(U_ADMIN, f"stet.unknown.{choice}", forge)

    return prepare


WROTE: Final = {"stet.answer": "Because"}
# Every element that is drawn, by where it stands and what it is called; parts and pages are numbered `N`.
ELEMENTS: Final[dict[tuple[str, str], Element]] = {
    ("message", "stet.approve"): Element(on_card("approve"), "approve"),
    ("message", "stet.reject"): Element(on_card("reject"), "reject", answers=False),
    ("message", "stet.edit"): Element(on_card("edit"), "edit", answers=False),
    ("message", "stet.redraft"): Element(on_card("redraft"), "redraft", answers=False),
    ("message", "stet.read"): Element(on_card("read"), "read", answers=False),
    ("message", "stet.cancel"): Element(on_card("cancel"), "cancel"),
    ("message", "stet.undo"): Element(to_undo(0), "undo"),
    ("message", "stet.undo.N"): Element(to_undo(1), "undo.2"),
    ("message", "stet.queue.next"): Element(queue_card, answers=False),
    **{
        ("message", f"stet.unknown.{choice}"): Element(unknown_card(choice), user=U_ADMIN)
        for choice in ("delivered", "resend", "drop", "give_up")
    },
    ("modal", "stet.approve"): Element(in_modal("stet.approve"), "approve"),
    ("modal", "stet.reject"): Element(in_modal("stet.reject"), "reject", answers=False),
    ("modal", "stet.edit"): Element(in_modal("stet.edit"), "edit", answers=False),
    ("modal", "stet.redraft"): Element(in_modal("stet.redraft"), "redraft", answers=False),
    ("modal", "stet.read.part.N"): Element(in_modal("stet.read.part.2", body=LONG), "read", answers=False),
    ("modal", "stet.queue.next"): Element(in_queue_modal, "read", answers=False),
    ("home", "stet.approve"): Element(at_home("stet.approve"), "approve"),
    ("home", "stet.reject"): Element(at_home("stet.reject"), "reject", answers=False),
    ("home", "stet.edit"): Element(at_home("stet.edit"), "edit", answers=False),
    ("home", "stet.redraft"): Element(at_home("stet.redraft"), "redraft", answers=False),
    ("home", "stet.read"): Element(at_home("stet.read", body=LONG), "read", answers=False),
    ("home", "stet.home.page.N"): Element(at_home("stet.home.page.2", count=9), answers=False),
    **{
        ("home", f"stet.unknown.{choice}"): Element(unknown_at_home(choice), user=U_ADMIN)
        for choice in ("delivered", "resend", "drop", "give_up")
    },
    ("submit", "stet.approve"): Element(
        sent("approve", {"stet.answer": "customer:42"}, confirm="typed"), "approve"
    ),
    ("submit", "stet.reject"): Element(sent("reject", WROTE), "reject"),
    ("submit", "stet.redraft"): Element(sent("redraft", WROTE), "redraft"),
    ("submit", "stet.edit"): Element(sent("edit", {"stet.edit.body": "It ships Friday."}), "edit"),
}
# The doctor's alone, whose own door listens for it (tests/examination/test_click).
ELSEWHERE: Final = {("message", carried.REHEARSAL_ACTION)}


def _drawn(content: Any, surface: str, found: set[tuple[str, str]]) -> None:
    if isinstance(content, dict):
        if content.get("type") == "button":
            found.add((surface, re.sub(r"\.[0-9]+$", ".N", content["action_id"])))
        if content.get("submit"):
            found.add(("submit", content["callback_id"]))
        for part in content.values():
            _drawn(part, surface, found)
    elif isinstance(content, list):
        for part in content:
            _drawn(part, surface, found)


# Every button and every window to send that is drawn anywhere has a row, and every row is drawn somewhere.
def test_every_element_has_a_row() -> None:
    found: set[tuple[str, str]] = set()
    for draw in SURFACES.values():
        for text in ("x", "word " * 14_000):
            for one in draw(text, "en"):
                surface = one.content["type"] if one.is_view else "message"
                _drawn(one.content, surface, found)
    # What the catalogue of actions names and nothing draws would be a row missing here, too.
    names = [name for name in dir(carried) if name.endswith("_ACTION") and not name.startswith("_")]
    named = {getattr(carried, name) for name in names}
    assert {action for _, action in found | ELSEWHERE} >= named
    assert found | ELSEWHERE == ELEMENTS.keys() | ELSEWHERE


def standing(world: World) -> list[Any]:
    """All that a press could change."""
    return [
        world.counters(),
        rows(world.dsn, "SELECT draft_id, status, revision, approval_id FROM drafts ORDER BY draft_id"),
        rows(world.dsn, "SELECT run_id, state FROM workflow_runs ORDER BY run_id"),
        rows(world.dsn, "SELECT effect_id, state, version FROM effect_outbox ORDER BY effect_id"),
        rows(world.dsn, "SELECT count(*) AS n FROM votes"),
        rows(world.dsn, "SELECT count(*) AS n FROM redrafts"),
        rows(world.dsn, "SELECT count(*) AS n FROM revisions"),
    ]


def told(world: World, reply: Reply) -> int:
    """How often somebody was shown or told something: by a call of ours, or in the answer itself."""
    shows = ("chat.postEphemeral", "views.open", "views.push", "views.update", "views.publish")
    called = sum(world.slack.journal.count(method) for method in shows)
    whispered = sum(len(world.slack.state.ephemerals_of(user)) for user in world.slack.state.workspace.users)
    return called + whispered + (1 if reply.body.strip() else 0)


def _valued(value: str) -> Forge:
    """Another button's value: in a press the action's, in a submission the private metadata."""

    def forge(payload: Payload) -> None:
        if payload["type"] == "view_submission":
            payload["view"]["private_metadata"] = value
        else:
            payload["actions"][0]["value"] = value

    return Forge(change=forge)


def _values(world: World, element: Element) -> dict[str, str]:
    """Values that are not the element's own: made up, of another revision, of other buttons and drafts."""
    found = {
        "an empty value": "",
        "a word": "x",
        "a token we never made": NOT_OURS,
        "a token with a tail": f"{mint_token()}.1.1",
        "another language of tokens": "01957a3e-1111-7000-8000-000000000001.1",
    }
    before = world.__dict__.get("before")
    if before is None:
        return found
    other = world.card({"redrafts": 3, "prompt_version": "x"}, run={"entity": "customer:other"})
    moved = "UPDATE cards SET ts = '1700000009.000901' WHERE draft_id = %(id)s"
    change(world.dsn, moved, id=other.draft["draft_id"])
    before.show()
    for name in ACTIONS:
        found[f"the card's {name}"] = encode_value(ButtonValue(before.tokens[name], 1))
        found[f"another card's {name}"] = encode_value(ButtonValue(other.tokens[name], 1))
    found["the next revision"] = encode_value(ButtonValue(before.tokens.get(element.decision, "A" * 43), 2))
    return found


def _forgeries(world: World, surface: str, action: str, element: Element) -> dict[str, Forge]:
    found = {**PEOPLE, **APPS}
    if surface == "message" and action not in OPEN_TO_ANY_PLACE:
        found |= PLACES
    found |= ELSEWHERE_BEFORE.get(surface, {})
    if action.startswith("stet.unknown."):
        found.pop("a Home", None)  # The same answers stand on an admin's Home.
    forged = {name: Forge(change=one) for name, one in found.items()}
    if action.endswith(".N") and surface == "home":  # What a page is of is the person, not the button.
        return {name: one for name, one in forged.items() if name in APPS}
    if action != carried.QUEUE_NEXT_ACTION or surface == "modal":
        own = f"the card's {element.decision}" if surface == "message" else ""
        values = {name: value for name, value in _values(world, element).items() if name != own}
        forged |= {name: _valued(value) for name, value in values.items()}
    return forged


# Each element with each forgery: nothing changes, and there is an answer; then the honest press counts.
@pytest.mark.parametrize(("surface", "action"), ELEMENTS)
async def test_forged(world: World, surface: str, action: str) -> None:
    element = ELEMENTS[surface, action]
    await element.prepare(world)
    forgeries = _forgeries(world, surface, action, element)
    before = standing(world)
    for name, forge in forgeries.items():
        press = await element.prepare(world)
        heard = told(world, Reply(200, b"", 0, None))  # type: ignore[arg-type]
        reply = await press(forge)
        await world.doors.settle()
        assert reply.kept, name
        assert standing(world) == before, name
        assert told(world, reply) > heard, name
    for name, change_ in NAMELESS.items():
        reply = await (await element.prepare(world))(Forge(change=change_))
        assert reply.status == 200, name
        assert standing(world) == before, name
    reply = await (await element.prepare(world))(Forge())
    await world.doors.settle()
    assert reply.kept
    assert (standing(world) != before) == element.answers


# The window of one person, sent or pressed in by another, is refused: its token is its person's.
@pytest.mark.parametrize(
    ("surface", "action"), [key for key, one in ELEMENTS.items() if key[0] != "message" and one.decision]
)
async def test_another_persons_window(world: World, surface: str, action: str) -> None:
    press = await ELEMENTS[surface, action].prepare(world)
    before = standing(world)
    reply = await press(Forge(change=_user(U_BOB)))
    await world.doors.settle()
    assert reply.kept
    assert standing(world) == before


# A window under another window's name does what neither asked for: nothing.
@pytest.mark.parametrize("action", [action for surface, action in ELEMENTS if surface == "submit"])
async def test_another_windows_name(world: World, action: str) -> None:
    names = {name for surface, name in ELEMENTS if surface == "submit"}
    for name in sorted(
        (names | {carried.APPROVE_ACTION, modals.MESSAGE_VIEW, "stet.read", "x", ""}) - {action}
    ):
        press = await ELEMENTS["submit", action].prepare(world)
        before = standing(world)
        reply = await press(Forge(change=lambda body, name=name: body["view"].update(callback_id=name)))  # type: ignore[misc]
        assert reply.kept, name
        assert standing(world) == before, name


# A button of a Home that was drawn anew a while ago is no longer valid.
async def test_an_older_home(world: World) -> None:
    prepare = at_home("stet.approve")
    await prepare(world)
    older = world.slack.state.homes[U_ALICE].content["blocks"]
    value = next(
        e["value"] for b in older for e in b.get("elements", []) if e.get("action_id") == "stet.approve"
    )
    change(world.dsn, "UPDATE approval_tokens SET minted_at = now() - interval '1 day'")
    press = await prepare(world)
    before = standing(world)
    await press(Forge(value=value))
    await world.doors.settle()
    assert standing(world) == before
