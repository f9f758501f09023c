"""What Bolt calls: every request of Slack is answered in time, and nothing that it carries is logged.

Not here: what follows from a request (buttons, modals, commands, home), or their joining (slack_app).
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from slack_bolt import BoltResponse
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.context.async_context import AsyncBoltContext

from bot.cards import modals
from bot.cards.notices import Notice, Refusal, fallback, refused, render
from bot.doors.payloads import (
    Caller,
    Command,
    Place,
    Press,
    Submission,
    Unreadable,
    find_place,
    is_for,
    read_command,
    read_press,
    read_submission,
    read_visit,
)
from bot.doors.whispers import Whispers
from bot.slack.identity import Ourselves

COMMAND: Final = "/stet"
EVENTS: Final = ("app_home_opened",)

SIGNED: Final = "stet.signed"  # In the context of a request whose signature was good.
ANSWER_SECONDS: Final = 2.8  # Slack waits 3 s; deciding has its own, shorter budget and meets this never.
COMMAND_SECONDS: Final = 2.5  # What takes longer is answered a little later at the command's own address.
LATE_SECONDS: Final = 30.0  # A kill insists for some seconds; nobody waits for an answer after that.

NOBODY: Final = Caller("", "")  # Who cannot be made out hears the language of the channels.
_ANY: Final = re.compile("")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Handlers:
    """All that the Bolt app needs. `ourselves` is what auth.test said at the start: no click waits for it.

    `language_of` says how to talk to somebody, from memory.
    `submit` gives what Slack is to do with the modal, None to close it; `answer` what the caller is told.
    """

    signing_secret: str = field(repr=False)
    ourselves: Callable[[], Ourselves | None]
    whispers: Whispers
    press: Callable[[Press], Awaitable[None]]
    submit: Callable[[Submission], Awaitable[Mapping[str, Any] | None]]
    answer: Callable[[Command], Awaitable[Notice]]
    visit: Callable[[Caller], Coroutine[Any, Any, None]]
    language_of: Callable[[Caller], str]


def build_bolt(handlers: Handlers) -> AsyncApp:
    """Build the app; slack_door mounts it. Raises BoltError without a signing secret."""

    async def authorize(context: AsyncBoltContext) -> AuthorizeResult:
        context[SIGNED] = True  # Bolt comes here after the signature, and not without.
        known = handlers.ourselves()
        return AuthorizeResult(
            enterprise_id=known.enterprise_id if known else None,
            team_id=known.team_id if known else None,
            bot_user_id=known.bot_user_id if known else None,
            bot_id=known.bot_id if known else None,
        )

    app = AsyncApp(
        name="stet",
        logger=_quiet_logger(),
        process_before_response=True,  # Bolt looks for our answer every 10 ms otherwise.
        raise_error_for_unhandled_request=True,  # So that what nothing listens to is answered too.
        signing_secret=handlers.signing_secret,
        authorize=authorize,
        ignoring_self_events_enabled=False,
        attaching_function_token_enabled=False,
        attaching_conversation_kwargs_enabled=False,
    )
    listeners = _Listeners(handlers)
    app.action(_ANY)(listeners.on_press)
    app.view(_ANY)(listeners.on_submission)
    app.command(COMMAND)(listeners.on_command)
    for event in EVENTS:
        app.event(event)(listeners.on_visit)
    app.error(listeners.on_error)
    return app


def tell_unreadable(handlers: Handlers, body: object) -> None:
    """Tell whoever sent something signed of no shape that we know, if they can be made out."""
    place = find_place(body)
    if place is not None:
        handlers.whispers.tell(
            place, refused(Refusal.UNKNOWN_BUTTON, language=handlers.language_of(place.caller))
        )


class _Listeners:
    """What Bolt calls. None of them raises, before or after the answer: Bolt would lose the answer."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    async def on_press(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        """A button. The answer to Slack says nothing; whatever there is to say goes to the person."""

        async def work() -> None:
            self._check(body)
            await self._handlers.press(read_press(body))

        escaped = await self._guarded(work())
        if escaped is not None:
            self._tell(find_place(body), escaped)
        await ack()

    async def on_submission(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        """A modal; the answer says what becomes of it."""
        answer: dict[str, Any] = {}

        async def work() -> None:
            self._check(body)
            answer.update(await self._handlers.submit(read_submission(body)) or {})

        escaped = await self._guarded(work())
        if escaped is not None:
            view = modals.tell(self._refused(escaped, find_place(body)))
            answer = {"response_action": "update", "view": view}
        await (ack(answer) if answer else ack())

    async def on_command(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        """/stet; answered to the caller alone, at once or, when it takes long, a little later."""
        try:
            command = read_command(body)
        except Unreadable:
            return await self._say(ack, self._refused(Refusal.NOT_KNOWN_YET, None))
        task = asyncio.ensure_future(self._handlers.answer(command))
        done, _ = await asyncio.wait({task}, timeout=COMMAND_SECONDS)
        if done:
            return await self._say(ack, task.result())
        self._handlers.whispers.later(self._say_late(task, command.place))
        await ack()
        return None

    async def on_visit(self, ack: AsyncAck, body: dict[str, Any]) -> None:
        """App Home; drawn after the answer, for Slack would send the event again if it took long."""
        try:
            caller = read_visit(body)
        except Unreadable:
            caller = None
        if caller is not None:
            self._handlers.whispers.later(self._handlers.visit(caller))
        await ack()

    async def on_error(
        self, error: Exception, body: dict[str, Any], context: AsyncBoltContext
    ) -> BoltResponse:
        """Whatever Bolt itself could make nothing of, be it the signature: then nobody is told anything."""
        log.warning("a request from Slack was not understood", extra={"fault": type(error).__name__})
        if not context.get(SIGNED):
            return BoltResponse(status=401, body="")
        tell_unreadable(self._handlers, body)
        return BoltResponse(status=200, body="")

    async def _guarded(self, work: Awaitable[None]) -> Refusal | None:
        """Do the work in time; give what to tell the person if it did not come to its own answer."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await work
        except Unreadable:
            return Refusal.UNKNOWN_BUTTON
        except TimeoutError:
            return Refusal.NOT_KNOWN_YET
        except Exception as fault:  # noqa: BLE001 - the person must hear something, the log its class only
            log.error("an interaction failed", extra={"fault": type(fault).__name__})  # noqa: TRY400
            return Refusal.NOT_KNOWN_YET
        return None

    def _check(self, body: Mapping[str, Any]) -> None:
        """Until Slack has told who we are nobody may decide anything, whatever a payload says."""
        ourselves = self._handlers.ourselves()
        if ourselves is not None and not is_for(body, ourselves):
            raise Unreadable("app")

    def _tell(self, place: Place | None, why: Refusal) -> None:
        if place is not None:
            self._handlers.whispers.tell(place, self._refused(why, place))

    def _refused(self, why: Refusal, place: Place | None) -> Notice:
        caller = place.caller if place is not None else NOBODY
        return refused(why, language=self._handlers.language_of(caller))

    async def _say(self, ack: AsyncAck, notice: Notice) -> None:
        await ack(text=fallback(notice), blocks=render(notice), response_type="ephemeral")

    async def _say_late(self, task: asyncio.Future[Notice], place: Place) -> None:
        async with asyncio.timeout(LATE_SECONDS):
            notice = await task
        self._handlers.whispers.tell(place, notice)


def _quiet_logger() -> logging.Logger:
    """Bolt logs a badly signed request whole, at INFO; its loggers copy level and filter from here."""
    logger = logging.getLogger("stet.slack.bolt")
    logger.setLevel(logging.ERROR)
    if not logger.filters:
        logger.addFilter(lambda record: record.levelno >= logging.ERROR)
    return logger
