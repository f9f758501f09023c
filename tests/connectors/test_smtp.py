"""Tests of the smtp connector against a real mail server that breaks off at every step.

Not here: which causes there are at all (bot/connectors/smtp) or what follows from them (tests/flow).
"""

import asyncio
import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.connectors import submission
from bot.connectors.connector import Effect, Kit, perform
from bot.connectors.smtp import SmtpConnector, build
from bot.contracts.outcome import NoAnswer, NotSent, Refused, SendOutcome, Sent, Unknown
from bot.demo.mail import CUT, STEPS, PostOffice, Trouble, serve_mail
from bot.environment import MailServer
from tests.connectors.effects import EFFECT_ID, make_effect, resolves_to, slept

TLS = Path(__file__).parent / "tls"
MESSAGE_ID = f"{EFFECT_ID}@stet.example"
HANG = Trouble(hang=True)
HANG_SECONDS = 0.3
# What is known of a mail when things end at a step: everything before the final dot is proven unsent.
EARLY = [step for step in STEPS if step not in {"starttls", "auth", "dot"}]


@pytest.fixture
async def office() -> AsyncIterator[PostOffice]:
    async with serve_mail() as made:
        yield made


def mail_server(office: PostOffice, **changes: Any) -> MailServer:
    made: dict[str, Any] = {"host": "127.0.0.1", "port": office.port, "tls": False} | changes
    return MailServer(**made)


def make_smtp(office: PostOffice, mail_from: str = "Stet <robot@stet.example>", **more: Any) -> SmtpConnector:
    kit: dict[str, Any] = {"mail_server": mail_server(office), "mail_from": mail_from} | more
    return build(Kit(**kit))


def effect(output: Any = None, **policy: Any) -> Effect:
    said = {"subject": "About your parcel", "body": "It ships Monday.\n"} if output is None else output
    return make_effect("", body=json.dumps({"output": said}).encode(), **{"type": "smtp"} | policy)


async def send(office: PostOffice, output: Any = None, **policy: Any) -> SendOutcome:
    return await make_smtp(office).send(effect(output, **policy))


# One mail arrives: from us, to the one recipient, with what was approved and a name that stays the same.
async def test_arrives(office: PostOffice) -> None:
    assert await send(office) == Sent(MESSAGE_ID)
    (mail,) = office.mails
    assert (mail.sender, mail.recipients) == ("robot@stet.example", ("ann@example.com",))
    read = mail.parsed()
    assert read["From"] == "Stet <robot@stet.example>"
    assert (read["To"], read["Subject"]) == ("ann@example.com", "About your parcel")
    assert read["Message-ID"] == f"<{MESSAGE_ID}>"
    assert read.get_content().replace("\r\n", "\n") == "It ships Monday.\n"
    assert read.get_content_type() == "text/plain"


# Every try has the same bytes: a reader who gets two sees that it is one.
async def test_same_bytes(office: PostOffice) -> None:
    await send(office)
    await send(office)
    assert office.mails[0].raw == office.mails[1].raw


# Any language goes in subject and body, and nothing but ASCII goes over the line.
async def test_any_language(office: PostOffice) -> None:
    output = {"subject": "Größe: 你好 " * 12, "body": "你好,\n.\n..dots\n.\r\nأهلا " + "ä" * 2000}
    assert await send(office, output) == Sent(MESSAGE_ID)
    assert office.mails[0].raw.isascii()
    assert max(map(len, office.mails[0].raw.split(b"\r\n"))) <= 998
    read = office.mails[0].parsed()
    assert read["Subject"] == output["subject"]
    assert read.get_content().replace("\r\n", "\n").rstrip() == output["body"].replace("\r\n", "\n")


# Nothing in a subject becomes a header or a second recipient.
@pytest.mark.parametrize(
    "subject",
    [
        "Hi\r\nBcc: x@example.test",
        "Hi\rthere",
        "Hi\nthere",
        "Hi\u2028there",
        "Hi\u0000there",
        "Hi\u0085there",
        "Hi\u000bthere",
        None,
        ["Hi"],
    ],
)
async def test_no_header_gets_in(office: PostOffice, subject: Any) -> None:
    assert await send(office, {"subject": subject, "body": "x"}) == Refused("bad_subject")
    assert office.commands == []


# An encoded word in a subject stays the text that was approved.
@pytest.mark.parametrize("subject", ["=?utf-8?q?Hi=0D=0ABcc:_x@example.test?=", "a" * 5000, "", " x ", ":"])
async def test_odd_subjects(office: PostOffice, subject: str) -> None:
    assert isinstance(await send(office, {"subject": subject, "body": "x"}), Sent)
    read = office.mails[0].parsed()
    assert sorted(read.keys()) == sorted(
        [
            "From",
            "To",
            "Date",
            "Message-ID",
            "Subject",
            "Content-Type",
            "Content-Transfer-Encoding",
            "MIME-Version",
        ]
    )
    assert office.mails[0].recipients == ("ann@example.com",)


