"""The far side of the smtp connector: a real mail server that breaks off at any step.

Not here: what is in a mail (tests/connectors/test_smtp).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from bot.connectors import submission
from bot.connectors.connector import Connector, Effect, Kit, perform
from bot.connectors.smtp import build as build_smtp
from bot.contracts.outcome import SendOutcome
from bot.demo.mail import CUT, PostOffice, Trouble, serve_mail
from bot.environment import MailServer
from tests.conformance.far import HANG_SECONDS, Scene, closed_port
from tests.connectors.effects import make_effect, resolves_to
from tests.connectors.test_smtp import AMY, WITH_LOGIN, client_tls, server_tls, to_sink

MAIL = b'{"output":{"subject":"About your parcel","body":"It ships Monday."}}'
HANG = Trouble(hang=True)
DOOR, ENVELOPE = ("greeting", "ehlo"), ("mail", "rcpt", "data")
EARLY = (*DOOR, *ENVELOPE)


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
async def harness() -> AsyncIterator[SmtpHarness]:
    """A mail server, and connectors that hand in there and where nobody listens."""
    with closed_port() as port:
        async with serve_mail() as office:
            here = Kit(
                mail_server=MailServer("127.0.0.1", office.port, tls=False), mail_from="us@stet.example"
            )
            nowhere = Kit(mail_server=MailServer("127.0.0.1", port, tls=False), mail_from="us@stet.example")
            yield SmtpHarness(office, build_smtp(here), build_smtp(nowhere))


def at_steps(trouble: Trouble, *steps: str, seconds: float = 5) -> Scene:
    """The same trouble at one step after another."""

    async def scene(harness: SmtpHarness) -> list[SendOutcome]:
        outcomes = []
        for step in steps:
            harness.office.behave()
            harness.office.misbehave(step, trouble)
            outcomes.append(await perform(harness.connector, harness.effect(timeout_seconds=seconds)))
        return outcomes

    return scene


def each(*scenes: Scene) -> Scene:
    """One after the other."""

    async def scene(harness: SmtpHarness) -> list[SendOutcome]:
        return [outcome for part in scenes for outcome in await part(harness)]

    return scene


def saying(output: Any, recipient: str | None = "ann@example.com") -> Scene:
    """A mail with this in it."""

    async def scene(harness: SmtpHarness) -> list[SendOutcome]:
        made = replace(harness.effect(), body=json.dumps({"output": output}).encode(), recipient=recipient)
        return [await perform(harness.connector, made)]

    return scene


def built(**kit: Any) -> Scene:
    """A connector with another kit; the server is the harness's where none is given."""

    async def scene(harness: SmtpHarness) -> list[SendOutcome]:
        here = MailServer("127.0.0.1", harness.office.port, tls=False)
        made = build_smtp(Kit(**{"mail_server": here, "mail_from": "us@stet.example", **kit}))
        return [await perform(made, harness.effect())]

    return scene


def refusing_login(office: PostOffice, trouble: Trouble | None = None, **login: Any) -> Scene:
    """A login at a server of its own."""

    async def scene(harness: SmtpHarness) -> list[SendOutcome]:
        async with serve_mail(office) as there:
            if trouble is not None:
                there.misbehave("auth", trouble)
            outcome = await perform(to_sink(there, **(WITH_LOGIN | login)), harness.effect())
            assert there.mails == []
        return [outcome]

    return scene


async def securing(harness: SmtpHarness, trouble: Trouble | None, seconds: float = 5) -> SendOutcome:
    """STARTTLS with trouble, or with a certificate that nobody vouches for."""
    async with serve_mail(PostOffice(tls=server_tls())) as office:
        if trouble is None:
            here = MailServer("127.0.0.1", office.port, tls=False)
            stranger = build_smtp(Kit(mail_server=here, mail_from="us@stet.example", tls=client_tls()))
            return await perform(stranger, harness.effect())
        office.misbehave("starttls", trouble)
        return await perform(to_sink(office), harness.effect(timeout_seconds=seconds))


