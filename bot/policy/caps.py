"""How much of a kind may leave, as `[kinds.NAME.limits]` says, and which of what waits fits into it now.
Not here: holding to it under concurrency (store/limits, bot/flow/guarding), or every other number (limits).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Final
from uuid import UUID

from pydantic import BeforeValidator, Field

from bot.policy import limits
from bot.policy.values import Clause, Duration, write_duration

_VALUE_PATH: Final = re.compile(r"output(?:\.[^.\s]{1,100}){1,20}")

VALUE_UNREADABLE: Final = "value_unreadable"
VALUE_OVER_CAP: Final = "value_over_cap"


def _value_path(value: object) -> object:
    if not isinstance(value, str) or not _VALUE_PATH.fullmatch(value):
        raise ValueError('must be a path into the draft, like "output.amount"')
    return value


class Limits(Clause):
    """What holds back effects of a kind; None is no limit. Today's file alone counts, nothing is frozen."""

    concurrency: int | None = Field(default=None, strict=True, ge=1, le=limits.MOST_LIMITED)
    per_second: int | None = Field(default=None, strict=True, ge=1, le=limits.MOST_LIMITED)
    per_minute: int | None = Field(default=None, strict=True, ge=1, le=limits.MOST_LIMITED)
    cap_hour: int | None = Field(default=None, strict=True, ge=1, le=limits.MOST_LIMITED)
    cap_day: int | None = Field(default=None, strict=True, ge=1, le=limits.MOST_LIMITED)
    value: Annotated[str, BeforeValidator(_value_path)] | None = None
    cap_value_day: float | None = Field(default=None, strict=True, gt=0, le=limits.MOST_VALUE)
    breaker_after: int = Field(default=limits.BREAKER_AFTER, strict=True, ge=0, le=limits.MOST_LIMITED)
    breaker_rest_seconds: Duration = Field(
        default=limits.BREAKER_REST_SECONDS, alias="breaker_rest", ge=1, le=limits.MAX_BREAKER_REST_SECONDS
    )
    breaker_rest_most_seconds: Duration = Field(
        default=limits.BREAKER_REST_MOST_SECONDS,
        alias="breaker_rest_most",
        ge=1,
        le=limits.MAX_BREAKER_REST_SECONDS,
    )

    @property
    def value_path(self) -> list[str] | None:
        """The steps of `value`, from the effect's body on."""
        return None if self.value is None else self.value.split(".")

    @property
    def value_cap(self) -> Decimal | None:
        """The value cap exactly as the file writes it."""
        return None if self.cap_value_day is None else Decimal(repr(self.cap_value_day))

    def describe(self) -> Iterator[tuple[str, str]]:
        """Say what holds, a line each."""
        at_once = "no limit of its own" if self.concurrency is None else f"{self.concurrency} at once"
        rates = [
            f"{n} a {word}" for n, word in ((self.per_second, "second"), (self.per_minute, "minute")) if n
        ]
        yield "per target", f"{at_once}, {' and '.join(rates) or 'no rate'}"
        caps = [f"{n} {word}" for n, word in ((self.cap_hour, "an hour"), (self.cap_day, "a day (UTC)")) if n]
        if self.value_cap is not None:
            caps.append(f"{self.value} of {self.value_cap.normalize():f} in all a day (UTC)")
        yield "caps", ", ".join(caps) or "none"
        rest, most = write_duration(self.breaker_rest_seconds), write_duration(self.breaker_rest_most_seconds)
        after = f"after {self.breaker_after} failures in a row it rests {rest}, then longer, at most {most}"
        yield "breaker", after if self.breaker_after else "none"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A waiting effect in the order of its queue; `holds_…`: it has a share of that window already.

    `is_counted`: another effect of its draft has taken the draft's value from the cap already.
    """

    effect_id: UUID
    idempotency_key: str
    kind: str
    lane: int
    value: Decimal | None = None
    is_counted: bool = False
    holds_hour: bool = False
    holds_day: bool = False


@dataclass(slots=True)
class Left:
    """What is left of a kind's caps; None is no cap. `value_most` is the whole cap on the value."""

    hour: int | None = None
    day: int | None = None
    value: Decimal | None = None
    value_most: Decimal | None = None
    counted: set[str] = field(default_factory=set)  # The keys whose drafts' values are in it by now.


@dataclass(slots=True)
class Choice:
    """What may leave now, what never fits (and why), which cap keeps kinds waiting, which lanes have more."""

    chosen: list[Candidate] = field(default_factory=list)
    held: dict[UUID, str] = field(default_factory=dict)
    full: dict[str, str] = field(default_factory=dict)
    cut: set[int] = field(default_factory=set)


def choose(candidates: Sequence[Candidate], left: Mapping[str, Left], slots: Mapping[int, int]) -> Choice:
    """Take what fits, in order; what holds a share already goes first and takes none anew."""
    made = Choice()
    remaining = {kind: Left(one.hour, one.day, one.value, one.value_most) for kind, one in left.items()}
    places = dict(slots)
    for one in sorted(candidates, key=lambda each: not each.holds_day):
        room = remaining.setdefault(one.kind, Left())
        if (reason := _never_fits(one, room)) is not None:
            made.held[one.effect_id] = reason
        elif (why := _what_is_full(one, room)) is not None:
            made.full[one.kind] = max(why, made.full.get(one.kind, why), key=_FULL_ORDER.index)
        elif places.get(one.lane, 0) < 1:
            made.cut.add(one.lane)
        else:
            places[one.lane] -= 1
            _take(one, room)
            made.chosen.append(one)
    return made


_FULL_ORDER: Final = ("cap_hour", "cap_value_day", "cap_day")  # The later is what people should hear of.


def _never_fits(one: Candidate, room: Left) -> str | None:
    """Without a value nothing passes a value cap; what is more than the whole cap fits into no window."""
    if room.value_most is None:
        return None
    if one.value is None or not one.value.is_finite() or one.value < 0:
        return VALUE_UNREADABLE
    return VALUE_OVER_CAP if one.value > room.value_most else None


def _what_is_full(one: Candidate, room: Left) -> str | None:
    if not one.holds_day:
        if room.day is not None and room.day < 1:
            return "cap_day"
        if room.value is not None and _worth(one, room) > room.value:
            return "cap_value_day"
    if not one.holds_hour and room.hour is not None and room.hour < 1:
        return "cap_hour"
    return None


def _worth(one: Candidate, room: Left) -> Decimal:
    """What it takes from the value cap: the value is its draft's, and counts once."""
    if one.value is None or one.is_counted or one.idempotency_key in room.counted:
        return Decimal(0)
    return one.value


def _take(one: Candidate, room: Left) -> None:
    if not one.holds_hour and room.hour is not None:
        room.hour -= 1
    if one.holds_day:
        return
    if room.day is not None:
        room.day -= 1
    if room.value is not None:
        room.value -= _worth(one, room)
        room.counted.add(one.idempotency_key)
