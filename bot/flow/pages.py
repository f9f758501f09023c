"""The modal a draft is read and decided in, drawn part by part, and who may have it opened for them.

Ground of open and next. Not here: which draft is opened, and after which click.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from bot.cards import reading
from bot.cards.blocks import Block, shown_hash
from bot.cards.views import Buttons, Pending, ReviewView
from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import ButtonValue, Decision, Surface, encode_value
from bot.flow.drawing import READ, changes
from bot.flow.life import Scene
from bot.flow.picture import review_view
from bot.policy.answering import may_answer, qualified_for
from bot.policy.kinds import Kind
from bot.policy.people import NotAllowed, Person, subject
from bot.policy.tokens import hash_token, mint_token
from store import tokens
from store.database import Database
from store.decisions import Question
from store.errors import DatabaseAway, DatabaseBusy
from store.showing import DraftCard
from store.tokens import TokenRow

IN_LINE: Final = "f" * 64  # Nothing was shown before it: the token that reads a draft out of the line.
NOTHING_TO_READ: Final = NotDecided(Why.SETTLED)


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


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads which part, after which click. `in_line`: others wait behind this draft."""

    holder: str
    click: Click
    part: int = 1
    in_line: bool = False


def away(fault: DatabaseAway) -> NotDecided:
    """What a person is told when the database is away or busy."""
    return NotDecided(Why.TOO_SLOW if isinstance(fault, DatabaseBusy) else Why.AWAY)


async def holder_of(deps: Opening, click: Click, question: Question) -> str | NotDecided:
    """Say who clicked, if they may answer such a question; whatever is unknown means no."""
    kind = deps.policy.kinds.get(question.kind)
    if kind is None:
        return NotDecided(Why.KIND_GONE)
    lists = (*question.snapshot["reviewers"], *kind.reviewers, *qualified_for(question, kind))
    listed = sorted({entry for entry in lists if entry.startswith("S")})
    person, groups = await deps.people.look_up(click.team_id, click.user_id, listed)
    allowed = may_answer(person, question, kind, groups, deps.home_team())
    return NotDecided(allowed.reason) if isinstance(allowed, NotAllowed) else subject(person)


async def open_part(deps: Opening, card: DraftCard, reader: Reader) -> Opened | NotDecided:
    """Draw the part that is wanted, with its tokens stored; of erased content there is nothing to read."""
    if card.body is None:
        return NOTHING_TO_READ
    view = review_view(card, Scene(actions_enabled=True, language=deps.language))
    parts = reading.part_count(view)
    wanted = replace(reader, part=min(max(reader.part, 1), parts))
    opened, minted = _draw_part(card, view, wanted, parts)
    async with deps.db.connection() as conn:
        await tokens.insert_tokens(conn, minted)
    return opened


def _draw_part(
    card: DraftCard, view: ReviewView, reader: Reader, parts: int
) -> tuple[Opened, list[TokenRow]]:
    """Draw one part with its buttons: what decides on the last, pages turn by a token of this view."""
    minted: dict[str, str] = {}
    values: dict[str, str] = {}
    if reader.click.surface is Surface.VIEW:
        values[READ] = encode_value(ButtonValue(reader.click.token, card.revision))
    elif parts > 1:
        minted[READ] = mint_token()
    if reader.part == parts and isinstance(view.state, Pending) and not card.is_expired:
        answers = (str(Decision.APPROVE), str(Decision.REJECT), *changes(card))
        minted |= {decision: mint_token() for decision in answers}
    values |= {name: encode_value(ButtonValue(token, card.revision)) for name, token in minted.items()}
    shown = _hash_of_all(replace(view, buttons=Buttons()), parts)
    drawn = reading.ReadView(replace(view, buttons=Buttons(**values)), reader.part, in_line=reader.in_line)
    rows = [
        view_token(card, name, token, holder=reader.holder, shown=shown) for name, token in minted.items()
    ]
    return Opened(reading.render(drawn)), rows


def _hash_of_all(view: ReviewView, parts: int) -> str:
    """What was read is the whole draft, so the hash is that of every part."""
    blocks = [
        block
        for part in range(1, parts + 1)
        for block in reading.render(reading.ReadView(view, part))["blocks"]
    ]
    return shown_hash(blocks)


def view_token(card: DraftCard, decision: str, token: str, *, holder: str, shown: str) -> TokenRow:
    """A button of one person's view, bound to what stands beside it and ending with the draft."""
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
