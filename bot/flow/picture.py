"""Turns the rows behind a card into the view that is drawn: its state, who did what, what goes where.

Ground of show and open. Not here: reading the rows (store/showing), drawing (bot/cards), tokens (drawing).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

from bot.cards.draft import fields_of
from bot.cards.unknown import Ending, Evidence, LookUp, Settled, UnknownView
from bot.cards.views import (
    Action,
    Approved,
    Blocked,
    Cancelled,
    EarlierRejection,
    Expired,
    Held,
    Life,
    Paused,
    Pending,
    PendingNote,
    Previous,
    Queued,
    Redrafting,
    Rejected,
    Replacement,
    ReviewView,
    Scheduled,
    SendFailed,
    Sending,
    SendUnknown,
    Sent,
    SmallPrint,
    Source,
    State,
    Superseded,
    Times,
    Voting,
    Who,
)
from bot.contracts.click import EffectValue, encode_effect_value
from bot.policy import earned
from bot.policy.switch import Closed, may_send
from store.queue import QueueCard
from store.showing import DraftCard, EffectCard, EffectFacts

_SLACK: Final = "slack:"
_NOTES: Final = {
    "newer_failed": PendingNote.NEWER_FAILED,
    "withdrawn_newer": PendingNote.NEWER_EVENT,
    "withdrawn_stale": PendingNote.NOT_FRESH,
    "withdrawn_record_changed": PendingNote.RECORD_CHANGED,
    "withdrawn_record_closed": PendingNote.RECORD_CLOSED,
}
# Of several effects the one people must know of first.
_GRAVITY: Final = ("unknown", "sending", "failed", "pending", "completed")
# Mail leaves no trace that could be asked for, and a waiting execution tells nobody why it went on.
_CANNOT_BE_ASKED: Final = frozenset({"smtp", "resume"})
# A person's choice (flow/reconcile) as the card says it.
_CHOICES: Final = {
    "delivered": Settled.DELIVERED,
    "resend": Settled.RESENT,
    "drop": Settled.DROPPED,
    "give_up": Settled.GIVEN_UP,
}
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


def people_of(card: DraftCard | EffectCard | QueueCard) -> set[str]:
    """Everybody whom the card names, as Slack ids."""
    if isinstance(card, QueueCard):
        return set()
    if isinstance(card, EffectCard):
        named: list[str | None] = [card.settled_by]
    else:
        named = [*card.snapshot["reviewers"], *card.voters, *card.approvers, card.decided_by, card.author]
        named += [card.redraft_by, card.earlier_by, card.settled_by, card.cancelled_by]
    return {bare_id(subject) for subject in named if subject}


def review_view(card: DraftCard, scene: Scene) -> ReviewView:
    """Give the view of a draft's card, without buttons."""
    draft, labels = fields_of(card.body or {})
    frozen = card.snapshot
    return ReviewView(
        kind=card.kind,
        entity=card.entity,
        revision=card.revision,
        version=card.wanted_version,
        state=_state(card, scene),
        action=action_of(frozen["effect"]["type"], frozen["effect"]["target"], card.recipient),
        draft=draft,
        labels=labels,
        voting=Voting(_all(scene, frozen["reviewers"]), int(frozen["quorum"]), _all(scene, card.voters)),
        times=Times(card.opened_at, card.expires_at),
        small=_small_print(card, scene),
        warnings=tuple(card.warnings),
        previous=_previous(card),
        source=Source(card.record_url, frozenset(frozen.get("record_hosts", ())), card.requested_by),
        confirm=cast("Literal['none', 'dialog', 'typed']", frozen.get("confirm", "none")),
        earlier=_earlier(card, scene),
        replaces=_replaced(card),
        language=scene.language,
    )


def _all(scene: Scene, subjects: Sequence[str]) -> tuple[Who, ...]:
    return tuple(scene.who(subject) for subject in subjects)


def action_of(effect_type: str, target: str, recipient: str | None) -> Action:
    """Say what goes out through which host; a target that is no address is named as it is."""
    try:
        parts = urlsplit(target)
        host = parts.hostname or target
        host = f"{host}:{parts.port}" if parts.port else host
    except ValueError:
        host = target
    return Action(effect_type, host or effect_type, recipient)


def _small_print(card: DraftCard, scene: Scene) -> SmallPrint:
    editor = scene.who(card.author) if card.author.startswith(_SLACK) else None
    return SmallPrint(card.idempotency_key, card.model, card.prompt_version, editor, card.repeats)


def _previous(card: DraftCard) -> Previous | None:
    if card.before_revision is None or card.before_body is None:
        return None
    draft, labels = fields_of(card.before_body)
    return Previous(card.before_revision, (*draft, *labels))


def _earlier(card: DraftCard, scene: Scene) -> EarlierRejection | None:
    if card.earlier_by is None or card.earlier_at is None:
        return None
    return EarlierRejection(scene.who(card.earlier_by), card.earlier_at, card.earlier_reason or "")


