"""The life of each effect of a draft as its card tells it, what would take it back, and who is named how.

Ground of picture. Not here: the rest of a card (picture) or how it is drawn (bot/cards).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from bot.cards.lives import (
    Action,
    Awaiting,
    Dropped,
    Held,
    Kept,
    Life,
    Part,
    Paused,
    Queued,
    Scheduled,
    SendFailed,
    Sending,
    SendUnknown,
    Sent,
    Undoing,
    Who,
)
from bot.policy.caps import VALUE_OVER_CAP, VALUE_UNREADABLE
from bot.policy.snapshot import effects_of
from bot.policy.switch import Closed, may_send
from store.showing import DraftCard, EffectFacts

_SLACK: Final = "slack:"
# Of several effects the one people must know of first.
_GRAVITY: Final = ("unknown", "sending", "failed", "cancelled", "pending", "completed")
OPEN: Final = frozenset({"pending", "sending", "unknown"})
_NEVER_FITS: Final = frozenset({VALUE_UNREADABLE, VALUE_OVER_CAP})
_GIVEN_UP: Final = {"give_up": "given_up"}  # The choice, and the reason that has a sentence.


@dataclass(frozen=True, slots=True)
class Scene:
    """What a card needs besides its rows: the setting that lets effects out, people's names, the language."""

    actions_enabled: bool
    names: Mapping[str, str] = field(default_factory=dict)
    language: str = "en"

    def who(self, subject: str) -> Who:
        """Name somebody as text: a mention would ping them with every card. Without a name, by their id."""
        bare = bare_id(subject)
        return Who(subject, self.names.get(bare, bare))


def bare_id(subject: str) -> str:
    """Give the Slack id in `slack:TEAM:USER`, or the text itself."""
    return subject.rsplit(":", 1)[-1] if subject.startswith(_SLACK) else subject


def action_of(effect_type: str, target: str, recipient: str | None) -> Action:
    """Say what goes out through which host; a target that is no address is named as it is."""
    try:
        parts = urlsplit(target)
        host = parts.hostname or target
        host = f"{host}:{parts.port}" if parts.port else host
    except ValueError:
        host = target
    return Action(effect_type, host or effect_type, recipient)


def actions_of(card: DraftCard) -> tuple[Action, ...]:
    """Say what goes out on approval, each with the recipient that the payload gives it."""
    frozen = effects_of(card.snapshot)
    return tuple(_action(terms, to) for terms, to in zip(frozen, card.recipients, strict=True))


def _action(terms: Mapping[str, Any], recipient: str | None) -> Action:
    made = action_of(terms["type"], terms["target"], recipient)
    return Action(made.effect_type, made.host, recipient, terms.get("name"), terms.get("after"))


def gravest(card: DraftCard, scene: Scene) -> Life:
    """The life of the effect that people must know of first."""
    over = card.finished_at or card.decided_at or card.opened_at
    effects = [one for one in card.effects if one.undo_of is None]
    if not effects:
        return SendFailed(over, card.run_state) if card.status == "failed" else Queued()
    return _life(card, scene, min(effects, key=lambda one: _GRAVITY.index(one.state)))


def parts_of(card: DraftCard, scene: Scene) -> tuple[Part, ...]:
    """Every effect that was approved, each with its life, its undo, and what would undo it now."""
    effects = [one for one in card.effects if one.undo_of is None]
    undoing = {one.undo_of: one for one in card.effects if one.undo_of is not None}
    is_over = card.status in {"sent", "failed"} and not any(one.state in OPEN for one in effects)
    may_undo = is_over and card.body is not None
    actions = actions_of(card)
    found = []
    for effect in effects:
        index = int((effect.clause or ("0",))[0])
        undo = undoing.get(effect.effect_id)
        terms = effects_of(card.snapshot)[index].get("undo")
        is_free = undo is None or (undo.state == "failed" and undo.ambiguous_at is None)
        back = terms if may_undo and effect.state == "completed" and is_free else None
        found.append(
            Part(
                effect.effect_id,
                actions[index],
                _life(card, scene, effect),
                None
                if back is None
                else action_of(back["type"], back["target"], card.undo_recipients[index]),
                _undoing(card, scene, undo) if undo is not None else None,
            )
        )
    return tuple(found)


def _undoing(card: DraftCard, scene: Scene, undo: EffectFacts) -> Undoing:
    return Undoing(scene.who(undo.undo_by or "system"), undo.created_at, _life(card, scene, undo))


def _life(card: DraftCard, scene: Scene, effect: EffectFacts) -> Life:
    """The effect's life, in settled facts: what is not proven to have started still waits."""
    settler = effect.settled_by or ""
    by = scene.who(settler) if settler.startswith(_SLACK) else None
    match effect.state:
        case "completed":
            return Sent(effect.updated_at, effect.provider_id, by)
        case "failed":
            return SendFailed(effect.updated_at, _GIVEN_UP.get(effect.reason or "", effect.reason or "-"), by)
        case "cancelled":
            return Dropped(effect.updated_at, effect.reason or "-")
        case "unknown":
            return SendUnknown(effect.ambiguous_at or effect.updated_at, effect.reason or "-")
        case "sending" if effect.started_at is not None:
            return Sending(effect.started_at)
        case _:
            return _waiting(card, scene, effect)


def _waiting(card: DraftCard, scene: Scene, effect: EffectFacts) -> Life:
    held = may_send(
        card.switch_rows,
        actions_enabled=scene.actions_enabled,
        kind=card.kind,
        effect_type=effect.effect_type,
    )
    if isinstance(held, Closed):
        return Paused(held.by)
    if effect.held_since is not None:
        return Held(effect.held_since, effect.reason or "-")
    if (first := _awaited(card, effect)) is not None:
        return Awaiting(first)
    if (kept := _kept(effect)) is not None:
        return kept
    if effect.attempts and effect.reason:
        return Queued(effect.attempts, effect.reason, effect.next_attempt_at)
    if card.status == "scheduled" and effect.not_before is not None:
        return Scheduled(effect.not_before)
    return Queued()


def _awaited(card: DraftCard, effect: EffectFacts) -> str | None:
    """The name of the effect that this one still waits for."""
    first = next((one for one in card.effects if one.effect_id == effect.after_id), None)
    if first is None or first.state == "completed":
        return None
    return actions_of(card)[int((first.clause or ("0",))[0])].name


def _kept(effect: EffectFacts) -> Kept | None:
    """What keeps it waiting, the longest first."""
    if effect.reason in _NEVER_FITS:
        return Kept(effect.reason)
    if effect.rests_until is not None:
        return Kept("resting", effect.rests_until, action_of(effect.effect_type, effect.target, None).host)
    if effect.full_until is not None and effect.full_why is not None:
        return Kept(effect.full_why, effect.full_until)
    return None
