"""What may leave for the record and the logs: a kind's allowed fields, and never a secret.
Not here: the record itself (store/audit) and where logs go (bot/wiring).
"""

import re
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any, Final

from bot.policy.clauses import MISSING, read_path
from bot.policy.terms import Kind

REMOVED: Final = "[removed]"

_SECRET_NAMES: Final = re.compile(
    r"token|secret|password|passwd|authorization|api_?key|signature|cookie|credential|dsn|database_url|smtp_url",
    re.IGNORECASE,
)
# Counts of tokens are figures, not secrets.
_HARMLESS_NAMES: Final = re.compile(r"(?:\w+_)?tokens(?:_\w+)?", re.IGNORECASE)
_SECRET_TEXTS: Final = re.compile(
    r"xox[a-z]-[\w-]{6,}"  # Slack tokens
    r"|xapp-[\w-]{6,}"
    r"|whsec_[\w+/=-]+"
    r"|\bsk-[\w-]{8,}"  # model endpoints' keys
    r"|(?i:bearer|basic)\s+[\w.~+/=-]{6,}"
    r"|(?<=://)[^/\s@]+(?=@)"  # user info in any URL
    r"|(?<![\w-])[\w-]{43}\.[0-9]{1,9}(?![\w-])"  # a button's value
)
_ADDRESSES: Final = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_SHORTEST_SECRET: Final = 6  # Shorter ones would eat ordinary words; settings refuse them anyway.
_MAX_DEPTH: Final = 6  # Log values are flat; what is nested deeper has no business there.


def allowed_fields(
    kind: Kind, *, payload: Mapping[str, Any], output: Mapping[str, Any] | None
) -> dict[str, object]:
    """Pick the values that the kind's `record_fields` let into the record, by their path."""
    document = {"payload": payload, "output": output or {}}
    found = {path: read_path(document, path) for path in kind.record_fields}
    return {path: value for path, value in found.items() if value is not MISSING}


def hide_text(text: str, secrets: Collection[str] = ()) -> str:
    """Remove from a text everything that looks like a secret or an address, and each of the given secrets."""
    for secret in secrets:
        text = text.replace(secret, REMOVED)
    return _ADDRESSES.sub(REMOVED, _SECRET_TEXTS.sub(REMOVED, text))


class SecretRemover:
    """A structlog processor: the last before rendering, so that nothing passes it.

    `secrets` are the values read from the environment; they are removed wherever they turn up.
    """

    def __init__(self, secrets: Collection[str] = ()) -> None:
        # Longest first, so that a secret that contains another goes whole.
        self._secrets = sorted(
            {one for one in secrets if len(one) >= _SHORTEST_SECRET}, key=len, reverse=True
        )

    def __repr__(self) -> str:
        return f"SecretRemover({len(self._secrets)} secrets)"

    def __call__(
        self, logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        """Give the event without secrets."""
        return {name: self._hide(name, value, 0) for name, value in event.items()}

    def _hide(self, name: str, value: object, depth: int) -> object:
        if _SECRET_NAMES.search(name) and not _HARMLESS_NAMES.fullmatch(name):
            return REMOVED
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth >= _MAX_DEPTH:
            return REMOVED
        if isinstance(value, Mapping):
            return {str(key): self._hide(str(key), item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._hide("", item, depth + 1) for item in value]
        return hide_text(str(value), self._secrets)
