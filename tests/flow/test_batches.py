"""Grouping callers that come together.

Not here: what intake does with a group (test_receive).
"""

import asyncio

import pytest

from bot.flow.batches import Batcher


# The first caller goes alone at once; whoever comes meanwhile shares the next group, in order.
async def test_groups_collect_while_one_is_served() -> None:
    groups: list[list[int]] = []
    started, gate = asyncio.Event(), asyncio.Event()

    async def work(items: list[int]) -> list[int | Exception]:
        groups.append(items)
        started.set()
        await gate.wait()
        return [10 * item for item in items]

    batcher: Batcher[int, int] = Batcher(work, most=3)
    first = batcher.add(1)
    await started.wait()
    rest = [batcher.add(item) for item in (2, 3, 4, 5)]
    gate.set()
    assert await first == 10
    assert [await one for one in rest] == [20, 30, 40, 50]
    assert groups == [[1], [2, 3, 4], [5]]


# An exception in an answer's place is its caller's alone; one that escapes is the whole group's.
async def test_faults_reach_their_callers() -> None:
    async def work(items: list[str]) -> list[str | Exception]:
        if "break" in items:
            raise RuntimeError("whole group")
        return [ValueError(item) if item == "bad" else item for item in items]

    batcher: Batcher[str, str] = Batcher(work, most=2)
    good, bad, one, broken, after = (batcher.add(item) for item in ("good", "bad", "one", "break", "after"))
    assert await good == "good"
    with pytest.raises(ValueError, match="bad"):
        await bad
    for lost in (one, broken):
        with pytest.raises(RuntimeError):
            await lost
    assert await after == "after"


# A caller that went away disturbs nobody, and closing waits for what is queued.
async def test_gone_callers_and_close() -> None:
    async def work(items: list[int]) -> list[int | Exception]:
        return list(items)

    batcher: Batcher[int, int] = Batcher(work, most=10)
    gone, stays = batcher.add(1), batcher.add(2)
    gone.cancel()
    await batcher.close()
    assert stays.result() == 2
    await batcher.close()
