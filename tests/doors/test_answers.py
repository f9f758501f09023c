"""How the doors read and answer: what never comes whole, and what breaks on our side.

Not here: what each door answers (test_intake, test_runs, test_health).
"""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from bot.doors import answers
from bot.doors.answers import Contained, Refused, read_body

SCOPE: dict[str, Any] = {"type": "http", "method": "POST", "headers": []}


# A body that does not come to its end is waited for no longer than it may take, and its connection is closed.
async def test_a_body_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "BODY_SECONDS", 0)

    async def receive() -> Message:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("unreachable")

    with pytest.raises(Refused) as refused:
        await read_body(receive, {}, 10)
    assert refused.value.problem.status == 408
    assert (b"connection", b"close") in refused.value.headers


# What breaks in a door is answered as a problem that may pass, and says nothing of what broke.
async def test_a_door_that_breaks() -> None:
    async def door(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError("xoxb-secret")

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await Contained(door)(SCOPE, _nothing, send)
    assert sent[0]["status"] == 503
    assert b"retry-after" in dict(sent[0]["headers"])
    body = json.loads(sent[1]["body"])
    assert body["type"] == "unavailable"
    assert "secret" not in json.dumps(body)


async def _nothing() -> Message:
    raise AssertionError("the door asked for the body")
