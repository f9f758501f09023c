"""Views to draw: one of each state of each card.

What they must look like is in the golden files; what they must never do is in `test_hostile`.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

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
from bot.cards.unknown import Ending, Evidence, LookUp, Settled, UnknownView
from bot.cards.views import (
    Approved,
    Blocked,
    Buttons,
    Cancelled,
    EarlierRejection,
    Expired,
    Field,
    Pending,
    PendingNote,
    Previous,
    Redrafting,
    Rejected,
    Replacement,
    ReviewView,
    SmallPrint,
    Source,
    Superseded,
    Times,
    Voting,
)
from bot.policy import earned

OPENED = datetime(2026, 3, 2, 9, 15, tzinfo=UTC)
DECIDED = OPENED + timedelta(minutes=12)
ANNA, BEN, LEADS = Who("U0ANNA", "Anna"), Who("U0BEN", "Ben"), Who("S0LEADS", "@support-leads")


def value(letter: str, revision: int = 2) -> str:
    return f"{letter * 43}.{revision}"


ALL_BUTTONS = Buttons(
    approve=value("a"),
    reject=value("b"),
    read=value("c"),
    edit=value("d"),
    redraft=value("e"),
    cancel=value("f"),
)

PLAIN = ReviewView(
    kind="customer_email",
    entity="customer:42",
    revision=2,
    version=7,
    state=Pending(),
    actions=(Action("http", "n8n.example", "jo@customer.example"),),
    draft=(
        Field("subject", "Your refund for order 1007"),
        Field("body", "Dear Jo,\n\nwe have refunded 45 EUR today.\n\nKind regards\nSupport"),
    ),
    voting=Voting((ANNA, BEN, LEADS)),
    times=Times(OPENED, OPENED + timedelta(hours=48)),
    small=SmallPrint("n8n:customer_email:hubspot-ticket-9182-v17", "gpt-x-mini", "3f2a91c0ffee0000"),
    labels=(Field("label", "refund"), Field("score", "0.83")),
    source=Source("https://crm.example/tickets/9182", frozenset({"crm.example"})),
    buttons=ALL_BUTTONS,
    undo=((UUID(int=1), value("g")),),
)

FIRST_REVISION = Previous(
    1,
    (
        Field("subject", "Your refund for order 1007"),
        Field("body", "Dear Jo,\n\nwe will refund 40 EUR tomorrow.\n\nKind regards\nSupport"),
        Field("label", "refund"),
        Field("score", "0.83"),
    ),
)
CORRECTION = Replacement("n8n:customer_email:hubspot-ticket-9182-v16", "wrong amount", ("msg-881",))
EARLIER = EarlierRejection(BEN, OPENED - timedelta(days=1), "wrong tone")


def approved(life: Any, **more: Any) -> ReviewView:
    return replace(PLAIN, state=Approved(life, by=(ANNA,), at=DECIDED, **more))


MAIL_ID, NOTE_ID = UUID(int=1), UUID(int=2)
SEVERAL = (
    Action("smtp", "mail.example", "jo@customer.example", "mail"),
    Action("http", "crm.example", None, "note", after="mail"),
)
REVERSAL = Action("http", "undo.example")


def one_part(**more: Any) -> Part:
    return Part(MAIL_ID, PLAIN.actions[0], Sent(DECIDED, "msg-882"), **more)


def several(*lives: Life, undo: Action | None = None) -> ReviewView:
    ids = (MAIL_ID, NOTE_ID)
    parts = tuple(Part(*one, undo) for one in zip(ids, SEVERAL, lives, strict=True))
    view = approved(lives[0], parts=parts)
    return replace(view, actions=SEVERAL, undo=((MAIL_ID, value("g")), (NOTE_ID, value("h"))))


def several_undone(*lives: Life) -> ReviewView:
    """Two that were delivered, of which somebody takes back as many as there are lives."""
    backs = [Undoing(BEN, DECIDED + timedelta(minutes=5), life) for life in lives] + [None]
    parts = tuple(
        Part(one, action, Sent(DECIDED, "msg-882"), undoing=back)
        for one, action, back in zip((MAIL_ID, NOTE_ID), SEVERAL, backs, strict=False)
    )
    return replace(approved(parts[0].life, parts=parts), actions=SEVERAL)


def undone(life: Life, **more: Any) -> ReviewView:
    part = one_part(undoing=Undoing(BEN, DECIDED + timedelta(minutes=5), life), **more)
    return approved(Sent(DECIDED, "msg-882"), parts=(part,))


def with_body(text: str, **more: Any) -> ReviewView:
    return replace(PLAIN, draft=(Field("subject", "Hello"), Field("body", text)), **more)


REVIEW_STATES: dict[str, ReviewView] = {
    "pending": PLAIN,
    "pending_warned": replace(
        PLAIN,
        warnings=("The customer asks for money back.",),
        previous=FIRST_REVISION,
        voting=Voting((ANNA, BEN, LEADS), quorum=2, voters=(BEN,)),
        small=replace(PLAIN.small, edited_by=ANNA, repeats=3),
        source=replace(PLAIN.source, requested_by="U0BOSS"),
    ),
    "pending_confirmed_by_dialog": replace(PLAIN, confirm="dialog"),
    "pending_correction": replace(PLAIN, replaces=CORRECTION, earlier=EARLIER),
    "pending_after_failed_newer": replace(PLAIN, state=Pending(PendingNote.NEWER_FAILED)),
    "pending_too_long": with_body("A long letter. " * 900),
    "pending_after_failed_redraft": replace(PLAIN, state=Pending(redraft_failed=True)),
    "withdrawn_by_newer_event": replace(PLAIN, state=Pending(PendingNote.NEWER_EVENT)),
    "withdrawn_not_fresh": replace(PLAIN, state=Pending(PendingNote.NOT_FRESH)),
    "withdrawn_record_changed": replace(
        PLAIN, state=Pending(PendingNote.RECORD_CHANGED, versions=("18", "17"))
    ),
    "withdrawn_record_closed": replace(PLAIN, state=Pending(PendingNote.RECORD_CLOSED)),
    "blocked": replace(PLAIN, state=Blocked()),
    "redrafting": replace(PLAIN, state=Redrafting(ANNA, "Friendlier, please.")),
    "queued": approved(Queued()),
    "queued_after_tries": approved(Queued(2, "connection_refused", DECIDED + timedelta(minutes=5))),
    "held": approved(Held(DECIDED, "timeout")),
    "kept_resting": approved(Kept("resting", DECIDED + timedelta(minutes=5), "n8n.example")),
    "kept_by_cap": approved(Kept("cap_day", DECIDED + timedelta(hours=5))),
    "kept_by_value": approved(Kept("value_unreadable")),
    "paused": approved(Paused("kind:customer_email")),
    "scheduled": replace(PLAIN, state=Approved(Scheduled(DECIDED + timedelta(minutes=10)), gate="delayed")),
    "sending": approved(Sending(DECIDED)),
    "sent": approved(Sent(DECIDED, "msg-882")),
    "sent_by_exception": replace(
        PLAIN, state=Approved(Sent(DECIDED, "msg-882"), gate="by_exception", evidence=earned.Evidence(50, 50))
    ),
    "sent_says_a_person": approved(Sent(DECIDED, confirmed_by=BEN)),
    "unknown": approved(SendUnknown(DECIDED, "timeout")),
    "unknown_before_a_newer": approved(SendUnknown(DECIDED, "timeout"), newer_waits=True),
    "failed": approved(SendFailed(DECIDED, "http_422")),
    "failed_given_up": approved(SendFailed(DECIDED, "given_up", by=BEN)),
    "pending_several": replace(PLAIN, actions=SEVERAL),
    "pending_to_channel": replace(PLAIN, actions=(Action("slack_message", "C0SUPPORT"),), confirm="dialog"),
    "several_waiting": several(Queued(), Awaiting("mail")),
    "several_mixed": several(SendFailed(DECIDED, "http_422"), Dropped(DECIDED, "after_failed")),
    "several_sent": several(Sent(DECIDED, "msg-882"), Sent(DECIDED, "note-1"), undo=REVERSAL),
    "several_part_sent": several(Sent(DECIDED, "msg-882"), SendFailed(DECIDED, "http_422")),
    "several_part_unknown": several(Sent(DECIDED, "msg-882"), SendUnknown(DECIDED, "timeout")),
    "several_part_given_up": several(Sent(DECIDED), SendFailed(DECIDED, "given_up", by=BEN)),
    "several_part_open": several(SendFailed(DECIDED, "http_422"), Queued(1, "http_429", OPENED)),
    "several_part_waits": several(Sent(DECIDED, "msg-882"), Queued()),
    "several_part_stands": several(Sent(DECIDED, "msg-882"), Paused("effect:http")),
    "several_overtaken": several(Sent(DECIDED, "msg-882"), Dropped(DECIDED, "overtaken")),
    "several_part_undone": several_undone(Sent(DECIDED, "back-1")),
    "several_part_undo_failed": several_undone(Sent(DECIDED, "back-1"), SendFailed(DECIDED, "http_404")),
    "sent_undoable": approved(Sent(DECIDED, "msg-882"), parts=(one_part(undo=REVERSAL),)),
    "undoing": undone(Queued()),
    "undone": undone(Sent(DECIDED, "back-1")),
    "undo_unknown": undone(SendUnknown(DECIDED, "timeout")),
    "undo_failed": undone(SendFailed(DECIDED, "http_404")),
    "undo_failed_askable": undone(SendFailed(DECIDED, "http_404"), undo=REVERSAL),
    "undo_given_up": undone(SendFailed(DECIDED, "given_up", by=BEN)),
    "rejected": replace(PLAIN, state=Rejected(BEN, DECIDED, "Wrong amount: it was 54 EUR.")),
    "expired": replace(PLAIN, state=Expired(OPENED + timedelta(hours=48))),
    "superseded": replace(PLAIN, state=Superseded(DECIDED)),
    "cancelled": replace(PLAIN, state=Cancelled(Who("U0CLARA"), DECIDED)),
}

_DEAD = Evidence(DECIDED, "timeout", 1)
UNKNOWN = UnknownView(
    key="n8n:customer_email:hubspot-ticket-9182-v17",
    kind="customer_email",
    entity="customer:42",
    revision=2,
    version=3,
    action=PLAIN.actions[0],
    sent=PLAIN.draft,
    evidence=_DEAD,
    button_value="01957a3e-1111-7000-8000-000000000001.3",
)
_LOOKED = replace(_DEAD, looked_at=DECIDED + timedelta(minutes=1))


def _ended(how: Settled, **more: Any) -> UnknownView:
    return replace(UNKNOWN, ending=Ending(how, DECIDED + timedelta(hours=1), **more))


UNKNOWN_STATES: dict[str, UnknownView] = {
    "open": UNKNOWN,
    "open_not_askable": replace(UNKNOWN, evidence=replace(_DEAD, look_up=LookUp.NONE)),
    "open_looked_up": replace(
        UNKNOWN,
        evidence=replace(_LOOKED, look_up=LookUp.ABSENT, next_look_at=DECIDED + timedelta(minutes=5)),
    ),
    "open_no_answer": replace(
        UNKNOWN, evidence=replace(_LOOKED, look_up=LookUp.NO_ANSWER, look_up_reason="http_500")
    ),
    "open_newer_waits": replace(UNKNOWN, newer_waits=True),
    "open_resume": replace(UNKNOWN, action=Action("resume", "n8n.example")),
    "open_undo": replace(UNKNOWN, is_undo=True),
    "delivered": _ended(Settled.DELIVERED, by=BEN),
    "resent": _ended(Settled.RESENT, by=BEN),
    "dropped": _ended(Settled.DROPPED, by=BEN),
    "given_up": _ended(Settled.GIVEN_UP, by=BEN),
    "found": _ended(Settled.FOUND, provider_id="msg-882"),
}
