"""The outside world as effects meet it: an automation's webhooks, its look-up and its waiting executions.

Not here: sockets (world_server). The journal is the far side's truth: tests believe it, not our database.
"""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

WEBHOOK = "/webhook/"
LOOK_UP = "/webhook/sent/"
WAITING = "/webhook-waiting/"

# What may go wrong; `status` and `redirect` answer, the rest break something on the way.
HANG = "hang"  # read the request, do the work, never answer
HOLD = "hold"  # the same, but answer when released
DROP = "drop"  # read the request, do the work, close without an answer
DROP_UNREAD = "drop_unread"  # close without reading
RESET = "reset"  # read the request, do the work, close with RST
CUT = "cut"  # answer, and close in the middle of the body
STALL = "stall"  # answer, and fall silent in the middle of the body
RUBBISH = "rubbish"  # answer with something that is not HTTP, or with the body as the very bytes on the wire
STATUS = "status"  # answer with that status, body and headers
NOT_HTTP = b"220 ready when you are\r\n\r\n"
KINDS = (HANG, HOLD, DROP, DROP_UNREAD, RESET, CUT, STALL, RUBBISH, STATUS)


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to misbehave. `done` says whether the work is done all the same, and so found by a look-up."""

    kind: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None  # None: the answer a healthy world gives
    done: bool = True


def status(code: int, *, body: str = '{"message":"as ordered"}', done: bool = False, **headers: str) -> Fault:
    """Answer with a status; header names are written with underscores (`retry_after="5"`)."""
    return Fault(STATUS, code, {name.replace("_", "-"): value for name, value in headers.items()}, body, done)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Received:
    """One request that arrived in whole."""

    number: int
    at: float
    method: str
    path: str
    headers: Mapping[str, str]
    body: str
    effect_id: str | None
    signed: bool | None  # None: the world was not given the secret
    done: bool
    provider_id: str | None


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server puts on the wire; `fault` says how."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    fault: str = STATUS


@dataclass(slots=True)
class Wait:
    """One waiting execution, as n8n's Wait node: 409 until reached, 200 once, then 409 finished."""

    state: str = "running"  # running, waiting, finished
    token: str | None = None
    suffix: str = ""


