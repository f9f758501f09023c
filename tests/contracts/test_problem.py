"""Error bodies: the members that clients and n8n rely on.
Not here: which error is given when.
"""

import pytest

from bot.contracts.event import FieldError
from bot.contracts.problem import STATUS_AND_TITLE, ProblemType, make_problem

STATUSES = {
    "payload-conflict": 409,
    "effect-unsettled": 409,
    "unauthorized": 401,
    "too-large": 413,
    "unsupported-media-type": 415,
    "invalid-event": 422,
    "not-found": 404,
    "overloaded": 429,
    "unavailable": 503,
}


# The stable words and their statuses are those of the contract.
def test_types() -> None:
    assert {str(kind): status for kind, (status, _) in STATUS_AND_TITLE.items()} == STATUSES


# Every body has the members of RFC 9457, the sentence again as message, and the request's id.
@pytest.mark.parametrize("kind", list(ProblemType))
def test_body(kind: ProblemType) -> None:
    body = make_problem(kind, "Mend it so.").body("req-1")
    assert body == {
        "type": kind.value,
        "title": STATUS_AND_TITLE[kind][1],
        "status": STATUSES[kind],
        "detail": "Mend it so.",
        "message": "Mend it so.",
        "request_id": "req-1",
    }
    assert type(body["type"]) is str


# Wrong fields are listed one by one.
def test_errors() -> None:
    problem = make_problem(ProblemType.INVALID_EVENT, "x", [FieldError("kind", "is required")])
    assert problem.body("r")["errors"] == [{"field": "kind", "message": "is required"}]
