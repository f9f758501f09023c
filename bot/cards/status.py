"""Says where a draft stands: the headline of its state and the lines under it, settled facts only.

Which states exist is in `views`; the sentences are in `words_en`.
"""

from typing import Final, assert_never

from bot.cards.blocks import Element, date, outside, people, person, phrase
from bot.cards.views import (
    Action,
    Approved,
    Blocked,
    Cancelled,
    Expired,
    Held,
    Life,
    Paused,
    Pending,
    PendingNote,
    Queued,
    Redrafting,
    Rejected,
    ReviewView,
    Scheduled,
    SendFailed,
    Sending,
    SendUnknown,
    Sent,
    State,
    Superseded,
)
from bot.cards.words import has

RECIPIENT_TEXT: Final = 500  # Longer than any mail address (RFC 5321: 254)
_KNOWN_TYPES: Final = frozenset({"http", "smtp", "slack_message"})


def is_open(state: State) -> bool:
    """Say whether the question is still open, answerable now or not."""
    return isinstance(state, Pending | Blocked | Redrafting)


def may_cancel(state: State) -> bool:
    """Say whether a person may still stop it: approved or scheduled, and no send started."""
    return isinstance(state, Approved) and isinstance(state.life, Queued | Held | Paused | Scheduled)


def state_title(state: State) -> str:
    """The key of the state's headline, `state.…`."""
    match state:
        case Pending(note=PendingNote.NEW | PendingNote.NEWER_FAILED):
            return "state.pending"
        case Pending():
            return "state.withdrawn"
        case Approved(life=life):
            return _life_title(life)
        case _:
            return f"state.{type(state).__name__.lower()}"


def _life_title(life: Life) -> str:
    return f"state.{type(life).__name__.lower()}"


def state_lines(view: ReviewView) -> list[list[Element]]:
    """The lines under the headline: who, when, why, and the effect's life."""
    language = view.language
    match view.state:
        case Pending(note=note, redraft_failed=failed, versions=(now, then)):
            why = note not in {PendingNote.NEW, PendingNote.NEWER_FAILED}
            found = [phrase(language, f"withdrawn.{note}", now=now, then=then)] if why else []
            return [*found, phrase(language, "redrafting.failed")] if failed else found
        case Blocked():
            return [phrase(language, "blocked.why")]
        case Redrafting(by=by, wish=wish):
            return [
                phrase(language, "redrafting.why", who=person(by)),
                *_quoted(language, "redrafting.wish", wish),
            ]
        case Approved() as approved:
            return [*_approval(language, approved), *_life_lines(language, approved.life)]
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


def _life_lines(language: str, life: Life) -> list[list[Element]]:
    match life:
        case Queued(tries=0):
            return [phrase(language, "life.queued")]
        case Queued(tries=tries, last_reason=reason, next_at=next_at):
            parts = {"count": str(tries), "reason": because(language, reason or "")}
            when = phrase(language, "life.next", at=date(next_at)) if next_at else []
            return [[*phrase(language, "life.tried", **parts), *when]]
        case Held(since=since, reason=reason):
            return [phrase(language, "life.held", at=date(since), reason=because(language, reason))]
        case Paused(scope=scope):
            return [phrase(language, "life.paused", scope=outside(scope, limit=100, code=True))]
        case Scheduled(due=due):
            return [phrase(language, "life.scheduled", at=date(due))]
        case Sending(since=since):
            return [phrase(language, "life.sending", at=date(since))]
        case Sent():
            return _sent_lines(language, life)
        case SendUnknown(since=since, reason=reason):
            return [phrase(language, "life.unknown", at=date(since), reason=because(language, reason))]
        case SendFailed(at=at, reason=reason, by=by):
            found = [phrase(language, "life.failed", at=date(at), reason=because(language, reason))]
            return [*found, phrase(language, "life.given_up", who=person(by))] if by else found
        case _ as never:
            assert_never(never)


def _sent_lines(language: str, life: Sent) -> list[list[Element]]:
    if life.confirmed_by is not None:
        return [phrase(language, "life.confirmed", who=person(life.confirmed_by), at=date(life.at))]
    if life.provider_id is None:
        return [phrase(language, "life.sent", at=date(life.at))]
    provider_id = outside(life.provider_id, limit=120, code=True)
    return [phrase(language, "life.sent_as", at=date(life.at), id=provider_id)]


def action_line(language: str, key: str, action: Action) -> list[Element]:
    """Say what goes out, to whom and through which host, in the sentence under `key`."""
    does = action.effect_type if action.effect_type in _KNOWN_TYPES else "other"
    what = phrase(
        language,
        f"action.{does}.{'to' if action.recipient else 'alone'}",
        recipient=outside(action.recipient or "", limit=RECIPIENT_TEXT, code=True),
        host=outside(action.host, limit=260, code=True),
        type=outside(action.effect_type, limit=64, code=True),
    )
    return phrase(language, key, what=what)


def because(language: str, reason: str) -> Element | list[Element]:
    """An outcome's reason word as a sentence; one that has none is shown as it is."""
    key = f"reason.{reason}"
    return phrase(language, key) if has(language, key) else outside(reason or "-", limit=80, code=True)
