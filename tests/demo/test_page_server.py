"""The page's server over HTTP, with the real stand-ins behind it. Not here: the files (test_page_files)."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.demo.events import Desk
from bot.demo.mail import Mail
from bot.demo.model_script import Script
from bot.demo.moods import MODEL_MOODS, WORLD_MOODS, Moods
from bot.demo.page_server import Page
from bot.demo.page_view import Board, gather
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message, name_blocks
from bot.demo.slack_workspace import C_REVIEW, U_ALICE, U_BOB
from bot.demo.world import Request as Sent
from bot.demo.world import World
from bot.demo.world_server import WorldServer

URL = "http://127.0.0.1"


@pytest.fixture
async def board() -> AsyncIterator[Board]:
    async with SlackStandIn() as slack:
        moods = Moods(Script(), WorldServer(World(), "127.0.0.1", 0))
        yield Board(slack, moods, bot_url="http://127.0.0.1:9")
        await moods.stop()


@pytest.fixture
async def browser(board: Board) -> AsyncIterator[httpx2.AsyncClient]:
    page = Page(board, Desk(resume_base="http://127.0.0.1:1/webhook-waiting/"), "token")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(page.application()), base_url=URL) as client:
        yield client
    await page.close()


# Every answer forbids what the page does not need; a text that slipped through as markup could do nothing.
@pytest.mark.parametrize("path", ["/", "/app.js", "/api/state", "/nothing"])
async def test_every_answer_carries_the_content_policy(browser: httpx2.AsyncClient, path: str) -> None:
    answer = await browser.get(path)
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.headers["x-content-type-options"] == "nosniff"


# A foreign name that was made to point at this machine is turned away.
async def test_only_names_of_this_machine_are_answered(browser: httpx2.AsyncClient) -> None:
    assert (await browser.get("/", headers={"host": "evil.example"})).status_code == 400


# A form of another page cannot act: it cannot send JSON without asking first.
@pytest.mark.parametrize("path", ["/api/event", "/api/mood", "/_stand_in/slash"])
async def test_a_foreign_form_does_nothing(browser: httpx2.AsyncClient, path: str) -> None:
    answer = await browser.post(path, content=b"{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 415


# An unchanged picture is not sent again; anything that happens makes it new.
async def test_an_unchanged_picture_is_not_sent(browser: httpx2.AsyncClient, board: Board) -> None:
    seen = (await browser.get("/api/state", params={"user": U_ALICE})).json()["version"]
    same = await browser.get("/api/state", params={"user": U_ALICE, "seen": seen})
    assert same.status_code == 204
    board.slack.state.add(Message(C_REVIEW, board.slack.state.new_ts(), "hello"))
    fresh = await browser.get("/api/state", params={"user": U_ALICE, "seen": seen})
    assert [each["text"] for each in fresh.json()["slack"]["channels"][0]["messages"]] == ["hello"]


# What was whispered to one person is in nobody else's picture.
async def test_whispers_reach_one_person(browser: httpx2.AsyncClient, board: Board) -> None:
    state = board.slack.state
    blocks = name_blocks([{"type": "divider"}])
    state.add(Message(C_REVIEW, state.new_ts(), "for Alice", blocks=blocks, only_for=U_ALICE))
    heard = [
        (await browser.get("/api/state", params={"user": user})).json()["slack"]["ephemerals"]
        for user in (U_ALICE, U_BOB)
    ]
    assert [len(each) for each in heard] == [1, 0]


# The chooser names people who exist; the page never shows the workspace's secrets.
async def test_the_picture_has_no_secrets(browser: httpx2.AsyncClient, board: Board) -> None:
    text = (await browser.get("/api/state")).text
    assert board.slack.state.workspace.token not in text
    assert board.slack.state.workspace.signing_secret not in text
    people = (await browser.get("/api/choices")).json()["people"]
    assert {each["id"] for each in people} <= board.slack.state.workspace.users.keys()


# An event that nobody answers is shown as such, not swallowed.
async def test_a_bot_that_is_away_is_shown(browser: httpx2.AsyncClient) -> None:
    assert (await browser.post("/api/event", json={"button": "ticket"})).json()["status"] == 0
    assert (await browser.get("/api/history", params={"key": "n8n:refund:1"})).status_code == 502


# The page shows exactly what n8n would see: the status and the body, and the bearer it would have sent.
async def test_the_answer_is_shown_as_it_came(browser: httpx2.AsyncClient, board: Board) -> None:
    heard: list[Any] = []

    async def events(request: Request) -> Response:
        heard.append((request.headers["authorization"], await request.json()))
        return JSONResponse({"status": "duplicate"}, 200)

    bot = Starlette(routes=[Route("/events", events, methods=["POST"])])
    page = Page(board, Desk(), "token")
    await page._http.aclose()
    page._http = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(bot), headers={"authorization": "Bearer token"}
    )
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(page.application()), base_url=URL) as client:
        told = (await client.post("/api/event", json={"button": "again"})).json()
    await page.close()
    assert (told["status"], told["answer"]) == (200, {"status": "duplicate"})
    assert heard[0][0] == "Bearer token"
    assert heard[0][1]["kind"] == "customer_email"
    assert board.draw("")["counts"]["duplicate"] == 1


# Every mood of both switches can be chosen, and healthy again after each.
async def test_every_mood_can_be_chosen(browser: httpx2.AsyncClient, board: Board) -> None:
    for whose, moods in (("model", MODEL_MOODS), ("world", WORLD_MOODS)):
        for mood in (*moods, "behaves"):
            assert (await browser.post("/api/mood", json={"whose": whose, "mood": mood})).status_code == 200
            assert board.draw("")["moods"][whose] == mood
    unknown = await browser.post("/api/mood", json={"whose": "model", "mood": "cheerful"})
    assert unknown.status_code == 404


# "Down" refuses connections, as a dead server does; afterwards the world is back at the same address.
async def test_down_refuses_and_comes_back(board: Board) -> None:
    url = f"{board.moods.world_server.url}/webhook/send-mail"
    async with httpx2.AsyncClient(trust_env=False) as client:
        await board.moods.set_world("down")
        with pytest.raises(httpx2.ConnectError):
            await client.post(url)
        await board.moods.set_world("behaves")
        assert (await client.post(url)).status_code == 200


# One entry an effect, with how often it came and how often the work was done: twice would be seen.
def test_the_outside_world_counts_honestly() -> None:
    world = World()
    body = json.dumps({"key": "n8n:refund:1", "output": {"title": "x"}}).encode()
    for _ in range(2):
        world.receive(Sent("POST", "/webhook/refund", {"idempotency-key": "e1"}, body), None)
    world.receive(Sent("GET", "/webhook/sent/e1", {}, b""), None)
    (entry,) = gather(world.journal)
    assert (entry["tries"], entry["done"], entry["look_ups"]) == (2, 2, 1)
    assert (entry["key"], entry["provider_id"]) == ("n8n:refund:1", "world-1")


# A mail stands among what the outside world received, and counts as delivered.
async def test_a_mail_is_shown(browser: httpx2.AsyncClient, board: Board) -> None:
    seen = board.version()
    board.note_mail(
        Mail(
            "a@stet.example",
            ("amy@customer.example",),
            b"Subject: On its way\r\nMessage-ID: <e1@x>\r\n\r\nHello\r\n",
        )
    )
    told = (await browser.get("/api/state", params={"user": U_ALICE, "seen": seen})).json()
    assert told["world"][0]["body"] == {
        "recipient": "amy@customer.example",
        "output": {"subject": "On its way", "body": "Hello"},
    }
    assert told["counts"]["delivered"] == 1
