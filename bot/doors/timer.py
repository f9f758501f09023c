"""Runs the background steps: by the clock, at once when woken, again while there is work.

Not here: what a step does (bot/flow) or what it means that something was woken elsewhere (wake).
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from apscheduler.schedulers.asyncio import AsyncIOScheduler

log = logging.getLogger(__name__)

WATCH_SECONDS = 10.0  # For so long a clock that was put back may hold up every step that nobody wakes.
LATE_SECONDS = 1.0  # A busy loop is late by milliseconds; by more, it was blocked or the machine slept.


@dataclass(frozen=True, slots=True)
class Step:
    """One background step. `run_once` gives the rows it handled; while it handles some it runs again.

    `every_seconds` is the net under wakes that were lost; `wakes` are the steps that its work is work for.
    `rest_seconds` lie before each run, however many wakes come meanwhile: a storm of clicks is one run, and
    what somebody waits for goes first.
    """

    name: str
    run_once: Callable[[], Awaitable[int]]
    every_seconds: float
    wakes: Sequence[str] = ()
    rest_seconds: float = 0.0


@dataclass(slots=True)
class _Running:
    """What the timer knows of one step."""

    step: Step
    busy: bool = False
    again: bool = False
    failures: int = 0
    failing: bool = False
    ticked_at: float = field(default_factory=time.time)
    beat_at: float = field(default_factory=time.monotonic)


class Timer:
    """APScheduler in UTC: no run is skipped for lateness, late ones become one, one at a time a step."""

    def __init__(
        self,
        steps: Sequence[Step],
        *,
        failed: Callable[[str, str], Awaitable[None]],
        woke: Callable[[Sequence[str]], None] = lambda _names: None,
    ) -> None:
        """Describe the timer; `failed` hears a step's first failure in a row, `woke` the wakes for others."""
        self._steps = {step.name: _Running(step) for step in steps}
        self._failed = failed
        self._woke = woke
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving = asyncio.Event()
        self._ahead_seconds = _ahead_seconds()
        self._watch: asyncio.TimerHandle | None = None
        self._scheduler = AsyncIOScheduler(
            timezone=UTC,
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )

    def start(self) -> None:
        """Begin; every step runs once now, for what was left when the last process died."""
        now = datetime.now(UTC)  # One for all: steps that are due together are one wake of the scheduler.
        for name, running in self._steps.items():
            self._scheduler.add_job(
                self._tick,
                "interval",
                seconds=running.step.every_seconds,
                args=[name],
                id=name,
                next_run_time=now,
            )
        self._scheduler.start()
        self._look_at_the_clock()

    def _look_at_the_clock(self) -> None:
        """Run every step now if the clock was put back: the scheduler would wait for it to catch up."""
        ahead = _ahead_seconds()
        if ahead < self._ahead_seconds - LATE_SECONDS:
            log.warning("the clock was put back", extra={"seconds": round(self._ahead_seconds - ahead)})
            now = datetime.now(UTC)
            for name in self._steps:
                self._scheduler.modify_job(name, next_run_time=now)
        self._ahead_seconds = ahead
        self._watch = asyncio.get_running_loop().call_later(WATCH_SECONDS, self._look_at_the_clock)

    async def _tick(self, name: str) -> None:
        # A coroutine, though it waits for nothing: the scheduler runs plain functions in threads of its own.
        running, now = self._steps[name], time.time()
        late_seconds = now - running.ticked_at - running.step.every_seconds
        running.ticked_at = now
        if late_seconds > max(LATE_SECONDS, running.step.every_seconds):
            log.warning("the clock was late", extra={"step": name, "late_seconds": round(late_seconds)})
        self.wake(name)

    def wake(self, *names: str) -> None:
        """Run these steps at once; a step that is running runs again when it is done."""
        for name in names:
            running = self._steps.get(name)
            if running is None or self._leaving.is_set():
                continue
            running.again = True
            if not running.busy:
                task = asyncio.get_running_loop().create_task(self._work(running))
                running.busy = True
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _work(self, running: _Running) -> None:
        try:
            while running.again and not self._leaving.is_set():
                await self._rest(running.step.rest_seconds)
                if self._leaving.is_set():
                    break
                running.again = False
                handled = await self._run_guarded(running)
                running.beat_at = time.monotonic()
                if handled:
                    running.again = True
                    self.wake(*running.step.wakes)
                    self._woke(running.step.wakes)
        finally:
            running.busy = False

    async def _rest(self, seconds: float) -> None:
        """Wait, unless we are told to stop."""
        if seconds > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._leaving.wait()

    async def _run_guarded(self, running: _Running) -> int:
        """Run a step once; the one place that catches whatever escapes: counted, alerted once in a row."""
        try:
            handled = await running.step.run_once()
        except Exception as fault:
            running.failures += 1
            log.warning(
                "a background step failed",
                extra={"step": running.step.name, "fault": type(fault).__name__},
                exc_info=log.isEnabledFor(logging.DEBUG),
            )
            if not running.failing:
                running.failing = True
                await self._tell(running.step.name, type(fault).__name__)
            return 0
        running.failing = False
        return handled

    async def _tell(self, name: str, fault: str) -> None:
        try:
            await self._failed(name, fault)
        except Exception:  # noqa: BLE001 - the alert itself needs the database that may be away
            log.warning("a failing step could not be reported", extra={"step": name})

    def failures(self) -> dict[str, int]:
        """How often each step failed since the start."""
        return {name: running.failures for name, running in self._steps.items()}

    def late(self, factor: float = 3.0, least_seconds: float = 30.0) -> list[str]:
        """Name the steps whose last run is longer ago than it may be: the scheduler does not beat."""
        now = time.monotonic()
        return [
            name
            for name, running in self._steps.items()
            if now - running.beat_at > max(least_seconds, factor * running.step.every_seconds)
        ]

    async def stop(self) -> None:
        """Start nothing new and wait for what runs."""
        self._leaving.set()
        if self._watch is not None:
            self._watch.cancel()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def abandon(self) -> None:
        """End what still runs in the middle, after `stop` began: to be taken up again as after a crash."""
        for task in self._tasks:
            task.cancel()


def _ahead_seconds() -> float:
    """How far the clock is ahead of time that only passes: it falls when the clock is put back."""
    return time.time() - time.monotonic()
