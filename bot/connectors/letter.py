"""Makes one mail of an approved effect: the same bytes on every try, and headers nothing can be put into.

Not here: handing it in (submission).
"""

import json
import quopri
import re
from dataclasses import dataclass, field
from email.header import Header
from email.utils import format_datetime, formataddr, parseaddr
from typing import Any

from bot.connectors.connector import Effect, made_at
from bot.policy.recipients import is_plain_address
from bot.policy.sendable import NO_HEADER

_PLAIN_CHARACTERS = 66  # With "Subject: " within the 78 that RFC 5322, 2.1.1 asks for.


@dataclass(frozen=True, slots=True)
class Letter:
    """One mail for one recipient; `data` is what goes between DATA and the final dot, dots doubled."""

    message_id: str
    sender: str = field(repr=False)
    recipient: str = field(repr=False)
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unwritable:
    """No mail can be made of it; `cause` is `bad_sender`, `bad_recipient`, `bad_subject` or `bad_text`."""

    cause: str


def write_letter(effect: Effect, mail_from: str) -> Letter | Unwritable:
    """Make the mail of an effect; `mail_from` is an address, or a name and an address in angle brackets."""
    name, sender = parseaddr(mail_from)
    if not is_plain_address(sender) or NO_HEADER.search(name):
        return Unwritable("bad_sender")
    if effect.recipient is None or not is_plain_address(effect.recipient):
        return Unwritable("bad_recipient")
    output = _output(effect.body)
    subject, text = output.get("subject"), output.get("body")
    if not isinstance(subject, str) or NO_HEADER.search(subject):
        return Unwritable("bad_subject")
    if not isinstance(text, str) or "\0" in text:
        return Unwritable("bad_text")
    message_id = f"{effect.effect_id}@{sender.rpartition('@')[2]}"
    headers = (
        f"From: {formataddr((name, sender), 'utf-8')}",
        f"To: {effect.recipient}",
        f"Subject: {_one_line(subject)}",
        f"Date: {format_datetime(made_at(effect))}",
        f"Message-ID: <{message_id}>",
        "MIME-Version: 1.0",
        'Content-Type: text/plain; charset="utf-8"',
        "Content-Transfer-Encoding: quoted-printable",
    )
    try:
        data = "\r\n".join((*headers, "", "")).encode("ascii") + _quoted(text)
    except UnicodeError:  # a lone surrogate
        return Unwritable("bad_text")
    return Letter(message_id, sender, effect.recipient, re.sub(rb"(?m)^\.", b"..", data))


def _one_line(subject: str) -> str:
    """The subject as it was approved; what a reader might decode is encoded, so that it stays the text it is.

    Python's EmailMessage decodes encoded words when a header is set, line breaks in them included.
    """
    is_ascii = subject.isascii() and subject.isprintable()
    is_plain = is_ascii and "=?" not in subject and subject == subject.strip()
    if is_plain and len(subject) <= _PLAIN_CHARACTERS:
        return subject
    return Header(subject, "utf-8", header_name="Subject").encode(linesep="\r\n")


def _quoted(text: str) -> bytes:
    """The text in quoted-printable (RFC 2045, 6.7): its own lines, nothing over 76 characters, ASCII only."""
    lines = re.sub(r"\r\n?", "\n", text).encode()
    encoded = quopri.encodestring(lines).replace(b"\n", b"\r\n")
    return encoded if encoded.endswith(b"\r\n") else encoded + b"\r\n"


def _output(body: bytes) -> dict[str, Any]:
    """What was approved, out of an effect's body."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    output = document.get("output") if isinstance(document, dict) else None
    return output if isinstance(output, dict) else {}
