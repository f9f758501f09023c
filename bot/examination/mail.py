"""The mail server tried as far as a mail would go: greeting, TLS, login, and no mail.

Not here: handing mails in (bot/connectors/smtp).
"""

from typing import Final

from bot.connectors.dial import resolve_host
from bot.connectors.smtp import submission_to
from bot.examination.finding import Finding
from bot.policy.kinds import Kind, Policy
from bot.settings import Settings

MAIL_SECONDS: Final = 10.0  # The default timeout of an effect: slower, and no mail is handed in either.

_MENDS: Final = {
    "dns_failed": "its host has no address: check the name",
    "connection_refused": "nobody listens there: check host and port",
    "connect_failed": "no connection: check host, port and the network",
    "connect_timeout": "no connection in time: check host, port and the network",
    "tls_failed": "no secure connection: check name and certificate; smtps:// is TLS from the first byte",
    "auth_needs_tls": "no TLS is offered, and the password would be readable: use smtps:// or leave it out",
    "auth_not_offered": "the server takes no password: leave user and password out",
    "door_4xx": "the server says not now ({code}): try again later",
    "door_5xx": "the server says no ({code}): check user and password",
}
_ELSE: Final = "it talks no SMTP, or stopped: check host and port"


async def examine_mail(settings: Settings, policy: Policy | None) -> Finding | None:
    """Try SMTP_URL; None where no mail is set and none is to be sent."""
    server, sender = settings.smtp_url, settings.mail_from
    if server is None or sender is None:
        missing = None if policy is None else missing_mail(settings, policy)
        return None if missing is None else Finding("SMTP_URL", missing)
    submission = submission_to(server, sender, resolve=resolve_host)
    ended = await submission.greet(within_seconds=MAIL_SECONDS)
    if ended.cause == "sent":
        return Finding(f"SMTP_URL: {server.host}:{server.port}")
    return Finding("SMTP_URL", _MENDS.get(ended.cause, _ELSE).format(code=ended.code))


def missing_mail(settings: Settings, policy: Policy) -> str | None:
    """The sentence where kinds send mail and there is no server or sender; None where all is there."""
    if settings.smtp_url is not None and settings.mail_from is not None:
        return None
    mailing = sorted(kind.name for kind in policy.kinds.values() if _mails(kind))
    if not mailing:
        return None
    return f"set it, and MAIL_FROM: the effect of {', '.join(mailing)} is smtp"


def _mails(kind: Kind) -> bool:
    return any(effect.type == "smtp" for _, effect in kind.all_sends)
