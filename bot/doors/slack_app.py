"""Joins the doors that Slack comes in by: the Bolt app, its address or socket, what a stop has to wait for.

Not here: what each of them does (buttons, modals, commands, home).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from pydantic import SecretStr
from slack_bolt.async_app import AsyncApp
from starlette.routing import Route

from bot.cards.words import TABLES
from bot.doors import buttons, commands, home, modals, slack_door
from bot.doors.callers import Callers, PolicyHolder
from bot.doors.listeners import Handlers, build_bolt
from bot.doors.socket_door import SocketDoor
from bot.doors.switching import Switching
from bot.doors.tongues import Interpreter, Spoken, Tongues
from bot.doors.whispers import WHISPER_SECONDS, Whispers
from bot.doors.windows import Windows
from bot.flow.home import Homes, Homing
from bot.flow.judging import Deciding
from bot.flow.open import Opening
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.slack.identity import Identity
from bot.slack.pace import Pace
from bot.slack.people import People
from bot.slack.socket import Socket
from store.database import Database


@dataclass(frozen=True, slots=True)
class SlackDeps:
    """What the doors need of the rest. `wake` starts the steps of these names at once."""

    db: Database
    slack: SlackClient
    people: People
    policy: PolicyHolder
    identity: Identity
    settings: Settings
    effect_types: Collection[str]
    wake: Callable[..., None]
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class SlackDoors:
    """The doors as they stand: `routes` for HTTP, or, in Socket Mode, `socket` and no route at all."""

    app: AsyncApp
    routes: list[Route]
    whispers: Whispers
    homes: Homes
    socket: Socket | None = None

    def reachable(self) -> bool:
        """Whether Slack can reach us, as far as it is for us to keep a line open."""
        return self.socket is None or self.socket.connected()

    async def connect(self) -> str | None:
        """In Socket Mode open the line; give Slack's word if it says that the app token will never do."""
        return await self.socket.start() if self.socket is not None else None

    async def hang_up(self, grace_seconds: float) -> None:
        """In Socket Mode answer what is in hand and close the line."""
        if self.socket is not None:
            await self.socket.stop(grace_seconds)

    async def settle(self, grace_seconds: float = WHISPER_SECONDS) -> None:
        """Wait for the notes that are still on their way, when nothing comes in any more."""
        await self.whispers.settle(grace_seconds)


def build_slack_doors(deps: SlackDeps) -> SlackDoors:
    """Build every door. Raises BoltError without a signing secret."""
    whispers = Whispers(deps.slack)
    callers = Callers(
        deps.people,
        deps.policy,
        deps.identity.home_team,
        admins=deps.settings.admin_users,
        killers=deps.settings.kill_users,
    )
    tongues = Tongues(deps.people, deps.settings.language)
    homes = _homes(deps, callers)
    deciding = Deciding(deps.db, deps.people, deps.policy, deps.identity.home_team)
    shared = _Shared(deps, callers, whispers, homes, deciding)
    heard = Interpreter(tongues, {language: _spoken(shared, language) for language in TABLES})
    handlers = Handlers(
        signing_secret=_text(deps.settings.slack_signing_secret),
        ourselves=lambda: deps.identity.ourselves,
        whispers=whispers,
        press=heard.press,
        submit=heard.submit,
        answer=heard.answer,
        visit=heard.visit,
        language_of=tongues.known,
    )
    app = build_bolt(handlers)
    token = deps.settings.slack_app_token
    if token is None:
        return SlackDoors(app, slack_door.routes(app, handlers), whispers, homes)
    # Slack sends by the socket alone: what comes to the address of HTTP then is not from Slack.
    caller = SlackClient(token.get_secret_value(), base_url=deps.settings.slack_api_url)
    return SlackDoors(app, [], whispers, homes, Socket(caller, SocketDoor(app, handlers).take))


@dataclass(frozen=True, slots=True)
class _Shared:
    """What is the same in every language."""

    deps: SlackDeps
    callers: Callers
    whispers: Whispers
    homes: Homes
    deciding: Deciding


def _spoken(shared: _Shared, language: str) -> Spoken:
    """Everything that a person is answered by, in one language."""
    deps, callers = shared.deps, shared.callers
    asked = commands.Commands(deps.db, callers, _switching(deps, language), language)
    pressing = buttons.Buttons(
        deciding=shared.deciding,
        opening=Opening(deps.db, deps.people, deps.policy, deps.identity.home_team, language),
        callers=callers,
        windows=Windows(deps.slack, shared.whispers, partial(home.say, shared.homes, deps.slack), language),
        wake=deps.wake,
        language=language,
    )
    visited = home.Home(shared.homes, shared.whispers, deps.slack, partial(buttons.press, pressing), language)
    return Spoken(
        press=partial(home.press, visited),
        submit=partial(modals.submit, modals.Modals(shared.deciding, deps.wake, language)),
        answer=partial(commands.answer, asked),
        visit=partial(home.visit, visited),
    )


def _homes(deps: SlackDeps, callers: Callers) -> Homes:
    return Homes(
        Homing(
            db=deps.db,
            slack=deps.slack,
            pace=deps.pace,
            standing=partial(home.find_standing, callers),
            switch=_switching(deps, deps.settings.language).view,
            actions_enabled=deps.settings.ai_actions_enabled,
            language=deps.settings.language,
        )
    )


def _switching(deps: SlackDeps, language: str) -> Switching:
    return Switching(
        db=deps.db,
        policy=deps.policy,
        effect_types=deps.effect_types,
        actions_enabled=deps.settings.ai_actions_enabled,
        wake=deps.wake,
        language=language,
    )


def _text(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""
