"""Where settings come from and how one value is read: the process environment, `.env`, and a reader a shape.
Not here: which settings there are (settings) and checking them against the real thing (doctor).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from dotenv.parser import parse_stream
from pydantic import SecretStr

from bot.policy.signatures import NamedSecret, read_secret
from store.reached import is_dsn

_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_SOURCE: Final = re.compile(r"[a-z0-9_-]{1,64}")
_SLACK_PEOPLE: Final = re.compile(r"[UWS][A-Z0-9]{1,30}")
_SLACK_CHANNEL: Final = re.compile(r"[CG][A-Z0-9]{1,30}")
_REACHABLE: Final = re.compile(
    r"(?:\*\.)?[\w.-]+(?::[0-9]{1,5})?|\[[0-9a-f:.]+\](?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII
)
_ADDRESS: Final = r"[^\s@,;<>]+@[^\s@,;<>]+"
_SENDER: Final = re.compile(rf"{_ADDRESS}|[^@,;<>]*<{_ADDRESS}>")
_GETTEXT: Final = re.compile(r"[a-zA-Z]{2,8}[_:].*|C(?:\..*)?")
_LAST_PORT: Final = 65_535
_MAIL_PORTS: Final = {"smtp": 587, "smtps": 465}  # RFC 6409 and RFC 8314


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail is handed in; `tls` from the first byte, else STARTTLS where it is offered."""

    host: str
    port: int
    tls: bool
    user: str | None = field(default=None, repr=False)
    password: SecretStr | None = None


def read_env_file(path: Path) -> dict[str, str]:
    """Read `.env`; absent: empty. White space around an unquoted value stays: a secret is never trimmed.

    Raises ValueError, naming the line, on what is no assignment.
    """
    if not path.is_file():
        return {}
    values: dict[str, str] = {}
    with path.open(encoding="utf-8") as lines:
        for binding in parse_stream(lines):
            if binding.error:
                raise ValueError(
                    f"line {binding.original.line} of {path} is no NAME=value: mend or remove it"
                )
            if binding.key is not None and binding.value is not None:
                untrimmed = binding.original.string.partition("=")[2].rstrip("\r\n")
                values[binding.key] = untrimmed if untrimmed.strip() == binding.value else binding.value
    return values


def read_secret_text(value: str) -> str:
    """A secret as it is: visible ASCII, nothing around it."""
    if value != value.strip():
        raise ValueError("has white space around it: remove it, often a line break at the end")
    if not _VISIBLE.fullmatch(value):
        raise ValueError("holds white space or characters that no header can carry: copy it again")
    return value


def read_database_url(value: str) -> str:
    """A connection string of libpq, as a URL or as words."""
    if value != value.strip():
        raise ValueError("has white space around it: remove it")
    if not value.startswith(("postgresql://", "postgres://")) and "=" not in value:
        raise ValueError("must look like postgresql://user:password@host:5432/name")
    if not is_dsn(value):
        raise ValueError(
            "cannot be read by libpq: write a percent sign or / @ : of a password as %25 %2F %40 %3A,"
            " and only options that libpq knows"
        )
    return value


def read_bot_token(value: str) -> str:
    """A bot token; refused when it is the other kind."""
    if read_secret_text(value).startswith(("xapp-", "xoxp-")):
        raise ValueError("is not a bot token: take the Bot User OAuth Token, it starts with xoxb-")
    return value


def read_app_token(value: str) -> str:
    """An app-level token for Socket Mode; refused when it is the other kind."""
    if read_secret_text(value).startswith("xox"):
        raise ValueError("is not an app-level token: take one with connections:write, it starts with xapp-")
    return value


def read_tokens(value: str) -> tuple[NamedSecret, ...]:
    """Bearer tokens of INTAKE_TOKENS."""
    return _distinct([NamedSecret(name, secret.encode()) for name, secret in _pairs(value)])


def read_signing_secrets(value: str) -> tuple[NamedSecret, ...]:
    """Standard Webhooks secrets of INTAKE_SIGNING_SECRETS, decoded."""
    return _distinct([NamedSecret(name, _decoded(secret, f"of {name} ")) for name, secret in _pairs(value)])


def read_signing_secret(value: str) -> SecretStr:
    """One Standard Webhooks secret, kept as text."""
    _decoded(read_secret_text(value))
    return SecretStr(value)


def _decoded(secret: str, whose: str = "") -> bytes:
    try:
        return read_secret(secret)
    except ValueError:
        # From None: the decoder's own error may quote the secret.
        raise ValueError(
            f"{whose}must be whsec_ followed by base64: `openssl rand -base64 32` makes one"
        ) from None


