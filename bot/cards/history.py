"""Puts together the answer to `/stet show`: what is known of one key, in lines.

Reading it is in `store/asking`; who may ask is decided in `doors/commands`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from bot.cards.lives import Who
from bot.cards.notices import Notice, Part, Said

MOST_LINES: Final = 20  # Of the record: the newest say where it stands, `audit show` prints them all.


@dataclass(frozen=True, slots=True)
class Made:
    """The newest revision of a run: by a model (with its prompt's version), upstream or a person."""

    revision: int
    author: Who
    model: str | None = None
    prompt_version: str | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """What people answered."""

    decision: str
    who: Who
    at: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """One effect of a run, by name and type: who had which other one taken back, or which it waits for."""

    effect_type: str
    state: str
    provider_id: str | None = None
    undo_by: Who | None = None
    undoes: str | None = None
    waits_for: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the record."""

    at: datetime
    who: Who
    action: str


@dataclass(frozen=True, slots=True)
class History:
    """All that is known of one key. `repeats`: how often it came again; `lines` are the newest, in order."""

    key: str
    state: str
    received_at: datetime
    failure: str | None = None
    repeats: int = 0
    made: Made | None = None
    decided: Decided | None = None
    effects: tuple[Done, ...] = ()
    lines: tuple[Line, ...] = ()


def shown(history: History, *, language: str = "en") -> Notice:
    """Say what became of a key, by which model and prompt, who decided, what was sent; then the record."""
    state: dict[str, Part] = {"state": history.state, "at": history.received_at}
    said = [Said("show.title", {"key": history.key}), Said("show.state", state)]
    if history.failure:
        said.append(Said("show.failure", {"reason": history.failure}))
    if history.repeats:
        said.append(Said("show.repeats", {"count": history.repeats}))
    said += [*_made(history.made), *_decided(history.decided), *map(_effect, history.effects)]
    said += [
        Said("show.line", {"at": line.at, "who": line.who, "action": line.action})
        for line in history.lines[-MOST_LINES:]
    ]
    return Notice(tuple(said), language)


def _made(made: Made | None) -> list[Said]:
    if made is None:
        return []
    said = [Said("show.draft", {"revision": made.revision, "who": made.author})]
    if made.model:
        said.append(Said("show.model", {"model": made.model, "version": made.prompt_version or "?"}))
    return said


def _decided(decided: Decided | None) -> list[Said]:
    if decided is None:
        return []
    parts: dict[str, Part] = {"decision": decided.decision, "who": decided.who, "at": decided.at}
    reason = [Said("show.reason", {"reason": decided.reason})] if decided.reason else []
    return [Said("show.decision", parts), *reason]


def _effect(effect: Done) -> Said:
    parts: dict[str, Part] = {"type": effect.effect_type, "state": effect.state}
    if effect.undo_by is not None:
        return Said("show.undo", {**parts, "who": effect.undo_by, "name": effect.undoes or "?"})
    if effect.waits_for is not None:
        return Said("show.waits", {**parts, "name": effect.waits_for})
    if effect.provider_id is None:
        return Said("show.effect", parts)
    return Said("show.effect_as", {**parts, "id": effect.provider_id})
