"""The pretend model from another process's side: its wire, its control API, its words.

Not here: each fault as the bot sees it (tests/drafting/test_model).
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from bot.demo.model import ModelServer, serve_model
from bot.demo.model_script import MODEL_NAME
from bot.demo.model_words import write_draft
from bot.drafting.check import find_violations
from bot.drafting.prompt import Redraft, first_messages, response_format

ASKED = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with serve_model() as running:
        yield running


@pytest.fixture
async def web(server: ModelServer) -> AsyncIterator[httpx2.AsyncClient]:
    base_url = server.base_url.removesuffix("/v1")
    async with httpx2.AsyncClient(base_url=base_url, headers={"authorization": "Bearer k"}) as client:
        yield client


async def _complete(web: httpx2.AsyncClient) -> httpx2.Response:
    return await web.post("/v1/chat/completions", json=ASKED)


# Ordered steps are used up one a request, then what holds always, then sense again; the journal has it all.
async def test_orders(web: httpx2.AsyncClient) -> None:
    limited = {"status": 429, "raw": '{"error":{}}', "headers": {"retry-after": "1"}}
    await web.post("/control/steps", json={"steps": [limited, {"content": "first"}]})
    await web.post("/control/always", json={"content": "again"})
    answers = [await _complete(web) for _ in range(4)]
    await web.post("/control/always", json=None)
    sensible = await _complete(web)
    assert [each.status_code for each in answers] == [429, 200, 200, 200]
    assert answers[0].headers["retry-after"] == "1"
    contents = [each.json()["choices"][0]["message"]["content"] for each in answers[1:]]
    assert contents == ["first", "again", "again"]
    assert "subject" in sensible.json()["choices"][0]["message"]["content"]
    journal = (await web.get("/control/journal")).json()
    assert (journal["requests"], journal["heard"][0]["body"], journal["heard"][0]["authorized"]) == (
        5,
        ASKED,
        True,
    )
    await web.post("/control/reset")
    assert (await web.get("/control/journal")).json() == {"requests": 0, "heard": []}


# A held request is answered after the release, which may come over HTTP.
async def test_hold(web: httpx2.AsyncClient, server: ModelServer) -> None:
    await web.post("/control/steps", json={"steps": [{"how": "hold", "content": "late"}]})
    asking = asyncio.create_task(_complete(web))
    await server.script.arrived(1)
    await web.post("/control/release")
    assert (await asking).json()["choices"][0]["message"]["content"] == "late"


# A hanging request ends without an answer when it is let go.
async def test_hang(web: httpx2.AsyncClient, server: ModelServer) -> None:
    await web.post("/control/steps", json={"steps": [{"how": "hang"}]})
    asking = asyncio.create_task(_complete(web))
    await server.script.arrived(1)
    server.script.release()
    with pytest.raises(httpx2.TransportError):
        await asking


# It lists its model, as doctor asks, and knows no other order.
async def test_rest_of_the_wire(web: httpx2.AsyncClient) -> None:
    assert (await web.get("/v1/models")).json()["data"][0]["id"] == MODEL_NAME
    assert (await web.post("/control/dance")).status_code == 404


# Whatever the schema asks for, the draft fits it; without response_format the schema is read from the prompt.
@pytest.mark.parametrize("with_format", [True, False])
@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "properties": {
                "title": {"type": "string", "maxLength": 10},
                "score": {"type": "number", "minimum": 0.5, "maximum": 0.9},
                "count": {"type": "integer", "minimum": 3},
                "urgent": {"type": "boolean"},
                "mood": {"enum": ["calm", "angry"]},
                "version": {"const": 2},
                "lines": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/line"}},
                "day": {"type": "string", "format": "date"},
                "note": {"type": ["string", "null"]},
                "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
            "required": [
                "title",
                "score",
                "count",
                "urgent",
                "mood",
                "version",
                "lines",
                "day",
                "note",
                "either",
            ],
            "$defs": {
                "line": {
                    "type": "object",
                    "properties": {"text": {"type": "string", "minLength": 400}},
                    "required": ["text"],
                }
            },
        },
        {"properties": {"subject": {"type": "string"}, "body": {"type": "string"}}},
    ],
)
def test_fits_any_schema(schema: dict[str, Any], with_format: bool) -> None:
    body: dict[str, Any] = {"messages": first_messages("Do {payload}", schema, {"text": "hi"})}
    if with_format:
        body["response_format"] = response_format("k", schema)
    assert find_violations(_read(write_draft(body)), schema) == ()


# The words follow the event: money back, an angry customer, Chinese, a reviewer's wish.
def test_words_follow_the_event() -> None:
    schema = {
        "type": "object",
        "properties": {
            "subject": {"type": "string"},
            "body": {"type": "string"},
            "label": {"enum": ["shipping", "refund", "other"]},
            "needs_human": {"type": "boolean"},
        },
    }

    def written(payload: dict[str, Any], redraft: Redraft | None = None) -> dict[str, Any]:
        return _read(write_draft({"messages": first_messages("p", schema, payload, redraft=redraft)}))

    money = written({"to": "amy@example.test", "subject": "Broken", "text": "I want a refund"})
    assert (money["label"], money["needs_human"], money["subject"]) == ("refund", True, "Re: Broken")
    assert money["body"].startswith("Hello Amy,")
    assert written({"text": "Where is it?"})["needs_human"] is False
    assert "\u60a8\u597d" in written({"text": "\u5305\u88f9\u5728\u54ea\u91cc"})["body"]
    assert "be brief" in written({"text": "x"}, Redraft({"subject": "s"}, "be brief"))["body"]


def _read(text: str) -> dict[str, Any]:
    return dict(httpx2.Response(200, text=text).json())
