"""Trouble on order for the Slack stand-in, and the journal of every call that reached it.

What a call does when nothing is ordered is in the method files; pulling the plug is done by `slack_web_api`.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class Fault:
    """What befalls one call. `after_work`: the work is done before the trouble starts.

    A hanging call sets `reached`, and waits for `release`; it then goes on to whatever else is ordered.
    """

    after_work: bool = False
    hang: bool = False
    drop: bool = False
    status: int = 0
    error: str = ""
    retry_after: str | None = None
    body: bytes | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)


def limited(retry_after: str | None = "1") -> Fault:
    """429, the work not done."""
    return Fault(status=429, error="ratelimited", retry_after=retry_after)


def server_error(status: int = 500, *, after_work: bool = False) -> Fault:
    """A 5xx with a body that is no JSON."""
    return Fault(status=status, body=b"<html>oops</html>", after_work=after_work)


def says(error: str, *, after_work: bool = False) -> Fault:
    """200 and `ok: false`; with `after_work`, as `internal_error` may come although the work was done."""
    return Fault(status=200, error=error, after_work=after_work)


def dropped(*, after_work: bool) -> Fault:
    """The line is cut: before the body was read, or after the work was done and before any answer."""
    return Fault(drop=True, after_work=after_work)


def hanging(*, after_work: bool = False) -> Fault:
    """No answer until released."""
    return Fault(hang=True, after_work=after_work)


@dataclass(frozen=True, slots=True)
class Call:
    """One request to the Web API; the token is not kept."""

    method: str
    arguments: Mapping[str, Any]
    at: float
    outcome: str

    @property
    def channel(self) -> str | None:
        """The channel it was about."""
        return self.arguments.get("channel")


class Faults:
    """Orders by method and n-th call from now."""

    def __init__(self) -> None:
        self._ordered: dict[str, dict[int, Fault]] = {}
        self._seen: dict[str, int] = {}
        self._met: list[Fault] = []

    def order(self, method: str, fault: Fault, *, nth: int = 1) -> Fault:
        """Let the n-th call of a method from now on meet this; the call is counted once it is over."""
        at = self._seen.get(method, 0) + nth
        self._ordered.setdefault(method, {})[at] = fault
        return fault

    def always(self, method: str, fault: Fault) -> Fault:
        """Let every call of a method meet this until `clear`."""
        self._ordered.setdefault(method, {})[0] = fault
        return fault

    def next(self, method: str) -> Fault | None:
        """Count one call and say what befalls it."""
        number = self._seen[method] = self._seen.get(method, 0) + 1
        ordered = self._ordered.get(method, {})
        fault = ordered.pop(number, None) or ordered.get(0)
        if fault is not None:
            self._met.append(fault)
        return fault

    def clear(self) -> None:
        """No more trouble; whoever hangs goes on."""
        for fault in self._met:
            fault.release.set()
        self._met.clear()
        self._ordered.clear()


class Journal:
    """Every call that was read, oldest first."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._changed = asyncio.Event()

    def note(self, call: Call) -> None:
        """Write a call down."""
        self.calls.append(call)
        self._changed.set()

    def count(self, method: str, *, outcome: str | None = None) -> int:
        """How many calls of a method there were, of one outcome if named."""
        return len(self.of(method, outcome=outcome))

    def of(self, method: str, *, outcome: str | None = None) -> list[Call]:
        """The calls of a method."""
        return [call for call in self.calls if call.method == method and outcome in (None, call.outcome)]

    async def wait_for(self, method: str, count: int = 1) -> None:
        """Wait until so many calls of a method are written down."""
        while self.count(method) < count:
            self._changed.clear()
            await self._changed.wait()
