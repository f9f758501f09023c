"""Tests of calling a connector safely: what escapes is never taken for an outcome.

Not here: any particular connector.
"""

import asyncio
import logging

import pytest

from bot.connectors.connector import Effect, Kit, ask, perform
from bot.contracts.outcome import Absent, LookUpOutcome, NoAnswer, SendOutcome, Sent, Unknown
from bot.environment import read_mail_server
from store.database import Database
from store.errors import NetworkInTransaction
from tests.connectors.effects import make_effect, make_kit

EFFECT = make_effect("https://n8n.example/webhook/MARK2")


class Fixed:
    """A connector that answers, or raises, what it is told."""

    effect_type = "http"

    def __init__(self, what: object) -> None:
        self._what = what
        self.calls = 0

    def idempotent(self, effect: Effect) -> bool:
        return False

    async def send(self, effect: Effect) -> SendOutcome:
        return self._act()  # type: ignore[return-value]

    async def look_up(self, effect: Effect) -> LookUpOutcome:
        return self._act()  # type: ignore[return-value]

    def _act(self) -> object:
        self.calls += 1
        if isinstance(self._what, BaseException):
            raise self._what
        return self._what


# Outcomes pass through as they are.
async def test_outcomes_pass() -> None:
    assert await perform(Fixed(Sent("a")), EFFECT) == Sent("a")
    assert await ask(Fixed(Absent()), EFFECT) == Absent()


# Whatever a connector lets escape, or answers beside the contract, is unknown.
@pytest.mark.parametrize(
    "what", [ValueError("x"), TimeoutError(), ConnectionRefusedError(), None, "sent", Absent()]
)
async def test_what_escapes_is_unknown(what: object) -> None:
    assert await perform(Fixed(what), EFFECT) == Unknown("escaped")


# The same from a look-up is no answer.
@pytest.mark.parametrize("what", [ValueError("x"), OSError(), None, Sent("a")])
async def test_what_escapes_a_look_up_is_no_answer(what: object) -> None:
    assert await ask(Fixed(what), EFFECT) == NoAnswer("escaped")


# Cancellation is not an outcome.
async def test_cancellation_passes() -> None:
    for call in (perform, ask):
        with pytest.raises(asyncio.CancelledError):
            await call(Fixed(asyncio.CancelledError()), EFFECT)


# Inside a transaction nothing is called, and the mistake is not taken for an outcome.
async def test_not_inside_a_transaction(db: Database) -> None:
    connector = Fixed(Sent("a"))
    async with db.transaction():
        for call in (perform, ask):
            with pytest.raises(NetworkInTransaction):
                await call(connector, EFFECT)
    assert connector.calls == 0


# What escaped is logged by class and effect only.
async def test_log_names_class_only(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await perform(Fixed(ValueError("https://n8n.example/webhook/MARK2")), EFFECT)
    assert "ValueError" in caplog.text
    assert str(EFFECT.effect_id) in caplog.text
    assert "MARK2" not in caplog.text


# A kit does not show its secrets.
def test_kit_does_not_show_secrets() -> None:
    shown = repr(make_kit(mail_server=read_mail_server("smtp://user:MARK1@mail.example:25")))
    assert "MARK1" not in shown
    assert "text!!!" not in shown
    assert Kit().reach.entries == ()
