"""What /openapi.json says: every address, answer and body of our HTTP, by hand.

Not here: the behaviour itself (intake, runs, health); a test holds each documented answer to a real one.
"""

from typing import Any, Final

from bot.contracts.problem import STATUS_AND_TITLE, ProblemType
from store.states import OUTCOMES, RunState

_KEY: Final = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[!-~]([ -~]*[!-~])?$"}
_TEXT: Final = {"type": ["string", "null"]}
_OBJECT: Final = {"type": "object"}
_LIST: Final = {"type": "array", "items": _OBJECT}
_STATE: Final = {"enum": [str(state) for state in RunState]}
_OUTCOME: Final = {"enum": [*OUTCOMES.values(), None]}

EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind", "entity", "source_version", "payload"],
    "properties": {
        "event_key": _KEY | {"description": "Issued upstream; may come as the header Idempotency-Key."},
        "kind": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_.-]{0,63}$"},
        "entity": {"type": "string", "minLength": 1, "maxLength": 512},
        "source_version": {
            "oneOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]+$"}]
        },
        "payload": _OBJECT,
        "record_url": _TEXT,
        "requested_by": _TEXT,
        "draft": {"type": ["object", "null"]},
        "resume_url": _TEXT,
        "replaces": {"type": ["string", "null"], "description": "event_key of the run that this corrects."},
        "reason": {"type": ["string", "null"], "description": "Required with replaces."},
    },
}

RECEIPT: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["status", "key", "run_id", "state", "draft_key", "revision", "run_url", "outcome"],
    "not": {"required": ["error"]},
    "properties": {
        "status": {"enum": ["accepted", "duplicate", "stale"]},
        "key": {"type": "string"},
        "run_id": {"type": "string", "format": "uuid"},
        "state": _STATE,
        "draft_key": {"type": "string"},
        "revision": {"type": ["integer", "null"]},
        "run_url": {"type": "string"},
        "outcome": _OUTCOME,
        "decided_by": {"type": "string"},
        "message": {"type": "string"},
    },
}

RUN: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["state", "outcome", "run", "draft", "revisions", "decisions", "effects", "audit"],
    "properties": {
        "state": _STATE,
        "outcome": _OUTCOME,
        "run": _OBJECT,
        "draft": {"type": ["object", "null"]},
        "revisions": _LIST,
        "decisions": _LIST,
        "effects": _LIST,
        "audit": _LIST,
    },
}

PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "message", "request_id"],
    "properties": {
        "type": {"enum": [str(kind) for kind in ProblemType]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "How to mend it."},
        "message": {"type": "string", "description": "The same sentence, where n8n looks for it."},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}

STATUS: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"type": "string"}},
}

_RUN_PROBLEMS: Final = (ProblemType.UNAUTHORIZED, ProblemType.NOT_FOUND, ProblemType.UNAVAILABLE)
_SECURITY: Final[list[dict[str, list[str]]]] = [
    {"bearer": []},
    {"webhookId": [], "webhookTimestamp": [], "webhookSignature": []},
]


def describe(*, public_url: str, release: str) -> dict[str, Any]:
    """Write the whole document; `public_url` is where the outside reaches us."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Stet", "version": release},
        "servers": [{"url": public_url}],
        "paths": _paths(),
        "components": {
            "schemas": {"Event": EVENT, "Receipt": RECEIPT, "Run": RUN, "Problem": PROBLEM, "Status": STATUS},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "webhookId": _header("webhook-id"),
                "webhookTimestamp": _header("webhook-timestamp"),
                "webhookSignature": _header("webhook-signature"),
            },
        },
    }


def _paths() -> dict[str, Any]:
    refused = tuple(kind for kind in ProblemType if kind is not ProblemType.NOT_FOUND)
    run_id = _parameter("run_id", "path")
    asked = [_parameter("kind", "query"), _parameter("event_key", "query")]
    ready = _answer("Everything needed is there.", "Status")
    return {
        "/events": {
            "post": {
                "summary": "Take one event in, once however often it is sent.",
                "security": _SECURITY,
                "parameters": [_optional_header("Idempotency-Key"), _optional_header("X-N8n-Execution")],
                "requestBody": {"required": True, "content": _content("Event")},
                "responses": {
                    "202": _answer("Stored durably.", "Receipt"),
                    "200": _answer("A duplicate, or not newer than what is known.", "Receipt"),
                    **_problems(refused),
                },
            }
        },
        "/runs/{run_id}": {"get": _read([run_id], _RUN_PROBLEMS)},
        "/runs": {"get": _read(asked, (*_RUN_PROBLEMS, ProblemType.INVALID_EVENT))},
        "/healthz": {"get": {"summary": "Alive?", "responses": {"200": _answer("Alive.", "Status")}}},
        "/readyz": {
            "get": {"summary": "Ready?", "responses": {"200": ready, **_problems((ProblemType.UNAVAILABLE,))}}
        },
        "/metrics": {
            "get": {
                "summary": "Figures for Prometheus.",
                "responses": {
                    "200": {"description": "Prometheus' text format.", "content": {"text/plain": {}}},
                    **_problems((ProblemType.UNAVAILABLE,)),
                },
            }
        },
        "/openapi.json": {
            "get": {
                "summary": "This document.",
                "responses": {"200": {"description": "OpenAPI 3.1.", "content": {"application/json": {}}}},
            }
        },
    }


def _read(parameters: list[dict[str, Any]], problems: tuple[ProblemType, ...]) -> dict[str, Any]:
    return {
        "summary": "Read one of your own runs.",
        "security": _SECURITY,
        "parameters": parameters,
        "responses": {"200": _answer("The run and all that hangs on it.", "Run"), **_problems(problems)},
    }


def _answer(description: str, schema: str) -> dict[str, Any]:
    return {"description": description, "content": _content(schema)}


def _content(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _problems(kinds: tuple[ProblemType, ...]) -> dict[str, Any]:
    """One answer a status; two problems may share one."""
    found: dict[str, Any] = {}
    for kind in kinds:
        status, title = STATUS_AND_TITLE[kind]
        said = found.get(str(status), {}).get("description")
        found[str(status)] = _answer(f"{said}; {kind}: {title}." if said else f"{kind}: {title}.", "Problem")
    return found


def _header(name: str) -> dict[str, str]:
    return {"type": "apiKey", "in": "header", "name": name}


def _parameter(name: str, where: str) -> dict[str, Any]:
    return {"name": name, "in": where, "required": True, "schema": {"type": "string"}}


def _optional_header(name: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "schema": {"type": "string"}}
