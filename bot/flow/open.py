"""Opens what a button asks for: the whole draft to read or edit, or a question (why rejected, what to redo).

Makes the tokens of views. Not here: opening the modal itself (bot/doors) or what its answer does (decide).
"""

from bot.cards import modals
from bot.cards.blocks import Block
from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import ButtonValue, Decision, Surface, encode_value
from bot.flow.drawing import READ
from bot.flow.forms import form_of
from bot.flow.pages import IN_LINE, NOTHING_TO_READ, Opened, Opening, Reader, away, holder_of, open_part
from bot.policy.answering import from_its_surface, why_over
from bot.policy.tokens import hash_token, mint_token
from store import decisions, editing, redrafts, showing, tokens
from store.decisions import Question
from store.errors import DatabaseAway
from store.showing import DraftCard
from store.tokens import TokenRow

__all__ = ["Opened", "Opening", "ask", "read"]


async def read(deps: Opening, click: Click, *, part: int = 1) -> Opened | NotDecided:
    """Give the whole draft to read, a part at a time; the last one decides, while that is possible.

    The click comes from a card's Read button or from one that turns pages; its `decision` is not looked at.
    A draft that was settled or is blocked can still be read.
    """
    try:
        return await _read(deps, click, part)
    except DatabaseAway as fault:
        return away(fault)


async def ask(deps: Opening, click: Click) -> Opened | NotDecided:
    """Give the modal that asks why (reject), what (redraft) or which entity (approve), or the form (edit).

    Nothing is decided yet. Its answer carries a token of this person's view alone, bound to the revision that
    the click was about.
    """
    try:
        return await _ask(deps, click)
    except DatabaseAway as fault:
        return away(fault)


async def _read(deps: Opening, click: Click, part: int) -> Opened | NotDecided:
    question, card = await _find(deps, click)
    if question is None or card is None:
        return NotDecided(Why.UNKNOWN_BUTTON)
    if question.allows != READ or not from_its_surface(question, click):
        return NotDecided(Why.WRONG_SURFACE)
    if not question.revision == click.revision == card.revision:
        return NotDecided(Why.NEWER_REVISION)
    holder = await holder_of(deps, click, question)
    if isinstance(holder, NotDecided):
        return holder
    in_line = question.shown_hash == IN_LINE
    return await open_part(deps, card, Reader(holder, click, part, in_line=in_line))


async def _ask(deps: Opening, click: Click) -> Opened | NotDecided:
    async with deps.db.connection() as conn:
        question = await decisions.find_question(conn, hash_token(click.token))
    if question is None:
        return NotDecided(Why.UNKNOWN_BUTTON)
    over = why_over(question, click)
    if over is not None:
        return over
    holder = await holder_of(deps, click, question)
    if isinstance(holder, NotDecided):
        return holder
    token = mint_token()
    view = await _window(deps, click, question, encode_value(ButtonValue(token, question.revision)))
    if isinstance(view, NotDecided):
        return view
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


async def _window(deps: Opening, click: Click, question: Question, value: str) -> Block | NotDecided:
    asked = modals.QuestionView(value, question.entity, deps.language)
    match click.decision:
        case Decision.REJECT:
            return modals.reject(asked)
        case Decision.EDIT:
            return await _form(deps, question, value)
        case Decision.REDRAFT:
            kind = deps.policy.kinds.get(question.kind)
            most = kind.redrafts if kind is not None and kind.drafts_here else 0
            async with deps.db.connection() as conn:
                used = await redrafts.count_redrafts(conn, question.draft_id)
            return modals.redraft(asked) if used < most else NotDecided(Why.REDRAFTS_USED_UP)
        case _:
            return modals.typed(asked)


async def _form(deps: Opening, question: Question, value: str) -> Block | NotDecided:
    async with deps.db.connection() as conn:
        stands = await editing.find_content(conn, question.draft_id, question.revision)
    if stands is None or stands.body is None:
        return NOTHING_TO_READ
    form = form_of(stands.body, question.snapshot)
    if not form.fields:
        return NotDecided(Why.NOT_EDITABLE)
    return modals.edit(modals.EditView(value, form, deps.language))


async def _find(deps: Opening, click: Click) -> tuple[Question | None, DraftCard | None]:
    async with deps.db.connection() as conn:
        question = await decisions.find_question(conn, hash_token(click.token))
        if question is None:
            return None, None
        found = await showing.read_draft_cards(conn, [question.draft_id])
    return question, found[0] if found else None
