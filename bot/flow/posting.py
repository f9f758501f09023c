"""Brings one card to Slack: looks for a lost post, posts or edits, and records what Slack answered.

Ground of show. Not here: claiming cards (show), what they show (picture, drawing).
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from bot.cards import notices
from bot.contracts.outcome import Found, NoAnswer
from bot.flow.checkpoints import reach
from bot.flow.drawing import Drawing
from bot.flow.life import Scene
from bot.flow.setback import (
    CONTENT_ERRORS,
    Card,
    Desk,
    Errand,
    postpone,
    record_failure,
    record_no_answer,
)
from bot.flow.turns import HISTORY, POST, UPDATE
from bot.slack.answer import SlackAnswer, SlackOk
from bot.slack.find import find_marked
from bot.slack.marks import Marks
from store import cards, tokens
from store.cards import CardHold, Shown
from store.errors import LostRace
from store.ids import new_id
from store.queue import QueueCard
from store.showing import DraftCard

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 60  # A look-up and a call of 10 s each, and room for a process that was held up.
APPEAR_SECONDS: Final = 30  # Until a post must stand in the history: only then is "not there" believed.
QUEUE_REST_SECONDS: Final = 5.0  # Its number moves with each arrival; in a burst the edits are for cards.
SKEW_SECONDS: Final = 300  # Between the database's clock and Slack's, which names messages by time.

Draw = Callable[[bool], Drawing]
"""Draws the card, or (True) the plain one for content that Slack refuses."""


def marks_of(post_id: UUID) -> Marks:
    """By what a card's post is found again: one opaque id (SPEC section 9)."""
    return Marks("stet_card", {"card": str(post_id)})


async def bring(desk: Desk, errand: Errand, draw: Draw) -> None:
    """Make Slack agree with the row; whatever hinders it is written on the row, for a later try."""
    try:
        await _bring(desk, errand, draw)
    except LostRace as lost:
        log.info("a card was left: %s", lost.meaning, extra={"card_id": str(errand.hold.card_id)})
        with suppress(LostRace):
            await postpone(desk, errand.hold, 0.0, counted=False)


async def _bring(desk: Desk, errand: Errand, draw: Draw) -> None:
    card = errand.card
    if card.ts is None and card.post_id is not None:
        ts = await _look_for_post(desk, errand, card.post_id)
        if ts is None:
            return
        card = card.model_copy(update={"ts": ts or None})
    method = UPDATE if card.ts else POST
    wait = desk.turns.take(method, card.channel)
    if wait > 0:
        await postpone(desk, errand.hold, wait, counted=False)
        return
    plain = card.problem in CONTENT_ERRORS
    drawing = draw(plain)
    post_id = card.post_id or new_id()
    await _begin(desk, errand.hold, card, drawing, post_id=post_id)
    reach("show.before_post")
    answer = desk.turns.heard(method, card.channel, await _call(desk, card, drawing, post_id))
    reach("show.after_post")
    errand = Errand(errand.hold, card.model_copy(update={"post_id": post_id}), errand.scene)
    if isinstance(answer, SlackOk):
        await _record(desk, errand, drawing, str(card.ts or answer.data["ts"]))
    else:
        await record_failure(desk, errand, answer, plain=plain)


async def _look_for_post(desk: Desk, errand: Errand, post_id: UUID) -> str | None:
    """Look for a post whose answer was lost: its ts, "" if believed absent, None if nobody knows yet."""
    hold, card = errand.hold, errand.card
    wait = desk.turns.take(HISTORY, card.channel)
    if wait > 0:
        await postpone(desk, hold, wait, counted=False)
        return None
    since = (card.post_started_at or datetime.now(UTC)) - timedelta(seconds=SKEW_SECONDS)
    oldest = f"{since.timestamp():.6f}"
    found = await find_marked(desk.slack, card.channel, marks_of(post_id), oldest=oldest)
    if isinstance(found, Found) and found.provider_id:
        async with desk.db.connection() as conn:
            await cards.keep_found_message(conn, hold, found.provider_id)
        return found.provider_id
    if isinstance(found, NoAnswer):
        await record_no_answer(desk, errand, found.reason)
        return None
    if card.post_age_seconds < APPEAR_SECONDS:
        await postpone(desk, hold, APPEAR_SECONDS - card.post_age_seconds, counted=False)
        return None
    return ""


async def _begin(desk: Desk, hold: CardHold, card: Card, drawing: Drawing, *, post_id: UUID) -> None:
    """Before anybody can see a button its token is stored, and before anything is posted its mark."""
    async with desk.db.transaction() as conn:
        await cards.begin_showing(conn, hold, ts=card.ts, post_id=post_id, lease_seconds=LEASE_SECONDS)
        await tokens.insert_tokens(conn, drawing.tokens)
        if isinstance(card, DraftCard):
            await tokens.drop_ended_tokens(conn, card.draft_id)


async def _call(desk: Desk, card: Card, drawing: Drawing, post_id: UUID) -> SlackAnswer:
    if card.ts is not None:
        return await desk.slack.update(card.channel, card.ts, text=drawing.text, blocks=drawing.blocks)
    marks = marks_of(post_id)
    return await desk.slack.post(card.channel, text=drawing.text, blocks=drawing.blocks, marks=marks)


async def _record(desk: Desk, errand: Errand, drawing: Drawing, ts: str) -> None:
    card = errand.card
    wait = 0.0 if card.ts is None else await _note_revision(desk, errand, ts)
    revision = card.revision if wait == 0 else card.noted_revision
    # With its line still to come the card stays behind by one, and is drawn again with it.
    version = card.wanted_version if wait == 0 else card.wanted_version - 1
    rest = QUEUE_REST_SECONDS if isinstance(card, QueueCard) else wait
    shown = Shown(ts, version, drawing.shown_hash, max(revision, card.noted_revision), rest)
    async with desk.db.connection() as conn:
        await cards.record_shown(conn, errand.hold, shown)
    if rest:
        desk.due_in(rest)
    reach("show.after_shown")


async def _note_revision(desk: Desk, errand: Errand, ts: str) -> float:
    """Say once in the thread that there is a new revision; the seconds to wait, if it is not our turn."""
    card = errand.card
    if not isinstance(card, DraftCard) or card.revision <= card.noted_revision:
        return 0.0
    wait = desk.turns.take(POST, card.channel)
    if wait > 0:
        return wait
    async with desk.db.connection() as conn:
        await cards.note_revision(conn, errand.hold, card.revision)
    line = _thread_line(card, errand.scene)
    answer = await desk.slack.post(
        card.channel, text=notices.fallback(line), blocks=notices.render(line), thread_ts=ts
    )
    desk.turns.heard(POST, card.channel, answer)
    return 0.0


def _thread_line(card: DraftCard, scene: Scene) -> notices.Notice:
    if card.author.startswith("slack:"):
        return notices.thread(
            notices.Thread.EDITED,
            language=scene.language,
            revision=card.revision,
            who=scene.who(card.author),
        )
    return notices.thread(notices.Thread.REVISION, language=scene.language, revision=card.revision)