def _pairs(value: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for position, pair in enumerate(value.split(","), start=1):
        name, colon, secret = pair.lstrip().partition(":")
        if not colon or not _SOURCE.fullmatch(name):
            raise ValueError(
                f"must be name:secret pairs with commas between: the name of pair {position}"
                " takes 1 to 64 of a-z, 0-9, _ and -"
            )
        try:
            pairs.append((name, read_secret_text(secret)))
        except ValueError as refused:
            raise ValueError(f"of {name} {refused}") from None
    return pairs


def _distinct(secrets: list[NamedSecret]) -> tuple[NamedSecret, ...]:
    names: dict[bytes, str] = {}
    for each in secrets:
        if names.setdefault(each.secret, each.name) != each.name:
            raise ValueError(
                f"gives {names[each.secret]} and {each.name} the same secret, so that nobody could tell them"
                " apart: give each its own"
            )
    return tuple(dict.fromkeys(secrets))


def read_switch(value: str) -> bool:
    """Exactly true or false: a kill switch is not guessed at."""
    if value not in ("true", "false"):
        raise ValueError("must be exactly true or false, in small letters and with nothing around it")
    return value == "true"


def read_port(value: str) -> int:
    """A TCP port; 0 takes a free one."""
    if not re.fullmatch(r"[0-9]{1,5}", value.strip()) or int(value) > _LAST_PORT:
        raise ValueError("must be a number from 0 to 65535, where 0 takes a free port: 3000 is usual")
    return int(value)


def read_host(value: str) -> str:
    """A name or address to listen on."""
    if not re.fullmatch(r"[\w.:%-]+", host := value.strip().strip("[]"), re.ASCII):
        raise ValueError("must be a name or an address to listen on: 127.0.0.1, or 0.0.0.0 for all")
    return host


def read_web_address(value: str) -> str:
    """An http or https address without a query; no slash at its end."""
    address = value.strip()
    if not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", address):
        raise ValueError("must look like https://host or http://host:port/path, without user, ? or #")
    try:
        # Both look closer than the pattern, and only when asked.
        has_host = bool(urlsplit(address).hostname) and urlsplit(address).port != 0
    except ValueError:
        has_host = False
    if not has_host:
        raise ValueError("has no host or no port that can be: write https://host or http://host:port/path")
    return address.rstrip("/")


def read_slack_api(value: str) -> str:
    """The address of Slack's Web API, whose methods are appended to it."""
    return read_web_address(value) + "/"


def read_reachable(value: str) -> str:
    """Hosts that effects may reach, as text; bot/connectors/reach decides what they mean."""
    entries = [entry.strip() for entry in value.split(",") if entry.strip()]
    for position, entry in enumerate(entries, start=1):
        if not _REACHABLE.fullmatch(entry):
            # By its place, not its text: addresses of webhooks are secrets too.
            raise ValueError(
                f"has an entry {position} that is no host, *.suffix or host:port: write only those"
            )
    return ",".join(entries)


def read_slack_people(value: str) -> tuple[str, ...]:
    """Ids of Slack users and user groups."""
    people = re.split(r"[,\s]+", value.strip(" \t,"))
    for position, each in enumerate(people, start=1):
        if not _SLACK_PEOPLE.fullmatch(each):
            raise ValueError(
                f"has an entry {position} that is no id: write ids of users (U…, W…) or user groups (S…)"
            )
    return tuple(dict.fromkeys(people))


def read_slack_channel(value: str) -> str:
    """The id of a Slack channel."""
    if not _SLACK_CHANNEL.fullmatch(value.strip()):
        raise ValueError("must be a channel's id (C… or G…), not its name: it is at the foot of its details")
    return value.strip()


def read_mail_server(value: str) -> MailServer:
    """Where mail is handed in: smtp(s)://[user:password@]host:port."""
    read_secret_text(value)
    shape = ValueError("must look like smtp://host:587 or smtps://user:password@host:465")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise shape from None
    if parts.scheme not in _MAIL_PORTS or not host or parts.path.strip("/") or parts.query or parts.fragment:
        raise shape
    if (parts.username is None) != (parts.password is None):
        raise ValueError("has a user without a password, or the other way round: give both or neither")
    return MailServer(
        host=host,
        port=port or _MAIL_PORTS[parts.scheme],
        tls=parts.scheme == "smtps",
        user=unquote(parts.username) if parts.username else None,
        password=SecretStr(unquote(parts.password)) if parts.password else None,
    )


def read_sender(value: str) -> str:
    """One mail address, with or without a name before it."""
    if not _SENDER.fullmatch(value.strip()) or not value.isprintable():
        raise ValueError("must be one address: stet@example.com, or Stet <stet@example.com>")
    return value.strip()


def read_language(value: str) -> str:
    """What cards speak. Some systems set LANGUAGE themselves, as gettext reads it: that is no mistake."""
    if value in ("en", "zh-CN"):
        return value
    if _GETTEXT.fullmatch(value):
        return "zh-CN" if value.startswith(("zh_CN", "zh:")) else "en"
    raise ValueError("must be en or zh-CN")


def read_level(value: str) -> str:
    """How much is logged."""
    if (level := value.strip().upper()) not in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
        raise ValueError("must be DEBUG, INFO, WARNING, ERROR or CRITICAL")
    return level


def read_format(value: str) -> str:
    """How a line of the log looks."""
    if (form := value.strip()) not in ("json", "text"):
        raise ValueError("must be json or text")
    return form


def merged(environ: Mapping[str, str], env_file: Path) -> dict[str, str]:
    """The environment over `.env`; a name set to nothing counts as not set."""
    return {name: value for name, value in {**read_env_file(env_file), **environ}.items() if value}