async def no_tls(harness: SmtpHarness) -> list[SendOutcome]:
    """The line is cut at STARTTLS, or the certificate is of somebody else."""
    return [await securing(harness, CUT), await securing(harness, None)]


async def no_connection_in_time(harness: SmtpHarness) -> list[SendOutcome]:
    """A resolver that never answers, and a handshake that never ends."""

    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    there = MailServer("post.example", 25, tls=False)
    deaf = build_smtp(Kit(mail_server=there, mail_from="us@stet.example", resolve=never))
    return [
        await perform(deaf, harness.effect(timeout_seconds=HANG_SECONDS)),
        await securing(harness, HANG, seconds=1),
    ]


async def nobody_listens(harness: SmtpHarness) -> list[SendOutcome]:
    """A port that is taken, and where nobody listens."""
    return [await perform(harness.nobody, harness.effect())]


async def open_line(harness: SmtpHarness) -> list[SendOutcome]:
    """A password for another machine, and no TLS offered."""
    with mock.patch.object(submission, "_is_here", return_value=False):
        return await refusing_login(PostOffice(login=AMY))(harness)


SCENES: dict[str, Scene] = {
    "mail_not_set": each(built(mail_server=None), built(mail_from=None)),
    "bad_sender": each(*(built(mail_from=text) for text in ("us", "Us <us>"))),
    "bad_recipient": each(
        *(saying({"subject": "x", "body": "x"}, who) for who in (None, "a@b.c, d@e.f", "a"))
    ),
    "bad_subject": each(*(saying({"subject": text, "body": "x"}) for text in (None, "a\r\nBcc: x", "a\0"))),
    "bad_text": each(*(saying({"subject": "x", "body": text}) for text in (None, 1, "a\0b"))),
    "dns_failed": built(resolve=resolves_to([])),
    "connection_refused": nobody_listens,
    # An address of the link without the link's name: the kernel has no way there.
    "connect_failed": built(resolve=resolves_to(["fe80::1"])),
    "connect_timeout": no_connection_in_time,
    "tls_failed": no_tls,
    "auth_needs_tls": open_line,
    "auth_not_offered": refusing_login(PostOffice()),
    "door_4xx": each(
        at_steps(Trouble("450 4.2.0 later"), *DOOR),
        at_steps(Trouble("421 4.3.2 bye"), *DOOR),
        refusing_login(PostOffice(login=AMY), Trouble("454 4.7.0 later")),
    ),
    "door_5xx": each(
        at_steps(Trouble("550 5.1.1 no"), *DOOR), refusing_login(PostOffice(login=("amy", "another word")))
    ),
    "smtp_4xx": each(
        at_steps(Trouble("450 4.2.0 later"), *ENVELOPE), at_steps(Trouble("421 4.3.2 bye"), *ENVELOPE)
    ),
    "smtp_5xx": at_steps(Trouble("550 5.1.1 no"), *ENVELOPE),
    "cut_early": each(at_steps(CUT, *EARLY), refusing_login(PostOffice(login=AMY), CUT)),
    "timeout_early": at_steps(HANG, *EARLY, seconds=HANG_SECONDS),
    "sent": at_steps(Trouble("250 2.0.0 queued", done=True), "dot"),
    "dot_4xx": at_steps(Trouble("451 4.3.0 later"), "dot"),
    "dot_5xx": at_steps(Trouble("554 5.7.1 spam"), "dot"),
    "dot_421": at_steps(Trouble("421 4.3.2 bye"), "dot"),
    "cut": each(
        *(at_steps(Trouble(done=done), "dot") for done in (True, False)), at_steps(Trouble("what?"), "dot")
    ),
    "timeout": each(*(at_steps(Trouble(hang=True, done=done), "dot", seconds=1) for done in (True, False))),
}
