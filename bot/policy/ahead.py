"""What is asked ahead of a send: whether the record is still the one that the draft was made from.
Not here: asking (bot/connectors/probe), what follows (bot/flow/checking), the effect itself (clauses).
"""

import re
from collections.abc import Iterator
from typing import Annotated, Final, Self
from urllib.parse import quote

from pydantic import AfterValidator, Field, StrictStr, model_validator

from bot.contracts.fields import wrong_url
from bot.policy import limits
from bot.policy.requests import Headers, Scalar
from bot.policy.values import Clause, Duration, ResponsePath

PLACEHOLDERS: Final = ("entity", "key", "effect_id")

_PLACE: Final = re.compile(r"\{([^{}]*)\}")
_DOTS: Final = frozenset({".", ".."})  # As a step of a path these climb, encoded or not.


def fill_url(template: str, **values: str) -> str | None:
    """Put values into placeholders, percent-encoded whole; None where one would climb the path."""
    if any(value in _DOTS for value in values.values()):
        return None
    return _PLACE.sub(lambda found: quote(values[found[1]], safe=""), template)


def _template(value: str) -> str:
    unknown = [place for place in _PLACE.findall(value) if place not in PLACEHOLDERS]
    if unknown:
        known = ", ".join(f"{{{place}}}" for place in PLACEHOLDERS)
        raise ValueError(f"has the placeholder {{{unknown[0]}}}: there are only {known}")
    if message := wrong_url(_PLACE.sub("x", value)):
        raise ValueError(message)
    if "{" in "".join(value.split("/", 3)[:3]):
        raise ValueError("may have placeholders in path and query only, never in the host")
    return value


class Probe(Clause):
    """How the record is asked for right before sending, and what must be found. Times are in seconds."""

    url: Annotated[StrictStr, AfterValidator(_template)]
    version: ResponsePath | None = None
    path: ResponsePath | None = None
    open: tuple[Scalar, ...] = ()
    headers: Headers = Field(default_factory=dict)
    timeout_seconds: Duration = Field(
        default=limits.PROBE_TIMEOUT_SECONDS, alias="timeout", ge=1, le=limits.MAX_PROBE_TIMEOUT_SECONDS
    )

    @model_validator(mode="after")
    def _looks_for_something(self) -> Self:
        if self.version is None and self.path is None:
            raise ValueError("needs version, the path of the source_version in the answer, or path and open")
        if (self.path is None) != (not self.open):
            raise ValueError("needs path and open together: which value must be one of which")
        return self

    def example(self) -> str:
        """An address that might be asked."""
        return _PLACE.sub("x", self.url)

    def told(self) -> Iterator[str]:
        """Say what must be found, in words for `policy check`."""
        if self.version is not None:
            yield f"{self.version} is the draft's source_version"
        if self.path is not None:
            yield f"{self.path} is one of {', '.join(map(str, self.open))}"
