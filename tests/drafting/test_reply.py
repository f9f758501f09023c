"""Reading the endpoint's reply: any shape is a value or a provider fault, and reasoning fields are not read.

Not here: the object inside the answer (test_extract).
"""

import json
from typing import Any

import pytest

from bot.drafting.faults import ProviderFault
from bot.drafting.reply import read_reply


def _reply(message: object, **more: object) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], **more}).encode()


# Visible text is read as text or as text parts; reasoning, thinking parts and tool calls are not.
@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "hi"}, "hi"),
        ({"content": None, "reasoning": "no"}, ""),
        ({"content": "", "reasoning_content": "no", "thinking": "no"}, ""),
        ({"content": [{"type": "thinking", "text": "no"}, {"type": "text", "text": "hi"}]}, "hi"),
        ({"content": [{"type": "text", "text": 7}, "x"]}, ""),
        ({"content": 7}, ""),
        ({"tool_calls": [{"function": {"arguments": "{}"}}]}, ""),
    ],
)
def test_visible_text_only(message: dict[str, Any], text: str) -> None:
    assert read_reply(_reply(message)).text == text


# Bodies that are no completion are the provider's fault.
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"choices":null}',
        b'{"choices":[]}',
        b'{"choices":["x"]}',
        b'{"choices":[{}]}',
        b'{"choices":[{"message":"x"}]}',
        b'{"choices":[{"message":{"content":"x"},"finish_reason":"error"}]}',
        b'{"choices":[{"message":{"content":"x"},"error":{"code":502}}]}',
        b'{"error":"gone","choices":[{"message":{"content":"x"}}]}',
    ],
)
def test_no_completion(raw: bytes) -> None:
    with pytest.raises(ProviderFault):
        read_reply(raw)


# Names and counts from outside are bounded and plain; nonsense counts as nothing.
def test_outside_values() -> None:
    usage = {"prompt_tokens": -5, "completion_tokens": True}
    reply = read_reply(_reply({"content": "x"}, model="m\n" + "x" * 500, system_fingerprint=7, usage=usage))
    assert reply.model is not None
    assert reply.model.startswith("m?x")
    assert len(reply.model) == 200
    assert (reply.fingerprint, reply.prompt_tokens, reply.completion_tokens) == (None, 0, 0)
    assert read_reply(_reply({"content": "x"}, usage={"prompt_tokens": 10**30})).prompt_tokens == 10**8


# A reply's text stays out of its repr.
def test_repr() -> None:
    assert "SECRET" not in repr(read_reply(_reply({"content": "SECRET"})))