class World:
    """What stands behind the addresses; thread-safe, and knows nothing of sockets."""

    def __init__(
        self,
        *,
        signing_secret: str | None = None,
        journal_file: Path | None = None,
        deduplicates: bool = False,
    ) -> None:
        self._secret = signing_secret
        self._file = journal_file
        self._deduplicates = deduplicates
        self._lock = threading.RLock()
        self._journal: list[Received] = []
        self._ids: dict[str, str] = {}
        self._faults: dict[str, list[tuple[Fault, int | None]]] = {}
        self._waits: dict[str, Wait] = {}
        self._listeners: list[Callable[[Received], None]] = []

    @property
    def journal(self) -> tuple[Received, ...]:
        """Everything received, in order."""
        with self._lock:
            return tuple(self._journal)

    def done(self, effect_id: str | None = None) -> tuple[Received, ...]:
        """Work done (for one effect): the count that may never exceed one."""
        return tuple(each for each in self.journal if each.done and effect_id in (None, each.effect_id))

    def listen(self, listener: Callable[[Received], None]) -> None:
        """Call `listener` for each request from now on, on the server's thread."""
        self._listeners.append(listener)

    def misbehave(self, path: str, fault: Fault, *, times: int | None = None) -> None:
        """Queue a fault for paths that begin with `path`; `times` None: until cleared."""
        if fault.kind not in KINDS:
            raise ValueError(f"no such fault: {fault.kind}; one of {', '.join(KINDS)}")
        with self._lock:
            self._faults.setdefault(path, []).append((fault, times))

    def behave(self) -> None:
        """Forget every fault that is left."""
        with self._lock:
            self._faults.clear()

    def wait_at(
        self, execution: str, *, state: str = "waiting", token: str | None = None, suffix: str = ""
    ) -> str:
        """Make or move a waiting execution; returns the path of its resume URL."""
        with self._lock:
            self._waits[execution] = Wait(state, token, suffix)
        place = f"{WAITING}{execution}" + (f"/{suffix}" if suffix else "")
        return place + (f"?signature={token}" if token else "")

    def next_fault(self, path: str) -> Fault | None:
        """Take the fault that is next for this path; the longest matching prefix wins."""
        with self._lock:
            for prefix in sorted(self._faults, key=len, reverse=True):
                if path.startswith(prefix) and self._faults[prefix]:
                    fault, left = self._faults[prefix][0]
                    if left is not None:
                        self._faults[prefix][:1] = [(fault, left - 1)] if left > 1 else []
                    return fault
        return None

    def receive(self, request: Request, fault: Fault | None) -> Reply:
        """Take one request: record it, do what it asks, and say what to answer."""
        with self._lock:
            reply, effect_id, done = self._route(request, works=fault is None or fault.done)
            provider_id = self._ids.get(effect_id) if done and effect_id else None
            self._record(
                Received(
                    number=len(self._journal) + 1,
                    at=time.time(),
                    method=request.method,
                    path=request.path,
                    headers=dict(request.headers),
                    body=request.body.decode("utf-8", "replace"),
                    effect_id=effect_id,
                    signed=None if self._secret is None else is_signed(self._secret, request),
                    done=done,
                    provider_id=provider_id,
                )
            )
        return _bend(reply, fault)

    def _route(self, request: Request, *, works: bool) -> tuple[Reply, str | None, bool]:
        plain = request.path.partition("?")[0]
        if request.method == "GET" and plain.startswith(LOOK_UP):
            effect_id = plain.removeprefix(LOOK_UP)
            return self._look_up(effect_id), effect_id, False
        if request.method == "POST" and plain.startswith(WAITING):
            reply = self._resume(plain.removeprefix(WAITING), request.path, works=works)
            told = request.headers.get("idempotency-key")
            return reply, told, works and reply.status == 200  # noqa: PLR2004
        if request.method == "POST" and plain.startswith(WEBHOOK):
            return self._work(request.headers.get("idempotency-key"), works=works)
        return answer(404, {"message": "The requested webhook is not registered."}), None, False

    def _work(self, effect_id: str | None, *, works: bool) -> tuple[Reply, str | None, bool]:
        again = self._deduplicates and effect_id in self._ids
        if works and effect_id and effect_id not in self._ids:
            self._ids[effect_id] = f"world-{len(self._ids) + 1}"
        return answer(200, {"id": self._ids.get(effect_id or "", "world-0")}), effect_id, works and not again

    def _look_up(self, effect_id: str) -> Reply:
        known = self._ids.get(effect_id)
        return answer(404, {"message": "not found"}) if known is None else answer(200, {"id": known})

    def _resume(self, place: str, path: str, *, works: bool) -> Reply:
        execution, _, suffix = place.partition("/")
        wait = self._waits.get(execution)
        if wait is None:
            return answer(404, {"message": f"The execution {execution!r} does not exist."})
        if wait.token is not None and f"signature={wait.token}" not in path:
            return answer(401, {"error": "Invalid token"})
        if suffix != wait.suffix or (suffix and wait.state == "finished"):
            return answer(404, {"message": "The requested webhook is not registered."})
        if wait.state != "waiting":
            word = "is running already" if wait.state == "running" else "has finished already"
            return answer(409, {"message": f"The execution {execution!r} {word}."})
        if works:
            wait.state = "finished"
        return answer(200, {"message": "Workflow was started"})

    def _record(self, received: Received) -> None:
        self._journal.append(received)
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(received)) + "\n")
        for listener in self._listeners:
            listener(received)


def answer(code: int, document: Mapping[str, Any]) -> Reply:
    """A JSON answer."""
    return Reply(code, json.dumps(document).encode(), {"content-type": "application/json"})


def is_signed(secret: str, request: Request) -> bool:
    """Whether a request is signed by Standard Webhooks; a reading of our own, not the sender's code."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    headers = request.headers
    prefix = f"{headers.get('webhook-id', '')}.{headers.get('webhook-timestamp', '')}."
    expected = (
        "v1,"
        + base64.b64encode(hmac.new(key, prefix.encode() + request.body, hashlib.sha256).digest()).decode()
    )
    return any(hmac.compare_digest(expected, given) for given in headers.get("webhook-signature", "").split())


def _bend(reply: Reply, fault: Fault | None) -> Reply:
    if fault is None:
        return reply
    if fault.kind == RUBBISH:
        return Reply(reply.status, NOT_HTTP if fault.body is None else fault.body.encode(), {}, fault.kind)
    if fault.kind != STATUS:
        return Reply(reply.status, reply.body, reply.headers, fault.kind)
    body = reply.body if fault.body is None else fault.body.encode()
    return Reply(fault.status, body, {"content-type": "application/json", **fault.headers})
