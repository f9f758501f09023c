"""Any sequence of what people, upstream, the model, the provider, Slack and the clock may do.

Not here: several processes and kills (tests/crash), or what must hold afterwards (always).
"""

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, LiteralString

import pytest

from bot.demo import slack_faults
from bot.demo.model_script import fail, say
from bot.demo.slack_actor import Reply
from bot.demo.slack_payloads import Forge, Signed
from bot.demo.slack_state import Message
from bot.demo.slack_typing import CannotDo
from bot.demo.slack_workspace import (
    C_OPS,
    C_REVIEW,
    S_REVIEWERS,
    U_ADMIN,
    U_ALICE,
    U_BOB,
    U_CAROL,
    U_GUEST,
    U_MEMBER,
)
from bot.demo.world import DROP, DROP_UNREAD, LOOK_UP, RUBBISH, Fault, status
from tests.makers import change, rows
from tests.processes import CAMPAIGN
from tests.race.always import check, check_cards, ended_tokens, standing
from tests.race.whole import KINDS, TARGET, Beside, Whole, one_whole, values_of

PEOPLE = (U_ALICE, U_BOB, U_CAROL, U_ALICE, U_BOB, U_CAROL, U_GUEST, U_MEMBER)
REVIEWERS = (U_ALICE, U_BOB, U_CAROL)
SEED = os.environ.get("STET_SEED", "20")
SEQUENCES = int(os.environ.get("STET_SEQUENCES", "400" if CAMPAIGN else "5"))
LENGTH = 60 if CAMPAIGN else 36
PRESSED_AGAIN = 2  # Buttons of ended questions that are tried whenever everything has come to rest.
OUTCOMES = (
    Fault(DROP),
    Fault(DROP, done=False),
    Fault(DROP_UNREAD),
    Fault(RUBBISH),
    status(500),
    status(503, done=True),
    status(429, retry_after="1"),
    status(422),
    status(404),
    status(302),
    status(200, body="{}", done=True),
)
LOST = (
    slack_faults.dropped(after_work=True),
    slack_faults.dropped(after_work=False),
    slack_faults.server_error(),
    slack_faults.server_error(after_work=True),
    slack_faults.says("internal_error", after_work=True),
    slack_faults.says("fatal_error"),
    slack_faults.limited("0"),
)
ANSWERS = (say("not JSON"), say('{"subject": 1}'), fail(503), fail(400), fail(429, code="insufficient_quota"))
CLOCK: tuple[LiteralString, ...] = (
    "UPDATE drafts SET expires_at = now() WHERE status = 'pending'",
    "UPDATE effect_outbox SET not_before = now() WHERE not_before > now() AND state = 'pending'",
    "UPDATE effect_outbox SET fresh_until = now() WHERE state = 'pending'",
    "UPDATE effect_outbox SET next_attempt_at = now() WHERE state = 'pending'",
    "UPDATE effect_outbox SET next_attempt_at = now() WHERE state = 'unknown'",
    "UPDATE workflow_runs SET next_attempt_at = now() WHERE state = 'failed_retryable'",
)
SWITCHES = (
    "kill all it burns",
    "resume all it is out",
    "kill kind:customer_email why",
    "resume kind:customer_email because",
    "resume all it is out",
    "resume",
)
# What a deadline was moved to is on the cards.
DRAWN = "UPDATE cards SET wanted_version = wanted_version + 1, next_attempt_at = now()"
BUTTONS = (
    "stet.approve",
    "stet.approve",
    "stet.reject",
    "stet.edit",
    "stet.redraft",
    "stet.cancel",
    "stet.read",
    "stet.undo",
    "stet.undo.2",
    "stet.undo.3",
)


