"""Opens what a button asks for: the whole draft to read, or a question (why rejected, the typed approval).

Makes the tokens of views. Not here: opening the modal itself (bot/doors) or what its answer does (decide).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from bot.cards import modals, reading
from bot.cards.blocks import Block, shown_hash
from bot.cards.views import Buttons, Pending, ReviewView
from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import ButtonValue, Decision, Surface, encode_value
from bot.flow.drawing import READ
from bot.flow.picture import Scene, review_view
from bot.policy.answering import from_its_surface, may_answer, qualified_for, why_over
from bot.policy.kinds import Kind
from bot.policy.people import NotAllowed, Person, subject
from bot.policy.tokens import hash_token, mint_token
from store import decisions, showing, tokens
from store.database import Database
from store.decisions import Question
from store.errors import DatabaseAway, DatabaseBusy
from store.showing import DraftCard
from store.tokens import TokenRow


class Accounts(Protocol):
    """Who a person is and who stands in groups (bot/slack/people)."""

    async def look_up(
        self, team_id: str | None, user_id: str, group_ids: list[str]
    ) -> tuple[Person, Mapping[str, frozenset[str] | None]]:
        """Give what is known of one account, and the members of each group, None where unreadable."""
        ...


class Kinds(Protocol):
    """Today's policy (bot/wiring)."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds by name."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """What opening needs."""

    db: Database
    people: Accounts
    policy: Kinds
    home_team: Callable[[], str]
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Opened:
    """The view to open, with its tokens already stored."""

    view: Block = field(repr=False)


_NOTHING_TO_READ: Final = NotDecided(Why.SETTLED)


async def read(deps: Opening, click: Click, *, part: int = 1) -> Opened | NotDecided:
    """Give the whole draft to read, a part at a time; the last one decides, while that is possible.

    The click comes from a card's Read button or from one that turns pages; its `decision` is not looked at.
    A draft that was settled or is blocked can still be read.
    """
    try:
        return await _read(deps, click, part)
    except DatabaseAway as fault:
        return _away(fault)


async def ask(deps: Opening, click: Click) -> Opened | NotDecided:
    """Give the modal that asks why (reject) or for the entity to be typed (approve); nothing is decided yet.

    Its answer carries a token of this person's view alone, bound to the revision that the click was about.
    """
    try:
        return await _ask(deps, click)
    except DatabaseAway as fault:
        return _away(fault)


def _away(fault: DatabaseAway) -> NotDecided:
    return NotDecided(Why.TOO_SLOW if isinstance(fault, DatabaseBusy) else Why.AWAY)


async def _read(deps: Opening, click: Click, part: int) -> Opened | NotDecided:
    question, card = await _find(deps, click)
    if question is None or card is None:
        return NotDecided(Why.UNKNOWN_BUTTON)
    if question.allows != READ or not from_its_surface(question, click):
        return NotDecided(Why.WRONG_SURFACE)
    if not question.revision == click.revision == card.revision:
        return NotDecided(Why.NEWER_REVISION)
    holder = await _holder(deps, click, question)
    if isinstance(holder, NotDecided):
        return holder
    view = review_view(card, Scene(actions_enabled=True, language=deps.language))
    if card.body is None:
        return _NOTHING_TO_READ
    parts = reading.part_count(view)
    opened, minted = _draw_part(card, view, _Turn(holder, click, min(max(part, 1), parts), parts))
    async with deps.db.connection() as conn:
        await tokens.insert_tokens(conn, minted)
    return opened


