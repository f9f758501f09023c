"""One harness a connector: how to build it against a far side that obeys orders.

Not here: what every connector must do (test_connectors). A new connector brings its harness here.
"""

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from bot.connectors.connector import Connector, Effect, Kit
from bot.connectors.resume import build as build_resume
from bot.connectors.slack_message import build as build_slack
from bot.connectors.smtp import build as build_smtp
from bot.demo import slack_faults as fault
from bot.demo import world as far
from bot.demo.mail import PostOffice, Trouble, serve_mail
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import C_REVIEW
from bot.demo.world import Fault, status
from bot.demo.world_server import WorldServer, serve_world
from bot.environment import MailServer
from bot.slack.client import SlackClient
from tests.connectors.effects import look_up_at, make_effect, make_http, make_kit, webhook

HANG_SECONDS = 0.2
POST = "chat.postMessage"
MAIL = b'{"output":{"subject":"About your parcel","body":"It ships Monday."}}'


class Harness(Protocol):
    """A connector, an effect for it, and a far side with five manners."""

    connector: Connector
    can_look_up: bool

    def effect(self, **policy: Any) -> Effect:
        """An effect that this connector performs."""

    def healthy(self) -> None:
        """From now on the far side confirms."""

    def refusing(self) -> None:
        """From now on it says a plain no."""

    def losing_answers(self) -> None:
        """From now on it does the work and drops the line."""

    def hanging(self) -> None:
        """From now on it does the work and never answers."""

    async def reached(self) -> None:
        """Wait until something has arrived over there."""

    def away(self) -> None:
        """From now on the effects made go where nobody listens."""

    def done(self) -> int:
        """How often the work was done over there."""


@dataclass(slots=True)
class HttpHarness:
    """The http connector against the demo's world."""

    world: WorldServer
    connector: Connector
    can_look_up: bool = True
    target: str = ""

    def effect(self, **policy: Any) -> Effect:
        target = self.target or webhook(self.world)
        return make_effect(target, **{"lookup": look_up_at(self.world), "timeout_seconds": 5, **policy})

    def healthy(self) -> None:
        self.world.world.behave()

    def refusing(self) -> None:
        self.world.world.misbehave(far.WEBHOOK + "send-mail", status(403))

    def losing_answers(self) -> None:
        self.world.world.misbehave(far.WEBHOOK + "send-mail", Fault(far.DROP))

    def hanging(self) -> None:
        self.world.world.misbehave(far.WEBHOOK + "send-mail", Fault(far.HANG))

    async def reached(self) -> None:
        await self.world.arrived()

    def away(self) -> None:
        self.target = "http://127.0.0.1:1/"  # port 1: below what the kernel hands out, and nobody's

    def done(self) -> int:
        return len(self.world.world.done())


@asynccontextmanager
async def http_harness() -> AsyncIterator[Harness]:
    """A world and the connector that may reach it."""
    async with serve_world() as world:
        yield HttpHarness(world, make_http())


@dataclass(slots=True)
class ResumeHarness:
    """The resume connector against an execution that waits in the demo's world."""

    world: WorldServer
    connector: Connector
    can_look_up: bool = False
    target: str = ""

    def effect(self, **policy: Any) -> Effect:
        target = self.target or self.world.url + self.world.world.wait_at(
            "17", token="s3cret", suffix="gate-1"
        )
        return make_effect(target, **{"type": "resume", "response_id": None, "timeout_seconds": 5, **policy})

    def healthy(self) -> None:
        self.world.world.behave()

    def refusing(self) -> None:
        self.world.world.misbehave(far.WAITING, status(403))

    def losing_answers(self) -> None:
        self.world.world.misbehave(far.WAITING, Fault(far.DROP))

    def hanging(self) -> None:
        self.world.world.misbehave(far.WAITING, Fault(far.HANG))

    async def reached(self) -> None:
        await self.world.arrived()

    def away(self) -> None:
        self.target = "http://127.0.0.1:1/webhook-waiting/17/gate-1"  # as above

    def done(self) -> int:
        return len(self.world.world.done())


@asynccontextmanager
async def resume_harness() -> AsyncIterator[Harness]:
    """A world where an execution waits, and the connector that may reach it."""
    async with serve_world() as world:
        yield ResumeHarness(world, build_resume(make_kit()))


@dataclass(slots=True)
class SmtpHarness:
    """The smtp connector against the demo's mail server."""

    office: PostOffice
    connector: Connector
    nobody: Connector
    can_look_up: bool = False

    def effect(self, **policy: Any) -> Effect:
        return make_effect("post.example", body=MAIL, **{"type": "smtp", "timeout_seconds": 5, **policy})

    def healthy(self) -> None:
        self.office.behave()

    def refusing(self) -> None:
        self.office.misbehave("rcpt", Trouble("550 5.1.1 nobody here"))

    def losing_answers(self) -> None:
        self.office.misbehave("dot", Trouble(done=True))

    def hanging(self) -> None:
        self.office.misbehave("dot", Trouble(hang=True, done=True))

    async def reached(self) -> None:
        await self.office.reached(".")

    def away(self) -> None:
        self.connector = self.nobody

    def done(self) -> int:
        return len(self.office.mails)


@asynccontextmanager
async def smtp_harness() -> AsyncIterator[Harness]:
    """A mail server, and connectors that hand in there and where nobody listens."""
    with closed_port() as port:
        async with serve_mail() as office:
            here = Kit(
                mail_server=MailServer("127.0.0.1", office.port, tls=False), mail_from="us@stet.example"
            )
            nowhere = Kit(mail_server=MailServer("127.0.0.1", port, tls=False), mail_from="us@stet.example")
            yield SmtpHarness(office, build_smtp(here), build_smtp(nowhere))


@dataclass(slots=True)
class SlackHarness:
    """The slack_message connector against the Slack stand-in."""

    slack: SlackStandIn
    connector: Connector
    nobody: Connector
    can_look_up: bool = True
    hang: fault.Fault = field(default_factory=lambda: fault.hanging(after_work=True))

    def effect(self, **policy: Any) -> Effect:
        made = make_effect(C_REVIEW, body=MAIL, **{"type": "slack_message", "timeout_seconds": 5, **policy})
        return replace(made, recipient=None)

    def healthy(self) -> None:
        self.slack.faults.clear()

    def refusing(self) -> None:
        self.slack.faults.always(POST, fault.says("restricted_action"))

    def losing_answers(self) -> None:
        self.slack.faults.always(POST, fault.dropped(after_work=True))

    def hanging(self) -> None:
        self.slack.faults.always(POST, self.hang)

    async def reached(self) -> None:
        await self.hang.reached.wait()

    def away(self) -> None:
        self.connector = self.nobody

    def done(self) -> int:
        return len(self.slack.state.channel_messages(C_REVIEW))


@asynccontextmanager
async def slack_harness() -> AsyncIterator[Harness]:
    """A Slack, and clients that reach it and nobody."""
    with closed_port() as port:
        async with SlackStandIn(rate_factor=None) as slack:
            here = SlackClient(slack.state.workspace.token, base_url=slack.api_url)
            nowhere = SlackClient(slack.state.workspace.token, base_url=f"http://127.0.0.1:{port}/api/")
            await here.open()
            yield SlackHarness(slack, build_slack(Kit(slack=here)), build_slack(Kit(slack=nowhere)))
            await here.close()


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that is taken, and where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


HARNESSES: dict[str, Callable[[], AbstractAsyncContextManager[Harness]]] = {
    "http": http_harness,
    "resume": resume_harness,
    "smtp": smtp_harness,
    "slack_message": slack_harness,
}