def _replaced(card: DraftCard) -> Replacement | None:
    if card.replaced_key is None:
        return None
    return Replacement(card.replaced_key, card.run_reason or "", tuple(card.replaced_sent))


def _state(card: DraftCard, scene: Scene) -> State:
    over = card.finished_at or card.decided_at or card.expires_at
    match card.status:
        case "pending":
            return _open_state(card, scene)
        case "rejected":
            reason = card.decision_reason or ""
            return Rejected(scene.who(card.decided_by or "system"), card.consumed_at or over, reason)
        case "expired":
            return Expired(card.expires_at)
        case "cancelled" if card.run_state == "superseded":
            return Superseded(over)
        case "cancelled":
            by = card.decided_by if card.decision == "cancel" else card.cancelled_by
            return Cancelled(scene.who(by or "system"), card.cancelled_at or over)
        case _:
            return _approved(card, scene)


def _open_state(card: DraftCard, scene: Scene) -> State:
    if card.is_blocked:
        return Blocked()
    if card.redraft_by is not None:
        return Redrafting(scene.who(card.redraft_by), card.redraft_wish or "")
    word, _, versions = (card.notice or "").partition(":")
    now, _, then = versions.partition(":")
    return Pending(_NOTES.get(word, PendingNote.NEW), card.redraft_failed, (now, then))


def _approved(card: DraftCard, scene: Scene) -> Approved:
    by = _all(scene, card.approvers) if card.decision == "approve" else ()
    evidence = None if by else earned.Evidence.read(card.decision_reason)
    gate = str(card.snapshot.get("gate", "approve_first"))
    return Approved(_life(card, scene), by, card.consumed_at if by else None, gate, evidence)


def _life(card: DraftCard, scene: Scene) -> Life:
    """The effect's life, in settled facts: what is not proven to have started still waits."""
    over = card.finished_at or card.decided_at or card.opened_at
    if not card.effects:
        return SendFailed(over, card.run_state) if card.status == "failed" else Queued()
    effect = min(card.effects, key=lambda one: _GRAVITY.index(one.state))
    settler = card.settled_by or ""
    by = scene.who(settler) if settler.startswith(_SLACK) else None
    match effect.state:
        case "completed":
            return Sent(effect.updated_at, effect.provider_id, by)
        case "failed":
            return SendFailed(effect.updated_at, _GIVEN_UP.get(effect.reason or "", effect.reason or "-"), by)
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
    if effect.attempts and effect.reason:
        return Queued(effect.attempts, effect.reason, effect.next_attempt_at)
    if card.status == "scheduled" and effect.not_before is not None:
        return Scheduled(effect.not_before)
    return Queued()


def unknown_view(card: EffectCard, scene: Scene) -> UnknownView:
    """Give the view of an unknown effect's card; once it is no longer unknown, without buttons."""
    draft, labels = fields_of(card.body or {})
    is_open = card.state == "unknown"
    return UnknownView(
        key=card.idempotency_key,
        kind=card.kind,
        entity=card.entity,
        revision=card.revision,
        version=card.wanted_version,
        action=action_of(card.effect_type, card.target, card.recipient),
        sent=(*draft, *labels),
        evidence=_evidence(card),
        button_value=encode_effect_value(EffectValue(card.effect_id, card.version)) if is_open else None,
        newer_waits=card.newer_waits,
        ending=None if is_open else _ending(card, scene),
        language=scene.language,
    )


def _evidence(card: EffectCard) -> Evidence:
    askable = card.effect_type not in _CANNOT_BE_ASKED and (card.effect_type != "http" or card.lookup)
    facts: dict[str, Any] = {"look_up": LookUp.NOT_YET if askable else LookUp.NONE}
    if card.last_answer is not None:
        known = {"absent": LookUp.ABSENT, "found": LookUp.FOUND}
        facts["look_up"] = known.get(card.last_answer, LookUp.NO_ANSWER)
        facts |= {"looked_at": card.last_at, "look_up_reason": card.last_answer}
    if askable and card.state == "unknown":
        facts["next_look_at"] = card.next_attempt_at
    return Evidence(card.dead_at, card.reason or "-", max(card.tries or 1, 1), **facts)


def _ending(card: EffectCard, scene: Scene) -> Ending:
    by = scene.who(card.settled_by) if card.settled_by else None
    machine = {"completed": Settled.FOUND, "cancelled": Settled.DROPPED, "failed": Settled.GIVEN_UP}
    person = machine | {"completed": Settled.DELIVERED}
    how = _CHOICES.get(card.choice or "") or (person if by else machine).get(card.state, Settled.RESENT)
    # Sent again it goes on, and what comes of that is on the draft's card.
    provider_id = None if how is Settled.RESENT else card.provider_id
    return Ending(how, card.settled_at or card.updated_at, by, provider_id)
