"""Chance: events, clicks and kills through several processes, from a seed that a failure names.
Not here: what can be told in advance (the neighbours). `make crash` makes it long, STET_SEED repeats a run.
"""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from bot.demo.slack_typing import CannotDo
from bot.demo.slack_workspace import C_OPS, C_REVIEW, U_ADMIN, U_ALICE, U_BOB, U_CAROL
from bot.demo.world import DROP, Fault, status
from tests.crash.test_checkpoints import TRIALS
from tests.processes import CAMPAIGN, Bot, Ended, Stage, event
from tests.watching import Watch, check_promises

EVENTS = 60 if CAMPAIGN else 4
KILLS = 20 if CAMPAIGN else 2
PROCESSES = 3 if CAMPAIGN else 2
SEND = "/webhook/send-mail"
ALL_OVER = (
    """SELECT count(*) = %(n)s FROM workflow_runs WHERE state IN ('completed', 'rejected', 'superseded')"""
)
ABSENT = """SELECT c.ts FROM cards AS c JOIN effect_look_ups AS l USING (effect_id)
             WHERE l.last_answer = 'absent'"""
# A kill switch that chance closes would end every send, and expiry is for those who wait.
POINTS = [name for name in TRIALS if not name.startswith(("switch.", "expire."))]


class Storm:
    """One run of chance."""

    def __init__(self, stage: Stage, watch: Watch, chance: random.Random) -> None:
        self.stage = stage
        self.watch = watch
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
            try:
                self.alive.append(await self.stage.started(point))
            except Ended:
                await self.watch.bury(self.stage.bots[-1])  # It met its point before it could serve.

    async def some(self) -> Bot:
        """A living process."""
        await self.keep_alive()
        return self.chance.choice(self.alive)

    async def post(self, number: int) -> None:
        """Deliver one event until it is acknowledged, now and then twice at once."""
        sent = event(number, draft=number % 3 > 0)
        while True:
            bots = [await self.some() for _ in range(self.chance.choice((1, 1, 2)))]
            answers = await asyncio.gather(*(self.stage.post(bot, sent) for bot in bots))
            if any(answer is not None and answer.status_code in {200, 202} for answer in answers):
                return

    async def click(self) -> None:
        """Let people approve what is shown, two of them at once where they like."""
        for card in list(self.stage.slack.state.channel_messages(C_REVIEW)):
            if "stet.approve" in str(card.blocks):
                people = self.chance.sample((U_ALICE, U_BOB, U_CAROL), self.chance.choice((1, 2)))
                who = [(self.stage.actor(await self.some()), person) for person in people]
                clicks = (each.click(person, C_REVIEW, card.ts, "stet.approve") for each, person in who)
                # The card may have changed since it was looked at.
                for end in await asyncio.gather(*clicks, return_exceptions=True):
                    assert not isinstance(end, BaseException) or isinstance(end, CannotDo), end

    async def settle(self) -> None:
        """Let an admin, who reads the card first, send again what the look-up did not find."""
        absent = {row["ts"] for row in await self.watch.rows(ABSENT)}
        for card in list(self.stage.ops()):
            if card.ts in absent and "stet.unknown.resend" in str(card.blocks):
                person = self.stage.actor(await self.some())
                with suppress(CannotDo):
                    await person.click(U_ADMIN, C_OPS, card.ts, "stet.unknown.resend")

    async def kill(self) -> None:
        """Kill one, wherever it is."""
        bot = await self.some()
        await bot.kill()


# Whatever dies and whenever: no event is lost, none leaves twice, each ends as the far side has it.
async def test_chance(stage: Stage, watch: Watch) -> None:
    seed = int(os.environ.get("STET_SEED") or random.SystemRandom().randrange(10**9))
    storm = Storm(stage, watch, random.Random(seed))  # noqa: S311 - meant to be repeatable
    try:
        await _rage(storm)
    except BaseException as fault:
        fault.add_note(f"STET_SEED={seed}")
        raise


async def _rage(storm: Storm) -> None:
    world, chance = storm.stage.world.world, storm.chance
    for _ in range(EVENTS // 4):
        world.misbehave(SEND, chance.choice((Fault(DROP), status(500), status(429))), times=1)
        world.misbehave(SEND, Fault("status", body=None), times=chance.randrange(1, 4))
    deeds: list[Callable[[], Awaitable[None]]] = [*[storm.kill] * KILLS, *[storm.click] * KILLS]
    deeds += [partial(storm.post, number) for number in range(EVENTS)]
    chance.shuffle(deeds)
    for deed in deeds:
        await deed()
    async with asyncio.timeout(600 if CAMPAIGN else 120):
        while not await storm.watch.value(ALL_OVER, n=EVENTS):
            await storm.keep_alive()
            await storm.click()
            await storm.settle()
            await storm.watch.changed(hurry=True)
    repeated = "SELECT count(*) FROM audit_log WHERE action = 'effect_resolved'"
    await check_promises(storm.stage, storm.watch, repeated=await storm.watch.value(repeated))
    # Whatever a person sent again had not arrived: the look-up said so, and it was right.
    assert max(storm.stage.sent().values()) == 1
