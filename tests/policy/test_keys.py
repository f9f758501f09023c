"""What counts as the same: keys never collide, hashes do not see spelling.
Not here: the canonical form itself (tests/contracts/test_strict_json).
"""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.contracts.event import Event, read_event
from bot.policy.keys import body_hash, draft_key, idempotency_key, payload_hash

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
E0 = {
    "event_key": "evt-1001",
    "kind": "customer_email",
    "entity": "cust-77",
    "source_version": 7,
    "payload": {"to": "amy@example.test", "text": "café"},
}


def event(**changed: Any) -> Event:
    return read_event(json.dumps(E0 | changed).encode(), source="n8n", header_key=None)


# The run's key is source, kind and event_key, so two kinds with one event_key are two runs.
def test_idempotency_key() -> None:
    assert idempotency_key(event()) == "n8n:customer_email:evt-1001"
    assert idempotency_key(event(kind="order.paid")) != idempotency_key(event(kind="order.shipped"))


# Two different pairs of entity and kind never share a draft.
@given(TEXT, TEXT, TEXT, TEXT)
def test_draft_keys_differ(entity: str, kind: str, other_entity: str, other_kind: str) -> None:
    same = (entity, kind) == (other_entity, other_kind)
    assert (draft_key(entity, kind) == draft_key(other_entity, other_kind)) == same


# Moving a border between entity and kind gives another key, whatever the characters look like.
@given(TEXT)
def test_draft_key_border(text: str) -> None:
    keys = {draft_key(text[:cut], text[cut:]) for cut in range(len(text) + 1)}
    assert len(keys) == len(text) + 1


# The same bytes in another spelling (order, spaces, escapes) are the same event, other text is not.
def test_hash_ignores_spelling() -> None:
    raw = json.dumps(dict(reversed(E0.items())), ensure_ascii=False, indent=2).encode()
    assert payload_hash(read_event(raw, source="n8n", header_key=None)) == payload_hash(event())
    assert payload_hash(event(payload={"to": "amy@example.test", "text": "cafe"})) != payload_hash(event())


# Version as number or text, 1.0 or 1, absent or null: each pair is one content.
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"source_version": 7}, {"source_version": "7"}),
        ({"source_version": "007"}, {"source_version": "7"}),
        ({"payload": {"n": 1.0}}, {"payload": {"n": 1}}),
        ({"record_url": None, "draft": None}, {}),
        ({"resume_url": "https://a.example/1"}, {"resume_url": "https://a.example/2"}),
    ],
)
def test_same_content(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert payload_hash(event(**one)) == payload_hash(event(**other))


# Every field that is part of the content changes the hash, and null inside the payload is content.
@pytest.mark.parametrize(
    "changed",
    [
        {"entity": "cust-78"},
        {"source_version": 8},
        {"record_url": "https://crm.example/1"},
        {"requested_by": "U1"},
        {"draft": {}},
        {"payload": {}},
        {"payload": E0["payload"] | {"cc": None}},  # type: ignore[operator]
        {"replaces": "evt-1", "reason": "wrong"},
    ],
)
def test_other_content(changed: dict[str, Any]) -> None:
    assert payload_hash(event(**changed)) != payload_hash(event())


# The hash is the one anybody can compute from the contract's words.
def test_hash_by_hand() -> None:
    written = '{"entity":"cust-77","payload":{"text":"café","to":"amy@example.test"},"source_version":"7"}'
    assert payload_hash(event()) == hashlib.sha256(written.encode()).hexdigest()
    assert payload_hash(replace(event(), reason="x", source="other")) == payload_hash(event())


# A body's hash does not depend on the order of its names.
@given(st.dictionaries(TEXT, st.integers(0, 9) | TEXT, max_size=6))
def test_body_hash(body: dict[str, Any]) -> None:
    assert body_hash(body) == body_hash(dict(reversed(body.items())))
