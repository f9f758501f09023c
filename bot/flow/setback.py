"""What becomes of a card when Slack does not show it: who waits how long, what is forgotten, what ops hears.

Ground of show. Not here: the calls themselves (posting).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from bot.cards.notices import Alert
from bot.flow.life import Scene
from bot.flow.turns import Turns
from bot.slack.answer import SlackAnswer, SlackLimited, SlackNotDelivered, SlackOk, SlackRefused, SlackUnknown
from bot.slack.client import SlackClient
from store import alerts, cards
from store.cards import CardHold
from store.database import Database
from store.queries import Connection
from store.queue import QueueCard
from store.showing import DraftCard, EffectCard

BACKOFF_SECONDS: Final = (5, 30, 120, 600, 1800, 3600)  # For people to mend: an archived channel hourly.
AWAY_SECONDS: Final = (5, 30, 60)  # Slack mends itself: once it is back no card waits longer than this.
LOST_SECONDS: Final = 2  # After a lost answer: long enough for the line to be back, short for people.

# Slack will not take this very content: a plainer card may pass (docs, chat.postMessage and chat.update).
CONTENT_ERRORS: Final = frozenset(
    {
        "invalid_blocks",
        "invalid_blocks_format",
        "invalid_attachments",
        "invalid_arguments",
        "msg_too_long",
        "msg_blocks_too_long",
        "msg_too_large",
        "block_mismatch",
        "only_one_table_allowed",
        "no_text",
    }
)
# A look-up that will fail until a person does something; any other word is a blip.
LASTING_ERRORS: Final = frozenset(
    {
        "channel_not_found",
        "not_in_channel",
        "is_archived",
        "is_inactive",
        "missing_scope",
        "no_permission",
        "invalid_auth",
        "account_inactive",
        "token_revoked",
        "too_many_messages",
    }
)
# The message can never be edited again: the card is posted anew.
GONE_ERRORS: Final = frozenset({"message_not_found", "cant_update_message"})

Card = DraftCard | EffectCard | QueueCard


@dataclass(frozen=True, slots=True)
class Desk:
    """What bringing cards to Slack needs; `due_in` hears in how many seconds a card is due again."""

    db: Database
    slack: SlackClient
    turns: Turns
    due_in: Callable[[float], None] = lambda _seconds: None


@dataclass(frozen=True, slots=True)
class Errand:
    """One card that we hold, and the scene it is drawn in."""

    hold: CardHold
    card: Card
    scene: Scene


async def record_no_answer(desk: Desk, errand: Errand, reason: str) -> None:
    """Without an answer nothing is posted: a second card is worse than a late one."""
    attempts = errand.card.attempts
    if reason in LASTING_ERRORS:
        await _keep_problem(desk, errand, reason, wait_seconds=_wait(BACKOFF_SECONDS, attempts))
    else:
        await postpone(desk, errand.hold, _wait(AWAY_SECONDS, attempts), counted=True)


async def record_failure(desk: Desk, errand: Errand, answer: SlackAnswer, *, plain: bool) -> None:
    """Write down what an answer that is not Ok means for the card, and let go of it."""
    hold, card = errand.hold, errand.card
    if card.ts is None and card.post_id is not None and not isinstance(answer, SlackUnknown):
        async with desk.db.connection() as conn:
            await cards.drop_post(conn, hold, card.post_id)
    match answer:
        case SlackLimited(retry_after_seconds=wait):
            await postpone(desk, hold, wait, counted=False)
        case SlackUnknown() if card.ts is None:
            await postpone(desk, hold, LOST_SECONDS, counted=True)
        case SlackUnknown() | SlackNotDelivered():
            await postpone(desk, hold, _wait(AWAY_SECONDS, card.attempts), counted=True)
        case SlackRefused(error=error) if error in GONE_ERRORS and card.ts is not None:
            async with desk.db.connection() as conn:
                await cards.forget_message(conn, hold, card.ts)
        case SlackRefused(error=error):
            again_at_once = error in CONTENT_ERRORS and not plain
            wait = 0.0 if again_at_once else _wait(BACKOFF_SECONDS, card.attempts)
            await _keep_problem(desk, errand, error, wait_seconds=wait)
        case SlackOk():
            raise AssertionError("unreachable: not a failure")


async def _keep_problem(desk: Desk, errand: Errand, error: str, *, wait_seconds: float) -> None:
    """Write Slack's word on the card, and tell ops when it is news."""
    card = errand.card
    async with desk.db.transaction() as conn:
        await cards.keep_problem(conn, errand.hold, problem=error, wait_seconds=wait_seconds)
        if card.problem == error:
            return
        if error in CONTENT_ERRORS:
            facts = {"key": card.idempotency_key, "reason": error}
            await alerts.raise_alert(
                conn, key=f"card_refused:{card.card_id}", name=Alert.CARD_REFUSED, facts=facts
            )
        else:
            await raise_channel_alert(conn, card.channel, error)


async def raise_channel_alert(conn: Connection, channel: str, error: str) -> None:
    """Tell ops that a channel takes nothing: once a channel and day, however much waits for it."""
    key = f"channel:{channel}:{error}:{datetime.now(UTC):%Y-%m-%d}"
    facts = {"channel": channel, "reason": error}
    await alerts.raise_alert(conn, key=key, name=Alert.CHANNEL_MISSING, facts=facts)


async def postpone(desk: Desk, hold: CardHold, wait_seconds: float, *, counted: bool) -> None:
    """Give the card back until later; LostRace when it is another worker's by now."""
    async with desk.db.connection() as conn:
        await cards.postpone_card(conn, hold, wait_seconds=wait_seconds, counted=counted)
    desk.due_in(wait_seconds)


def _wait(steps: Sequence[int], attempts: int) -> float:
    return float(steps[min(attempts, len(steps) - 1)])
