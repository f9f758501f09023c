"""Our Slack doors on a real socket, with the stand-in as Slack and a card before its people.

Not here: rows (tests/makers) or the stand-in itself (bot/demo).
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.routing import Router

from bot.contracts.click import ButtonValue, EffectValue, encode_effect_value, encode_value
from bot.demo.slack_actor import Reply
from bot.demo.slack_payloads import Forge
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message
from bot.demo.slack_workspace import C_OPS, C_REVIEW, S_ADMINS, S_REVIEWERS, U_BOB
from bot.doors.slack_app import SlackDeps, SlackDoors, build_slack_doors
from bot.policy.kinds import load_policy
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.slack.identity import Identity
from bot.slack.people import People
from store import audit
from store.database import Database
from store.rows import AuditRow
from tests.makers import change, make_draft, make_token, rows

POLICY = f"""
[kinds.customer_email]
gate = "approve_first"
sources = ["n8n"]
channel = "{C_REVIEW}"
reviewers = ["{S_REVIEWERS}"]
prompt = "Answer the customer. {{payload}}"
[kinds.customer_email.output]
type = "object"
[kinds.customer_email.effect]
type = "http"
target = "https://n8n.example/webhook/send-mail"
recipient = "payload.to"
"""
ACTIONS = ("approve", "reject", "read", "edit", "redraft", "cancel")


@dataclass
class World:
    """A workspace with our app in it."""

    dsn: str
    db: Database
    slack: SlackStandIn
    doors: SlackDoors
    woken: list[str] = field(default_factory=list)

    def card(self, snapshot: dict[str, Any] | None = None, **more: Any) -> "CardBefore":
        """Make a draft and put its card before people, a token for each button."""
        draft = make_draft(self.dsn, snapshot={"reviewers": [S_REVIEWERS]} | (snapshot or {}), **more)
        tokens = {decision: make_token(self.dsn, draft, decision) for decision in ACTIONS}
        card = CardBefore(self, draft, tokens)
        card.show()
        return card

    def unknown_card(self, effect_id: Any, version: int, *actions: str) -> str:
        """Put the card of an unknown effect before the operators; give its ts."""
        value = encode_effect_value(EffectValue(effect_id, version))
        ts = self.slack.state.new_ts()
        show(self.slack, C_OPS, ts, {f"stet.unknown.{name}": value for name in actions})
        change(
            self.dsn,
            "INSERT INTO cards (card_id, effect_id, channel, ts, shown_version)"
            " VALUES (gen_random_uuid(), %(effect)s, %(channel)s, %(ts)s, 1)",
            effect=effect_id,
            channel=C_OPS,
            ts=ts,
        )
        return ts

    async def heard(self, user: str) -> list[str]:
        """Everything one person was told in private so far, once nothing is on its way any more."""
        await self.doors.settle()
        return [message.text for message in self.slack.state.ephemerals_of(user)]

    def window(self, user: str) -> str:
        """All that stands in the modal a person has before them."""
        return json.dumps(self.slack.actor.top_view(user).content, ensure_ascii=False)

    async def say(self, user: str, text: str) -> str:
        """Type a /stet command; give what came back to the caller alone."""
        before = len(self.slack.state.ephemerals_of(user))
        reply = await self.slack.actor.slash(user, text)
        assert reply.kept
        heard = (await self.heard(user))[before:]
        assert len(heard) == 1
        return heard[0]

    async def chain(self, name: str) -> list[AuditRow]:
        """The record of one key."""
        async with self.db.connection() as conn:
            return await audit.read_chain(conn, name)

    def counters(self) -> tuple[int, int]:
        """Decisions recorded and effects written."""
        decided = rows(self.dsn, "SELECT count(*) AS n FROM approvals WHERE consumed_at IS NOT NULL")
        return decided[0]["n"], rows(self.dsn, "SELECT count(*) AS n FROM effect_outbox")[0]["n"]


@dataclass
class CardBefore:
    """A draft whose card people have before them."""

    world: World
    draft: dict[str, Any]
    tokens: dict[str, str]

    def show(self) -> None:
        """Put it before people, in place of what stood there: a button for each token."""
        values = {f"stet.{name}": encode_value(ButtonValue(one, 1)) for name, one in self.tokens.items()}
        show(self.world.slack, C_REVIEW, self.draft["ts"], values)

    async def click(self, user: str, action: str = "approve", **more: Any) -> Reply:
        """Press one of its buttons."""
        actor = self.world.slack.actor
        return await actor.click(user, C_REVIEW, self.draft["ts"], f"stet.{action}", **more)

    async def press_as(self, user: str, action: str, *, approval_id: Any, revision: int) -> Reply:
        """Press a button of another question, as the card drawn for it has one."""
        asked = self.draft | {"approval_id": approval_id}
        token = make_token(self.world.dsn, asked, action, revision=revision)
        return await self.click(user, action, forge=Forge(value=encode_value(ButtonValue(token, revision))))

    async def reject(self, user: str, reason: str) -> Reply:
        """Press Reject, write why, send it."""
        await self.click(user, "reject")
        return await self.world.slack.actor.submit(user, {"stet.answer": reason}, checked=False)


def show(slack: SlackStandIn, channel: str, ts: str, values: dict[str, str]) -> None:
    """Put a message with buttons into a channel."""
    elements = [
        {
            "type": "button",
            "action_id": name,
            "text": {"type": "plain_text", "text": name},
            "value": value,
        }
        for name, value in values.items()
    ]
    block = {"type": "actions", "block_id": "r1", "elements": elements}
    slack.state.add(Message(channel, ts, "card", blocks=[block]))


def plain(text: str) -> str:
    """All texts of a modal's JSON, joined: what a person reads, whatever pieces it is drawn of."""

    def walk(part: Any) -> list[str]:
        if isinstance(part, dict):
            own = [part["text"]] if isinstance(part.get("text"), str) else []
            return own + [each for value in part.values() for each in walk(value)]
        return [each for value in part for each in walk(value)] if isinstance(part, list) else []

    return "".join(walk(json.loads(text)))


