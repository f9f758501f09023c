"""Stops what was approved before any of it was started: one transaction, in which each effect's row decides.

Not here: withdrawal by a newer event or by time (arrive, settle), or reading Slack's payload (bot/doors).
"""

from dataclasses import dataclass
from functools import partial

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision
from bot.flow.checkpoints import reach
from bot.flow.judging import RECOUNTS, Deciding, Progress, answer_in_time, refuse
from bot.policy.answering import from_its_surface, may_cancel
from bot.policy.people import Allowed, NotAllowed, subject
from bot.policy.tokens import hash_token
from store import audit, cancelling, decisions, heads
from store.cancelling import CancelledDraft, Cancelling, Standing
from store.decisions import Question
from store.errors import LostRace


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Nothing leaves; the draft, its run and its effects are over."""


@dataclass(frozen=True, slots=True)
class _Canceller:
    subject: str
    counted_as: str


async def cancel(deps: Deciding, click: Click) -> Cancelled | NotDecided:
    """Cancel what the click's card approved; refused, nothing has changed.

    A database that is away, busy or lost in the commit becomes an answer, as in `decide`.
    """
    return await answer_in_time(partial(_try, deps, click), partial(_read_again, deps, click))


async def _try(deps: Deciding, click: Click, progress: Progress) -> Cancelled | NotDecided:
    token_hash = hash_token(click.token)
    for _ in range(RECOUNTS):
        async with deps.db.connection() as conn:
            question = await decisions.find_question(conn, token_hash)
            standing = await cancelling.find_cancelled(conn, token_hash)
        if question is None or standing is None:
            return NotDecided(Why.UNKNOWN_BUTTON)
        over = _why_not(question, standing, click)
        if over is not None:
            return await refuse(deps, click, question, over)
        canceller = await _judge(deps, click, question)
        if isinstance(canceller, NotAllowed):
            return await refuse(deps, click, question, NotDecided(canceller.reason))
        try:
            await _write(deps, click, question, canceller, progress)
        except LostRace:
            progress.committing = False
            continue  # It started, or moved, between reading and the locks: read again and say what.
        reach("cancel.after_commit")
        return Cancelled()
    return NotDecided(Why.EFFECT_MOVED)


def _why_not(question: Question, standing: Standing, click: Click) -> NotDecided | None:
    """Say why this can not be cancelled by this click; what happened comes before what the button is for."""
    if question.allows != Decision.CANCEL or not from_its_surface(question, click):
        return NotDecided(Why.WRONG_SURFACE)
    if standing.status == "cancelled" and standing.decision == "cancel":
        return NotDecided(Why.CANCELLED, standing.approver_subject, standing.consumed_at)
    if standing.is_started or standing.status == "sent":
        return NotDecided(Why.STARTED)
    if standing.status not in {"approved", "scheduled"}:
        return NotDecided(Why.EFFECT_MOVED)
    if not click.revision == question.revision == question.newest_revision:
        return NotDecided(Why.NEWER_REVISION)
    return None


async def _judge(deps: Deciding, click: Click, question: Question) -> _Canceller | NotAllowed:
    """Any of today's reviewers may, by facts at most 60 s old."""
    kind = deps.policy.kinds.get(question.kind)
    if kind is None:
        return NotAllowed(Why.KIND_GONE)
    groups = await deps.people.members(sorted({one for one in kind.reviewers if one.startswith("S")}))
    person = await deps.people.person(click.team_id, click.user_id)
    allowed = may_cancel(person, kind, groups, deps.home_team())
    return _Canceller(subject(person), allowed.via) if isinstance(allowed, Allowed) else allowed


async def _write(
    deps: Deciding, click: Click, question: Question, canceller: _Canceller, progress: Progress
) -> CancelledDraft:
    wanted = Cancelling(
        token_hash=hash_token(click.token),
        revision=click.revision,
        surface=click.surface,
        channel=click.channel,
        ts=click.ts,
        subject=canceller.subject,
    )
    async with deps.db.transaction() as conn:
        await heads.lock_heads(conn, [question.draft_key])
        done = await cancelling.cancel_draft(conn, wanted)
        detail = {
            "draft_id": str(question.draft_id),
            "revision": question.revision,
            "shown_hash": question.shown_hash,
            "counted_as": canceller.counted_as,
            "effects": done.effects,
        }
        line = audit.Entry(question.idempotency_key, canceller.subject, "cancelled", detail)
        await audit.append(conn, [line])
        reach("cancel.before_commit")
        progress.committing = True
    return done


async def _read_again(deps: Deciding, click: Click) -> Cancelled | NotDecided:
    """Find out what a commit did whose answer was lost; unless it is proven, say that it is not known."""
    token_hash, who = hash_token(click.token), f"slack:{click.team_id}:{click.user_id}"
    async with deps.db.connection() as conn:
        standing = await cancelling.find_cancelled(conn, token_hash)
    if standing is None or standing.decision != "cancel" or standing.token_hash != token_hash:
        return NotDecided(Why.NOT_KNOWN_YET)
    if standing.approver_subject == who:
        return Cancelled()
    return NotDecided(Why.CANCELLED, standing.approver_subject, standing.consumed_at)
