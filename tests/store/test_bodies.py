"""Bodies of a kind's own shape, filled by the database from the standard body; and bytes that stay.

Not here: templates (tests/policy/test_requests) or the decision around them (tests/flow/test_decide).
"""

import hashlib
import json
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from bot.policy.requests import compile_body
from tests import makers

STANDARD: dict[str, Any] = {
    "effect_id": "e",
    "key": "n8n:k:1",
    "entity": "customer:42",
    "revision": 2,
    "recipient": None,
    "output": {"body": 'He said "hi"\n\\ </script> \u2028', "amount": 1.50, "list": ["a", {"b": None}]},
}


def fill(dsn: str, template: str | None, standard: dict[str, Any]) -> str:
    with makers.owner_of(dsn) as conn:
        parts = None if template is None else Jsonb(compile_body(template))
        (row,) = conn.execute("SELECT fill_body(%s, %s)", (parts, Jsonb(standard))).fetchall()
    return str(row[0])


# A text that is one placeholder becomes the value itself; within other text, its words.
def test_filled(dsn: str) -> None:
    template = (
        '{"all":"{output}","amount":"{output.amount}","second":"{output.list.1}","no":"{recipient}",'
        '"none":"{output.none}","said":"<{entity}> {output.body} {output.amount} {recipient}{output.list}."}'
    )
    body = STANDARD["output"]["body"]
    assert json.loads(fill(dsn, template, STANDARD)) == {
        "all": STANDARD["output"],
        "amount": 1.5,
        "second": {"b": None},
        "no": None,
        "none": None,
        "said": f'<customer:42> {body} 1.5 ["a", {{"b": null}}].',
    }


# Without a template the standard body is sent as it always was.
def test_standard(dsn: str) -> None:
    assert json.loads(fill(dsn, None, STANDARD)) == STANDARD


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
CUT = '{"a":"{output.body}","b":"x {output.body} y {entity}","c":["{key}"],"d":1}'


# Nothing that a model writes breaks out of its string, becomes a key, or is filled in turn.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(text=TEXTS | st.sampled_from(['","d":2,"x":"', "{entity}", "\\", '"', "\\u0022", "\x1f", "']}"]))
def test_never_breaks_out(dsn: str, text: str) -> None:
    filled = json.loads(fill(dsn, CUT, {"output": {"body": text}, "entity": text, "key": text}))
    assert filled == {"a": text, "b": f"x {text} y {text}", "c": [text], "d": 1}


CHANGES = (
    "UPDATE effect_payloads SET body = 'x'::bytea",
    "UPDATE effect_payloads SET body_hash = 'x'",
    "UPDATE effect_payloads SET body_hash = NULL",
)


# What was written stays: no statement changes bytes or hash; erasing takes the bytes and leaves the hash.
def test_bytes_stay(dsn: str) -> None:
    makers.make_effect(dsn, body=b'{"a":1}')
    for change in CHANGES:
        with pytest.raises(psycopg.errors.CheckViolation, match="were fixed when it was decided"):
            makers.change(dsn, change)
    makers.change(dsn, "UPDATE effect_payloads SET body = NULL, erased_at = now()")
    (row,) = makers.rows(dsn, "SELECT body_hash FROM effect_payloads")
    assert row["body_hash"] == hashlib.sha256(b'{"a":1}').hexdigest()
