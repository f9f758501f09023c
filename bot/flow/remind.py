"""Reminds the people of a card that nobody answers: one line in its thread, at last whoever it is put to.

Not here: the end of a draft that nobody decides (expire), or the words of a reminder (bot/cards/notices).
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from bot.cards import notices
from bot.cards.draft import title_of
from bot.cards.lives import Who
from bot.cards.notices import Notice, Part, Thread
from bot.cards.views import Channel
from bot.flow.setback import GONE_ERRORS, raise_channel_alert
from bot.flow.turns import POST, UPDATE
from bot.policy.kinds import Kind
from bot.slack.answer import SlackAnswer, SlackLimited, SlackNotDelivered, SlackOk, SlackRefused, SlackUnknown
from bot.slack.client import SlackClient
from bot.slack.pace import Pace
from store import reminders
from store.database import Database
from store.errors import LostRace
from store.reminders import Due, Unreminded

log = logging.getLogger(__name__)

BATCH: Final = 20  # One post a second goes into a channel, and cards come first: more would only wait.


class Kinds(Protocol):
    """Today's policy (bot/wiring)."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds by name."""
        ...


@dataclass(frozen=True, slots=True)
class Reminding:
    """What reminding needs; the pace is the process's own."""

    db: Database
    slack: SlackClient
    pace: Pace
    policy: Kinds
    language: str = "en"
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class _Call:
    """One reminder on its way: a post, or an edit of the line there is."""

    notice: Notice
    channel: str
    thread_ts: str | None
    edits: str | None = None

    @property
    def method(self) -> str:
        return UPDATE if self.edits else POST


async def run_once(deps: Reminding) -> int:
    """Post up to BATCH reminders that are due; give how many were taken.

    A term's first reminder is a line in the card's thread, later ones edit it. Since an edit notifies nobody,
    the last one is a line of its own that mentions `escalate_to`, where the kind names somebody. Each is
    taken before it is posted, so at most one of a number comes; of several that fell due only the last.
    """
    due = list(_due(deps.policy))
    if not due:
        return 0
    async with deps.db.connection() as conn:
        found = await reminders.list_unreminded(conn, due, most=BATCH)
    return sum([await _remind(deps, draft) for draft in found])


def _due(policy: Kinds) -> Iterator[Due]:
    for name, kind in policy.kinds.items():
        for number, after_seconds in enumerate(sorted(kind.remind_after_seconds)):
            yield Due(name, number, float(after_seconds))


async def _remind(deps: Reminding, draft: Unreminded) -> bool:
    kind = deps.policy.kinds[draft.kind]
    number = sum(after <= draft.waited_seconds for after in kind.remind_after_seconds)
    call = _call(deps, kind, draft, number)
    if deps.pace.take(call.method, channel=call.channel, now=deps.clock()) > 0:
        return False
    try:
        async with deps.db.connection() as conn:
            await reminders.take_reminder(conn, draft, number=number)
    except LostRace:
        return False
    answer = await _send(deps, call)
    if call.edits and isinstance(answer, SlackRefused) and answer.error in GONE_ERRORS:
        call = _Call(call.notice, draft.channel, draft.ts)
        answer = await _send(deps, call)
    await _record(deps, draft, number, call, answer)
    return True


def _call(deps: Reminding, kind: Kind, draft: Unreminded, number: int) -> _Call:
    if kind.escalate_to is not None and number == len(kind.remind_after_seconds):
        return _escalation(deps, draft, kind.escalate_to)
    expires = draft.expires_at
    if draft.reminder_ts is None:
        notice = notices.thread(Thread.REMINDER, language=deps.language, expires=expires)
        return _Call(notice, draft.channel, draft.ts)
    notice = notices.thread(Thread.REMINDED_AGAIN, language=deps.language, count=number, expires=expires)
    return _Call(notice, draft.channel, draft.ts, edits=draft.reminder_ts)


def _escalation(deps: Reminding, draft: Unreminded, whom: str) -> _Call:
    """Mention a person or group in the thread; another channel is told where the card stands."""
    if whom[0] in "CG":
        kind = title_of(draft.kind)
        there: dict[str, Part] = {"where": Channel(draft.channel), "kind": kind, "entity": draft.entity}
        notice = notices.thread(
            Thread.ESCALATED_THERE, language=deps.language, expires=draft.expires_at, **there
        )
        return _Call(notice, whom, None)
    notice = notices.thread(Thread.ESCALATED, language=deps.language, who=Who(whom), expires=draft.expires_at)
    return _Call(notice, draft.channel, draft.ts)


async def _send(deps: Reminding, call: _Call) -> SlackAnswer:
    text, blocks = notices.fallback(call.notice), notices.render(call.notice)
    if call.edits:
        answer = await deps.slack.update(call.channel, call.edits, text=text, blocks=blocks)
    else:
        answer = await deps.slack.post(call.channel, text=text, blocks=blocks, thread_ts=call.thread_ts)
    return deps.pace.heard(call.method, answer, channel=call.channel, now=deps.clock())


async def _record(deps: Reminding, draft: Unreminded, number: int, call: _Call, answer: SlackAnswer) -> None:
    """Keep where the line stands; what was proven not to be posted is due again, anything else is not."""
    match answer:
        case SlackOk(data=data) if call.edits is None and call.channel == draft.channel:
            async with deps.db.connection() as conn:
                await reminders.keep_reminder_line(conn, draft, str(data["ts"]))
        case SlackOk():
            return
        case SlackLimited() | SlackNotDelivered():
            async with deps.db.connection() as conn:
                await reminders.give_reminder_back(conn, draft, number=number)
        case SlackRefused(error=word) if call.channel != draft.channel:
            # Nobody else would hear of it: of its own channel the card tells.
            async with deps.db.connection() as conn:
                await raise_channel_alert(conn, call.channel, word)
        case SlackRefused(error=word) | SlackUnknown(reason=word):
            log.warning("a reminder was not posted", extra={"draft_id": str(draft.draft_id), "reason": word})
