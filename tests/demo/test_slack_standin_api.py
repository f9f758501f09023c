"""The stand-in's Web API: arguments, error words, state, rate limits and trouble on order."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from bot.demo import slack_faults as fault
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import TRIGGER_SECONDS
from bot.demo.slack_workspace import C_ARCHIVED, C_PRIVATE, C_REVIEW, U_ALICE, U_STRANGER

SECTION = {"type": "section", "text": {"type": "plain_text", "text": "x"}}
MODAL = {"type": "modal", "title": {"type": "plain_text", "text": "t"}, "blocks": [SECTION]}


class Clock:
    """Stands still until told."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Bot:
    """Raw calls, as no library would make them."""

    def __init__(self, slack: SlackStandIn) -> None:
        self.slack = slack
        self.http = httpx2.AsyncClient(base_url=slack.api_url, trust_env=False)
        self.headers = {"authorization": f"Bearer {slack.state.workspace.token}"}

    async def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.http.post(method, json=arguments, headers=self.headers)
        found: dict[str, Any] = answer.json()
        return found

    async def error(self, method: str, **arguments: Any) -> str:
        return str((await self.call(method, **arguments)).get("error", "ok"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture
async def bot(clock: Clock) -> AsyncIterator[Bot]:
    async with SlackStandIn(now=clock, monotonic=clock) as slack:
        caller = Bot(slack)
        yield caller
        await caller.http.aclose()


# Without a token, with a wrong one or with one in the address, nothing is done.
async def test_tokens(bot: Bot) -> None:
    assert (await bot.http.post("auth.test", json={})).json()["error"] == "not_authed"
    wrong = {"authorization": "Bearer xoxb-wrong"}
    assert (await bot.http.post("auth.test", json={}, headers=wrong)).json()["error"] == "invalid_auth"
    in_address = await bot.http.get("users.info", params={"user": U_ALICE, "token": "xoxb-0000-stand-in"})
    assert in_address.json()["error"] == "not_authed"
    in_form = await bot.http.post("auth.test", data={"token": "xoxb-0000-stand-in"})
    assert in_form.json()["ok"] is True


# JSON, forms with JSON inside and queries are read; what is none of them is refused by name.
async def test_kinds_of_body(bot: Bot) -> None:
    form = {"channel": C_REVIEW, "text": "x", "blocks": '[{"type": "divider"}]'}
    posted = (await bot.http.post("chat.postMessage", data=form, headers=bot.headers)).json()
    assert posted["message"]["blocks"][0]["type"] == "divider"
    got = (await bot.http.get("users.info", params={"user": U_ALICE}, headers=bot.headers)).json()
    assert got["user"]["id"] == U_ALICE
    kinds = {"text/plain": "invalid_post_type", "": "missing_post_type", "application/json": "invalid_json"}
    for kind, error in kinds.items():
        headers = {**bot.headers, "content-type": kind} if kind else bot.headers
        answer = await bot.http.post("chat.postMessage", content=b"{", headers=headers)
        assert answer.json()["error"] == error
    writing = await bot.http.get("chat.postMessage", params=form, headers=bot.headers)
    assert writing.json()["error"] == "invalid_post_type"


# Each refusal has Slack's own word.
@pytest.mark.parametrize(
    ("method", "arguments", "error"),
    [
        ("chat.makeCoffee", {}, "unknown_method"),
        ("chat.postMessage", {"text": "x"}, "invalid_arguments"),
        ("chat.postMessage", {"channel": C_REVIEW, "text": "x", "colour": "red"}, "invalid_arguments"),
        ("chat.postMessage", {"channel": C_REVIEW}, "no_text"),
        (
            "chat.postMessage",
            {"channel": C_REVIEW, "text": "x", "blocks": "nonsense"},
            "invalid_blocks_format",
        ),
        ("chat.postMessage", {"channel": C_REVIEW, "text": "x", "blocks": [{}]}, "invalid_blocks"),
        (
            "chat.postMessage",
            {
                "channel": C_REVIEW,
                "text": "x",
                "blocks": [{"type": "section", "text": {"type": "plain_text", "text": "x" * 2700}}] * 5,
            },
            "msg_blocks_too_long",
        ),
        ("chat.postMessage", {"channel": C_PRIVATE, "text": "x"}, "channel_not_found"),
        ("chat.postMessage", {"channel": C_ARCHIVED, "text": "x"}, "is_archived"),
        ("chat.postMessage", {"channel": C_REVIEW, "text": "x", "thread_ts": "1.0"}, "thread_not_found"),
        ("chat.update", {"channel": C_ARCHIVED, "ts": "1.0", "text": "x"}, "is_inactive"),
        ("chat.update", {"channel": C_REVIEW, "ts": "1.0", "text": "x"}, "message_not_found"),
        (
            "chat.postEphemeral",
            {"channel": C_REVIEW, "user": U_ALICE, "text": "ä" * 2001},
            "msg_too_long",
        ),
        ("chat.postEphemeral", {"channel": C_REVIEW, "user": "U0X", "text": "x"}, "user_not_in_channel"),
        ("views.open", {"trigger_id": "1.2.3", "view": MODAL}, "invalid_trigger_id"),
        ("views.open", {"trigger_id": "1.2.3", "view": {"type": "modal"}}, "invalid_arguments"),
        ("views.update", {"view_id": "V0", "view": MODAL}, "not_found"),
        ("views.publish", {"user_id": U_ALICE, "view": MODAL}, "invalid_arguments"),
        ("users.info", {"user": "U0NOBODY"}, "user_not_found"),
        ("usergroups.users.list", {"usergroup": "S0NOBODY"}, "no_such_subteam"),
        ("conversations.history", {"channel": C_REVIEW, "limit": 1000}, "invalid_limit"),
    ],
)
async def test_error_words(bot: Bot, method: str, arguments: dict[str, Any], error: str) -> None:
    assert await bot.error(method, **arguments) == error


# A missing scope names what is needed; the workspace decides on plan, Home and account.
async def test_what_the_workspace_decides(bot: Bot) -> None:
    workspace = bot.slack.state.workspace
    workspace.scopes -= {"users:read", "channels:history"}
    refused = await bot.call("users.info", user=U_ALICE)
    assert (refused["error"], refused["needed"]) == ("missing_scope", "users:read")
    assert await bot.error("conversations.history", channel=C_REVIEW) == "missing_scope"
    workspace.paid_plan = workspace.home_enabled = False
    assert await bot.error("usergroups.users.list", usergroup="S0LEADS") == "plan_upgrade_required"
    assert await bot.error("usergroups.list") == "plan_upgrade_required"
    home = {"type": "home", "blocks": [SECTION]}
    assert await bot.error("views.publish", user_id=U_ALICE, view=home) == "not_enabled"


# Text alone takes the blocks away and shows as edited, blocks do not; metadata stays until `{}` comes.
async def test_update_rules(bot: Bot) -> None:
    metadata = {"event_type": "stet_card", "event_payload": {"a": "1"}}
    posted = await bot.call(
        "chat.postMessage", channel=C_REVIEW, text="a", blocks=[SECTION], metadata=metadata
    )
    ts = posted["ts"]
    message = bot.slack.state.messages[C_REVIEW][ts]
    await bot.call("chat.update", channel=C_REVIEW, ts=ts, text="b", blocks=[SECTION])
    assert (message.edited, message.metadata) == (None, metadata)
    await bot.call("chat.update", channel=C_REVIEW, ts=ts, text="c")
    assert message.blocks is None
    assert message.edited is not None
    await bot.call("chat.update", channel=C_REVIEW, ts=ts, metadata={})
    assert (message.text, message.metadata) == ("c", None)
    assert await bot.error("chat.update", channel=C_REVIEW, ts=ts, text="x" * 4001) == "msg_too_long"
    message.user = U_ALICE
    assert await bot.error("chat.update", channel=C_REVIEW, ts=ts, text="d") == "cant_update_message"


# Metadata comes back whole only when asked for, and must be flat under plain names.
async def test_metadata(bot: Bot) -> None:
    bot.slack.rates.factor = None
    metadata = {"event_type": "stet_card", "event_payload": {"a": "1"}}
    await bot.call("chat.postMessage", channel=C_REVIEW, text="a", metadata=metadata)
    bare = await bot.call("conversations.history", channel=C_REVIEW)
    assert bare["messages"][0]["metadata"] == {"event_type": "stet_card"}
    whole = await bot.call("conversations.history", channel=C_REVIEW, include_all_metadata=True)
    assert whole["messages"][0]["metadata"] == metadata
    for wrong, error in (
        ({"event_type": "Stet", "event_payload": {}}, "invalid_metadata_format"),
        ({"event_type": "stet", "event_payload": {"a": {"b": 1}}}, "invalid_metadata_schema"),
        ({"event_type": "stet", "event_payload": {"a": "x" * 9000}}, "metadata_too_large"),
    ):
        assert await bot.error("chat.postMessage", channel=C_REVIEW, text="a", metadata=wrong) == error


# A trigger lives three seconds and opens one view.
async def test_triggers(bot: Bot, clock: Clock) -> None:
    state = bot.slack.state
    trigger = state.new_trigger(U_ALICE)
    clock.now += TRIGGER_SECONDS
    assert await bot.error("views.open", trigger_id=trigger, view=MODAL) == "ok"
    assert await bot.error("views.open", trigger_id=trigger, view=MODAL) == "exchanged_trigger_id"
    late = state.new_trigger(U_ALICE)
    clock.now += TRIGGER_SECONDS + 0.01
    assert await bot.error("views.open", trigger_id=late, view=MODAL) == "expired_trigger_id"


# Three modals stand on each other, not four; the hash guards an update; size and external id have limits.
async def test_views(bot: Bot) -> None:
    state = bot.slack.state
    opened = await bot.call("views.open", trigger_id=state.new_trigger(U_ALICE), view=MODAL)
    view = opened["view"]
    for expected in ("ok", "ok", "push_limit_reached"):
        trigger = state.new_trigger(U_ALICE, view["id"])
        assert await bot.error("views.push", trigger_id=trigger, view=MODAL) == expected
    named = {**MODAL, "external_id": "e1"}
    assert await bot.error("views.update", view_id=view["id"], view=named, hash="old") == "hash_conflict"
    assert await bot.error("views.update", view_id=view["id"], view=named, hash=view["hash"]) == "ok"
    another = state.new_trigger("U0BOB")
    assert await bot.error("views.open", trigger_id=another, view=named) == "duplicate_external_id"
    large = {**MODAL, "blocks": [{**SECTION, "text": {"type": "plain_text", "text": "x" * 2900}}] * 90}
    assert await bot.error("views.open", trigger_id=another, view=large) == "view_too_large"


# Posts faster than Slack allows in one channel are refused with a time to wait, and not done.
async def test_rate_limit_of_posts(bot: Bot, clock: Clock) -> None:
    errors = [await bot.error("chat.postMessage", channel=C_REVIEW, text="x") for _ in range(4)]
    assert errors == ["ok", "ok", "ok", "ratelimited"]
    answer = await bot.http.post(
        "chat.postMessage", json={"channel": C_REVIEW, "text": "x"}, headers=bot.headers
    )
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3")
    assert await bot.error("chat.postMessage", channel="C0OPS", text="x") == "ok"
    clock.now += 3
    assert await bot.error("chat.postMessage", channel=C_REVIEW, text="x") == "ok"
    assert len(bot.slack.state.channel_messages(C_REVIEW)) == 4


# Each method has its tier a minute; a factor widens it, and None lifts it.
async def test_tiers(bot: Bot, clock: Clock) -> None:
    async def calls(count: int) -> int:
        said = [await bot.error("usergroups.users.list", usergroup="S0LEADS") for _ in range(count)]
        return said.count("ok")

    assert await calls(25) == 20
    clock.now += 60
    bot.slack.rates.factor = 2.0
    assert await calls(45) == 40
    bot.slack.rates.factor = None
    assert await calls(5) == 5


# Trouble comes at the call it was ordered for; the journal counts every call and never holds the token.
async def test_trouble_on_order(bot: Bot) -> None:
    bot.slack.faults.order("chat.postMessage", fault.says("fatal_error"), nth=2)
    bot.slack.faults.order("chat.postMessage", fault.says("internal_error", after_work=True), nth=3)
    errors = [await bot.error("chat.postMessage", channel=C_REVIEW, text=f"{n}") for n in range(3)]
    assert errors == ["ok", "fatal_error", "internal_error"]
    assert [message.text for message in bot.slack.state.channel_messages(C_REVIEW)] == ["0", "2"]
    assert bot.slack.journal.count("chat.postMessage", outcome="ok") == 1
    assert bot.slack.state.workspace.token not in repr(bot.slack.journal.calls)


# The page's picture shows one person's side, and its acts want JSON, so that no other page can send them.
async def test_page(bot: Bot) -> None:
    await bot.call("chat.postMessage", channel=C_REVIEW, text="card")
    await bot.call("chat.postEphemeral", channel=C_REVIEW, user=U_ALICE, text="only Alice")
    address = f"{bot.slack.url}/_stand_in/"
    alice = (await bot.http.get(f"{address}state", params={"user": U_ALICE})).json()
    other = (await bot.http.get(f"{address}state", params={"user": U_STRANGER})).json()
    [review] = [channel for channel in alice["channels"] if channel["id"] == C_REVIEW]
    assert [message["text"] for message in review["messages"]] == ["card"]
    assert ([message["text"] for message in alice["ephemerals"]], other["ephemerals"]) == (["only Alice"], [])
    assert (await bot.http.post(f"{address}slash", content=b"{}")).status_code == 415
    refused = await bot.http.post(f"{address}submit", json={"user": U_ALICE})
    assert (refused.status_code, refused.json()["why"]) == (409, "no modal is open")
