"""Who sent this: Standard Webhooks signatures over raw bytes, and bearer tokens, in constant time.
Not here: reading secrets from the environment (bot/settings) and HTTP headers (bot/doors).

Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bot.policy.limits import MAX_SIGNATURES, SIGNATURE_WINDOW_SECONDS

_PREFIX: Final = "whsec_"
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}")
_BEARER: Final = re.compile(r"bearer +([\x21-\x7e]+) *", re.IGNORECASE)
_MAX_ID_CHARACTERS: Final = 1024  # It is hashed along; a header line ends at some 8,000 anyway.


@dataclass(frozen=True, slots=True)
class NamedSecret:
    """A secret and the source it stands for. Two secrets under one name rotate."""

    name: str
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class SignedMessage:
    """What a signature covers: the two header values as they arrived, and the untouched body."""

    message_id: str
    timestamp: str
    body: bytes = field(repr=False)


def read_secret(text: str) -> bytes:
    """Decode `whsec_` plus base64.

    Raises:
        ValueError: if it is neither; the message does not hold the secret.

    """
    encoded = text.removeprefix(_PREFIX)
    try:
        secret = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not text.startswith(_PREFIX) or not secret:
        raise ValueError("must be whsec_ followed by base64")
    return secret


def sign(secret: bytes, message: SignedMessage) -> str:
    """Write the `webhook-signature` header of an outgoing message.

    Raises:
        UnicodeEncodeError: if the id or timestamp could not stand in a header.

    """
    return "v1," + _digest(secret, _signed_bytes(message)).decode()


def verify(
    message: SignedMessage, signatures: str, *, secrets: Sequence[NamedSecret], now: float
) -> str | None:
    """Name the source whose secret made one of the space-separated signatures; None for anything else.

    Whatever is odd (time, encoding, another scheme) is a bad signature, never an exception. `now` is in Unix
    seconds. Every secret is tried against every signature, so that time tells nothing.
    """
    if not _is_recent(message.timestamp, now) or not 0 < len(message.message_id) <= _MAX_ID_CHARACTERS:
        return None
    candidates = _read_signatures(signatures)
    try:
        content = _signed_bytes(message)
    except UnicodeEncodeError:
        return None
    found: str | None = None
    for named in secrets:
        expected = _digest(named.secret, content)
        for candidate in candidates:
            if hmac.compare_digest(candidate, expected):
                found = named.name
    return found


def match_bearer(authorization: str, tokens: Sequence[NamedSecret]) -> str | None:
    """Name the source of an `Authorization: Bearer` value; None for anything else.

    Digests are compared, over all tokens, so that neither length nor position shows in the time taken.
    """
    given = _BEARER.fullmatch(authorization)
    digest = hashlib.sha256(given[1].encode() if given else b"").digest()
    found: str | None = None
    for named in tokens:
        if hmac.compare_digest(hashlib.sha256(named.secret).digest(), digest):
            found = named.name
    return found if given else None


def _is_recent(timestamp: str, now: float) -> bool:
    return bool(_TIMESTAMP.fullmatch(timestamp)) and abs(now - int(timestamp)) <= SIGNATURE_WINDOW_SECONDS


def _signed_bytes(message: SignedMessage) -> bytes:
    # Header values reach us as latin-1 text; encoding them back gives the bytes that were signed.
    return f"{message.message_id}.{message.timestamp}.".encode("latin-1") + message.body


def _digest(secret: bytes, content: bytes) -> bytes:
    return base64.b64encode(hmac.digest(secret, content, "sha256"))


def _read_signatures(header: str) -> list[bytes]:
    parts = [part.split(",", 1) for part in header.split(" ") if part]
    return [part[1].encode() for part in parts if part[0] == "v1" and len(part) > 1 and part[1].isascii()][
        :MAX_SIGNATURES
    ]
