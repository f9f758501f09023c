"""What a policy adds to a request: headers whose values are secret, and a certificate of our own.

Not here: what may be named (bot/policy/requests), or reading the environment (bot/variables).
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from bot.contracts.outcome import SendOutcome, Sent
from bot.variables import Variables

HIDDEN = "[hidden]"


class CertificateUnusable(Exception):
    """Certificate and key cannot be loaded; the sentence says why, and holds neither."""


@dataclass(frozen=True, slots=True)
class Dress:
    """The additions to one request; header names in lower case."""

    headers: Mapping[str, str] = field(repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    def keep_out_of(self, outcome: SendOutcome) -> SendOutcome:
        """The outcome without the secrets: a target may echo what it was sent as the id that we store."""
        if not isinstance(outcome, Sent) or outcome.provider_id is None:
            return outcome
        told = outcome.provider_id
        for secret in self.headers.values():
            told = told.replace(secret, HIDDEN)
        return replace(outcome, provider_id=told)


class Wardrobe:
    """Dresses requests; certificates are read once, when they are first needed."""

    def __init__(self, variables: Variables, trust: ssl.SSLContext | None = None) -> None:
        self._variables = variables
        self._trust = trust
        self._contexts: dict[tuple[str, str], ssl.SSLContext] = {}

    def dress(self, headers: Mapping[str, str], pair: tuple[str, str] | None = None) -> Dress | None:
        """The additions; None where a variable or a file cannot be used, and nothing may be sent without."""
        values = {header.lower(): self._variables.get(name) for header, name in headers.items()}
        found = {header: value for header, value in values.items() if value is not None}
        if len(found) < len(values):
            return None
        try:
            return Dress(found, None if pair is None else self.certified(pair))
        except CertificateUnusable:
            return None

    def certified(self, pair: tuple[str, str]) -> ssl.SSLContext:
        """A context that shows the certificate in these variables' files. Raises CertificateUnusable."""
        if pair not in self._contexts:
            self._contexts[pair] = self._load(pair)
        return self._contexts[pair]

    def _load(self, pair: tuple[str, str]) -> ssl.SSLContext:
        certificate, key = (self._variables.get(name) for name in pair)
        if certificate is None or key is None:
            raise CertificateUnusable("is not set")
        authorities = None if self._trust is None else self._trust.get_ca_certs(binary_form=True)
        context = ssl.create_default_context(cadata=b"".join(authorities) if authorities else None)
        try:
            # Without a word for it OpenSSL would ask the terminal for the key's password, and wait.
            context.load_cert_chain(certificate, key, password=lambda: b"")
        except ssl.SSLError as fault:
            raise CertificateUnusable("is no certificate in PEM whose key needs no password") from fault
        except OSError as fault:
            raise CertificateUnusable(f"names a file that cannot be read ({fault.strerror})") from fault
        return context


def same_host(one: str, other: str) -> bool:
    """Whether two addresses have scheme, host and port in common."""
    return urlsplit(one)[:2] == urlsplit(other)[:2]