def settings(slack: SlackStandIn, **more: Any) -> Settings:
    """The settings that the doors read."""
    values = {
        "SLACK_BOT_TOKEN": slack.state.workspace.token,
        "SLACK_SIGNING_SECRET": slack.state.workspace.signing_secret,
        "SLACK_API_URL": slack.api_url,
        "INTAKE_TOKENS": "n8n:0123456789abcdef",
        "AI_ACTIONS_ENABLED": "true",
        "ADMIN_USERS": S_ADMINS,
        "KILL_USERS": U_BOB,
    }
    return Settings.load(values | more)


@asynccontextmanager
async def doors_on(
    db: Database, slack: SlackStandIn, woken: list[str], *, policy: str = POLICY, by_socket: bool = False
) -> AsyncIterator[SlackDoors]:
    """Build the doors of one process and open them: on a free port, or by a line to Slack."""
    more = {"SLACK_APP_TOKEN": slack.state.workspace.app_token} if by_socket else {}
    client = SlackClient(slack.state.workspace.token, base_url=slack.api_url)
    await client.open()
    identity = Identity(client)
    await identity.ask()
    doors = build_slack_doors(
        SlackDeps(
            db=db,
            slack=client,
            people=People(client),
            policy=load_policy(policy),
            identity=identity,
            settings=settings(slack, **more),
            effect_types=("http", "smtp", "slack_message", "resume"),
            wake=lambda *names: woken.extend(names),
        )
    )
    async with serving(Router(routes=doors.routes)) as url:
        slack.actor.events_url = f"{url}/slack/events"
        slack.actor.socket = slack.socket if by_socket else None
        assert await doors.connect() is None
        yield doors
        await doors.hang_up(5)
        await doors.settle()
    await client.close()


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """Serve an application on a free port of this machine."""
    # Named by its protocol: asyncio sets TCP_NODELAY only then.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(256)
    config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, ws="none")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listening])
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        for each in server.servers:
            each.close()
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await asyncio.gather(*server.server_state.tasks, return_exceptions=True)
        listening.close()
