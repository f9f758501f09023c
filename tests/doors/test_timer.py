"""The timer with a real scheduler: late, woken, failing and stopping.

Not here: what a step does (tests/flow).
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from bot.doors import timer as timer_module
from bot.doors.timer import Step, Timer

HOUR = 3600.0


class Work:
    """A step that says when it begins, and ends a run when it is told what that run handled."""

    def __init__(self) -> None:
        self.runs = 0
        self._begun: asyncio.Queue[int] = asyncio.Queue()
        self._answers: asyncio.Queue[int | Exception] = asyncio.Queue()

    async def run_once(self) -> int:
        self.runs += 1
        self._begun.put_nowait(self.runs)
        answer = await self._answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def begun(self) -> int:
        """Wait for the next run to begin; a net, not a measure."""
        return await asyncio.wait_for(self._begun.get(), 30)

    def end(self, answer: int | Exception = 0) -> None:
        self._answers.put_nowait(answer)


class Reports:
    """What the timer said of failing steps."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    async def __call__(self, name: str, fault: str) -> None:
        self.heard.append((name, fault))


@asynccontextmanager
async def running(timer: Timer, *works: Work) -> AsyncIterator[Timer]:
    timer.start()
    try:
        yield timer
    finally:
        for work in works:
            work.end()
            work.end()
        await timer.stop()


async def settled() -> None:
    """Let everything that is ready run, until the loop has nothing but waiting left."""
    for _ in range(20):
        await asyncio.sleep(0)


def timer_of(*steps: Step, reports: Callable[..., object] | None = None) -> Timer:
    return Timer(steps, failed=reports or Reports())  # type: ignore[arg-type]


# What was left when the last process died is worked on at once, not after the first interval.
async def test_every_step_runs_at_the_start() -> None:
    one, two = Work(), Work()
    timer = timer_of(Step("one", one.run_once, HOUR), Step("two", two.run_once, HOUR))
    async with running(timer, one, two):
        assert (await one.begun(), await two.begun()) == (1, 1)


# The clock itself starts runs: nothing need be woken.
async def test_the_clock_runs_a_step_again() -> None:
    work = Work()
    async with running(timer_of(Step("one", work.run_once, 0.01)), work):
        await work.begun()
        work.end()
        assert await work.begun() == 2


# F033: a loop that was blocked over many due times runs the step once more: not never, not once for each.
async def test_a_late_step_runs_once(caplog: pytest.LogCaptureFixture) -> None:
    work = Work()
    timer = timer_of(Step("one", work.run_once, HOUR))
    async with running(timer, work):
        await work.begun()
        work.end()
        await settled()
        with caplog.at_level(logging.WARNING), time_machine.travel(time.time() + 3.5 * HOUR):
            timer._scheduler.wakeup()
            assert await work.begun() == 2
            work.end()
            await settled()
            assert work.runs == 2
            assert timer._scheduler.get_job("one").next_run_time > datetime.now(UTC)
    late = [record for record in caplog.records if record.getMessage() == "the clock was late"]
    assert [(record.step, record.late_seconds) for record in late] == [("one", 9000)]  # type: ignore[attr-defined]


# A clock that is put back by an hour holds up nothing for an hour: its steps run at once, and go on by it.
async def test_a_clock_that_is_put_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(timer_module, "WATCH_SECONDS", 0.01)
    work = Work()
    timer = timer_of(Step("one", work.run_once, 60))
    async with running(timer, work):
        await work.begun()
        work.end()
        await settled()
        with caplog.at_level(logging.WARNING), time_machine.travel(time.time() - HOUR):
            assert await work.begun() == 2
            work.end()
            await settled()
            assert timer._scheduler.get_job("one").next_run_time < datetime.now(UTC) + timedelta(minutes=2)
    back = [record for record in caplog.records if record.getMessage() == "the clock was put back"]
    assert [record.seconds for record in back] == [3600]  # type: ignore[attr-defined]


# A wake that comes while the step runs may be about work that this run did not see.
async def test_a_wake_during_a_run_runs_it_again() -> None:
    work = Work()
    async with running(timer_of(Step("one", work.run_once, HOUR)), work) as timer:
        await work.begun()
        timer.wake("one")
        timer.wake("one")
        await settled()
        assert work.runs == 1  # never two at once
        work.end()
        assert await work.begun() == 2
        work.end()
        await settled()
        assert work.runs == 2  # both wakes were answered by one run


