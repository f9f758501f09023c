"""The one shape of our HTTP error bodies: the members of RFC 9457, plus message and request_id.
Not here: which error is raised when, and headers, which are the doors' business.

The media type stays `application/json`: n8n does not parse the problem media type (SPEC section 3).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bot.contracts.fields import FieldError


class ProblemType(StrEnum):
    """The stable words that a client may branch on."""

    PAYLOAD_CONFLICT = "payload-conflict"
    EFFECT_UNSETTLED = "effect-unsettled"
    UNAUTHORIZED = "unauthorized"
    TOO_LARGE = "too-large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type"
    INVALID_EVENT = "invalid-event"
    NOT_FOUND = "not-found"
    OVERLOADED = "overloaded"
    UNAVAILABLE = "unavailable"


STATUS_AND_TITLE: Final[dict[ProblemType, tuple[int, str]]] = {
    ProblemType.PAYLOAD_CONFLICT: (409, "This key was used before with other content"),
    ProblemType.EFFECT_UNSETTLED: (409, "The replaced run has an effect that is not settled"),
    ProblemType.UNAUTHORIZED: (401, "The sender was not recognised"),
    ProblemType.TOO_LARGE: (413, "The event is too large"),
    ProblemType.UNSUPPORTED_MEDIA_TYPE: (415, "The body is not application/json"),
    ProblemType.INVALID_EVENT: (422, "The event is not valid"),
    ProblemType.NOT_FOUND: (404, "There is no such run"),
    ProblemType.OVERLOADED: (429, "Too many events at once"),
    ProblemType.UNAVAILABLE: (503, "The service cannot take events just now"),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One refusal. `detail` says how to mend it, in a sentence without a secret or a trace."""

    type: str
    status: int
    title: str
    detail: str
    errors: tuple[FieldError, ...] = ()

    def body(self, request_id: str) -> dict[str, object]:
        """Give the JSON body; `message` repeats `detail` because n8n shows that member to its user."""
        body: dict[str, object] = {
            "type": str(self.type),
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "message": self.detail,
            "request_id": request_id,
        }
        if self.errors:
            body["errors"] = [{"field": error.field, "message": error.message} for error in self.errors]
        return body


def make_problem(kind: ProblemType, detail: str, errors: Iterable[FieldError] = ()) -> Problem:
    """Build the problem of a known type with its status and title."""
    status, title = STATUS_AND_TITLE[kind]
    return Problem(type=kind.value, status=status, title=title, detail=detail, errors=tuple(errors))