async def _ask(deps: Opening, click: Click) -> Opened | NotDecided:
    async with deps.db.connection() as conn:
        question = await decisions.find_question(conn, hash_token(click.token))
    if question is None:
        return NotDecided(Why.UNKNOWN_BUTTON)
    over = why_over(question, click)
    if over is not None:
        return over
    holder = await _holder(deps, click, question)
    if isinstance(holder, NotDecided):
        return holder
    token = mint_token()
    asked = modals.QuestionView(
        encode_value(ButtonValue(token, question.revision)), question.entity, deps.language
    )
    view = modals.reject(asked) if click.decision is Decision.REJECT else modals.typed(asked)
    row = TokenRow(
        token_hash=hash_token(token),
        approval_id=question.approval_id,
        revision=question.revision,
        decision=click.decision,
        surface=Surface.VIEW,
        # What they decide on is what the clicked surface showed them: its hash goes on the record.
        shown_hash=question.shown_hash,
        expires_at=None,  # It ends with the question, whose own end every decision tests.
        holder=holder,
    )
    async with deps.db.connection() as conn:
        await tokens.insert_tokens(conn, [row])
    return Opened(view)


async def _find(deps: Opening, click: Click) -> tuple[Question | None, DraftCard | None]:
    async with deps.db.connection() as conn:
        question = await decisions.find_question(conn, hash_token(click.token))
        if question is None:
            return None, None
        found = await showing.read_draft_cards(conn, [question.draft_id])
    return question, found[0] if found else None


async def _holder(deps: Opening, click: Click, question: Question) -> str | NotDecided:
    """Say who clicked, if they may answer such a question; whatever is unknown means no."""
    kind = deps.policy.kinds.get(question.kind)
    if kind is None:
        return NotDecided(Why.KIND_GONE)
    lists = (*question.snapshot["reviewers"], *kind.reviewers, *qualified_for(question, kind))
    listed = sorted({entry for entry in lists if entry.startswith("S")})
    person, groups = await deps.people.look_up(click.team_id, click.user_id, listed)
    allowed = may_answer(person, question, kind, groups, deps.home_team())
    return NotDecided(allowed.reason) if isinstance(allowed, NotAllowed) else subject(person)


@dataclass(frozen=True, slots=True)
class _Turn:
    """Which part of how many is shown to whom, after which click."""

    holder: str
    click: Click
    part: int
    parts: int


def _draw_part(card: DraftCard, view: ReviewView, turn: _Turn) -> tuple[Opened, list[TokenRow]]:
    """Draw one part with its buttons: Approve and Reject on the last, pages turn by a token of this view."""
    minted: dict[str, str] = {}
    values: dict[str, str] = {}
    if turn.click.surface is Surface.VIEW:
        values[READ] = encode_value(ButtonValue(turn.click.token, card.revision))
    elif turn.parts > 1:
        minted[READ] = mint_token()
    if turn.part == turn.parts and isinstance(view.state, Pending) and not card.is_expired:
        minted |= {str(decision): mint_token() for decision in (Decision.APPROVE, Decision.REJECT)}
    values |= {name: encode_value(ButtonValue(token, card.revision)) for name, token in minted.items()}
    shown = _hash_of_all(replace(view, buttons=Buttons()), turn.parts)
    opened = Opened(reading.render(reading.ReadView(replace(view, buttons=Buttons(**values)), turn.part)))
    rows = [_row(card, name, token, holder=turn.holder, shown=shown) for name, token in minted.items()]
    return opened, rows


def _hash_of_all(view: ReviewView, parts: int) -> str:
    """What was read is the whole draft, so the hash is that of every part."""
    blocks = [
        block
        for part in range(1, parts + 1)
        for block in reading.render(reading.ReadView(view, part))["blocks"]
    ]
    return shown_hash(blocks)


def _row(card: DraftCard, decision: str, token: str, *, holder: str, shown: str) -> TokenRow:
    asked = card.approval_id or card.newest_approval_id
    if asked is None:
        raise AssertionError("unreachable: a button was clicked, so there was a question")
    return TokenRow(
        token_hash=hash_token(token),
        approval_id=asked,
        revision=card.revision,
        decision=decision,
        surface=Surface.VIEW,
        shown_hash=shown,
        expires_at=card.expires_at,
        holder=holder,
    )
