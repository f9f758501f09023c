"""Tasks that hold a leased row: bounded, stopped with what they held, and quiet about what broke them.

Not here: what drafting and redrafting do with them (test_draft, test_redrafter).
"""

import asyncio
import logging

import pytest

from bot.flow.hands import Hands


async def _wait(on: asyncio.Event) -> str:
    await on.wait()
    return "done"


async def _break() -> str:
    raise ValueError("amy@example.test")


# An ended task frees its place and is heard; one that broke off is heard as None, its class alone logged.
async def test_ends(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str | None] = []
    hands: Hands[int, str] = Hands(2, heard.append)
    on = asyncio.Event()
    hands.begin(1, _wait(on))
    hands.begin(2, _break())
    assert hands.free == 0
    on.set()
    with caplog.at_level(logging.ERROR):
        await hands.drain()
    assert (hands.free, sorted(heard, key=str)) == (2, [None, "done"])
    assert [record.__dict__["fault"] for record in caplog.records] == ["ValueError"]
    assert "amy@" not in caplog.text


# A stop gives back what every task held, of those too that had not begun.
async def test_stop() -> None:
    heard: list[str | None] = []
    hands: Hands[int, str] = Hands(3, heard.append)
    hands.begin(1, _wait(asyncio.Event()))
    await asyncio.sleep(0)
    hands.begin(2, _wait(asyncio.Event()))
    assert sorted(await hands.stop()) == [1, 2]
    assert (hands.free, heard) == (3, [None, None])
