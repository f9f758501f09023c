"""What counts as the same event, the same draft and the same text.
Not here: where the keys are stored and compared (store/), and the tokens of buttons (tokens).

All hashes are lower-case hex of SHA-256.
"""

import hashlib
from typing import Any

from bot.contracts.event import Event
from bot.contracts.strict_json import canonical_json

__all__ = ["body_hash", "canonical_json", "draft_key", "idempotency_key", "payload_hash"]

_HASHED_OPTIONAL = ("record_url", "requested_by", "draft", "replaces")


def idempotency_key(event: Event) -> str:
    """Name the run; neither source nor kind can hold a colon, so no two pairs collide (SPEC section 1)."""
    return f"{event.source}:{event.kind}:{event.event_key}"


def draft_key(entity: str, kind: str) -> str:
    """Name what is drafted. Each part goes in with its length, so that no two pairs give the same bytes."""
    parts = (entity.encode(), kind.encode())
    return hashlib.sha256(b"".join(b"%d:%b" % (len(part), part) for part in parts)).hexdigest()


def payload_hash(event: Event) -> str:
    """Tell the same content from other content under one key, whatever its JSON looked like (SPEC section 3).

    `resume_url` differs in every n8n execution, `reason` and the origin are about the event: they stay out.
    """
    content: dict[str, Any] = {
        "entity": event.entity,
        "source_version": str(event.source_version),
        "payload": event.payload,
    }
    for name in _HASHED_OPTIONAL:
        value = getattr(event, name)
        if value is not None:
            content[name] = value
    return body_hash(content)


def body_hash(body: dict[str, Any]) -> str:
    """Hash a JSON object by its canonical form (RFC 8785): a revision's text, a snapshot, an event."""
    return hashlib.sha256(canonical_json(body)).hexdigest()