# A step that handled something looks again, and wakes those whose work it made, here and elsewhere.
async def test_a_step_with_work_runs_on_and_wakes_others() -> None:
    first, second = Work(), Work()
    elsewhere: list[str] = []
    timer = Timer(
        [Step("first", first.run_once, HOUR, wakes=("second",)), Step("second", second.run_once, HOUR)],
        failed=Reports(),
        woke=elsewhere.extend,
    )
    async with running(timer, first, second):
        await first.begun()
        await second.begun()
        second.end()
        await settled()
        first.end(3)
        assert await first.begun() == 2
        assert await second.begun() == 2
        assert elsewhere == ["second"]


# A step that rests runs once for all the wakes that come while it does.
async def test_wakes_gather_while_a_step_rests() -> None:
    work = Work()
    step = Step("rests", work.run_once, HOUR, rest_seconds=0.001)
    timer = timer_of(step)
    async with running(timer, work):
        for _ in range(5):
            timer.wake("rests")
        await work.begun()
        work.end()
        await settled()
        assert work.runs == 1


# It rests before it runs, and a stop does not wait for that.
async def test_a_step_rests_before_it_runs() -> None:
    work = Work()
    timer = timer_of(Step("rests", work.run_once, HOUR, rest_seconds=HOUR))
    async with running(timer, work):
        timer.wake("rests")
        await settled()
    assert work.runs == 0


# A failing step is reported at its first failure in a row, counted at each, and goes on when woken.
async def test_a_failing_step_is_reported_once_and_goes_on() -> None:
    work, reports = Work(), Reports()
    async with running(timer_of(Step("one", work.run_once, HOUR), reports=reports), work) as timer:
        for _ in range(2):
            await work.begun()
            work.end(ValueError("what a person wrote"))
            await settled()
            timer.wake("one")
        assert reports.heard == [("one", "ValueError")]
        await work.begun()
        work.end(0)
        await settled()
        timer.wake("one")
        await work.begun()
        work.end(KeyError("again"))
        await settled()
        assert reports.heard == [("one", "ValueError"), ("one", "KeyError")]
        assert timer.failures() == {"one": 3}


# Telling that a step fails may fail for the same reason; the step goes on all the same.
async def test_a_failure_that_cannot_be_told_stops_nothing() -> None:
    async def away(_name: str, _fault: str) -> None:
        raise OSError

    work = Work()
    async with running(timer_of(Step("one", work.run_once, HOUR), reports=away), work) as timer:
        await work.begun()
        work.end(ValueError())
        await settled()
        timer.wake("one")
        assert await work.begun() == 2


# One step that fails or hangs holds up no other.
async def test_steps_do_not_wait_for_each_other() -> None:
    stuck, free = Work(), Work()
    timer = timer_of(Step("stuck", stuck.run_once, HOUR), Step("free", free.run_once, HOUR))
    async with running(timer, stuck, free):
        await stuck.begun()
        await free.begun()
        free.end(1)
        assert await free.begun() == 2
        assert stuck.runs == 1


# Stopping waits for the run in hand, and starts nothing that is woken meanwhile.
async def test_stop_waits_for_what_runs_and_starts_nothing() -> None:
    work = Work()
    timer = timer_of(Step("one", work.run_once, HOUR))
    timer.start()
    await work.begun()
    stopping = asyncio.create_task(timer.stop())
    await settled()
    timer.wake("one")
    await settled()
    assert not stopping.done()
    work.end(5)
    await stopping
    assert work.runs == 1


# A name that no step has, from a newer process, wakes nothing and breaks nothing.
async def test_an_unknown_name_wakes_nothing() -> None:
    work = Work()
    async with running(timer_of(Step("one", work.run_once, HOUR)), work) as timer:
        await work.begun()
        timer.wake("a_step_of_tomorrow")
        await settled()
        assert work.runs == 1


# A step whose last run ended too long ago is named, so that readiness can say which.
async def test_late_names_the_step_that_does_not_beat() -> None:
    work = Work()
    async with running(timer_of(Step("one", work.run_once, 10.0)), work) as timer:
        await work.begun()
        assert timer.late() == []
        timer._steps["one"].beat_at -= 31
        assert timer.late() == ["one"]
        work.end()
        await settled()
        assert timer.late() == []
