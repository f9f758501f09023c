"""The connector for `effect.type = "smtp"`: one mail to one plain address.

Not here: how a mail is made (letter) and handed in (submission). Nobody can be asked what became of a mail.
"""

import ssl

from bot.connectors.answers import Row, by_cause, settle
from bot.connectors.connector import Effect, Kit
from bot.connectors.dial import Resolve
from bot.connectors.letter import Unwritable, write_letter
from bot.connectors.submission import Ended, Submission
from bot.contracts.outcome import LookUpOutcome, NoAnswer, NotSent, Refused, SendOutcome, Sent, Unknown
from bot.environment import MailServer
from store.database import outside_transaction

EFFECT_TYPE = "smtp"

OUTCOMES: tuple[Row, ...] = (
    # Nothing was tried.
    Row("mail_not_set", Refused, "SMTP_URL or MAIL_FROM is not set", asked=False),
    Row("bad_sender", Refused, "MAIL_FROM holds no plain address", asked=False),
    Row("bad_recipient", Refused, "not exactly one plain address", asked=False),
    Row("bad_subject", Refused, "no subject, or one that no header can carry", asked=False),
    Row("bad_text", Refused, "no body, or one that no mail can carry", asked=False),
    # Nothing was handed in: nobody delivers a mail before its final dot.
    Row("dns_failed", NotSent, "the server's name has no address"),
    Row("connection_refused", NotSent, "nobody listens there"),
    Row("connect_failed", NotSent, "no connection came about"),
    Row("connect_timeout", NotSent, "no connection in time"),
    Row("tls_failed", NotSent, "no secure connection, or a certificate that nobody vouches for"),
    Row("auth_needs_tls", NotSent, "no password goes over an open line to another machine"),
    Row("auth_not_offered", NotSent, "SMTP_URL has a password, and the server takes none"),
    Row("door_4xx", NotSent, "greeting, TLS or login: not now (RFC 5321, 4.2.1)", "smtp_4xx"),
    Row(
        "door_5xx",
        NotSent,
        "greeting, TLS or login: it refuses us, and knows nothing of the mail",
        "smtp_5xx",
    ),
    Row("smtp_4xx", NotSent, "sender, recipient or DATA: not now (RFC 5321, 4.2.1)"),
    Row("smtp_5xx", Refused, "sender, recipient or DATA: no (RFC 5321, 4.2.1)"),
    Row("cut_early", NotSent, "the line ended before the final dot"),
    Row("timeout_early", NotSent, "the time was up before the final dot"),
    # The final dot may have arrived.
    Row("sent", Sent, "250 after the final dot: the server answers for it from here on"),
    Row("dot_4xx", NotSent, "the server did not take it, and says try again (RFC 5321, 4.2.5)", "smtp_4xx"),
    Row("dot_5xx", Refused, "the server did not take it (RFC 5321, 4.2.5)", "smtp_5xx"),
    Row("dot_421", Unknown, "the server left in the middle of it", "smtp_421"),
    Row("cut", Unknown, "the line ended after the final dot, and before an answer"),
    Row("timeout", Unknown, "no answer to the final dot in time"),
)
_TABLE = by_cause(OUTCOMES)


class SmtpConnector:
    """Hands mails in; the Message-ID is made of the effect_id, the same on every try."""

    effect_type = EFFECT_TYPE

    def __init__(self, submission: Submission | None, mail_from: str | None) -> None:
        self._submission = submission
        self._mail_from = mail_from

    def idempotent(self, effect: Effect) -> bool:
        """Never: mail servers do not recognise a repeated mail."""
        return False

    async def send(self, effect: Effect) -> SendOutcome:
        """Hand it in once, within the policy's timeout in all."""
        outside_transaction()
        if self._submission is None or self._mail_from is None:
            return settle("mail_not_set", _TABLE)
        letter = write_letter(effect, self._mail_from)
        if isinstance(letter, Unwritable):
            return settle(letter.cause, _TABLE)
        ended = await self._submission.hand_in(letter, within_seconds=effect.policy.timeout_seconds)
        return Sent(letter.message_id) if ended.cause == "sent" else _settle(ended)

    async def look_up(self, effect: Effect) -> LookUpOutcome:
        """Nobody can be asked: a person looks for the Message-ID."""
        outside_transaction()
        return NoAnswer("no_lookup")


def build(kit: Kit) -> SmtpConnector:
    """The connector; without a server and a sender it refuses."""
    if kit.mail_server is None or kit.mail_from is None:
        return SmtpConnector(None, None)
    return SmtpConnector(
        submission_to(kit.mail_server, kit.mail_from, resolve=kit.resolve, tls=kit.tls), kit.mail_from
    )


def submission_to(
    server: MailServer, mail_from: str, *, resolve: Resolve, tls: ssl.SSLContext | None = None
) -> Submission:
    """How mail from this address reaches its server; it introduces itself by the address's domain."""
    domain = mail_from.rpartition("@")[2].strip(" >")
    return Submission(server, domain if domain.isascii() else "localhost", resolve, tls)


def _settle(ended: Ended) -> SendOutcome:
    return settle(ended.cause, _TABLE, reason=None if ended.code is None else f"smtp_{ended.code}")
