"""Tells the operators' channel what was raised, each occasion once as far as Slack lets us know.

Not here: what is an alert (whoever raises it) or its words (bot/cards/notices).
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from string import Formatter
from typing import Any, Final
from uuid import UUID

from bot.cards import notices
from bot.cards.blocks import Block, message_text, outside, rich, section
from bot.cards.lives import Who
from bot.cards.words import template
from bot.contracts.outcome import Found
from bot.slack.answer import SlackLimited, SlackNotDelivered, SlackOk, SlackRefused, SlackUnknown
from bot.slack.client import SlackClient
from bot.slack.find import find_marked
from bot.slack.marks import Marks
from bot.slack.pace import Pace
from store import alerts, unknowns
from store.alerts import AlertRow
from store.database import Database

log = logging.getLogger(__name__)

BATCH: Final = 10  # One message a second goes into a channel; more at a time would only wait.
METHOD: Final = "chat.postMessage"
SKEW_SECONDS: Final = 300  # Between the database's clock and Slack's.

CARD_SECONDS: Final = 30  # Until a card that was not posted yet is looked for again.
# Said in the thread of the effect's card: who decides has the buttons before them.
IN_THREAD: Final = frozenset(
    {
        notices.Alert.UNKNOWN_FIRST,
        notices.Alert.UNKNOWN_HOUR,
        notices.Alert.UNKNOWN_HOURS,
        notices.Alert.UNKNOWN_DAY,
    }
)

# Which mend a drafting failure calls for, by the row of the retry matrix.
_MENDS: Final = {
    "misconfigured": "misconfigured",
    "not JSON": "invalid",
    "wrong JSON": "invalid",
    "soft failure": "invalid",
    "refused": "refused",
}


@dataclass(frozen=True, slots=True)
class Alerting:
    """What alerting needs; without an ops channel alerts go to the log alone."""

    db: Database
    slack: SlackClient
    pace: Pace
    ops_channel: str | None
    language: str = "en"
    admins: tuple[str, ...] = ()
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an alert is said; `is_there`: False while the card whose thread it is has not been posted."""

    channel: str
    thread_ts: str | None = None
    is_there: bool = True


async def run_once(deps: Alerting) -> int:
    """Post up to BATCH due alerts; give how many were taken in hand.

    An alert that is lost is worse than one that comes twice: it is marked after it was posted, and looked for
    before it is posted again.
    """
    async with deps.db.connection() as conn:
        claimed = await alerts.claim_alerts(conn, most=BATCH)
    for number, alert in enumerate(sorted(claimed, key=lambda one: one.raised_at)):
        await _tell(deps, alert, number)
    return len(claimed)


async def _tell(deps: Alerting, alert: AlertRow, number: int) -> None:
    channel = deps.ops_channel
    if channel is None:
        # Keys and words only: facts may name people, and a log is not the place for them.
        facts = {"alert": alert.name, "alert_key": alert.alert_key}
        log.warning("an alert without an ops channel", extra=facts)
        await _mark_sent(deps, alert)
        return
    place = await _place(deps, alert, channel)
    if place is None:
        await _mark_sent(deps, alert)  # Somebody decided meanwhile.
        return
    if not place.is_there:
        await _postpone(deps, alert, CARD_SECONDS)
        return
    channel = place.channel
    wait = deps.pace.take(METHOD, channel=channel, now=deps.clock())
    if wait > 0:
        await _postpone(deps, alert, wait + number)
        return
    marks = Marks("stet_alert", {"alert": str(alert.alert_id)})
    if alert.attempts > 1 and await _was_posted(deps, alert, place, marks):
        await _mark_sent(deps, alert)
        return
    text, blocks = draw_alert(alert.name, alert.facts, deps.language, admins=deps.admins)
    answer = await deps.slack.post(channel, text=text, blocks=blocks, marks=marks, thread_ts=place.thread_ts)
    match deps.pace.heard(METHOD, answer, channel=channel, now=deps.clock()):
        case SlackOk():
            await _mark_sent(deps, alert)
        case SlackLimited(retry_after_seconds=seconds):
            await _postpone(deps, alert, seconds)
        case SlackRefused(error=word) | SlackNotDelivered(reason=word) | SlackUnknown(reason=word):
            log.warning("an alert was not posted", extra={"alert": alert.name, "reason": word})


async def _place(deps: Alerting, alert: AlertRow, channel: str) -> _Place | None:
    """Give the ops channel, or the thread of the unknown effect's card; None: nothing is left to say."""
    if alert.name not in IN_THREAD:
        return _Place(channel)
    effect_id, version = UUID(alert.facts["effect_id"]), int(alert.facts["version"])
    async with deps.db.connection() as conn:
        card = await unknowns.find_unknown_thread(conn, effect_id, version)
    if card is None or not card.is_open:
        return None
    return _Place(card.channel or channel, card.ts, is_there=card.ts is not None)


async def _was_posted(deps: Alerting, alert: AlertRow, place: _Place, marks: Marks) -> bool:
    oldest = f"{(alert.raised_at - timedelta(seconds=SKEW_SECONDS)).timestamp():.6f}"
    return isinstance(
        await find_marked(deps.slack, place.channel, marks, oldest=oldest, thread_ts=place.thread_ts), Found
    )


async def _mark_sent(deps: Alerting, alert: AlertRow) -> None:
    async with deps.db.connection() as conn:
        await alerts.mark_alert_sent(conn, alert.alert_id)


async def _postpone(deps: Alerting, alert: AlertRow, seconds: float) -> None:
    async with deps.db.connection() as conn:
        await alerts.postpone_alert(conn, alert, wait_seconds=seconds)


def draw_alert(
    name: str, facts: Mapping[str, Any], language: str, *, admins: Sequence[str] = ()
) -> tuple[str, list[Block]]:
    """Give an alert's text and blocks. One that has no sentence, or not all its facts, is shown as it is.

    Only what has a place for `admins` mentions anybody.
    """
    parts = {key: _part(key, value) for key, value in facts.items() if value is not None}
    parts["admins"] = tuple(Who(admin) for admin in admins)
    if name == notices.Alert.DRAFTING_FAILED:
        parts.setdefault("mend", _MENDS.get(str(facts.get("reason")), "retries"))
    try:
        what = notices.Alert(name)
    except ValueError:
        return _as_it_is(name, facts)
    places = {place for _, place, _, _ in Formatter().parse(template(language, f"alert.{what}")) if place}
    if not places <= parts.keys():
        return _as_it_is(name, facts)
    notice = notices.alert(what, language=language, **{place: parts[place] for place in places})
    return notices.fallback(notice), notices.render(notice)


def _part(key: str, value: object) -> notices.Part:
    if key == "who":
        bare = str(value).rsplit(":", 1)[-1]
        return Who(str(value), bare)
    if key in {"at", "since"}:
        try:
            return datetime.fromisoformat(str(value))
        except ValueError:
            return str(value)
    return value if isinstance(value, int) else str(value)


def _as_it_is(name: str, facts: Mapping[str, Any]) -> tuple[str, list[Block]]:
    said = ", ".join(f"{key} {value}" for key, value in facts.items())
    elements = [outside(f"{name}: {said}" if said else name, limit=1_000)]
    return message_text(elements), [rich("stet.notice", section(elements))]
