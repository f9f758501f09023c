"""What a submitted modal does: a rejection with its reason, an approval with the entity typed.

Not here: opening modals (buttons, windows), drawing them (bot/cards/modals), deciding (bot/flow/decide).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bot.cards import modals
from bot.cards.modals import REASON_TEXT
from bot.cards.notices import Notice, Refusal, Said, refused
from bot.cards.views import Field
from bot.cards.words import say
from bot.contracts import click as carried
from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision, Surface, decode_value
from bot.doors.payloads import Caller, Submission, is_blank, storable
from bot.doors.verdicts import OVERTAKEN, WOKEN, say_decided, say_refused
from bot.flow.decide import Decided, Deciding, decide
from bot.policy.tokens import hash_token
from store.asking import find_holder
from store.errors import DatabaseAway

REASON_BLOCK: Final = "stet.reject.input"
TYPED_BLOCK: Final = "stet.typed.input"

Answer = Mapping[str, Any] | None
"""What Slack is to do with the modal; None closes it."""


@dataclass(frozen=True, slots=True)
class Modals:
    """What submitting needs."""

    deciding: Deciding
    wake: Callable[..., None]
    language: str = "en"


async def submit(deps: Modals, submission: Submission) -> Answer:
    """Take one submitted modal; what was typed stays, or is shown beside what became of it."""
    match submission.view.callback_id:
        case carried.REJECT_ACTION:
            return await _reject(deps, submission)
        case carried.APPROVE_ACTION:
            return await _approve(deps, submission)
        case modals.MESSAGE_VIEW:
            return None
        case _:
            return _show(refused(Refusal.UNKNOWN_BUTTON, language=deps.language), submission)


async def _reject(deps: Modals, submission: Submission) -> Answer:
    reason = storable(submission.answers.get(REASON_BLOCK, ""))
    if is_blank(reason):
        return _wrong(REASON_BLOCK, say(deps.language, "reject.empty"))
    if len(reason) > REASON_TEXT:
        return _wrong(REASON_BLOCK, say(deps.language, "reject.too_long"))
    return await _decide(deps, submission, Decision.REJECT, reason=reason)


async def _approve(deps: Modals, submission: Submission) -> Answer:
    typed = storable(submission.answers.get(TYPED_BLOCK, ""))
    return await _decide(deps, submission, Decision.APPROVE, typed=typed)


async def _decide(deps: Modals, submission: Submission, decision: Decision, **given: str) -> Answer:
    value = decode_value(submission.view.value)
    if value is None:
        return _show(refused(Refusal.UNKNOWN_BUTTON, language=deps.language), submission)
    caller = await _whole(deps, submission.caller, value.token)
    click = Click(
        token=value.token,
        revision=value.revision,
        decision=decision,
        team_id=caller.team_id,
        user_id=caller.user_id,
        surface=Surface.VIEW,
        reason=given.get("reason"),
        typed=given.get("typed"),
    )
    answer = await decide(deps.deciding, click)
    if isinstance(answer, Decided):
        deps.wake(*WOKEN)
        # The end of the question closes every window; a vote short of it says how many are needed.
        if answer.voted.reached:
            return {"response_action": "clear"}
        return _show(say_decided(answer, deps.language))
    if answer.why == Why.TYPED_WRONG:
        return _wrong(TYPED_BLOCK, say(deps.language, "refused.typed_wrong"))
    return _show(_explain(answer, deps.language), submission)


async def _whole(deps: Modals, caller: Caller, token: str) -> Caller:
    """The caller with their team, which Slack may leave out here: then that of our row, if it is theirs.

    Who they are is checked against Slack's account of them all the same.
    """
    if caller.team_id:
        return caller
    try:
        async with deps.deciding.db.connection() as conn:
            holder = await find_holder(conn, hash_token(token))
    except DatabaseAway:
        return caller  # Deciding will meet the same and say so.
    _, _, whose = (holder or "").partition(":")
    team, _, user = whose.partition(":")
    return Caller(team, user) if user == caller.user_id else caller


def _explain(answer: NotDecided, language: str) -> Notice:
    notice = say_refused(answer, language)
    if answer.why not in OVERTAKEN:
        return notice
    return Notice((*notice.said, Said("modal.overtaken")), language)


def _show(notice: Notice, submission: Submission | None = None) -> Answer:
    """Say it in the modal's place, and below it what the person had typed."""
    typed = submission.answers.values() if submission else ()
    kept = tuple(Field("text", storable(text)) for text in typed if text.strip())
    return {"response_action": "update", "view": modals.tell(notice, kept)}


def _wrong(block_id: str, sentence: str) -> Answer:
    return {"response_action": "errors", "errors": {block_id: sentence}}
