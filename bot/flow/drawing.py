"""Draws one card whole, with a fresh token for each button it has.

Ground of show. Not here: what is true (picture), what it looks like (bot/cards), or posting it (posting).
"""

from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from bot.cards import queue, review, unknown
from bot.cards.blocks import Block, actions, button, outside, phrase, rich, section, shown_hash
from bot.cards.draft import title_of
from bot.cards.facts import block_id
from bot.cards.status import may_cancel, state_title
from bot.cards.views import Approved, Buttons, Pending, ReviewView
from bot.cards.words import say
from bot.contracts.click import READ_ACTION, ButtonValue, Decision, Surface, encode_value
from bot.flow.forms import form_of
from bot.flow.life import Scene
from bot.flow.picture import review_view, unknown_view
from bot.policy.tokens import hash_token, mint_token
from store.queue import QueueCard
from store.showing import DraftCard, EffectCard
from store.tokens import TokenRow

READ: Final = "read"  # What a token allows that opens the whole draft and decides nothing.
# These outlive the question: what was decided can be read, and stopped until it has started, and taken back.
_KEPT: Final = frozenset({READ, str(Decision.CANCEL), str(Decision.UNDO)})


@dataclass(frozen=True, slots=True)
class Drawing:
    """A card ready for Slack. The blocks hold the tokens, the rows only their hashes."""

    text: str
    blocks: list[Block] = field(repr=False)
    shown_hash: str
    tokens: tuple[TokenRow, ...] = ()


def draw(card: DraftCard | EffectCard | QueueCard, scene: Scene, *, plain: bool = False) -> Drawing:
    """Draw the card. `plain`: Slack refused the whole one, so only its headline, and never Approve."""
    if isinstance(card, DraftCard):
        return _draw_draft(card, scene, plain=plain)
    if isinstance(card, QueueCard):
        return _draw_queue(card, scene)
    return _draw_effect(card, scene, plain=plain)


def _draw_draft(card: DraftCard, scene: Scene, *, plain: bool) -> Drawing:
    view = review_view(card, scene)
    whole = not plain and review.fits(view)
    tokens = {decision: mint_token() for decision in _buttons(card, view, whole=whole)}
    values = {name: encode_value(ButtonValue(token, card.revision)) for name, token in tokens.items()}
    undos = {effect_id: mint_token() for effect_id in _undoable(card, view)}
    undo_values = {one: encode_value(ButtonValue(token, card.revision)) for one, token in undos.items()}
    view = replace(view, buttons=Buttons(**values), undo=tuple(undo_values.items()))
    blocks = _plain(view) if plain else review.render(view)
    shown = shown_hash(blocks)
    rows = tuple(_row(card, decision, token, shown) for decision, token in tokens.items())
    taken_back = tuple(
        replace(_row(card, Decision.UNDO, token, shown), effect_id=one) for one, token in undos.items()
    )
    return Drawing(review.fallback(view), blocks, shown, (*rows, *taken_back))


def _buttons(card: DraftCard, view: ReviewView, *, whole: bool) -> list[str]:
    """Which buttons the card has. Approve only beside all there is to read (SPEC section 9)."""
    if card.newest_approval_id is None or card.body is None:
        return []
    found = [] if whole else [READ]
    if isinstance(view.state, Pending) and not card.is_expired:
        found += [str(Decision.APPROVE), str(Decision.REJECT)] if whole else [str(Decision.REJECT)]
        found += changes(card)
    if may_cancel(view.state) and not any(effect.ambiguous_at for effect in card.effects):
        found.append(str(Decision.CANCEL))
    return found


def changes(card: DraftCard) -> list[str]:
    """Which ways there are to another revision, wherever it is decided: on the card, in a view, at Home."""
    found = [str(Decision.EDIT)] if form_of(card.body or {}, card.snapshot).fields else []
    return [*found, str(Decision.REDRAFT)] if _may_redraft(card) else found


def _undoable(card: DraftCard, view: ReviewView) -> list[UUID]:
    """Which effects have an undo button."""
    if card.newest_approval_id is None or not isinstance(view.state, Approved):
        return []
    return [part.effect_id for part in view.state.parts if part.undo is not None]


def _may_redraft(card: DraftCard) -> bool:
    """Whether the kind drafts here by the frozen terms and allows one more; the policy may now say less."""
    drafts_here = card.snapshot.get("prompt_version") is not None
    return drafts_here and card.redrafts_used < int(card.snapshot.get("redrafts", 0))


def _row(card: DraftCard, decision: str, token: str, shown: str) -> TokenRow:
    asked = card.approval_id or card.newest_approval_id
    if asked is None:
        raise AssertionError("unreachable: no button is drawn without a question")
    return TokenRow(
        token_hash=hash_token(token),
        approval_id=asked,
        revision=card.revision,
        decision=decision,
        surface=Surface.MESSAGE,
        shown_hash=shown,
        expires_at=None if decision in _KEPT else card.expires_at,
        card_id=card.card_id,
    )


def _plain(view: ReviewView) -> list[Block]:
    headline = section(
        [
            *phrase(view.language, state_title(view.state)),
            outside(f" {title_of(view.kind)} · {view.entity}", limit=200),
        ]
    )
    read = view.buttons.read
    buttons = [button(READ_ACTION, say(view.language, "button.read"), read)] if read else []
    return [rich(block_id(view, "plain"), headline), *actions(block_id(view, "actions"), buttons)]


def _draw_effect(card: EffectCard, scene: Scene, *, plain: bool) -> Drawing:
    view = unknown_view(card, scene)
    blocks = unknown.render(replace(view, sent=()) if plain else view)
    return Drawing(unknown.fallback(view), blocks, shown_hash(blocks))


def _draw_queue(card: QueueCard, scene: Scene) -> Drawing:
    view = queue.QueueView(card.queue_count, card.wanted_version, scene.language)
    blocks = queue.render(view)
    return Drawing(queue.fallback(view), blocks, shown_hash(blocks))