# What no mail can be made of is refused before anything is dialled.
@pytest.mark.parametrize(
    "output", [{"subject": "x"}, {"subject": "x", "body": 1}, {"subject": "x", "body": "a\0b"}]
)
async def test_bad_text(office: PostOffice, output: Any) -> None:
    assert await send(office, output) == Refused("bad_text")
    assert office.commands == []


# Exactly one plain address, whatever the row says.
@pytest.mark.parametrize(
    "recipient",
    [None, "", "a@b.example, c@d.example", "A <a@b.example>", "a@b.example\r\nRCPT TO:<x@y.example>"],
)
async def test_bad_recipient(office: PostOffice, recipient: str | None) -> None:
    made = effect()
    wrong = Effect(**{name: getattr(made, name) for name in Effect.__slots__} | {"recipient": recipient})
    assert await make_smtp(office).send(wrong) == Refused("bad_recipient")
    assert office.commands == []


# A line that ends before the final dot proves that nothing was sent; that step is tried once.
@pytest.mark.parametrize("step", EARLY)
async def test_cut_early(office: PostOffice, step: str) -> None:
    office.misbehave(step, CUT)
    assert await send(office) == NotSent("cut_early")
    office.behave()
    assert await send(office) == Sent(MESSAGE_ID)
    assert len(office.mails) == 1


# So does a server that falls silent before it.
@pytest.mark.parametrize("step", EARLY)
async def test_silent_early(office: PostOffice, step: str) -> None:
    office.misbehave(step, HANG)
    async with asyncio.timeout(60):
        assert await send(office, timeout_seconds=HANG_SECONDS) == NotSent("timeout_early")


# A machine that slept before it sends nothing when it wakes: others have been at it since.
async def test_slept_before_the_dot(office: PostOffice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "elapsed_seconds", slept(3600))
    assert await send(office, timeout_seconds=60) == NotSent("timeout_early")
    assert office.mails == []


# From the final dot on a cut or a silence leaves it open, taken or not.
@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize(("hang", "reason"), [(False, "cut"), (True, "timeout")])
async def test_lost_answer(office: PostOffice, done: bool, hang: bool, reason: str) -> None:
    office.misbehave("dot", Trouble(hang=hang, done=done))
    async with asyncio.timeout(60):
        assert await send(office, timeout_seconds=2) == Unknown(reason)
    assert len(office.mails) == done
    assert office.commands.count(".") == 1


# Every "not now" is tried again at whatever step the server says it, and every "no" is final that may be
# about the mail: one said before it was spoken of is about us, and the next mail would hear the same.
@pytest.mark.parametrize("step", EARLY)
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("450 4.2.0 later", NotSent("smtp_450")),
        ("421 4.3.2 bye", NotSent("smtp_421")),
        ("550 5.1.1 no", Refused("smtp_550")),
    ],
)
async def test_answers_early(office: PostOffice, step: str, reply: str, expected: SendOutcome) -> None:
    office.misbehave(step, Trouble(reply))
    if isinstance(expected, Refused) and step in {"greeting", "ehlo"}:
        # To a "no" to EHLO it hears HELO, which it does not know either.
        expected = NotSent("smtp_502" if step == "ehlo" else "smtp_550")
    assert await send(office) == expected
    assert office.mails == []


# After the final dot an answer still decides, except one that only says that the server leaves.
@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("451 4.3.0 later", NotSent("smtp_451")),
        ("554 5.7.1 spam", Refused("smtp_554")),
        ("421 4.3.2 bye", Unknown("smtp_421")),
        ("354 go on", Unknown("cut")),
        ("what?", Unknown("cut")),
        ("250-only half", Unknown("timeout")),
    ],
)
async def test_answers_to_the_dot(office: PostOffice, reply: str, expected: SendOutcome) -> None:
    office.misbehave("dot", Trouble(reply))
    assert await send(office, timeout_seconds=2) == expected


