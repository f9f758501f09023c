"""Says where a draft stands: the headline of its state and the lines under it, settled facts only.

Which states exist is in `views`; the sentences are in `words_en`.
"""

import re
from datetime import datetime
from typing import Final, assert_never

from bot.cards.blocks import Element, channel, date, outside, people, person, phrase, words
from bot.cards.draft import NAME_TEXT
from bot.cards.headlines import is_given_up, title
from bot.cards.lives import (
    Action,
    Awaiting,
    Dropped,
    Held,
    Kept,
    Life,
    Part,
    Paused,
    Queued,
    Scheduled,
    SendFailed,
    Sending,
    SendUnknown,
    Sent,
    Waiting,
)
from bot.cards.views import (
    Approved,
    Blocked,
    Cancelled,
    Channel,
    Expired,
    Pending,
    PendingNote,
    Redrafting,
    Rejected,
    ReviewView,
    State,
    Superseded,
)
from bot.cards.words import has

RECIPIENT_TEXT: Final = 500  # Longer than any mail address (RFC 5321: 254)
_STATUS: Final = re.compile("(http|smtp)_([0-9]xx|[0-9]{3})")
_OVERTAKEN: Final = "overtaken"  # A newer event arrived, and has a draft of its own.
_KNOWN_TYPES: Final = frozenset({"http", "smtp", "slack_message"})


def is_open(state: State) -> bool:
    """Say whether the question is still open, answerable now or not."""
    return isinstance(state, Pending | Blocked | Redrafting)


def may_cancel(state: State) -> bool:
    """Say whether a person may still stop it: approved or scheduled, and no send started."""
    if not isinstance(state, Approved):
        return False
    lives = [state.life, *(part.life for part in state.parts)]
    return all(isinstance(life, Queued | Waiting) for life in lives)


def state_title(state: State) -> str:
    """The key of the state's headline, `state.…`."""
    match state:
        case Pending(note=PendingNote.NEW | PendingNote.NEWER_FAILED):
            return "state.pending"
        case Pending():
            return "state.withdrawn"
        case Approved():
            return title(state.life, state.parts)
        case _:
            return f"state.{type(state).__name__.lower()}"


def state_lines(view: ReviewView) -> list[list[Element]]:
    """The lines under the headline: who, when, why, and the effect's life."""
    language = view.language
    match view.state:
        case Pending(note=note, redraft_failed=failed, versions=(now, then)):
            why = note not in {PendingNote.NEW, PendingNote.NEWER_FAILED}
            found = (
                [phrase(language, f"withdrawn.{note}", now=outside(now), then=outside(then))] if why else []
            )
            return [*found, phrase(language, "redrafting.failed")] if failed else found
        case Blocked():
            return [phrase(language, "blocked.why")]
        case Redrafting(by=by, wish=wish):
            return [
                phrase(language, "redrafting.why", who=person(by)),
                *_quoted(language, "redrafting.wish", wish),
            ]
        case Approved() as approved:
            newer = [phrase(language, "approved.newer")] if approved.newer_waits else []
            told = [*_approval(language, approved), *_parts_lines(language, approved)]
            return [*told, *_lost_lines(language, approved), *newer]
        case Rejected(by=by, at=at, reason=reason):
            who = phrase(language, "rejected.by", who=person(by), at=date(at))
            return [who, *_quoted(language, "rejected.reason", reason)]
        case Expired(at=at):
            return [phrase(language, "expired.at", at=date(at))]
        case Superseded(at=at):
            return [phrase(language, "superseded.at", at=date(at))]
        case Cancelled(by=by, at=at):
            return [phrase(language, "cancelled.by", who=person(by), at=date(at))]
        case _ as never:
            assert_never(never)


def _quoted(language: str, key: str, text: str) -> list[list[Element]]:
    return [phrase(language, key, text=outside(text, limit=1_000))] if text else []


def _approval(language: str, approved: Approved) -> list[list[Element]]:
    if approved.by and approved.at is not None:
        return [phrase(language, "approved.by", who=people(approved.by), at=date(approved.at))]
    if (seen := approved.evidence) is not None:
        return [phrase(language, "approved.earned", unedited=seen.unedited, decisions=seen.decisions)]
    key = f"approved.{approved.gate}"
    return [phrase(language, key)] if has(language, key) else []


def _parts_lines(language: str, approved: Approved) -> list[list[Element]]:
    """What became of each effect, by name where there are several, and of its undo."""
    parts = approved.parts
    if len(parts) < 2:  # noqa: PLR2004 - one effect needs no name
        undone = [line for part in parts for line in _undo_lines(language, part)]
        return [*_life_lines(language, approved.life), *undone]
    found: list[list[Element]] = []
    for part in parts:
        name = outside(part.action.name or part.action.effect_type, limit=NAME_TEXT, bold=True)
        first, *more = _life_lines(language, part.life)
        found += [[name, words(": "), *first], *more, *_undo_lines(language, part)]
    return found


