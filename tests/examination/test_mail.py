"""What the doctor finds of the mail server, tried on a real one.

Not here: handing mails in (tests/connectors/test_smtp).
"""

import socket

import pytest

from bot.demo.mail import PostOffice, Trouble, serve_mail
from bot.examination.mail import examine_mail, missing_mail
from bot.policy.kinds import Policy, load_policy
from bot.settings import Settings

POLICY = """
[kinds.letter]
gate = "approve_first"
sources = ["n8n"]
channel = "C0REVIEW"
reviewers = ["U0ALICE"]
[kinds.letter.effect]
type = "smtp"
recipient = "payload.to"
"""


def settings(**given: str) -> Settings:
    return Settings.read({name.upper(): value for name, value in given.items()})[0]


def to(office: PostOffice, user: str = "") -> Settings:
    return settings(smtp_url=f"smtp://{user}127.0.0.1:{office.port}", mail_from="Us <us@stet.example>")


@pytest.fixture
def policy() -> Policy:
    return load_policy(POLICY)


# A server that would take a mail is well, and gets none.
async def test_well(policy: Policy) -> None:
    async with serve_mail(PostOffice(login=("amy", "pass"))) as office:
        finding = await examine_mail(to(office, "amy:pass@"), policy)
        assert str(finding) == f"ok     SMTP_URL: 127.0.0.1:{office.port}"
        assert office.mails == []
        assert office.commands[-1] == "NOOP"


# What is wrong is said with its mend, and never with the password.
@pytest.mark.parametrize(
    ("user", "trouble", "mend"),
    [
        ("amy:guess@", None, "check user and password"),
        ("amy:pass@", ("greeting", Trouble("421 busy")), "try again later"),
        ("amy:pass@", ("ehlo", Trouble()), "check host and port"),
    ],
)
async def test_wrong(policy: Policy, user: str, trouble: tuple[str, Trouble] | None, mend: str) -> None:
    async with serve_mail(PostOffice(login=("amy", "pass"))) as office:
        if trouble is not None:
            office.misbehave(*trouble)
        finding = str(await examine_mail(to(office, user), policy))
    assert finding.startswith("wrong  SMTP_URL: ")
    assert mend in finding
    assert "guess" not in finding


# Nobody listening is found too.
async def test_nobody_there(policy: Policy) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"smtp://127.0.0.1:{held.getsockname()[1]}"
        finding = await examine_mail(settings(smtp_url=address, mail_from="us@stet.example"), policy)
    assert "nobody listens" in str(finding)


# Kinds that send mail need a server and a sender; where none does, none is missed.
async def test_missing(policy: Policy) -> None:
    assert "letter" in str(await examine_mail(settings(), policy))
    assert missing_mail(settings(smtp_url="smtp://post.example"), policy) is not None
    assert missing_mail(settings(smtp_url="smtp://post.example", mail_from="us@stet.example"), policy) is None
    assert await examine_mail(settings(), Policy(kinds={})) is None
    assert await examine_mail(settings(), None) is None
