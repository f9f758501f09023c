"""What every registered connector must do, whatever its effect type.

Not here: what is particular to one (tests/connectors).
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from types import ModuleType

import pytest

from bot.connectors.connector import ask, perform
from bot.contracts.outcome import Absent, Found, NoAnswer, NotSent, Refused, Sent, Unknown
from bot.registry import find_connectors
from store.database import Database
from store.errors import NetworkInTransaction
from tests.conformance.far import HANG_SECONDS, FarSide, Harness, find_far_sides, fits

CONNECTORS = find_connectors()
FAR_SIDES = find_far_sides()
ROWS = [(name, row.cause) for name, module in sorted(CONNECTORS.items()) for row in module.OUTCOMES]


def far_side(effect_type: str) -> FarSide:
    assert effect_type in FAR_SIDES, f"tests/conformance lacks far_{effect_type}.py"
    return FAR_SIDES[effect_type]


@pytest.fixture(params=sorted(CONNECTORS))
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    async with far_side(request.param).harness() as made:
        yield made


# Each row of each table comes about for real, and is what it says; what is not sent or refused was not done.
@pytest.mark.parametrize(("effect_type", "cause"), ROWS)
async def test_row(effect_type: str, cause: str) -> None:
    await check_row(CONNECTORS[effect_type], far_side(effect_type), cause)


async def check_row(module: ModuleType, side: FarSide, cause: str) -> None:
    (row,) = (row for row in module.OUTCOMES if row.cause == cause)
    assert cause in side.scenes, f"SCENES of far_{module.EFFECT_TYPE} does not bring {cause} about"
    async with side.harness() as harness, asyncio.timeout(60):
        outcomes = await side.scenes[cause](harness)
        assert outcomes
        assert all(fits(row, outcome) for outcome in outcomes), outcomes
        assert all(isinstance(one, Sent) or one.asked == row.asked for one in outcomes), outcomes
        if row.outcome in (NotSent, Refused):
            assert harness.done() == 0


# The table says each cause once, and nothing is brought about that it lacks.
@pytest.mark.parametrize("effect_type", sorted(CONNECTORS))
def test_table_is_whole(effect_type: str) -> None:
    causes = [row.cause for row in CONNECTORS[effect_type].OUTCOMES]
    assert sorted(causes) == sorted(far_side(effect_type).scenes)


# A confirmed effect is Sent, done once, and its provider id is short clean text or none.
async def test_confirmed(harness: Harness) -> None:
    harness.healthy()
    outcome = await perform(harness.connector, harness.effect())
    assert isinstance(outcome, Sent)
    assert harness.done() == 1
    assert outcome.provider_id is None or (
        0 < len(outcome.provider_id) <= 255 and outcome.provider_id.isprintable()
    )


# A plain no is Refused, and nothing was done.
async def test_refused(harness: Harness) -> None:
    harness.refusing()
    assert isinstance(await perform(harness.connector, harness.effect()), Refused)
    assert harness.done() == 0


# Where nobody listens nothing was sent, and that is proven.
async def test_nobody_there(harness: Harness) -> None:
    harness.away()
    assert isinstance(await perform(harness.connector, harness.effect()), NotSent)
    assert harness.done() == 0


# Work done whose answer was lost is Unknown: never sent, never safe to repeat.
async def test_lost_answer(harness: Harness) -> None:
    harness.losing_answers()
    assert isinstance(await perform(harness.connector, harness.effect()), Unknown)
    assert harness.done() == 1


# A far side that hangs costs the policy's timeout and no more, and leaves the outcome unknown.
async def test_hanging_far_side(harness: Harness) -> None:
    harness.hanging()
    async with asyncio.timeout(60):
        outcome = await perform(harness.connector, harness.effect(timeout_seconds=HANG_SECONDS))
    assert isinstance(outcome, Unknown)


# A look-up changes nothing over there, and says found only of what was done.
async def test_look_up(harness: Harness) -> None:
    effect = harness.effect()
    before = await ask(harness.connector, effect)
    assert isinstance(before, Absent if harness.can_look_up else NoAnswer)
    assert harness.done() == 0
    harness.losing_answers()
    await perform(harness.connector, effect)
    after = await ask(harness.connector, effect)
    assert isinstance(after, Found if harness.can_look_up else NoAnswer)
    assert harness.done() == 1


# Cancelling passes through, and does not become an outcome.
async def test_cancelled(harness: Harness) -> None:
    harness.hanging()
    task = asyncio.create_task(perform(harness.connector, harness.effect()))
    await harness.reached()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# No call is made inside a transaction.
async def test_outside_transactions_only(harness: Harness, db: Database) -> None:
    async with db.transaction():
        for call in (harness.connector.send, harness.connector.look_up):
            with pytest.raises(NetworkInTransaction):
                await call(harness.effect())
    assert harness.done() == 0


# Reasons are short stable words; recipient, target and body stay out of outcomes and logs.
async def test_nothing_is_given_away(harness: Harness, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told = ""
    for manner in (harness.healthy, harness.refusing, harness.losing_answers, harness.away):
        harness.healthy()
        manner()
        told += repr(await perform(harness.connector, harness.effect()))
    effect = harness.effect()
    for secret in (effect.recipient, effect.target, effect.body.decode()):
        assert secret is None or secret not in told + caplog.text


# The connector's name is the one it is registered by, and idempotent is a plain yes or no.
async def test_names_itself(harness: Harness) -> None:
    assert harness.connector.effect_type in find_connectors()
    assert harness.connector.idempotent(harness.effect()) in (True, False)
