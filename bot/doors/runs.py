"""GET /runs: lets an upstream system read its own runs, whole.

Not here: what is read (store/reading) or who is asking (senders).
"""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs
from uuid import UUID

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bot.contracts.fields import FieldError, wrong_event_key, wrong_kind
from bot.contracts.problem import ProblemType, make_problem
from bot.doors.answers import (
    Contained,
    Refused,
    new_request_id,
    read_headers,
    refuse_fields,
    refuse_method,
    retry_after,
    send_json,
    send_refusal,
)
from bot.doors.senders import Senders, refuse_sender
from bot.policy.limits import UNAVAILABLE_RETRY_AFTER_SECONDS
from store.database import Database
from store.errors import DatabaseAway
from store.reading import WholeRun, read_run
from store.states import outcome_of

_UNKNOWN: Final = "No run of this source has that name: check the id, or kind and event_key."
_AWAY: Final = "The database cannot be reached just now: ask again in a moment."
_IS_NEEDED: Final = "is required once: ask with ?kind=…&event_key=…, or for /runs/{run_id}"
_MAX_QUERY_FIELDS: Final = 20  # We read two; a longer query is no question of ours.


@dataclass(frozen=True, slots=True)
class RunsDeps:
    """What reading needs; `public_url` has no slash at its end."""

    db: Database
    senders: Senders
    public_url: str


class RunsDoor:
    """One ASGI application for both addresses."""

    def __init__(self, deps: RunsDeps) -> None:
        self._deps = deps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one question; nothing changes."""
        request_id = new_request_id()
        try:
            body = await self._answer(scope)
        except Refused as refused:
            await send_refusal(scope, send, refused, request_id=request_id)
        else:
            await send_json(scope, send, status=200, body=body, request_id=request_id)

    async def _answer(self, scope: Scope) -> dict[str, Any]:
        if scope["method"] not in {"GET", "HEAD"}:
            raise refuse_method("GET, HEAD")
        headers = read_headers(scope)
        source = self._deps.senders.by_bearer(headers) or self._deps.senders.by_signature(headers, b"")
        if source is None:
            raise refuse_sender()
        asked = _asked(scope, source)
        try:
            async with self._deps.db.connection() as conn:
                run = await read_run(conn, source=source, **asked)
        except DatabaseAway:
            problem = make_problem(ProblemType.UNAVAILABLE, _AWAY)
            raise Refused(problem, retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS)) from None
        if run is None:
            raise _unknown()
        return self._body(run)

    def _body(self, run: WholeRun) -> dict[str, Any]:
        outcome = outcome_of(run.state)
        url = f"{self._deps.public_url}/runs/{run.run['run_id']}"
        return {
            "state": run.state,
            "outcome": outcome,
            "run": run.run | {"outcome": outcome, "run_url": url},
            "draft": run.draft,
            "revisions": run.revisions,
            "decisions": run.decisions,
            "effects": run.effects,
            "audit": run.audit,
        }


def routes(deps: RunsDeps) -> list[Route]:
    """Mount both addresses, each with and without a slash at the end."""
    door = Contained(RunsDoor(deps))
    return [Route(path, door) for path in ("/runs", "/runs/", "/runs/{run_id}", "/runs/{run_id}/")]


def _unknown() -> Refused:
    return Refused(make_problem(ProblemType.NOT_FOUND, _UNKNOWN))


def _asked(scope: Scope, source: str) -> dict[str, Any]:
    """Read which run is meant: by id from the path, else by kind and event_key."""
    name = scope.get("path_params", {}).get("run_id")
    if name is not None:
        try:
            return {"run_id": UUID(name)}
        except ValueError:
            raise _unknown() from None
    kind, event_key = _query(scope)
    return {"key": f"{source}:{kind}:{event_key}"}


def _query(scope: Scope) -> tuple[str, str]:
    text = scope["query_string"].decode("latin-1")
    try:
        given = parse_qs(text, keep_blank_values=True, max_num_fields=_MAX_QUERY_FIELDS)
    except ValueError:
        given = {}
    values, errors = [], []
    for name, rule in (("kind", wrong_kind), ("event_key", wrong_event_key)):
        found = given.get(name, [])
        message = rule(found[0]) if len(found) == 1 else _IS_NEEDED
        values.append("".join(found[:1]))
        errors += [FieldError(name, message)] if message else []
    if errors:
        raise refuse_fields(tuple(errors))
    return values[0], values[1]
