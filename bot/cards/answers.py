"""Puts together the answers to slash commands as notices: help, usage, status, queue, kill and resume.

Drawing them is in `notices`; what the commands do is in `doors/commands` and `flow/`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from bot.cards.draft import title_of
from bot.cards.lives import Who
from bot.cards.notices import Notice, Part, Said
from bot.policy.switch import LLM_SCOPE

MEMBER_COMMANDS: Final = ("queue", "show", "status")
ADMIN_COMMANDS: Final = ("kill", "resume", "unknown")
LATER_COMMANDS: Final = (
    "rerun",
    "metrics",
    "erase",
)  # For admins; known words whose work is not in this version.
MOST_LINES: Final = 20  # An answer longer than two phone screens is read by nobody.


@dataclass(frozen=True, slots=True)
class Closed:
    """One closed scope of the kill switch."""

    scope: str
    who: Who
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class SwitchView:
    """How the kill switch stands: the setting, the `all` row, and every closed scope."""

    enabled: bool
    all_row: bool = True
    closed: tuple[Closed, ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """What is in the works."""

    waiting: int
    queued: int
    sending: int
    unknown: int


@dataclass(frozen=True, slots=True)
class RestingTarget:
    """A target that is left in peace until its next trial."""

    kind: str
    effect_type: str
    target: str
    until: datetime


@dataclass(frozen=True, slots=True)
class CapUse:
    """How much of a cap is used; `until`: something waits for it, so long."""

    kind: str
    cap: str
    used: Decimal
    most: Decimal
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Keeping:
    """What holds effects back besides the switch."""

    resting: tuple[RestingTarget, ...] = ()
    caps: tuple[CapUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """One effect nobody knows the outcome of."""

    key: str
    effect_type: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Waiting:
    """One draft that waits for the caller."""

    kind: str
    entity: str
    since: datetime
    expires: datetime | None = None


def help_text(*, admin: bool, killer: bool = False, language: str = "en") -> Notice:
    """List the commands that the caller may use; a `killer` may pull the switch."""
    more = ADMIN_COMMANDS if admin else ("kill",) if killer else ()
    said = ["help.title", *(f"help.{command}" for command in (*MEMBER_COMMANDS, *more))]
    if more:
        said.append("help.scopes")
    return Notice(tuple(Said(key) for key in said), language)


def unknown_word(word: str, helped: Notice, *, switch: SwitchView) -> Notice:
    """Say that the word is not known, then usage (`helped`) and the current state."""
    said = (Said("usage.unknown_word", {"word": word}), *helped.said, *_switch(switch))
    return Notice(said, helped.language)


def usage(problem: str, /, *, language: str = "en", **parts: Part) -> Notice:
    """Say what is wrong with a command, by the name of its sentence `usage.…`."""
    return Notice((Said(f"usage.{problem}", parts),), language)


def standing(switch: SwitchView, *, language: str = "en") -> Notice:
    """Say how the switch stands: every closed scope, by whom, since when and why."""
    return Notice(tuple(_switch(switch)), language)


def status(
    switch: SwitchView, counts: Counts, keeping: Keeping | None = None, *, language: str = "en"
) -> Notice:
    """Say how the switch stands, what is in the works, and what keeps it waiting."""
    parts: dict[str, Part] = {
        "waiting": counts.waiting,
        "queued": counts.queued,
        "sending": counts.sending,
        "unknown": counts.unknown,
    }
    kept = _keeping(keeping or Keeping())
    return Notice((*_switch(switch), Said("status.counts", parts), *kept), language)


_CAPS: Final = {
    "cap_hour": "status.cap_hour",
    "cap_day": "status.cap_day",
    "cap_value_day": "status.cap_value_day",
}


def _keeping(keeping: Keeping) -> list[Said]:
    said = [
        Said("status.resting", {"target": one.target, "kind": one.kind, "at": one.until})
        for one in keeping.resting[:MOST_LINES]
    ]
    for use in keeping.caps[:MOST_LINES]:
        parts: dict[str, Part] = {"kind": use.kind, "used": f"{use.used:f}", "most": f"{use.most:f}"}
        said.append(Said(_CAPS[use.cap], parts))
        if use.until is not None:
            said.append(Said("status.full", {"kind": use.kind, "at": use.until}))
    return said


def _switch(switch: SwitchView) -> list[Said]:
    found: list[Said] = []
    if not switch.enabled:
        found.append(Said("status.setting_off"))
    if not switch.all_row:
        found.append(Said("status.row_missing"))
    for closed in switch.closed:
        parts: dict[str, Part] = {
            "scope": closed.scope,
            "who": closed.who,
            "at": closed.at,
            "reason": closed.reason,
        }
        found.append(Said("status.closed", parts))
    return found or [Said("status.open")]


def queue(
    waiting: Sequence[Waiting],
    *,
    counts: Mapping[str, int] | None = None,
    is_whole: bool = True,
    language: str = "en",
) -> Notice:
    """List what waits for the caller, in the order given; `counts`: how many there are of each kind.

    Not `is_whole`: more may wait for them, which could not be found out.
    """
    unsure = [] if is_whole else [Said("queue.not_whole")]
    if not waiting:
        return Notice(tuple(unsure or [Said("queue.empty")]), language)
    count = sum(counts.values()) if counts else len(waiting)
    by_kind = [_kind_line(kind, n) for kind, n in (counts or {}).items()] if len(counts or {}) > 1 else []
    shown = [_queue_line(item) for item in waiting[:MOST_LINES]]
    more = [Said("queue.more", {"count": count - len(shown)})] if count > len(shown) else []
    return Notice((Said("queue.title", {"count": count}), *by_kind, *shown, *more, *unsure), language)


def _kind_line(kind: str, count: int) -> Said:
    return Said("queue.kind", {"kind": title_of(kind), "count": count})


def _queue_line(item: Waiting) -> Said:
    parts: dict[str, Part] = {"kind": title_of(item.kind), "entity": item.entity, "since": item.since}
    if item.expires is None:
        return Said("queue.line_open", parts)
    return Said("queue.line", {**parts, "expires": item.expires})


def killed(
    scope: str, *, in_flight: Sequence[str], already: bool, reason: str, language: str = "en"
) -> Notice:
    """Say that no further send starts, which ones had started and not ended, and ask for a missing reason."""
    done = "kill.done_llm" if scope == LLM_SCOPE else "kill.done"
    said = [Said("kill.already" if already else done, {"scope": scope})]
    if in_flight:
        said.append(Said("kill.in_flight", {"count": len(in_flight)}))
    elif scope != LLM_SCOPE:  # What it stops is no send, so of sends it says nothing.
        said.append(Said("kill.none_in_flight"))
    said += [Said("kill.line", {"key": key}) for key in in_flight[:MOST_LINES]]
    if len(in_flight) > MOST_LINES:
        said.append(Said("queue.more", {"count": len(in_flight) - MOST_LINES}))
    if not reason:
        said.append(Said("kill.ask_reason", {"scope": scope}))
    return Notice(tuple(said), language)


def resumed(scope: str, *, already: bool, still_closed: Sequence[str] = (), language: str = "en") -> Notice:
    """Say that sending goes on, and what is still stopped by another scope."""
    said = [Said("resume.already" if already else "resume.done", {"scope": scope})]
    if still_closed:
        said.append(Said("resume.still_closed", {"scopes": ", ".join(still_closed)}))
    return Notice(tuple(said), language)


def shortened(notice: Notice, count: int) -> Notice:
    """Say besides that of a long reason so many characters are kept."""
    return Notice((*notice.said, Said("switch.reason_cut", {"count": count})), notice.language)


def unknowns(waiting: Sequence[Unknown], *, total: int, language: str = "en") -> Notice:
    """List effects nobody knows the outcome of, oldest first; `total` when there is more than was fetched."""
    if not waiting:
        return Notice((Said("unknown.none"),), language)
    shown_lines = [
        Said("unknowns.line", {"key": one.key, "type": one.effect_type, "since": one.since})
        for one in waiting[:MOST_LINES]
    ]
    more = [Said("queue.more", {"count": total - len(shown_lines)})] if total > len(shown_lines) else []
    head = Said("unknowns.title", {"count": total})
    return Notice((head, *shown_lines, *more, Said("unknowns.where")), language)


def answer(key: str, /, *, language: str = "en", **parts: Part) -> Notice:
    """One sentence of a command by its key: `rerun.…`, `erase.…`, `unknown.none`, `resume.not_allowed`."""
    return Notice((Said(key, parts),), language)
