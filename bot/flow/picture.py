"""Turns the rows behind a card into the view that is drawn: its state, who did what, what goes where.

Ground of show and open. Not here: reading the rows (store/showing), drawing (bot/cards), tokens (drawing).
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, cast

from bot.cards.draft import fields_of
from bot.cards.lives import Who
from bot.cards.unknown import Ending, Evidence, LookUp, Settled, UnknownView
from bot.cards.views import (
    Approved,
    Blocked,
    Cancelled,
    EarlierRejection,
    Expired,
    Pending,
    PendingNote,
    Previous,
    Redrafting,
    Rejected,
    Replacement,
    ReviewView,
    SmallPrint,
    Source,
    State,
    Superseded,
    Times,
    Voting,
)
from bot.contracts.click import EffectValue, encode_effect_value
from bot.flow.life import OPEN, Scene, action_of, actions_of, bare_id, gravest, parts_of
from bot.policy import earned
from store.queue import QueueCard
from store.showing import DraftCard, EffectCard

_SLACK: Final = "slack:"
_NOTES: Final = {
    "newer_failed": PendingNote.NEWER_FAILED,
    "withdrawn_newer": PendingNote.NEWER_EVENT,
    "withdrawn_stale": PendingNote.NOT_FRESH,
    "withdrawn_record_changed": PendingNote.RECORD_CHANGED,
    "withdrawn_record_closed": PendingNote.RECORD_CLOSED,
}
# Mail leaves no trace that could be asked for, and a waiting execution tells nobody why it went on.
_CANNOT_BE_ASKED: Final = frozenset({"smtp", "resume"})
# A person's choice (flow/reconcile) as the card says it.
_CHOICES: Final = {
    "delivered": Settled.DELIVERED,
    "resend": Settled.RESENT,
    "drop": Settled.DROPPED,
    "give_up": Settled.GIVEN_UP,
}


def people_of(card: DraftCard | EffectCard | QueueCard) -> set[str]:
    """Everybody whom the card names, as Slack ids."""
    if isinstance(card, QueueCard):
        return set()
    if isinstance(card, EffectCard):
        named: list[str | None] = [card.settled_by]
    else:
        named = [*card.snapshot["reviewers"], *card.voters, *card.approvers, card.decided_by, card.author]
        named += [card.redraft_by, card.earlier_by, card.cancelled_by, card.requested_by]
        named += [who for one in card.effects for who in (one.settled_by, one.undo_by)]
    return {bare_id(subject) for subject in named if subject}


def review_view(card: DraftCard, scene: Scene) -> ReviewView:
    """Give the view of a draft's card, without buttons."""
    draft, labels = fields_of(card.body or {}, scene.language)
    frozen = card.snapshot
    return ReviewView(
        kind=card.kind,
        entity=card.entity,
        revision=card.revision,
        version=card.wanted_version,
        state=_state(card, scene),
        actions=actions_of(card),
        draft=draft,
        labels=labels,
        voting=Voting(_all(scene, frozen["reviewers"]), int(frozen["quorum"]), _all(scene, card.voters)),
        times=Times(card.opened_at, card.expires_at),
        small=_small_print(card, scene),
        warnings=tuple(card.warnings),
        previous=_previous(card, scene.language),
        source=Source(
            card.record_url,
            frozenset(frozen.get("record_hosts", ())),
            scene.who(card.requested_by).name if card.requested_by else None,
        ),
        confirm=cast("Literal['none', 'dialog', 'typed']", frozen.get("confirm", "none")),
        earlier=_earlier(card, scene),
        replaces=_replaced(card),
        language=scene.language,
    )


def _all(scene: Scene, subjects: Sequence[str]) -> tuple[Who, ...]:
    return tuple(scene.who(subject) for subject in subjects)


def _small_print(card: DraftCard, scene: Scene) -> SmallPrint:
    editor = scene.who(card.author) if card.author.startswith(_SLACK) else None
    return SmallPrint(card.idempotency_key, card.model, card.prompt_version, editor, card.repeats)


def _previous(card: DraftCard, language: str) -> Previous | None:
    if card.before_revision is None or card.before_body is None:
        return None
    draft, labels = fields_of(card.before_body, language)
    return Previous(card.before_revision, (*draft, *labels))


def _earlier(card: DraftCard, scene: Scene) -> EarlierRejection | None:
    if card.earlier_by is None or card.earlier_at is None:
        return None
    return EarlierRejection(scene.who(card.earlier_by), card.earlier_at, card.earlier_reason or "")


def _replaced(card: DraftCard) -> Replacement | None:
    if card.replaced_key is None:
        return None
    sent, undone = tuple(card.replaced_sent), tuple(card.replaced_undone)
    return Replacement(card.replaced_key, card.run_reason or "", sent, undone)


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
    at = card.consumed_at if by else None
    newer_waits = card.is_blocked and any(one.state in OPEN for one in card.effects if one.undo_of is None)
    return Approved(gravest(card, scene), by, at, gate, evidence, parts_of(card, scene), newer_waits)


def unknown_view(card: EffectCard, scene: Scene) -> UnknownView:
    """Give the view of an unknown effect's card; once it is no longer unknown, without buttons."""
    draft, labels = fields_of(card.body or {}, scene.language)
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
        is_undo=card.is_undo,
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
