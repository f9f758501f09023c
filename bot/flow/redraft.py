"""A person asks the model for another revision: the wish is kept, and until it is closed nobody decides.

Not here: fulfilling it (redrafter) or opening the window that asks (open).
"""

from dataclasses import dataclass
from functools import partial

from bot.contracts.answer import Click, NotDecided, Why
from bot.flow.checkpoints import reach
from bot.flow.judging import RECOUNTS, Deciding, Progress, Weighed, answer_in_time, weigh
from bot.policy.tokens import hash_token
from store import audit, heads, redrafts
from store.errors import LostRace
from store.rows import Spending


@dataclass(frozen=True, slots=True)
class Wished:
    """The wish is kept; a worker takes it from here."""


async def ask(deps: Deciding, click: Click) -> Wished | NotDecided:
    """Keep the wish that the click gives as its reason; refused, nothing has changed.

    A database that is away, busy or lost in the commit becomes an answer, as in `decide`.
    """
    return await answer_in_time(partial(_try, deps, click), partial(_read_again, deps, click))


async def _try(deps: Deciding, click: Click, progress: Progress) -> Wished | NotDecided:
    for _ in range(RECOUNTS):
        weighed = await weigh(deps, click)
        if isinstance(weighed, NotDecided):
            return weighed
        question = weighed.question
        kind = deps.policy.kinds.get(question.kind)
        most = kind.redrafts if kind is not None and kind.drafts_here else 0
        async with deps.db.connection() as conn:
            if await redrafts.count_redrafts(conn, question.draft_id) >= most:
                return NotDecided(Why.REDRAFTS_USED_UP)
        try:
            await _write(deps, click, weighed, most, progress)
        except LostRace:
            progress.committing = False
            continue  # Something moved between reading and the lock: read again and say what.
        reach("redraft.after_ask_commit")
        return Wished()
    return NotDecided(Why.UNKNOWN_BUTTON)  # A window asks once; its card can open another.


async def _write(deps: Deciding, click: Click, weighed: Weighed, most: int, progress: Progress) -> None:
    question, who = weighed.question, weighed.judged
    spending = Spending(hash_token(click.token), click.revision, click.surface, who.subject)
    async with deps.db.transaction() as conn:
        await heads.lock_heads(conn, [question.draft_key])
        redraft_id = await redrafts.open_redraft(conn, spending, wish=click.reason or "", most=most)
        detail = {
            "draft_id": str(question.draft_id),
            "revision": question.revision,
            "redraft_id": str(redraft_id),
            "shown_hash": question.shown_hash,
            "counted_as": who.counted_as,
        }
        line = audit.Entry(question.idempotency_key, who.subject, "redraft_asked", detail)
        await audit.append(conn, [line])
        progress.committing = True


async def _read_again(deps: Deciding, click: Click) -> Wished | NotDecided:
    """Find out what a commit did whose answer was lost; unless it is proven, say that it is not known."""
    who = f"slack:{click.team_id}:{click.user_id}"
    spending = Spending(hash_token(click.token), click.revision, click.surface, who)
    async with deps.db.connection() as conn:
        kept = await redrafts.find_redraft_by(conn, spending)
    return NotDecided(Why.NOT_KNOWN_YET) if kept is None else Wished()
