"""Which upstream system a request comes from: a bearer token, or a signature over the raw bytes.

Not here: reading the secrets (bot/settings) or comparing them (bot/policy/signatures).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from bot.contracts.problem import ProblemType, make_problem
from bot.doors.answers import Header, Refused
from bot.policy.signatures import NamedSecret, SignedMessage, match_bearer, verify

_CHALLENGE: Final[Header] = (b"www-authenticate", b"Bearer")  # RFC 9110 section 11.6.1: a 401 says how.
_SENTENCE: Final = (
    "Send Authorization: Bearer with a token of INTAKE_TOKENS, or the three Standard Webhooks headers, "
    "signed over the raw body with a secret of INTAKE_SIGNING_SECRETS at most five minutes ago."
)
_SIGNED: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")


def refuse_sender() -> Refused:
    """Refuse whoever cannot be recognised, without saying what was wrong."""
    return Refused(make_problem(ProblemType.UNAUTHORIZED, _SENTENCE), _CHALLENGE)


@dataclass(frozen=True, slots=True)
class Senders:
    """Who may send, by name. If `Authorization` is sent it alone decides. No failed try is remembered."""

    tokens: tuple[NamedSecret, ...] = ()
    signing: tuple[NamedSecret, ...] = ()
    clock: Callable[[], float] = field(default=time.time)

    def by_bearer(self, headers: Mapping[str, str]) -> str | None:
        """Name the source of the bearer token, None without a known one."""
        given = headers.get("authorization")
        return None if given is None else match_bearer(given, self.tokens)

    def may_be_signed(self, headers: Mapping[str, str]) -> bool:
        """Whether the body is worth reading: no `Authorization`, and all three headers of a signature."""
        return "authorization" not in headers and all(name in headers for name in _SIGNED)

    def by_signature(self, headers: Mapping[str, str], body: bytes) -> str | None:
        """Name the source whose secret signed these raw bytes within the window."""
        if not self.may_be_signed(headers):
            return None
        message = SignedMessage(headers["webhook-id"], headers["webhook-timestamp"], body)
        return verify(message, headers["webhook-signature"], secrets=self.signing, now=self.clock())
