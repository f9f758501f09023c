"""One click becomes at most one decision: who, on what, tested and written in one transaction.

Not here: reading Slack's payload (bot/doors) or the words of the answer (bot/cards/notices).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision
from bot.flow.checkpoints import reach
from bot.policy.answering import is_unconfirmed, may_answer, qualified_for, why_over
from bot.policy.kinds import Kind
from bot.policy.limits import CLICK_BUDGET_SECONDS
from bot.policy.people import Allowed, NotAllowed, Person, subject
from bot.policy.tokens import hash_token
from store import audit, decisions, heads
from store.database import Database
from store.decisions import Question, Vote, Voted
from store.errors import CommitUnknown, DatabaseAway, DatabaseBusy, LostRace
from store.ids import new_id

RE_READ_SECONDS: Final = 0.4  # Kept back from the budget, to read again what a lost commit did.
RECOUNTS: Final = (
    5  # Each recount means that another person voted in between; more voters than this is no quorum.
)


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


@dataclass(frozen=True, slots=True)
class Deciding:
    """What deciding needs."""

    db: Database
    people: Accounts
    policy: Kinds
    home_team: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Decided:
    """It counts; `voted.reached` says whether it decided."""

    voted: Voted
    decision: Decision


@dataclass(frozen=True, slots=True)
class Judged:
    """A click that may be tried: whose it is, what counted for them, and which votes still count."""

    subject: str
    counted_as: str
    considered: tuple[str, ...]
    still_reviewers: tuple[str, ...]


class _Progress:
    """Whether the commit was begun: before that, running out of time means that nothing happened."""

    committing = False


async def decide(deps: Deciding, click: Click) -> Decided | NotDecided:
    """Answer one click within the budget; whatever is refused has changed nothing.

    A database that is away, busy or lost in the commit becomes an answer, not an exception.
    """
    progress = _Progress()
    try:
        async with asyncio.timeout(CLICK_BUDGET_SECONDS - RE_READ_SECONDS):
            return await _try(deps, click, progress)
    except (TimeoutError, CommitUnknown):
        if progress.committing:
            return await _read_again(deps, click)
        return NotDecided(Why.TOO_SLOW)
    except DatabaseBusy:
        return NotDecided(Why.TOO_SLOW)
    except DatabaseAway:
        return NotDecided(Why.AWAY)


async def _try(deps: Deciding, click: Click, progress: _Progress) -> Decided | NotDecided:
    token_hash = hash_token(click.token)
    for _ in range(RECOUNTS):
        async with deps.db.connection() as conn:
            question = await decisions.find_question(conn, token_hash)
        if question is None:
            return NotDecided(Why.UNKNOWN_BUTTON)
        over = why_over(question, click)
        if over is not None:
            return await _refuse(deps, click, question, over)
        if is_unconfirmed(question, click):
            return NotDecided(Why.TYPED_WRONG)
        judged = await judge(deps, click.team_id, click.user_id, question)
        if isinstance(judged, NotAllowed):
            return await _refuse(deps, click, question, NotDecided(judged.reason))
        if click.decision is Decision.APPROVE and judged.subject in question.voters:
            counts = (len(judged.still_reviewers), int(question.snapshot["quorum"]))
            return NotDecided(Why.ALREADY_VOTED, counts=counts)
        try:
            voted = await _write(deps, click, question, judged, progress)
        except LostRace:
            progress.committing = False
            continue  # Something moved between reading and the lock: read again and say what.
        reach("decide.after_commit")
        return Decided(voted, click.decision)
    return NotDecided(Why.TOO_SLOW)


async def _write(
    deps: Deciding, click: Click, question: Question, judged: Judged, progress: _Progress
) -> Voted:
    answer = Vote(
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
        effect_id=new_id(),
    )
    line = _line(click, question, judged)
    async with deps.db.transaction(pipelined=True) as conn:
        await heads.lock_head_unread(conn, question.draft_key)
        sent = await decisions.send_vote(conn, answer)
        await audit.append(conn, [line])
        voted = await decisions.read_vote(sent)
        reach("decide.before_commit")
        progress.committing = True
    return voted


def _line(click: Click, question: Question, judged: Judged) -> audit.Entry:
    """Say what the vote will do if it counts: nobody else's vote can count that was not considered."""
    votes, quorum = 1 + len(judged.still_reviewers), int(question.snapshot["quorum"])
    decides = click.decision is Decision.REJECT or votes >= quorum
    done = {Decision.APPROVE: "approved", Decision.REJECT: "rejected"}[click.decision]
    detail = {
        "decision": str(click.decision),
        "draft_id": str(question.draft_id),
        "revision": question.revision,
        "body_hash": question.body_hash,
        "shown_hash": question.shown_hash,
        "counted_as": judged.counted_as,
        "votes": votes,
        "quorum": quorum,
        "surface": str(click.surface),
        **({"reason": click.reason} if click.reason else {}),
    }
    return audit.Entry(question.idempotency_key, judged.subject, done if decides else "voted", detail)


async def judge(deps: Deciding, team_id: str, user_id: str, question: Question) -> Judged | NotAllowed:
    """Tell whether this person may answer, by facts at most 60 s old, and whose votes still count."""
    kind = deps.policy.kinds.get(question.kind)
    if kind is None:
        return NotAllowed(Why.KIND_GONE)
    then, now = question.snapshot["reviewers"], kind.reviewers
    qualified = qualified_for(question, kind)
    listed = sorted({entry for entry in (*then, *now, *qualified) if entry.startswith("S")})
    voters = [(voter, *_team_and_user(voter)) for voter in question.voters]
    groups, people = await asyncio.gather(
        deps.people.members(listed),
        asyncio.gather(
            deps.people.person(team_id, user_id),
            *(deps.people.person(team, user) for _, team, user in voters),
        ),
    )
    person, others = people[0], people[1:]
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


def _team_and_user(voter: str) -> tuple[str, str]:
    _, team, user = voter.split(":")
    return team, user


async def _refuse(deps: Deciding, click: Click, question: Question, refusal: NotDecided) -> NotDecided:
    """Put a refusal on the record, in a transaction of its own: nothing else may hang on it."""
    who = f"slack:{click.team_id or '?'}:{click.user_id}"
    detail = {"decision": str(click.decision), "revision": click.revision, "why": str(refusal.why)}
    async with deps.db.transaction() as conn:
        await heads.lock_heads(conn, [question.draft_key])
        await audit.append(conn, [audit.Entry(question.idempotency_key, who, "refused", detail)])
    return refusal


async def _read_again(deps: Deciding, click: Click) -> Decided | NotDecided:
    """Find out what a commit did whose answer was lost; unless it is proven, say that it is not known."""
    who = f"slack:{click.team_id}:{click.user_id}"
    token_hash = hash_token(click.token)
    try:
        async with asyncio.timeout(RE_READ_SECONDS), deps.db.connection() as conn:
            found = await decisions.find_decision(
                conn, token_hash=token_hash, subject=who, decision=click.decision
            )
            question = await decisions.find_question(conn, token_hash)
    except (TimeoutError, DatabaseAway):
        return NotDecided(Why.NOT_KNOWN_YET)
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
