"""What a submitted modal does: a rejection, a typed approval, an edit, a wish for another draft.

Not here: opening modals (buttons, windows), drawing them (bot/cards/modals), deciding (bot/flow/decide).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bot.cards import modals
from bot.cards.modals import EDIT_BLOCK, REASON_TEXT
from bot.cards.notices import Done, Notice, Refusal, Said, done, refused
from bot.cards.views import Field
from bot.cards.words import say
from bot.contracts import click as carried
from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision, Surface, decode_value
from bot.doors.payloads import Caller, Submission, is_blank, storable
from bot.doors.verdicts import OVERTAKEN, REDRAFT_WOKEN, WOKEN, say_decided, say_faults, say_refused
from bot.flow import redraft
from bot.flow.decide import Decided, decide
from bot.flow.edit import Edited, Unchanged, Unfit, edit
from bot.flow.judging import Deciding
from bot.policy.tokens import hash_token
from store.asking import find_holder
from store.errors import DatabaseAway

REASON_BLOCK: Final = "stet.reject.input"
WISH_BLOCK: Final = "stet.redraft.input"
TYPED_BLOCK: Final = "stet.typed.input"
_ASKED: Final = {
    carried.REJECT_ACTION: REASON_BLOCK,
    carried.REDRAFT_ACTION: WISH_BLOCK,
    carried.APPROVE_ACTION: TYPED_BLOCK,
}

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
    asked = _ASKED.get(submission.view.callback_id)
    if asked is not None and asked not in submission.answers:  # Another window under this one's name.
        return _show(refused(Refusal.UNKNOWN_BUTTON, language=deps.language), submission)
    match submission.view.callback_id:
        case carried.REJECT_ACTION:
            return await _reject(deps, submission)
        case carried.APPROVE_ACTION:
            return await _approve(deps, submission)
        case carried.EDIT_ACTION:
            return await _edit(deps, submission)
        case carried.REDRAFT_ACTION:
            return await _redraft(deps, submission)
        case modals.MESSAGE_VIEW:
            return None
        case _:
            return _show(refused(Refusal.UNKNOWN_BUTTON, language=deps.language), submission)


async def _reject(deps: Modals, submission: Submission) -> Answer:
    reason = storable(submission.answers.get(REASON_BLOCK, ""))
    fault = _why_no_reason(reason)
    if fault is not None:
        return _wrong(REASON_BLOCK, say(deps.language, f"reject.{fault}"))
    return await _decide(deps, submission, Decision.REJECT, reason=reason)


def _why_no_reason(reason: str) -> str | None:
    if is_blank(reason):
        return "empty"
    return "too_long" if len(reason) > REASON_TEXT else None


async def _approve(deps: Modals, submission: Submission) -> Answer:
    typed = storable(submission.answers.get(TYPED_BLOCK, ""))
    return await _decide(deps, submission, Decision.APPROVE, typed=typed)


async def _edit(deps: Modals, submission: Submission) -> Answer:
    """Nothing is tidied up on the way: what was typed is what is stored."""
    typed = {
        block_id.removeprefix(EDIT_BLOCK): text
        for block_id, text in submission.answers.items()
        if block_id.startswith(EDIT_BLOCK)
    }
    click = await _click(deps, submission, Decision.EDIT)
    if click is None:
        return _show(refused(Refusal.UNKNOWN_BUTTON, language=deps.language), submission)
    match await edit(deps.deciding, click, typed):
        case Edited(revision=revision):
            deps.wake(*WOKEN)
            return _ended(done(Done.EDITED, language=deps.language, revision=revision))
        case Unchanged():
            return _show(done(Done.UNCHANGED, language=deps.language))
        case Unfit() as unfit:
            return {"response_action": "errors", "errors": say_faults(unfit, deps.language)}
        case NotDecided() as answer:
            return _refuse(deps, answer, submission)


async def _redraft(deps: Modals, submission: Submission) -> Answer:
    wish = storable(submission.answers.get(WISH_BLOCK, ""))
    fault = _why_no_reason(wish)
    if fault is not None:
        return _wrong(WISH_BLOCK, say(deps.language, f"redraft.{fault}"))
    click = await _click(deps, submission, Decision.REDRAFT, reason=wish)
    if click is None:
        return _show(refused(Refusal.UNKNOWN_BUTTON, language=deps.language), submission)
    answer = await redraft.ask(deps.deciding, click)
    if isinstance(answer, NotDecided):
        return _refuse(deps, answer, submission)
    deps.wake(*REDRAFT_WOKEN)
    return _ended(done(Done.REDRAFTING, language=deps.language))


async def _click(deps: Modals, submission: Submission, decision: Decision, **given: str) -> Click | None:
    """The submission as an answer; None if its value was never ours."""
    value = decode_value(submission.view.value)
    if value is None:
        return None
    caller = await _whole(deps, submission.caller, value.token)
    return Click(
        token=value.token,
        revision=value.revision,
        decision=decision,
        team_id=caller.team_id,
        user_id=caller.user_id,
        surface=Surface.VIEW,
        reason=given.get("reason"),
        typed=given.get("typed"),
    )


async def _decide(deps: Modals, submission: Submission, decision: Decision, **given: str) -> Answer:
    click = await _click(deps, submission, decision, **given)
    if click is None:
        return _show(refused(Refusal.UNKNOWN_BUTTON, language=deps.language), submission)
    answer = await decide(deps.deciding, click)
    if isinstance(answer, Decided):
        deps.wake(*WOKEN)
        # The end of the question closes every window; a vote short of it says how many are needed.
        if answer.voted.reached:
            return {"response_action": "clear"}
        return _show(say_decided(answer, deps.language))
    if answer.why == Why.TYPED_WRONG:
        return _wrong(TYPED_BLOCK, say(deps.language, "refused.typed_wrong"))
    return _refuse(deps, answer, submission)


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


def _refuse(deps: Modals, answer: NotDecided, submission: Submission) -> Answer:
    """Say why nothing was done; what was overtaken closes what lies below, too, for the same reason."""
    notice = say_refused(answer, deps.language)
    if answer.why not in OVERTAKEN:
        return _show(notice, submission)
    overtaken = Notice((*notice.said, Said("modal.overtaken")), deps.language)
    return _show(overtaken, submission, clears=True)


def _ended(notice: Notice) -> Answer:
    """Say it in the modal's place; closing it closes what lies below, too, which is no longer current."""
    return {"response_action": "update", "view": modals.tell(notice, clears=True)}


def _show(notice: Notice, submission: Submission | None = None, *, clears: bool = False) -> Answer:
    """Say it in the modal's place, and below it what the person had typed."""
    typed = submission.answers.items() if submission else ()
    kept = tuple(Field(_name(block_id), storable(text)) for block_id, text in typed if text.strip())
    return {"response_action": "update", "view": modals.tell(notice, kept, clears=clears)}


def _name(block_id: str) -> str:
    return block_id.removeprefix(EDIT_BLOCK) if block_id.startswith(EDIT_BLOCK) else "text"


def _wrong(block_id: str, sentence: str) -> Answer:
    return {"response_action": "errors", "errors": {block_id: sentence}}
