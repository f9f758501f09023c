"""Effects by every connector while processes are killed by chance: nothing arrives twice, nothing is lost.
Not here: people's clicks and the model (test_campaign). `make crash` makes it 1,000 effects under 100 kills.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bot.demo import slack_faults
from bot.demo.mail import CUT, PostOffice, Trouble, serve_mail
from bot.demo.slack_typing import CannotDo
from bot.demo.slack_workspace import C_OPS, C_REVIEW, C_SUPPORT, U_ADMIN, U_ALICE
from bot.demo.world import DROP, DROP_UNREAD, RESET, Fault, status
from bot.records import verify_record
from tests.crash.test_checkpoints import TRIALS
from tests.processes import CAMPAIGN, Bot, Ended, Stage
from tests.watching import Watch

EVENTS = 510 if CAMPAIGN else 6  # Two effects each: what was drafted, and the outcome told to who waits.
KILLS = 100 if CAMPAIGN else 2
PROCESSES = 3 if CAMPAIGN else 2
KINDS = ("webhook", "mail", "message")
SEND, RESUME = "/webhook/send", "/webhook-waiting/"
POINTS = [name for name in TRIALS if name.startswith(("dispatch.", "reconcile.", "announce."))]
POLICY = """
[kinds.{name}]
gate = "delayed"
cancel_window = "1s"
sources = ["n8n"]
channel = "{review}"
reviewers = ["{reviewer}"]
max_open_cards = 1000
effect = {{ {effect}, timeout = "4s", settle = "1s", attempts = 20 }}
"""
UNKNOWN = """
SELECT e.effect_id::text, e.effect_type, c.ts FROM effect_outbox AS e JOIN cards AS c USING (effect_id)
 WHERE e.state = 'unknown' AND c.ts IS NOT NULL AND e.updated_at < now() - interval '2 seconds'
   AND NOT EXISTS (SELECT FROM effect_look_ups AS l
                    WHERE l.effect_id = e.effect_id AND l.last_answer IS NULL)"""
LEFT = """
SELECT effect_id::text, effect_type, state, reason, attempts FROM effect_outbox WHERE state <> 'completed'"""
OVER = """
SELECT count(*) = %(runs)s AND count(*) FILTER (WHERE state = 'completed') = %(runs)s
       AND (SELECT count(*) FROM effect_outbox WHERE state = 'completed') = 2 * %(runs)s
  FROM workflow_runs"""


@pytest.fixture
async def office() -> AsyncIterator[PostOffice]:
    async with serve_mail() as office:
        yield office


class Storm:
    """One run of chance: events come, the far sides misbehave, processes die."""

    def __init__(self, stage: Stage, watch: Watch, office: PostOffice, chance: random.Random) -> None:
        self.stage = stage
        self.watch = watch
        self.office = office
        self.chance = chance
        self.alive: list[Bot] = []

    async def keep_alive(self) -> None:
        """Bury the dead and start others, some of which have a point to die at."""
        dead = [bot for bot in self.alive if bot.is_over]
        self.alive = [bot for bot in self.alive if not bot.is_over]
        if dead:
            await self.watch.bury(*dead)
        while len(self.alive) < PROCESSES:
            point = self.chance.choice(POINTS) if self.chance.random() < 0.5 else ""
            mail = {"SMTP_URL": f"smtp://127.0.0.1:{self.office.port}", "MAIL_FROM": "bot@stet.example"}
            try:
                self.alive.append(await self.stage.started(point, **mail))
            except Ended:
                if not point:
                    raise
                await self.watch.bury(self.stage.bots[-1])  # It met its point before it could serve.

    async def some(self) -> Bot:
        """A living process."""
        await self.keep_alive()
        return self.chance.choice(self.alive)

    async def post(self, number: int) -> None:
        """Deliver one event until it is acknowledged; an execution waits for its outcome."""
        place = self.stage.world.world.wait_at(str(number), suffix=self.chance.choice(("", f"node{number}")))
        sent = {
            "event_key": f"event-{number}",
            "kind": KINDS[number % len(KINDS)],
            "entity": f"customer:{number}",
            "source_version": 1,
            "payload": {"to": f"amy{number}@customer.example"},
            "draft": {"subject": f"Found {number}", "body": f"It ships on Monday, {number}."},
            "resume_url": f"{self.stage.world.url}{place}",
        }
        while True:
            answer = await self.stage.post(await self.some(), sent)
            if answer is not None and answer.status_code in {200, 202}:
                return
            assert answer is None or answer.status_code >= 500, answer.text

    async def trouble(self) -> None:
        """Let something go wrong on a far side, before or after the work was done there."""
        world, slack = self.stage.world.world, self.stage.slack.faults
        ways = (Fault(DROP), Fault(RESET), Fault(DROP_UNREAD, done=False), status(500), status(429))
        world.misbehave(self.chance.choice((SEND, RESUME)), self.chance.choice(ways), times=1)
        slack.order("chat.postMessage", slack_faults.dropped(after_work=self.chance.random() < 0.5))
        step = self.chance.choice(("mail", "dot", "greeting", "dot"))
        self.office.misbehave(
            step, self.chance.choice((CUT, Trouble(done=True), Trouble("451 4.3.0 later"))), times=1
        )

    async def kill(self) -> None:
        """Kill one, wherever it is."""
        await (await self.some()).kill()

    async def settle(self) -> None:
        """Let an admin decide about what is unknown, who looks at the far side first."""
        arrived = self.arrived()
        for row in await self.watch.rows(UNKNOWN):
            button = "delivered" if arrived[row["effect_id"]] else "resend"
            person = self.stage.actor(await self.some())
            with suppress(CannotDo):  # A look-up may have settled it meanwhile.
                await person.click(U_ADMIN, C_OPS, row["ts"], f"stet.unknown.{button}")

    def arrived(self) -> Counter[str]:
        """How often the far sides have the work of each effect."""
        mails = (str(mail.parsed()["Message-ID"]).strip("<>").partition("@")[0] for mail in self.office.mails)
        messages = self.stage.slack.state.channel_messages(C_SUPPORT)
        marked = (each.metadata["event_payload"]["effect"] for each in messages if each.metadata)
        return self.stage.sent() + Counter(mails) + Counter(marked)


# Whatever dies and whenever, by whichever connector: each effect is on the far side once, and said to be.
async def test_every_connector(stage: Stage, watch: Watch, office: PostOffice) -> None:
    seed = int(os.environ.get("STET_SEED") or random.SystemRandom().randrange(10**9))
    storm = Storm(stage, watch, office, random.Random(seed))  # noqa: S311 - meant to be repeatable
    _write_policy(stage)
    try:
        await _rage(storm)
    except BaseException as fault:
        fault.add_note(f"STET_SEED={seed}")
        fault.add_note(str(await watch.rows(LEFT)))
        raise


def _write_policy(stage: Stage) -> None:
    hook = f'type = "http", target = "{stage.world.url}{SEND}", recipient = "payload.to", response_id = "id"'
    effects = {
        "webhook": f'{hook}, lookup = "{stage.world.url}/webhook/sent/{{effect_id}}"',
        "mail": 'type = "smtp", recipient = "payload.to"',
        "message": f'type = "slack_message", target = "{C_SUPPORT}"',
    }
    told: dict[str, Any] = {"review": C_REVIEW, "reviewer": U_ALICE}
    text = "".join(POLICY.format(name=name, effect=effects[name], **told) for name in KINDS)
    Path(stage.env["POLICY_FILE"]).write_text(text, "utf-8")


async def _rage(storm: Storm) -> None:
    deeds: list[Callable[[], Awaitable[None]]] = [*[storm.kill] * KILLS, *[storm.trouble] * KILLS]
    deeds += [partial(storm.post, number) for number in range(EVENTS)]
    storm.chance.shuffle(deeds)
    for deed in deeds:
        await deed()
    storm.office.behave()
    async with asyncio.timeout(900 if CAMPAIGN else 120):
        while not await storm.watch.value(OVER, runs=EVENTS):
            await storm.keep_alive()
            await storm.settle()
            await storm.watch.changed(hurry=True)
    rows = await storm.watch.rows("SELECT effect_id::text FROM effect_outbox")
    assert storm.arrived() == Counter(row["effect_id"] for row in rows)
    said: list[str] = []
    assert await verify_record(storm.watch.dsn, said.append) == 0, said
