"""One click becomes at most one decision: who, on what, tested and written in one transaction.

Not here: reading Slack's payload (bot/doors), judging the click (judging), or words (bot/cards/notices).
"""

from dataclasses import dataclass
from functools import partial

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision
from bot.flow.ballots import Ballot
from bot.flow.checkpoints import reach
from bot.flow.judging import RECOUNTS, Deciding, Judged, Progress, answer_in_time, weigh
from bot.policy.snapshot import effects_of
from bot.policy.tokens import hash_token
from store import audit, decisions
from store.decisions import Question, Vote, Voted
from store.errors import LostRace
from store.ids import new_id

__all__ = ["Decided", "Deciding", "decide"]


@dataclass(frozen=True, slots=True)
class Decided:
    """It counts; `voted.reached` says whether it decided."""

    voted: Voted
    decision: Decision


async def decide(deps: Deciding, click: Click) -> Decided | NotDecided:
    """Answer one click within the budget; whatever is refused has changed nothing.

    A database that is away, busy or lost in the commit becomes an answer, not an exception.
    """
    return await answer_in_time(partial(_try, deps, click), partial(_read_again, deps, click))


async def _try(deps: Deciding, click: Click, progress: Progress) -> Decided | NotDecided:
    for _ in range(RECOUNTS):
        weighed = await weigh(deps, click)
        if isinstance(weighed, NotDecided):
            return weighed
        question, judged = weighed.question, weighed.judged
        counts = (len(_counted(judged)), int(question.snapshot["quorum"]))
        if click.decision is Decision.APPROVE and judged.subject in question.voters and counts[0] < counts[1]:
            return NotDecided(Why.ALREADY_VOTED, counts=counts)
        vote, line = _vote(click, question, judged), _line(click, question, judged)
        ballot = Ballot(question.draft_key, vote, line, progress)
        try:
            voted = await deps.ballots.cast(ballot)
        except LostRace:
            progress.committing = False
            continue  # Something moved between reading and the lock: read again and say what.
        reach("decide.after_commit")
        return Decided(voted, click.decision)
    return NotDecided(Why.TOO_SLOW)


def _counted(judged: Judged) -> set[str]:
    """Whose votes count with this one: those of reviewers who left count again once they are back."""
    return {judged.subject, *judged.still_reviewers}


def _vote(click: Click, question: Question, judged: Judged) -> Vote:
    return Vote(
        token_hash=hash_token(click.token),
        revision=click.revision,
        decision=click.decision,
        surface=click.surface,
        channel=click.channel,
        ts=click.ts,
        subject=judged.subject,
        counted_as=judged.counted_as,
        reason=click.reason,
        considered=[*judged.considered, judged.subject],
        still_reviewers=list(judged.still_reviewers),
        effect_ids=sorted(new_id() for _ in effects_of(question.snapshot)),
    )


def _line(click: Click, question: Question, judged: Judged) -> audit.Entry:
    """Say what the vote will do if it counts: nobody else's vote can count that was not considered."""
    counted, quorum = _counted(judged), int(question.snapshot["quorum"])
    decides = click.decision is Decision.REJECT or len(counted) >= quorum
    done = {Decision.APPROVE: "approved", Decision.REJECT: "rejected"}[click.decision]
    detail = {
        "decision": str(click.decision),
        "draft_id": str(question.draft_id),
        "revision": question.revision,
        "body_hash": question.body_hash,
        "shown_hash": question.shown_hash,
        "counted_as": judged.counted_as,
        "votes": len(counted),
        "quorum": quorum,
        "surface": str(click.surface),
        **({"approvers": sorted(counted)} if decides and click.decision is Decision.APPROVE else {}),
        **({"reason": click.reason} if click.reason else {}),
    }
    return audit.Entry(question.idempotency_key, judged.subject, done if decides else "voted", detail)


async def _read_again(deps: Deciding, click: Click) -> Decided | NotDecided:
    """Find out what a commit did whose answer was lost; unless it is proven, say that it is not known."""
    who = f"slack:{click.team_id}:{click.user_id}"
    token_hash = hash_token(click.token)
    async with deps.db.connection() as conn:
        found = await decisions.find_decision(
            conn, token_hash=token_hash, subject=who, decision=click.decision
        )
        question = await decisions.find_question(conn, token_hash)
    if found is None or question is None or not found.voted:
        return NotDecided(Why.NOT_KNOWN_YET)
    voted = Voted(
        idempotency_key=question.idempotency_key,
        draft_id=question.draft_id,
        run_id=question.run_id,
        revision=question.revision,
        votes=max(1, len(question.voters)),
        quorum=int(question.snapshot["quorum"]),
        reached=found.decision is not None,
        shown_hash=question.shown_hash,
    )
    return Decided(voted, click.decision)
