"""Clicks that come together share statements: one read of what they ask, one transaction of their votes.

Not here: whether a click may count (decide). A vote that comes alone, or on a draft that somebody else holds,
has a transaction of its own: no lock is ever waited for together.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from bot.flow.batches import Batcher
from bot.flow.checkpoints import reach
from store import audit, decisions, heads
from store.audit import Entry
from store.database import Database
from store.decisions import CastVote, Question, Vote, Voted
from store.errors import CommitUnknown, DatabaseAway, LostRace

TOGETHER: Final = 32  # Votes a transaction: more gain little, and what the first one waits for grows.
BESIDE_SECONDS: Final = 0.02  # So long the next ones wait for one that is alone; it may stand before a lock.


class _GivenUp(Exception):
    """Somebody was told that nothing was decided: this may not be committed any more."""


class Progress(Protocol):
    """Hears that the commit was begun; before that, running out of time means that nothing happened."""

    committing: bool


@dataclass(slots=True)
class Ballot:
    """One vote on its way, and the line that tells of it in the record."""

    draft_key: str
    vote: Vote
    line: Entry
    progress: Progress
    given_up: bool = False


Cast = Voted | asyncio.Task[Voted] | None


class Ballots:
    """The votes of one process."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._reads: Batcher[str, Question | None] = Batcher(self._read, TOGETHER)
        self._casts: Batcher[Ballot, Cast] = Batcher(self._cast, TOGETHER)

    async def question(self, token_hash: str) -> Question | None:
        """Read what a token asks; None for a token that was never ours. Raises DatabaseAway."""
        return await self._reads.add(token_hash)

    async def cast(self, ballot: Ballot) -> Voted:
        """Record one vote and what follows from it; whoever stops waiting before the commit undoes it.

        Raises:
            LostRace: nothing was changed; the question is over or has changed.
            CommitUnknown: the connection broke while committing.
            DatabaseAway, DatabaseBusy: nothing was changed.

        """
        try:
            cast = await self._casts.add(ballot)
            if isinstance(cast, Voted):
                return cast
            return await (self._alone(ballot) if cast is None else cast)
        except asyncio.CancelledError:
            ballot.given_up = True
            raise

    async def _read(self, token_hashes: Sequence[str]) -> Sequence[Question | None]:
        async with self._db.connection() as conn:
            found = await decisions.find_questions(conn, token_hashes)
        return [found.get(token_hash) for token_hash in token_hashes]

    async def _cast(self, ballots: Sequence[Ballot]) -> Sequence[Cast | Exception]:
        """Give what each vote did, or None: that it has to go alone."""
        if len(ballots) == 1:
            return [await self._go_ahead(ballots[0])]
        firsts = {ballot.draft_key: ballot for ballot in reversed(ballots)}
        try:
            done = await self._together(firsts)
        except CommitUnknown as fault:
            return [fault if ballot.progress.committing else None for ballot in ballots]
        except (DatabaseAway, _GivenUp):
            return [None] * len(ballots)
        answers: list[Cast | Exception] = []
        for one in ballots:
            answer = done.get(one.draft_key)
            if firsts[one.draft_key] is not one:
                # After a vote the next one would find that the draft moved, and is spared the attempt.
                answer = decisions.lost_vote() if isinstance(answer, Voted) else None
            answers.append(answer)
        return answers

    async def _go_ahead(self, ballot: Ballot) -> asyncio.Task[Voted]:
        """Let a vote go alone, and others beside it if it takes long."""
        task = asyncio.create_task(self._alone(ballot))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({task}, timeout=BESIDE_SECONDS)
        return task

    async def _together(self, ballots: Mapping[str, Ballot]) -> dict[str, Voted | LostRace]:
        """Cast votes on drafts of their own in one transaction, as far as their heads are free."""
        async with self._db.transaction(pipelined=True) as conn:
            free = await heads.lock_free_heads(conn, list(ballots))
            held = {draft_key: ballots[draft_key] for draft_key in free}
            voted = await decisions.cast_votes(conn, [ballot.vote for ballot in held.values()])
            lines = [one.line for one in held.values() if one.vote.token_hash in voted]
            await audit.append(conn, lines)
            _commit(*held.values())
        return {key: voted.get(one.vote.token_hash) or decisions.lost_vote() for key, one in held.items()}

    async def _alone(self, ballot: Ballot) -> Voted:
        async with self._db.transaction(pipelined=True) as conn:
            await heads.lock_head_unread(conn, ballot.draft_key)
            sent = await decisions.send_vote(conn, ballot.vote)
            await audit.append(conn, [ballot.line])
            voted: CastVote = await decisions.read_vote(sent)
            _commit(ballot)
        return voted


def _commit(*ballots: Ballot) -> None:
    """Last thing before the commit: nobody may have been told yet that nothing happened."""
    reach("decide.before_commit")
    if any(ballot.given_up for ballot in ballots):
        raise _GivenUp
    for ballot in ballots:
        ballot.progress.committing = True