class Play:
    """One sequence on its way."""

    def __init__(self, whole: Whole) -> None:
        self.whole = whole
        self.slack = whole.slack
        self.actor = whole.slack.actor
        self.versions: dict[tuple[int, int], int] = {}
        self.posted: list[dict[str, Any]] = []
        self.screens: list[Message] = []
        self.last: Signed | None = None
        self.deleted: set[str] = set()
        self.resent: dict[str, int] = {}
        self.must_redraw: dict[str, int] = {}
        self.before_window: dict[str, list[dict[str, Any]]] = {}

    # Upstream

    async def event(self, a: int, b: int, c: int) -> None:
        """A first event of an entity, or a newer one."""
        await self.arrive(a, b, c)
        if c % 3 == 0:
            # Before anything is drafted the card of what is older says that a newer one is coming.
            await self.whole.draw()
            await check_cards(self.whole, self.deleted)
        if c % 4:
            await self.settle()

    async def arrive(self, a: int, b: int, c: int) -> None:
        """Such an event, and nothing looked at: beside other acts nothing is at rest."""
        place = (a % 6 // 5, b % len(KINDS))
        version = self.versions[place] = self.versions.get(place, 10) + 2
        await self.post(self.make_event(place, version, upstream=bool(c % 2), long=c % 8 == 7), {202})

    async def older(self, a: int, b: int, c: int) -> None:
        """One that was overtaken on its way."""
        place = (a % 2, b % len(KINDS))
        if place in self.versions:
            event = self.make_event(place, self.versions[place] - c % 2, upstream=True)
            await self.post(event, {200})

    async def again(self, a: int, b: int, _c: int) -> None:
        """The same once more, a few times at once."""
        if self.posted:
            event = self.posted[a % len(self.posted)]
            await asyncio.gather(*(self.post(event, {200}) for _ in range(1 + b % 3)))

    async def conflict(self, a: int, _b: int, _c: int) -> None:
        """The same key, and other content."""
        if self.posted:
            event = self.posted[a % len(self.posted)]
            payload = event["payload"] | {"text": self.whole.new_words("other")}
            await self.post(event | {"payload": payload}, {409})

    async def replaces(self, a: int, b: int, c: int) -> None:
        """A correction of a run, of the newest version or a newer one."""
        if not self.posted:
            return
        old = self.posted[a % len(self.posted)]
        place = (int(old["entity"][-1]), KINDS.index(old["kind"]))
        version = self.versions[place] + b % 2
        event = self.make_event(place, version, upstream=bool(c % 2))
        event |= {"replaces": old["event_key"], "reason": "it was wrong"}
        if await self.post(event, {200, 202, 409}) == 202:
            self.versions[place] = version

    def make_event(
        self, place: tuple[int, int], version: int, *, upstream: bool, long: bool = False
    ) -> dict[str, Any]:
        entity, kind = place
        words = self.whole.new_words("event")
        made: dict[str, Any] = {
            "event_key": words,
            "kind": KINDS[kind],
            "entity": f"customer:{entity}",
            "source_version": version,
            "payload": {"to": "amy@customer.example", "text": words},
        }
        if upstream:
            body = "blah " * 3000 * long + self.whole.new_words("draft")
            made["draft"] = {"subject": "From upstream", "body": body, "label": "shipping"}
        return made

    async def post(self, event: dict[str, Any], allowed: set[int]) -> int:
        answer = await self.whole.http.post("/events", json=event)
        if answer.status_code == 503:  # A busy machine: upstream tries again, and may find its own.
            allowed = allowed | {200}
            answer = await self.whole.http.post("/events", json=event)
        assert answer.status_code in allowed, answer.text
        if answer.status_code == 202:
            self.posted.append(event)
        return int(answer.status_code)

    # The far sides

    async def model_fails(self, a: int, _b: int, _c: int) -> None:
        """What the model says next, three times over: no repair helps."""
        self.whole.model.script.then(*[ANSWERS[a % len(ANSWERS)]] * 3)

    async def provider_fails(self, a: int, b: int, _c: int) -> None:
        """What the provider does next, and what it says when it is asked."""
        self.whole.world.world.misbehave(TARGET, OUTCOMES[a % len(OUTCOMES)], times=1)
        if b % 3 == 0:
            self.whole.world.world.misbehave(LOOK_UP, status(503), times=1)

    async def slack_fails(self, a: int, b: int, c: int) -> None:
        """A post or an edit whose answer is lost, or that is refused."""
        method = ("chat.postMessage", "chat.update", "chat.postMessage", "conversations.history")[b % 4]
        self.slack.faults.order(method, LOST[a % len(LOST)], nth=1 + c // 20)

    async def delete(self, a: int, _b: int, _c: int) -> None:
        """Somebody takes a card away."""
        cards = self.slack.state.channel_messages(C_REVIEW)
        if cards:
            ts = cards[a % len(cards)].ts
            del self.slack.state.messages[C_REVIEW][ts]
            self.deleted.add(ts)

    async def clock(self, a: int, _b: int, _c: int) -> None:
        """A deadline is reached."""
        for statement in [*CLOCK[a % len(CLOCK) :], *CLOCK]:
            if change(self.whole.dsn, statement):
                break
        change(self.whole.dsn, DRAWN)
        self.deleted.clear()
        await self.whole.draw()
        await self.settle("reconcile")

    async def membership(self, a: int, _b: int, _c: int) -> None:
        """A reviewer leaves, or comes back."""
        members = self.slack.state.workspace.groups[S_REVIEWERS]
        user = REVIEWERS[a % len(REVIEWERS)]
        if user in members:
            members.remove(user)
        else:
            members.append(user)
        self.whole.forget_people()

    # People

    async def switch(self, a: int, _b: int, _c: int) -> None:
        """An admin pulls the switch, or lets go of it."""
        words = SWITCHES[a % len(SWITCHES)]
        before = len(self.slack.state.ephemerals_of(U_ADMIN))
        assert (await self.actor.slash(U_ADMIN, words)).kept
        await self.whole.process.parts.doors.settle()
        assert len(self.slack.state.ephemerals_of(U_ADMIN)) > before

    async def press(self, a: int, b: int, c: int) -> None:
        """Somebody presses a button of a card."""
        message = self.card(a)
        if message is not None:
            await self.press_on(message, PEOPLE[b % len(PEOPLE)], BUTTONS[c % len(BUTTONS)])

    async def vote(self, a: int, b: int, _c: int) -> None:
        """A reviewer approves."""
        message = self.card(a)
        if message is not None:
            await self.press_on(message, REVIEWERS[b % len(REVIEWERS)], "stet.approve")

    async def undo(self, a: int, b: int, _c: int) -> None:
        """A reviewer takes back what was delivered."""
        names = [name for name in BUTTONS if name.startswith("stet.undo")]
        cards = [
            (card, name)
            for card in self.slack.state.channel_messages(C_REVIEW)
            for name in names
            if name in action_ids(card.blocks)
        ]
        if cards:
            card, name = cards[a % len(cards)]
            await self.press_on(card, REVIEWERS[b % len(REVIEWERS)], name)

    async def press_old(self, a: int, b: int, c: int) -> None:
        """Somebody presses a button that their screen still shows."""
        if self.screens:
            old = self.screens[a % len(self.screens)]
            await self.press_on(old, PEOPLE[b % len(PEOPLE)], BUTTONS[c % len(BUTTONS)], old=True)

    async def together(self, a: int, b: int, c: int) -> None:
        """Two people and an event at the same moment."""
        message = self.card(a)
        if message is None:
            return
        work: list[Awaitable[Any]] = [
            self.press_on(message, REVIEWERS[b % len(REVIEWERS)], "stet.approve"),
            self.press_on(message, REVIEWERS[c % len(REVIEWERS)], BUTTONS[c % len(BUTTONS)]),
        ]
        if b % 3 == 0:
            work.append(self.arrive(a, b, c))
        if b % 3 == 1:
            work += [self.press_on(message, user, "stet.approve") for user in REVIEWERS]
        await asyncio.gather(*work)

    async def replay(self, _a: int, _b: int, _c: int) -> None:
        """Slack sends the last press again, to the byte."""
        if self.last is not None:
            self.check_reply(await self.actor.send(self.last))
            await self.whole.process.parts.doors.settle()

    async def fill_in(self, a: int, b: int, _c: int) -> None:
        """Somebody sends the window they have open, however long it has been open."""
        user = REVIEWERS[a % len(REVIEWERS)]
        view = self.slack.state.view_on_top(user)
        if view is None:
            return
        content = view.content
        values: dict[str, str] = {}
        match content.get("callback_id"):
            case "stet.edit":
                words = (
                    self.whole.new_words("typed")
                    if b % 4
                    else content["blocks"][0]["element"]["initial_value"]
                )
                values = {"stet.edit.body": words} if b % 4 else {}
            case "stet.reject" | "stet.redraft":
                values = {"stet.answer": self.whole.new_words("because")}
            case "stet.approve":
                values = {"stet.answer": self.entity_of(user, b)}
            case "stet.read":
                await self.press_in_window(user, b)
                return
        if value := content.get("private_metadata"):
            origin = self.before_window.get(user, [])
            self.whole.saw_beside(value, Beside(value, origin, whole=True))
        before = self.visible(user)
        try:
            reply = await self.actor.submit(user, values, checked=False)
        except CannotDo:
            return
        assert reply.kept
        await self.whole.process.parts.doors.settle()
        assert reply.json is not None or self.visible(user) != before, "no answer to a window"

    def entity_of(self, user: str, b: int) -> str:
        """What they type: now and then another entity than the one they are asked for."""
        asked = "customer:0" if "customer:0" in json.dumps(self.before_window.get(user)) else "customer:1"
        return asked if b % 6 else "customer:7"

    async def press_in_window(self, user: str, b: int) -> None:
        view = self.actor.top_view(user)
        self.whole.saw(view.content["blocks"], whole=False)
        buttons = values_of(view.content["blocks"])
        if not buttons:
            return
        before = self.visible(user)
        reply = await self.actor.press(user, b % len(buttons))
        assert reply.kept
        await self.whole.process.parts.doors.settle()
        assert self.visible(user) != before, "no answer in a window"

    async def home(self, a: int, b: int, c: int) -> None:
        """Somebody opens their Home, and presses a button there."""
        user = REVIEWERS[a % len(REVIEWERS)]
        assert (await self.actor.open_home(user)).kept
        await self.whole.process.parts.doors.settle()
        content = self.slack.state.homes[user].content
        buttons = values_of(content["blocks"])
        if not buttons or c % 3 == 0:
            return
        self.whole.saw(content["blocks"], whole=False)
        before = self.visible(user)
        assert (await self.actor.press_home(user, b % len(buttons))).kept
        await self.whole.process.parts.doors.settle()
        assert self.visible(user) != before, "no answer on a Home"

    async def unknown(self, a: int, b: int, c: int) -> None:
        """Somebody says what became of an unknown effect."""
        cards = [one for one in self.slack.state.channel_messages(C_OPS) if values_of(one.blocks)]
        if not cards:
            return
        message = cards[a % len(cards)]
        user = U_ALICE if c % 4 == 0 else U_ADMIN
        before = self.visible(user)
        effects = "SELECT effect_id::text AS id FROM effect_outbox WHERE state = 'unknown'"
        were = {row["id"] for row in rows(self.whole.dsn, effects)}
        reply = await self.actor.click(user, C_OPS, message.ts, b % len(values_of(message.blocks)))
        await self.whole.process.parts.doors.settle()
        for effect_id in were - {row["id"] for row in rows(self.whole.dsn, effects)}:
            assert user == U_ADMIN
            self.resent[effect_id] = self.resent.get(effect_id, 0) + 1
        assert reply.kept
        assert self.visible(user) != before, "no answer about an unknown effect"

    def card(self, number: int) -> Message | None:
        cards = [one for one in self.slack.state.channel_messages(C_REVIEW) if values_of(one.blocks)]
        return cards[number % len(cards)] if cards else None

    async def press_on(self, message: Message, user: str, button: str, *, old: bool = False) -> None:
        """Press a button as this message shows it, and see that something answers."""
        present = self.slack.state.messages.get(C_REVIEW, {}).get(message.ts)
        if present is None or button not in action_ids(message.blocks):
            return
        self.whole.saw(message.blocks or [], whole=True)
        before, revisions = self.visible(user), present.revisions
        forge = Forge(seen=message.as_slack()) if old else Forge()
        reply = await self.actor.click(user, C_REVIEW, message.ts, button, forge)
        self.last = reply.request
        self.check_reply(reply)
        await self.whole.process.parts.doors.settle()
        if self.visible(user) == before:
            assert button == "stet.approve", f"no answer to {button}"
            self.must_redraw[message.ts] = revisions
        elif button != "stet.approve" or self.slack.state.view_on_top(user) is not None:
            self.before_window[user] = json.loads(json.dumps(message.blocks))

    def check_reply(self, reply: Reply) -> None:
        assert reply.kept, "Slack shows an error"

    def visible(self, user: str) -> tuple[Any, ...]:
        """What one person has before them, but for the channels."""
        view, home = self.slack.state.view_on_top(user), self.slack.state.homes.get(user)
        return (
            len(self.slack.state.ephemerals_of(user)),
            view and (view.id, view.hash),
            home and home.hash,
        )

    # Rest

    async def rest(self, _a: int, _b: int, _c: int) -> None:
        """Everything comes to rest, and everything holds."""
        await self.settle()

    async def settle(self, *more: str) -> None:
        await self.whole.settle(*more)
        self.check_redrawn()
        await check(self.whole, deleted=self.deleted, resent=self.resent)
        await self.press_ended()
        self.screens = [
            *self.screens[-12:],
            *(copy_of(one) for one in self.slack.state.channel_messages(C_REVIEW)),
        ]

    def check_redrawn(self) -> None:
        """An approval that was told nothing is told by the card itself."""
        for ts, revisions in self.must_redraw.items():
            message = self.slack.state.messages.get(C_REVIEW, {}).get(ts)
            assert message is None or message.revisions > revisions, "no answer to a click"
        self.must_redraw.clear()

    async def press_ended(self) -> None:
        """A button whose question has ended changes nothing, and says so."""
        for token in ended_tokens(self.whole)[:PRESSED_AGAIN]:
            message = self.slack.state.messages.get(C_REVIEW, {}).get(token["ts"])
            if message is None:
                continue
            seen = self.whole.seen[token["token_hash"]]
            shown = Message(C_REVIEW, token["ts"], "", blocks=seen.blocks)
            was, before = standing(self.whole), self.visible(U_CAROL)
            reply = await self.actor.click(
                U_CAROL, C_REVIEW, token["ts"], f"stet.{token['decision']}", Forge(seen=shown.as_slack())
            )
            self.check_reply(reply)
            await self.whole.process.parts.doors.settle()
            assert standing(self.whole) == was, "a button of an ended question did something"
            assert self.visible(U_CAROL) != before, "no answer to an old button"
            self.slack.state.open_views.pop(U_CAROL, None)


def action_ids(blocks: Any) -> set[str]:
    found = [each for block in blocks or [] for each in block.get("elements", []) if isinstance(each, dict)]
    return {one["action_id"] for one in found if one.get("type") == "button"}


def copy_of(message: Message) -> Message:
    return Message(message.channel, message.ts, message.text, blocks=json.loads(json.dumps(message.blocks)))


Act = Callable[[Play, int, int, int], Awaitable[None]]
# How often each is drawn, one beside the other.
OFTEN: tuple[tuple[Act, int], ...] = (
    (Play.event, 8),
    (Play.older, 1),
    (Play.again, 1),
    (Play.conflict, 1),
    (Play.replaces, 1),
    (Play.model_fails, 2),
    (Play.provider_fails, 3),
    (Play.slack_fails, 4),
    (Play.delete, 1),
    (Play.clock, 4),
    (Play.membership, 2),
    (Play.switch, 1),
    (Play.press, 6),
    (Play.vote, 10),
    (Play.undo, 3),
    (Play.press_old, 2),
    (Play.together, 3),
    (Play.replay, 1),
    (Play.fill_in, 9),
    (Play.home, 1),
    (Play.unknown, 2),
    (Play.rest, 8),
)
ACTS = {act.__name__: act for act, _ in OFTEN}
Step = tuple[str, int, int, int]


def steps_of(number: int) -> list[Step]:
    """One sequence: always the same of the same seed and number."""
    chance = random.Random(f"{SEED} {number}")  # noqa: S311 - a game, no secret
    names = chance.choices([act.__name__ for act, _ in OFTEN], [times for _, times in OFTEN], k=LENGTH)
    return [(name, chance.randrange(24), chance.randrange(24), chance.randrange(24)) for name in names]


@pytest.fixture
async def whole(own_dsn: str, tmp_path: Path) -> AsyncIterator[Whole]:
    """One process for all sequences of a test; each begins with empty tables."""
    async with one_whole(own_dsn, tmp_path) as made:
        yield made


async def play(whole: Whole, steps: list[tuple[str, int, int, int]]) -> None:
    """Play one sequence from the beginning, and let all of it end."""
    await whole.reset()
    one = Play(whole)
    for name, a, b, c in steps:
        await ACTS[name](one, a, b, c)
    await one.settle()


async def shorten(whole: Whole, steps: list[Step]) -> list[Step]:
    """Leave out of a failing sequence what it does not need to fail."""
    size = len(steps) // 2
    while size:
        for start in range(0, len(steps), size):
            fewer = [*steps[:start], *steps[start + size :]]
            try:
                await play(whole, fewer)
            except Exception:  # noqa: BLE001 - whatever it is, it still fails
                steps = fewer
                break
        else:
            size //= 2
    return steps


# Whatever happens in whatever order, what must hold holds whenever everything has come to rest.
async def test_any_sequence(whole: Whole) -> None:
    for number in range(SEQUENCES):
        steps = steps_of(number)
        try:
            await play(whole, steps)
        except Exception as fault:
            if CAMPAIGN:
                steps = await shorten(whole, steps)
            raise AssertionError(f"STET_SEED={SEED}, sequence {number}: {steps}") from fault