@pytest.fixture
def nobodys_port() -> Iterator[int]:
    """A port that is taken, and where nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


# Nobody there, no such name and a name that leads nowhere: nothing was sent.
async def test_nobody_there(office: PostOffice, nobodys_port: int) -> None:
    nobody = make_smtp(office, mail_server=mail_server(office, port=nobodys_port))
    assert await nobody.send(effect()) == NotSent("connection_refused")
    nameless = make_smtp(office, mail_server=mail_server(office, host="post.invalid"), resolve=_no_name)
    assert await nameless.send(effect()) == NotSent("dns_failed")
    empty = make_smtp(office, resolve=resolves_to([]))
    assert await empty.send(effect()) == NotSent("dns_failed")


async def _no_name(host: str, port: int) -> list[str]:
    raise socket.gaierror


# Without a server or a sender there is no mail, and it is said so.
async def test_not_set() -> None:
    assert await build(Kit()).send(effect()) == Refused("mail_not_set")
    only_server = Kit(mail_server=MailServer("127.0.0.1", 1, tls=False))
    assert await build(only_server).send(effect()) == Refused("mail_not_set")


def server_tls() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(TLS / "sink.pem", TLS / "sink.key")
    return made


def client_tls() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=TLS / "authority.pem")


SINK = "sink.test"
AMY = ("amy", "pass word")
WITH_LOGIN: dict[str, Any] = {"user": AMY[0], "password": SecretStr(AMY[1])}


def to_sink(office: PostOffice, **changes: Any) -> SmtpConnector:
    """A connector that knows the server by the name in its certificate."""
    server = mail_server(office, host=SINK, **changes)
    return make_smtp(office, mail_server=server, resolve=resolves_to(["127.0.0.1"]), tls=client_tls())


# TLS is used from the first byte with smtps, and wherever it is offered with smtp; the login goes inside it.
@pytest.mark.parametrize("at_once", [True, False])
async def test_tls_and_login(at_once: bool) -> None:
    async with serve_mail(PostOffice(tls=server_tls(), login=AMY, at_once=at_once)) as office:
        assert await to_sink(office, tls=at_once, **WITH_LOGIN).send(effect()) == Sent(MESSAGE_ID)
        order = [word for word in office.commands if word in {"STARTTLS", "AUTH", "MAIL"}]
        assert order == (["AUTH", "MAIL"] if at_once else ["STARTTLS", "AUTH", "MAIL"])


# A certificate that nobody vouches for, or of another name, ends it before the mail.
@pytest.mark.parametrize("at_once", [True, False])
async def test_bad_certificate(at_once: bool) -> None:
    async with serve_mail(PostOffice(tls=server_tls(), at_once=at_once)) as office:
        stranger = make_smtp(office, mail_server=mail_server(office, tls=at_once), tls=client_tls())
        assert await stranger.send(effect()) == NotSent("tls_failed")
        distrusting = make_smtp(office, mail_server=mail_server(office, tls=at_once))
        assert await distrusting.send(effect()) == NotSent("tls_failed")
        assert "MAIL" not in office.commands


# A server that breaks off while the line is made secure has got nothing.
@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (CUT, NotSent("tls_failed")),
        (HANG, NotSent("connect_timeout")),
        (Trouble("454 no"), NotSent("smtp_454")),
    ],
)
async def test_trouble_at_starttls(trouble: Trouble, expected: SendOutcome) -> None:
    async with serve_mail(PostOffice(tls=server_tls())) as office:
        office.misbehave("starttls", trouble)
        assert await to_sink(office).send(effect(timeout_seconds=2)) == expected
        assert office.mails == []


# A login that is refused, cannot be tried now or is not offered at all says nothing against the mail.
async def test_login() -> None:
    async with serve_mail(PostOffice(tls=server_tls(), login=AMY)) as office:
        wrong = WITH_LOGIN | {"password": SecretStr("guess")}
        assert await to_sink(office, **wrong).send(effect()) == NotSent("smtp_535")
        office.misbehave("auth", Trouble("454 4.7.0 later"))
        assert await to_sink(office, **WITH_LOGIN).send(effect()) == NotSent("smtp_454")
        office.misbehave("auth", CUT)
        assert await to_sink(office, **WITH_LOGIN).send(effect()) == NotSent("cut_early")
        assert office.mails == []
    async with serve_mail(PostOffice(tls=server_tls())) as office:
        assert await to_sink(office, **WITH_LOGIN).send(effect()) == NotSent("auth_not_offered")


# Over an open line a password goes to this machine only: an offer of TLS may have been taken out on the way.
async def test_no_password_in_the_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_mail(PostOffice(login=AMY)) as office:
        assert await to_sink(office, **WITH_LOGIN).send(effect()) == Sent(MESSAGE_ID)
        office.commands.clear()
        monkeypatch.setattr("bot.connectors.submission._is_here", lambda _: False)
        assert await to_sink(office, **WITH_LOGIN).send(effect()) == NotSent("auth_needs_tls")
        assert "AUTH" not in office.commands


# Neither password nor address nor text gets into a log or an outcome, whatever happens.
async def test_nothing_is_given_away(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serve_mail(PostOffice(login=AMY)) as office:
        connector = to_sink(office, **WITH_LOGIN)
        told = repr(connector) + repr(await perform(connector, effect()))
        for step in STEPS:
            office.behave()
            office.misbehave(step)
            told += repr(await perform(connector, effect()))
    for secret in (*AMY, "ann@example.com", "parcel"):
        assert secret not in told + caplog.text


# Nobody can be asked about a mail, and none may be repeated by a machine.
async def test_neither_asked_nor_repeated(office: PostOffice) -> None:
    assert await make_smtp(office).look_up(effect()) == NoAnswer("no_lookup")
    assert not make_smtp(office).idempotent(effect(idempotent=True))