def _undo_lines(language: str, part: Part) -> list[list[Element]]:
    if (undoing := part.undoing) is None:
        return []
    asked = phrase(language, "undo.asked", who=person(undoing.by), at=date(undoing.at))
    found = [asked, *_life_lines(language, undoing.life)]
    if is_given_up(undoing.life):
        return [*found, phrase(language, "undo.see")]
    if isinstance(undoing.life, SendFailed | Dropped):
        return [*found, phrase(language, "undo.by_hand" if part.undo is None else "undo.again")]
    return found


def _lost_lines(language: str, approved: Approved) -> list[list[Element]]:
    """What is left to do about what was not sent, or given up; nothing where a newer event did that."""
    lives = [part.life for part in approved.parts] or [approved.life]
    is_several = len(lives) > 1
    if any(map(is_given_up, lives)):
        return [phrase(language, "lost.part_unsure" if is_several else "lost.unsure")]
    lost = [life for life in lives if isinstance(life, SendFailed | Dropped)]
    if all(isinstance(life, Dropped) and life.reason == _OVERTAKEN for life in lost):
        return []
    return [phrase(language, "lost.part" if len(lost) < len(lives) else "lost.whole")]


def _life_lines(language: str, life: Life) -> list[list[Element]]:
    match life:
        case Queued():
            return [_queued_line(language, life)]
        case Kept() | Held() | Paused() | Scheduled() | Awaiting():
            return [_waiting_line(language, life)]
        case Sending(since=since):
            return [phrase(language, "life.sending", at=date(since))]
        case Sent():
            return _sent_lines(language, life)
        case SendUnknown(since=since, reason=reason):
            return [phrase(language, "life.unknown", at=date(since), reason=because(language, reason))]
        case SendFailed() | Dropped():
            return _unsent_lines(language, life)
        case _ as never:
            assert_never(never)


def _queued_line(language: str, life: Queued) -> list[Element]:
    if life.tries == 0:
        return phrase(language, "life.queued")
    tried = phrase(language, "life.tried", count=life.tries, reason=because(language, life.last_reason or ""))
    when = phrase(language, "life.next", at=date(life.next_at)) if life.next_at else []
    return [*tried, *when]


def _waiting_line(language: str, life: Waiting) -> list[Element]:
    match life:
        case Held(since=since, reason=reason):
            return phrase(language, "life.held", at=date(since), reason=because(language, reason))
        case Paused(scope=scope):
            return phrase(language, "life.paused", scope=outside(scope, limit=100, code=True))
        case Scheduled(due=due):
            return phrase(language, "life.scheduled", at=date(due, running=True))
        case Awaiting(name=name):
            return phrase(language, "life.awaiting", name=outside(name, limit=NAME_TEXT))
        case Kept(why=why, until=None):
            return phrase(language, "life.over", reason=because(language, why))
        case Kept(why="resting", until=until, host=host):
            named = outside(host, limit=260, code=True)
            return phrase(language, "life.resting", host=named, at=_next(until))
        case Kept(why=why, until=until):
            return phrase(language, "life.full", reason=because(language, why), at=_next(until))


def _next(until: datetime | None) -> Element | list[Element]:
    return [] if until is None else date(until)


def _unsent_lines(language: str, life: SendFailed | Dropped) -> list[list[Element]]:
    if isinstance(life, SendFailed) and life.by is not None:
        return [phrase(language, "life.given_up", who=person(life.by), at=date(life.at))]
    key = "life.failed" if isinstance(life, SendFailed) else "life.dropped"
    return [phrase(language, key, at=date(life.at), reason=because(language, life.reason))]


def _sent_lines(language: str, life: Sent) -> list[list[Element]]:
    if life.confirmed_by is not None:
        return [phrase(language, "life.confirmed", who=person(life.confirmed_by), at=date(life.at))]
    if life.provider_id is None:
        return [phrase(language, "life.sent", at=date(life.at))]
    provider_id = outside(life.provider_id, limit=120, code=True)
    return [phrase(language, "life.sent_as", at=date(life.at), id=provider_id)]


def action_line(language: str, key: str, action: Action, **more: Element) -> list[Element]:
    """Say what goes out, to whom and through which host, in the sentence under `key`."""
    does = action.effect_type if action.effect_type in _KNOWN_TYPES else "other"
    what = phrase(
        language,
        f"action.{does}.{'to' if action.recipient else 'alone'}",
        recipient=_place(does, action.recipient or "", limit=RECIPIENT_TEXT),
        host=_place(does, action.host, limit=260),
        type=outside(action.effect_type, limit=64, code=True),
    )
    return phrase(language, key, what=what, **more)


def _place(does: str, name: str, *, limit: int) -> Element:
    """Where it goes; a channel of Slack by its name there."""
    there = channel(Channel(name)) if does == "slack_message" else {}
    return there if there.get("type") == "channel" else outside(name, limit=limit, code=True)


def because(language: str, reason: str) -> list[Element]:
    """An outcome's reason word as a sentence; a status by its number, and a target's own word as it is."""
    if has(language, f"reason.{reason}"):
        return phrase(language, f"reason.{reason}")
    if status := _STATUS.fullmatch(reason):
        return phrase(language, f"reason.{status[1]}", code=status[2])
    return phrase(language, "reason.other", word=outside(reason or "-", limit=80, code=True))
