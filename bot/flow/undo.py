"""Takes back what was delivered: one transaction that puts the policy's reversal into the outbox, once.

Not here: sending it (dispatch, as any effect), stopping what has not left (cancel), or Slack (bot/doors).
"""

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision
from bot.flow.checkpoints import reach
from bot.flow.judging import RECOUNTS, Deciding, Progress, answer_in_time, refuse
from bot.policy.answering import from_its_surface, may_undo
from bot.policy.people import Allowed, NotAllowed, subject
from bot.policy.tokens import hash_token
from store import audit, decisions, heads, settling, undoing
from store.decisions import Question
from store.errors import LostRace
from store.undoing import Undo, Undoable


@dataclass(frozen=True, slots=True)
class Undoing:
    """The reversal is on its way; the run stays as it is."""


@dataclass(frozen=True, slots=True)
class _Undoer:
    subject: str
    counted_as: str


async def undo(deps: Deciding, click: Click) -> Undoing | NotDecided:
    """Take back the effect that the click's button names; refused, nothing has changed.

    A database that is away, busy or lost in the commit becomes an answer, as in `decide`.
    """
    return await answer_in_time(partial(_try, deps, click), partial(_read_again, deps, click))


async def _try(deps: Deciding, click: Click, progress: Progress) -> Undoing | NotDecided:
    token_hash = hash_token(click.token)
    for _ in range(RECOUNTS):
        async with deps.db.connection() as conn:
            question = await decisions.find_question(conn, token_hash)
            standing = await undoing.find_undone(conn, token_hash)
        if question is None:
            return NotDecided(Why.UNKNOWN_BUTTON)
        over = _why_not(question, standing, click)
        if over is not None:
            return await refuse(deps, click, question, over)
        undoer = await _judge(deps, click, question)
        if isinstance(undoer, NotAllowed):
            return await refuse(deps, click, question, NotDecided(undoer.reason))
        try:
            await _write(deps, click, question, undoer, progress)
        except LostRace:
            progress.committing = False
            continue  # Somebody else asked, between reading and the lock: read again and say so.
        reach("undo.after_commit")
        return Undoing()
    return NotDecided(Why.NOT_UNDOABLE)


def _why_not(question: Question, standing: Undoable | None, click: Click) -> NotDecided | None:
    """Say why this click takes nothing back; what happened comes before what the button is for."""
    if question.allows != Decision.UNDO or standing is None or not from_its_surface(question, click):
        return NotDecided(Why.WRONG_SURFACE)
    if standing.undo_id is not None:
        return NotDecided(Why.UNDONE, standing.undo_by, standing.undo_at)
    settled = standing.state == "completed" and standing.status in {"sent", "failed"}
    if not settled or standing.is_open:
        return NotDecided(Why.NOT_UNDOABLE)
    if click.revision != question.revision:
        return NotDecided(Why.WRONG_SURFACE)
    return None


async def _judge(deps: Deciding, click: Click, question: Question) -> _Undoer | NotAllowed:
    """Whoever may decide today may, alone, by facts at most 60 s old."""
    kind = deps.policy.kinds.get(question.kind)
    if kind is None:
        return NotAllowed(Why.KIND_GONE)
    listed = {one for one in (*kind.reviewers, *kind.qualified) if one.startswith("S")}
    groups = await deps.people.members(sorted(listed))
    person = await deps.people.person(click.team_id, click.user_id)
    allowed = may_undo(person, kind, groups, deps.home_team())
    return _Undoer(subject(person), allowed.via) if isinstance(allowed, Allowed) else allowed


async def _write(
    deps: Deciding, click: Click, question: Question, undoer: _Undoer, progress: Progress
) -> UUID:
    wanted = Undo(
        token_hash=hash_token(click.token),
        revision=click.revision,
        surface=click.surface,
        channel=click.channel,
        ts=click.ts,
        subject=undoer.subject,
    )
    async with deps.db.transaction() as conn:
        await heads.lock_heads(conn, [question.draft_key])
        done, undo_id = await undoing.undo_effect(conn, wanted)
        await settling.lock_runs(conn, [done.run_id])
        detail = {
            "draft_id": str(question.draft_id),
            "revision": question.revision,
            "effect_id": str(undo_id),
            "effect_type": done.effect_type,
            "undoes": str(done.effect_id),
            "shown_hash": done.shown_hash,
            "counted_as": undoer.counted_as,
        }
        line = audit.Entry(question.idempotency_key, undoer.subject, "undo_asked", detail)
        await audit.append(conn, [line])
        reach("undo.before_commit")
        progress.committing = True
    return undo_id


async def _read_again(deps: Deciding, click: Click) -> Undoing | NotDecided:
    """Find out what a commit did whose answer was lost; unless it is proven, say that it is not known."""
    who = f"slack:{click.team_id}:{click.user_id}"
    async with deps.db.connection() as conn:
        standing = await undoing.find_undone(conn, hash_token(click.token))
    if standing is None or standing.undo_id is None:
        return NotDecided(Why.NOT_KNOWN_YET)
    if standing.undo_by == who:
        return Undoing()
    return NotDecided(Why.UNDONE, standing.undo_by, standing.undo_at)
