"""What each button does: decide, open a window, turn a page, settle an unknown effect; always with an answer.

Not here: deciding (bot/flow/decide), tokens of windows (bot/flow/open), submitted modals (modals).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from bot.cards.notices import Done, Notice, Refusal, done, refused
from bot.cards.reading import part_of_action
from bot.contracts import click as carried
from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision, Surface, decode_effect_value, decode_value
from bot.doors.callers import About, Callers, name_person, record_refusal
from bot.doors.payloads import Press
from bot.doors.verdicts import WOKEN, say_decided, say_refused
from bot.doors.windows import Windows
from bot.flow import open as opening
from bot.flow.cancel import cancel
from bot.flow.decide import Decided, decide
from bot.flow.judging import Deciding
from bot.flow.next import Wanted, open_next
from bot.flow.open import Opened, Opening
from bot.flow.reconcile import Choice, Resolved, settle_unknown
from bot.flow.undo import undo
from bot.policy.people import NotAllowed
from store.errors import CommitUnknown, DatabaseAway, DatabaseBusy
from store.unknowns import find_unknown_card

DRAW_SECONDS: Final = 1.3  # With OPEN_SECONDS for Slack's side this ends before the 3 s that a trigger lives.
CHOICES: Final = {
    carried.UNKNOWN_DELIVERED_ACTION: Choice.DELIVERED,
    carried.UNKNOWN_RESEND_ACTION: Choice.RESEND,
    carried.UNKNOWN_DROP_ACTION: Choice.DROP,
    carried.UNKNOWN_GIVE_UP_ACTION: Choice.GIVE_UP,
}
# Nothing was asked that somebody was refused: these are not recorded when a decision meets them either.
_NO_REFUSAL: Final = frozenset({Why.UNKNOWN_BUTTON, Why.TOO_SLOW, Why.AWAY, Why.NONE_WAITING})
# What waited for the end of an unknown effect goes on.
SETTLED: Final = ("show", "dispatch", "draft", "resume")


@dataclass(frozen=True, slots=True)
class Buttons:
    """What pressing needs."""

    deciding: Deciding
    opening: Opening
    callers: Callers
    windows: Windows
    wake: Callable[..., None]
    language: str = "en"


async def press(deps: Buttons, pressed: Press) -> None:
    """Do what one press asks for. Slack is answered when this returns: a decision has committed by then."""
    part = part_of_action(pressed.action_id)
    if part is not None:
        return await _read(deps, pressed, part)
    match pressed.action_id:
        case carried.APPROVE_ACTION:
            return await _approve(deps, pressed)
        case carried.REJECT_ACTION | carried.EDIT_ACTION | carried.REDRAFT_ACTION as asking:
            return await _ask(deps, pressed, carried.ACTION_DECISIONS[asking])
        case carried.CANCEL_ACTION:
            return await _cancel(deps, pressed)
        case action if carried.is_undo_action(action):
            return await _undo(deps, pressed)
        case carried.READ_ACTION:
            return await _read(deps, pressed, 1)
        case carried.QUEUE_NEXT_ACTION:
            return await _next(deps, pressed)
        case action if action in CHOICES:
            return await _settle(deps, pressed, CHOICES[action])
        case _:
            return deps.windows.tell(pressed, refused(Refusal.UNKNOWN_BUTTON, language=deps.language))


async def _approve(deps: Buttons, pressed: Press) -> None:
    click = _click(pressed, Decision.APPROVE)
    answer = NotDecided(Why.UNKNOWN_BUTTON) if click is None else await decide(deps.deciding, click)
    if isinstance(answer, Decided):
        deps.wake(*WOKEN)
        # On a message the card itself says so; a vote that has not decided, and a modal, need a word.
        if not answer.voted.reached or pressed.surface is not Surface.MESSAGE:
            deps.windows.tell(pressed, say_decided(answer, deps.language))
    elif answer.why == Why.TYPED_WRONG:
        await _ask(deps, pressed, Decision.APPROVE)
    else:
        deps.windows.tell(pressed, say_refused(answer, deps.language))


async def _cancel(deps: Buttons, pressed: Press) -> None:
    click = _click(pressed, Decision.CANCEL)
    answer = NotDecided(Why.UNKNOWN_BUTTON) if click is None else await cancel(deps.deciding, click)
    if isinstance(answer, NotDecided):
        return deps.windows.tell(pressed, say_refused(answer, deps.language))
    deps.wake("show", "resume")
    return deps.windows.tell(pressed, done(Done.CANCELLED, language=deps.language))


async def _undo(deps: Buttons, pressed: Press) -> None:
    click = _click(pressed, Decision.UNDO)
    answer = NotDecided(Why.UNKNOWN_BUTTON) if click is None else await undo(deps.deciding, click)
    if isinstance(answer, NotDecided):
        return deps.windows.tell(pressed, say_refused(answer, deps.language))
    deps.wake("show", "dispatch")
    return deps.windows.tell(pressed, done(Done.UNDOING, language=deps.language))


async def _ask(deps: Buttons, pressed: Press, decision: Decision) -> None:
    """Open the window whose answer will decide. Nothing slow comes before it: the trigger lives 3 s."""
    click = _click(pressed, decision)
    answer = (
        NotDecided(Why.UNKNOWN_BUTTON) if click is None else await _in_time(opening.ask(deps.opening, click))
    )
    if isinstance(answer, Opened):
        await deps.windows.open(pressed, answer.view)
    else:
        await _refuse(deps, pressed, answer, str(decision))


async def _read(deps: Buttons, pressed: Press, part: int) -> None:
    """Open the whole draft, or turn to another part of it in the window that is open."""
    click = _click(pressed, Decision.APPROVE)  # Whatever it says: reading does not look at it.
    if click is None:
        return deps.windows.tell(pressed, refused(Refusal.UNKNOWN_BUTTON, language=deps.language))
    answer = await _in_time(opening.read(deps.opening, click, part=part))
    if not isinstance(answer, Opened):
        return await _refuse(deps, pressed, answer, "read")
    if pressed.surface is Surface.VIEW:
        return deps.windows.turn(pressed, answer.view)
    return await deps.windows.open(pressed, answer.view)


async def _next(deps: Buttons, pressed: Press) -> None:
    """Open the next draft in line, from the queue card or in place of one that is passed over."""
    caller, passed = pressed.place.caller, None
    if pressed.surface is Surface.VIEW:
        passed = _click(pressed, Decision.APPROVE)  # Whatever it says: passing over does not look at it.
    wanted = Wanted(caller.team_id, caller.user_id, pressed.place.channel, passed)
    answer = await _in_time(open_next(deps.opening, wanted))
    if not isinstance(answer, Opened):
        return await _refuse(deps, pressed, answer, "next")
    if pressed.surface is Surface.VIEW:
        return deps.windows.turn(pressed, answer.view)
    return await deps.windows.open(pressed, answer.view)


async def _in_time(work: Awaitable[Opened | NotDecided]) -> Opened | NotDecided:
    """Give up while the trigger still lives and the person can still be told."""
    try:
        async with asyncio.timeout(DRAW_SECONDS):
            return await work
    except TimeoutError:
        return NotDecided(Why.TOO_SLOW)


async def _refuse(deps: Buttons, pressed: Press, answer: NotDecided, wanted: str) -> None:
    """Tell the person; who may not even ask goes on the record, as who may not decide does.

    That is written after Slack has its answer: opening has used up the time there was.
    """
    deps.windows.tell(pressed, say_refused(answer, deps.language))
    if answer.why in _NO_REFUSAL:
        return
    carries = decode_value(pressed.value)
    about = About(token=carries.token if carries is not None else None)
    detail = {"decision": wanted, "why": answer.why}
    work = record_refusal(deps.deciding.db, pressed.place.caller, detail, about)
    deps.windows.whispers.later(work)


async def _settle(deps: Buttons, pressed: Press, choice: Choice) -> None:
    deps.windows.tell(pressed, await _settled(deps, pressed, choice))


async def _settled(deps: Buttons, pressed: Press, choice: Choice) -> Notice:
    value = decode_effect_value(pressed.value)
    if value is None:
        return refused(Refusal.UNKNOWN_BUTTON, language=deps.language)
    admin = await deps.callers.admin(pressed.place.caller)
    if isinstance(admin, NotAllowed):
        detail = {"wanted": f"unknown_{choice}", "why": admin.reason, "effect_id": str(value.effect_id)}
        about = About(effect_id=value.effect_id)
        await record_refusal(deps.deciding.db, pressed.place.caller, detail, about)
        return refused(Refusal(admin.reason), language=deps.language)
    try:
        if not await _is_from_its_card(deps, pressed, value.effect_id):
            return refused(Refusal.WRONG_SURFACE, language=deps.language)
        resolved = await settle_unknown(
            deps.deciding.db, value.effect_id, value.version, choice=choice, by=name_person(admin)
        )
    except CommitUnknown:
        return refused(Refusal.NOT_KNOWN_YET, language=deps.language)
    except DatabaseBusy:
        return refused(Refusal.TOO_SLOW, language=deps.language)
    except DatabaseAway:
        return refused(Refusal.AWAY, language=deps.language)
    deps.wake(*SETTLED)
    if isinstance(resolved, Resolved):
        return done(Done.SETTLED, language=deps.language)
    return refused(Refusal.EFFECT_MOVED, language=deps.language)


async def _is_from_its_card(deps: Buttons, pressed: Press, effect_id: UUID) -> bool:
    """Whether the three answers stood there: on the effect's card, or on an admin's Home."""
    if pressed.surface is not Surface.MESSAGE:
        return pressed.surface is Surface.HOME
    async with deps.deciding.db.connection() as conn:
        card = await find_unknown_card(conn, effect_id)
    # Until a post's answer is recorded the card has no ts: then its channel decides.
    return card is not None and card.channel == pressed.place.channel and card.ts in (None, pressed.ts)


def _click(pressed: Press, decision: Decision) -> Click | None:
    """The press as an answer; None if its value was never ours."""
    value = decode_value(pressed.value)
    if value is None:
        return None
    return Click(
        token=value.token,
        revision=value.revision,
        decision=decision,
        team_id=pressed.place.caller.team_id,
        user_id=pressed.place.caller.user_id,
        surface=pressed.surface,
        channel=pressed.place.channel,
        ts=pressed.ts,
    )
