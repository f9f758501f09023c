"""What every answer of a person goes through: question, surface and person are judged, the budget is kept.

Ground of decide, edit, redraft and cancel. Not here: what an answer does, or the rules.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from bot.contracts.answer import Click, NotDecided, Why
from bot.flow.ballots import Ballots
from bot.policy.answering import is_unconfirmed, may_answer, qualified_for, why_over
from bot.policy.kinds import Kind
from bot.policy.limits import CLICK_BUDGET_SECONDS
from bot.policy.people import Allowed, NotAllowed, Person, subject
from bot.policy.tokens import hash_token
from store import audit, heads
from store.database import Database
from store.decisions import Question
from store.errors import CommitUnknown, DatabaseAway, DatabaseBusy

RE_READ_SECONDS: Final = 0.4  # Kept back from the budget, to read again what a lost commit did.
RECOUNTS: Final = (
    5  # Each recount means that another person voted in between; more voters than this is no quorum.
)

T = TypeVar("T")


class Accounts(Protocol):
    """Who a person is and who stands in groups (bot/slack/people)."""

    async def person(self, team_id: str | None, user_id: str) -> Person:
        """Give what is known of one account."""
        ...

    async def members(self, group_ids: list[str]) -> Mapping[str, frozenset[str] | None]:
        """Give the members of each group, None where unreadable."""
        ...


class Kinds(Protocol):
    """Today's policy (bot/wiring)."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds by name."""
        ...


@dataclass(slots=True)
class Deciding:
    """What deciding needs; `ballots` are this process's votes on their way."""

    db: Database
    people: Accounts
    policy: Kinds
    home_team: Callable[[], str]
    ballots: Ballots = field(init=False)

    def __post_init__(self) -> None:
        """Take votes to that database."""
        self.ballots = Ballots(self.db)


@dataclass(frozen=True, slots=True)
class Judged:
    """A click that may be tried: whose it is, what counted for them, and which votes still count."""

    subject: str
    counted_as: str
    considered: tuple[str, ...]
    still_reviewers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Weighed:
    """An open question, and somebody who may answer it."""

    question: Question
    judged: Judged


class Progress:
    """Whether the commit was begun: before that, running out of time means that nothing happened."""

    committing = False


async def answer_in_time(
    work: Callable[[Progress], Awaitable[T]], read_again: Callable[[], Awaitable[T | NotDecided]]
) -> T | NotDecided:
    """Do the work of one click within its budget; whatever is refused has changed nothing.

    A database that is away, busy or lost in the commit becomes an answer, no exception. `read_again` tells
    what a commit did whose answer was lost.
    """
    progress = Progress()
    try:
        async with asyncio.timeout(CLICK_BUDGET_SECONDS - RE_READ_SECONDS):
            return await work(progress)
    except (TimeoutError, CommitUnknown):
        if not progress.committing:
            return NotDecided(Why.TOO_SLOW)
    except DatabaseBusy:
        return NotDecided(Why.TOO_SLOW)
    except DatabaseAway:
        return NotDecided(Why.AWAY)
    try:
        async with asyncio.timeout(RE_READ_SECONDS):
            return await read_again()
    except (TimeoutError, DatabaseAway):
        return NotDecided(Why.NOT_KNOWN_YET)


async def weigh(deps: Deciding, click: Click) -> Weighed | NotDecided:
    """Say what a click asks and whether it may be tried; a refusal goes on the record."""
    question = await deps.ballots.question(hash_token(click.token))
    if question is None:
        return NotDecided(Why.UNKNOWN_BUTTON)
    over = why_over(question, click)
    if over is not None:
        return await refuse(deps, click, question, over)
    if is_unconfirmed(question, click):
        return NotDecided(Why.TYPED_WRONG)
    judged = await judge(deps, click.team_id, click.user_id, question)
    if isinstance(judged, NotAllowed):
        return await refuse(deps, click, question, NotDecided(judged.reason))
    return Weighed(question, judged)


async def judge(deps: Deciding, team_id: str, user_id: str, question: Question) -> Judged | NotAllowed:
    """Tell whether this person may answer, by facts at most 60 s old, and whose votes still count."""
    kind = deps.policy.kinds.get(question.kind)
    if kind is None:
        return NotAllowed(Why.KIND_GONE)
    then, now = question.snapshot["reviewers"], kind.reviewers
    qualified = qualified_for(question, kind)
    listed = sorted({entry for entry in (*then, *now, *qualified) if entry.startswith("S")})
    voters = [(voter, *_team_and_user(voter)) for voter in question.voters]
    groups, person, others = await _look_up(
        deps.people, listed, (team_id, user_id), [(t, u) for _, t, u in voters]
    )
    home = deps.home_team()
    allowed = may_answer(person, question, kind, groups, home)
    if isinstance(allowed, NotAllowed):
        return allowed
    still = [
        voter
        for (voter, _, _), other in zip(voters, others, strict=True)
        if isinstance(may_answer(other, question, kind, groups, home), Allowed)
    ]
    return Judged(subject(person), allowed.via, tuple(question.voters), tuple(still))


async def _look_up(
    accounts: Accounts, groups: list[str], clicker: tuple[str, str], voters: list[tuple[str, str]]
) -> tuple[Mapping[str, frozenset[str] | None], Person, Sequence[Person]]:
    """Ask for all of them at the same time; one person alone needs no tasks."""
    if not groups and not voters:
        return {}, await accounts.person(*clicker), ()
    members, people = await asyncio.gather(
        accounts.members(groups), asyncio.gather(*(accounts.person(*each) for each in (clicker, *voters)))
    )
    return members, people[0], people[1:]


def _team_and_user(voter: str) -> tuple[str, str]:
    _, team, user = voter.split(":")
    return team, user


async def refuse(deps: Deciding, click: Click, question: Question, refusal: NotDecided) -> NotDecided:
    """Put a refusal on the record, in a transaction of its own: nothing else may hang on it."""
    who = f"slack:{click.team_id or '?'}:{click.user_id}"
    detail = {"decision": str(click.decision), "revision": click.revision, "why": str(refusal.why)}
    async with deps.db.transaction() as conn:
        await heads.lock_heads(conn, [question.draft_key])
        await audit.append(conn, [audit.Entry(question.idempotency_key, who, "refused", detail)])
    return refusal
