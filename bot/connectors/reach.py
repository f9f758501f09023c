"""Which URLs and addresses effects may reach: EFFECT_ALLOWED_HOSTS and the strict reading of a URL.

Not here: resolving names and connecting (dial). Nothing in this file waits.
"""

import re
from dataclasses import dataclass, field

from bot.connectors.addresses import Address, AddressClass, classify, read_address

URL_CHARS = 4_096  # Twice what browsers agree on; n8n's resume URLs have about 150.
DEFAULT_PORTS = {"http": 80, "https": 443}

# RFC 3986, but narrower: no user info, no fragment, no percent sign and no empty port in the authority.
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"(?P<target>(?:[/?][A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]*)?)",
    re.ASCII,
)
_ENTRY = re.compile(
    r"(?P<host>\[[0-9a-f:.]+\]|(?:\*\.)?[a-z0-9_.-]+)(?::(?P<port>[1-9][0-9]{0,4}))?",
    re.ASCII,
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
# WHATWG URL, "ends in a number": such a host is read as an IPv4 address by many resolvers.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
# Names that no public zone can answer for: RFC 6761, 6762, 8375, and ICANN's `internal`.
_LOCAL_ZONES = (".localhost", ".local", ".internal", ".home.arpa", ".test", ".lan")


class ReachError(ValueError):
    """EFFECT_ALLOWED_HOSTS cannot be read; the sentence names the entry and the mend."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that was read strictly and is on the list; connect to exactly these parts, never to the text."""

    scheme: str
    host: str  # lower case; an IPv6 address without brackets
    port: int
    path: str = field(repr=False)  # with the query; may hold secrets

    @property
    def authority(self) -> str:
        """What the Host header says: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Blocked:
    """A URL that effects may not reach: `bad_url`, `host_not_allowed` or `address_not_allowed`."""

    reason: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the list: a host, every name under a suffix, or one port of either."""

    host: str
    port: int | None
    suffix: bool

    def covers(self, host: str, port: int) -> bool:
        """Whether this entry speaks of that host and port; a suffix never covers itself or an address."""
        if self.port not in (None, port):
            return False
        return host.endswith(f".{self.host}") if self.suffix else host == self.host


@dataclass(frozen=True, slots=True)
class Reach:
    """The allow-list, and what it says of a URL and of an address that a name led to."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Reach":
        """Read EFFECT_ALLOWED_HOSTS; empty: nothing may be reached. Raises ReachError."""
        return cls(tuple(_read_entry(part.strip().lower()) for part in text.split(",") if part.strip()))

    def check_url(self, url: str) -> Target | Blocked:
        """Read a URL and hold it to the list, without resolving anything."""
        target = _read_url(url)
        if target is None:
            return Blocked("bad_url")
        if not any(entry.covers(target.host, target.port) for entry in self.entries):
            return Blocked("host_not_allowed")
        address = read_address(target.host)
        if address is not None and not self.permits(target.host, target.port, address):
            return Blocked("address_not_allowed")
        return target

    def permits(self, host: str, port: int, address: Address) -> bool:
        """Whether a connection for `host` may go to `address`.

        A public address always may. A private one only if the list names the host itself or the address; this
        machine and its link only if it names the address, or a host that no public zone can answer for:
        whoever runs the zone of a listed public name must not be able to point us at ourselves.
        """
        near = classify(address)
        if near is AddressClass.NEVER:
            return False
        if near is AddressClass.PUBLIC or self._names(str(address), port):
            return True
        return self._names(host, port) and (near is AddressClass.PRIVATE or _is_local_name(host))

    def _names(self, host: str, port: int) -> bool:
        return any(not entry.suffix and entry.covers(host, port) for entry in self.entries)


def _read_url(url: str) -> Target | None:
    if len(url) > URL_CHARS:
        return None
    scheme, separator, rest = url.partition("://")
    authority_end = next((i for i, char in enumerate(rest) if char in "/?"), len(rest))
    lowered = scheme.lower() + separator + rest[:authority_end].lower() + rest[authority_end:]
    found = _URL.fullmatch(lowered)
    if found is None:
        return None
    host = _read_host(found["host"])
    port = int(found["port"] or DEFAULT_PORTS[found["scheme"]])
    if host is None or port > 65_535:  # noqa: PLR2004 - the highest port there is
        return None
    path = found["target"]
    return Target(found["scheme"], host, port, path if path.startswith("/") else f"/{path}")


def _read_host(text: str) -> str | None:
    """A host in its one spelling: canonical address or name; None for what may be taken for a number."""
    if text.startswith("["):
        address = read_address(text[1:-1])
        return None if address is None or address.version == 4 else str(address)  # noqa: PLR2004
    labels = text.split(".")
    if len(text) > 253 or not all(_LABEL.fullmatch(label) for label in labels):  # noqa: PLR2004 - RFC 1035
        return None
    if _NUMBER.fullmatch(labels[-1]):
        return None if read_address(text) is None else text
    return text


def _read_entry(text: str) -> Entry:
    bare = read_address(text)
    found = None if bare else _ENTRY.fullmatch(text)
    if bare is None and found is None:
        raise ReachError(
            f"EFFECT_ALLOWED_HOSTS: {text!r} is not host, *.suffix or host:port; drop scheme and path"
        )
    suffix = text.startswith("*.")
    host = str(bare) if found is None else _read_host(found["host"].removeprefix("*."))
    port = int(found["port"]) if found and found["port"] else None
    address = None if host is None else read_address(host)
    if host is None or (port or 0) > 65_535 or (suffix and address):  # noqa: PLR2004 - the highest port there is
        raise ReachError(f"EFFECT_ALLOWED_HOSTS: {text!r} is no plain host; write it as in a URL")
    if address is not None and classify(address) is AddressClass.NEVER:
        raise ReachError(f"EFFECT_ALLOWED_HOSTS: {text!r} is an address nobody answers at; remove it")
    return Entry(host, port, suffix)


def _is_local_name(host: str) -> bool:
    return read_address(host) is None and ("." not in host or host.endswith(_LOCAL_ZONES))
