"""POST /events: recognises the sender, checks the event, answers from what became of it.

Not here: storing (flow/receive), what an event is (contracts/event), what its kind asks (flow/admit).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bot.connectors.reach import Reach
from bot.contracts.event import Event, InvalidEvent, read_event, read_origin
from bot.contracts.fields import FieldError
from bot.contracts.problem import ProblemType, make_problem
from bot.doors.answers import (
    BodyTooLarge,
    Contained,
    Refused,
    SenderGone,
    new_request_id,
    read_body,
    read_headers,
    refuse_fields,
    refuse_method,
    retry_after,
    send_json,
    send_refusal,
)
from bot.doors.senders import Senders, refuse_sender
from bot.flow.admit import find_objections
from bot.flow.arrive import Unfit, Unsettled, make_arrival
from bot.flow.receive import Accepted, Conflict, Duplicate, Received, Receiver, Stale, Unkeepable
from bot.policy.limits import (
    MAX_EVENT_BYTES,
    MAX_INTAKE_WAITING,
    OVERLOAD_RETRY_AFTER_SECONDS,
    UNAVAILABLE_RETRY_AFTER_SECONDS,
)
from bot.policy.redaction import allowed_fields
from bot.policy.terms import Kind
from store.errors import StetError
from store.states import RunState

_TOO_LARGE: Final = f"Send at most {MAX_EVENT_BYTES // 1024} KiB: put a link into the payload, not the file."
_NOT_JSON: Final = "Send the event as JSON with the header Content-Type: application/json, not compressed."
_OVERLOADED: Final = "Too many events of this source wait: send this one again in a moment, unchanged."
_AWAY: Final = "The database does not answer, so it is not known if the event is stored: send it again."
_UNSETTLED: Final = "The replaced run has an effect whose outcome is open: resolve it, then send this."


class PolicyHolder(Protocol):
    """Whatever holds the policy that is in force now."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds by name."""


@dataclass(frozen=True, slots=True)
class IntakeDeps:
    """What the door of events needs; `public_url` has no slash at its end."""

    receiver: Receiver
    senders: Senders
    policy: PolicyHolder
    reach: Reach
    public_url: str
    most_waiting: int = MAX_INTAKE_WAITING


class IntakeDoor:
    """One ASGI application; a request costs no middleware and no request object."""

    def __init__(self, deps: IntakeDeps) -> None:
        self._deps = deps
        self._waiting: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one delivery."""
        request_id = new_request_id()
        try:
            status, body = await self._take(scope, receive)
        except Refused as refused:
            await send_refusal(scope, send, refused, request_id=request_id)
        except SenderGone:
            return
        else:
            await send_json(scope, send, status=status, body=body, request_id=request_id)

    async def _take(self, scope: Scope, receive: Receive) -> tuple[int, dict[str, Any]]:
        if scope["method"] != "POST":
            raise refuse_method("POST")
        headers = read_headers(scope)
        source = self._deps.senders.by_bearer(headers)
        if source is None and not self._deps.senders.may_be_signed(headers):
            raise refuse_sender()
        try:
            raw = await read_body(receive, headers, MAX_EVENT_BYTES)
        except BodyTooLarge:
            raise Refused(make_problem(ProblemType.TOO_LARGE, _TOO_LARGE)) from None
        source = source or self._deps.senders.by_signature(headers, raw)
        if source is None:
            raise refuse_sender()
        if not _is_json(headers):
            raise Refused(make_problem(ProblemType.UNSUPPORTED_MEDIA_TYPE, _NOT_JSON))
        return await self._within_limit(source, headers, raw)

    async def _within_limit(
        self, source: str, headers: Mapping[str, str], raw: bytes
    ) -> tuple[int, dict[str, Any]]:
        """Let so many of a source be in hand at once; a refusal leaves no trace and locks nobody out."""
        if self._waiting[source] >= self._deps.most_waiting:
            problem = make_problem(ProblemType.OVERLOADED, _OVERLOADED)
            raise Refused(problem, retry_after(OVERLOAD_RETRY_AFTER_SECONDS))
        self._waiting[source] += 1
        try:
            return await self._receive(source, headers, raw)
        except StetError:
            problem = make_problem(ProblemType.UNAVAILABLE, _AWAY)
            raise Refused(problem, retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS)) from None
        finally:
            self._waiting[source] -= 1

    async def _receive(
        self, source: str, headers: Mapping[str, str], raw: bytes
    ) -> tuple[int, dict[str, Any]]:
        try:
            event = read_event(raw, source=source, header_key=headers.get("idempotency-key"))
        except InvalidEvent as invalid:
            raise refuse_fields(invalid.errors) from None
        kinds = self._deps.policy.kinds
        objections = find_objections(event, kinds, self._deps.reach)
        if objections:
            raise refuse_fields(objections)
        recorded = _recorded(event, kinds[event.kind])
        received = await self._deps.receiver.receive(make_arrival(event, read_origin(headers), recorded))
        return self._answer(received)

    def _answer(self, received: Received) -> tuple[int, dict[str, Any]]:
        match received:
            case Accepted():
                return 202, self._body("accepted", received)
            case Duplicate():
                return 200, self._body("duplicate", received)
            case Stale():
                return 200, self._body("stale", received)
            case Conflict(key):
                raise Refused(make_problem(ProblemType.PAYLOAD_CONFLICT, _conflict_sentence(key)))
            case Unsettled():
                raise Refused(make_problem(ProblemType.EFFECT_UNSETTLED, _UNSETTLED))
            case Unfit(errors):
                raise refuse_fields(errors)
            case Unkeepable(message):
                raise refuse_fields((FieldError("body", message),))

    def _body(self, status: str, received: Accepted | Duplicate | Stale) -> dict[str, Any]:
        """Write what an n8n IF node can branch on; a member called error it would take for a failure."""
        receipt = received.receipt
        body = {
            "status": status,
            "key": receipt.key,
            "run_id": receipt.run_id,
            "state": receipt.state,
            "draft_key": receipt.draft_key,
            "revision": receipt.revision,
            "run_url": f"{self._deps.public_url}/runs/{receipt.run_id}",
            "outcome": receipt.outcome,
        }
        if receipt.decided_by is not None:
            verb = receipt.state if receipt.state == RunState.REJECTED else "decided"
            body |= {"decided_by": receipt.decided_by, "message": f"{verb} by {receipt.decided_by}"}
        return body


def routes(deps: IntakeDeps) -> list[Route]:
    """Mount the door with and without a slash at the end: a redirect would arrive as a GET."""
    door = Contained(IntakeDoor(deps))
    return [Route("/events", door), Route("/events/", door)]


def _is_json(headers: Mapping[str, str]) -> bool:
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return media_type == "application/json" and headers.get("content-encoding", "identity") == "identity"


def _recorded(event: Event, kind: Kind) -> dict[str, object]:
    if not kind.record_fields:
        return {}
    return allowed_fields(kind, payload=event.payload, output=event.draft)


def _conflict_sentence(key: str) -> str:
    return (
        f"The key {key} came before with other content, which stands. A new fact needs its own event_key; "
        "a correction names the old one in replaces."
    )
