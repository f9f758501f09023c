"""Opens the draft that is next in line behind a channel's queue card, for somebody who may decide on it.

Not here: who gets a card of their own (places), or the modal's other buttons (open, decide).
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision, Surface
from bot.flow.drawing import READ
from bot.flow.pages import IN_LINE, Opened, Opening, Reader, away, holder_of, open_part, view_token
from bot.policy.answering import from_its_surface
from bot.policy.people import Allowed, Bar, NotAllowed, Person, check_account, find_member, subject
from bot.policy.tokens import hash_token, mint_token
from store import decisions, queue, showing, tokens
from store.database import Database
from store.errors import DatabaseAway
from store.queue import Line
from store.showing import DraftCard

LOOKED_AT: Final = 5  # Of those that are next: each may have had other reviewers when it opened.


@dataclass(frozen=True, slots=True)
class Wanted:
    """Who wants the next draft of which channel; in a modal, `passed` is the click that passes one over."""

    team_id: str
    user_id: str
    channel: str | None = None
    passed: Click | None = None


async def open_next(deps: Opening, wanted: Wanted) -> Opened | NotDecided:
    """Give the modal of the draft that expires first among those that wait and this person may decide on.

    Its tokens are of this person's view alone. Who has voted on a draft is not asked again; a draft that is
    passed over comes back with the next click on the queue card.
    """
    try:
        return await _open_next(deps, wanted)
    except DatabaseAway as fault:
        return away(fault)


async def _open_next(deps: Opening, wanted: Wanted) -> Opened | NotDecided:
    after = await _passed_over(deps.db, wanted.passed) if wanted.passed else None
    channel = after.channel if after else wanted.channel
    if channel is None:
        return NotDecided(Why.UNKNOWN_BUTTON)
    reviewed = await _kinds_of(deps, wanted)
    if isinstance(reviewed, NotDecided):
        return reviewed
    person, kinds = reviewed
    line = Line(channel, kinds, subject(person), after.draft_id if after else None)
    async with deps.db.connection() as conn:
        found = await queue.list_next(conn, line, most=LOOKED_AT)
    for draft_id in found:
        opened = await _open(deps, wanted, draft_id, subject(person))
        if isinstance(opened, Opened):
            return opened
    return NotDecided(Why.NONE_WAITING)


async def _passed_over(db: Database, click: Click) -> DraftCard | None:
    """The draft before the person, by the token of their own view."""
    async with db.connection() as conn:
        question = await decisions.find_question(conn, hash_token(click.token))
        if question is None or not from_its_surface(question, click):
            return None
        found = await showing.read_draft_cards(conn, [question.draft_id])
    return found[0] if found else None


async def _kinds_of(deps: Opening, wanted: Wanted) -> tuple[Person, list[str]] | NotDecided:
    """The person and the kinds they may review today; whatever is unknown means no."""
    kinds = deps.policy.kinds
    listed = {entry for kind in kinds.values() for entry in kind.reviewers if entry.startswith("S")}
    person, groups = await deps.people.look_up(wanted.team_id, wanted.user_id, sorted(listed))
    barred = check_account(person, home_team=deps.home_team())
    if barred is not None:
        return NotDecided(barred.reason)
    found = {name: find_member(person, kind.reviewers, groups=groups) for name, kind in kinds.items()}
    reviewed = [name for name, member in found.items() if isinstance(member, Allowed)]
    if reviewed:
        return person, reviewed
    reasons = {member.reason for member in found.values() if isinstance(member, NotAllowed)}
    return NotDecided(Bar.GROUP_UNREADABLE if Bar.GROUP_UNREADABLE in reasons else Bar.NOT_REVIEWER)


async def _open(deps: Opening, wanted: Wanted, draft_id: UUID, holder: str) -> Opened | NotDecided:
    """Open one draft, by a token to read it that is made for this view."""
    async with deps.db.connection() as conn:
        found = await showing.read_draft_cards(conn, [draft_id])
    if not found or found[0].approval_id is None:
        return NotDecided(Why.SETTLED)
    card, token = found[0], mint_token()
    click = Click(
        token=token,
        revision=card.revision,
        decision=Decision.APPROVE,  # Whatever it says: reading does not look at it.
        team_id=wanted.team_id,
        user_id=wanted.user_id,
        surface=Surface.VIEW,
    )
    async with deps.db.connection() as conn:
        await tokens.insert_tokens(conn, [view_token(card, READ, token, holder=holder, shown=IN_LINE)])
        question = await decisions.find_question(conn, hash_token(token))
    if question is None:
        return NotDecided(Why.SETTLED)
    allowed = await holder_of(deps, click, question)
    if isinstance(allowed, NotDecided):
        return allowed
    return await open_part(deps, card, Reader(holder, click, in_line=True))
