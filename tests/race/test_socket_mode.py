"""Whole `serve` processes that Slack reaches by Socket Mode: they share the clicks, start and stop in order.
Not here: single lines (tests/slack/test_socket), or what the doors answer (tests/doors/test_both_ways).
"""

import asyncio
import signal

import httpx2

from bot.demo.slack_workspace import C_REVIEW, U_ALICE, U_BOB
from tests.processes import Stage, event, key_of
from tests.watching import Watch, check_promises

SHOWN = "SELECT count(*) = 1 FROM cards WHERE draft_id IS NOT NULL AND shown_version > 0 AND ts IS NOT NULL"
DECIDED = "SELECT count(*) FROM approvals WHERE consumed_at IS NOT NULL"


# Two processes on one app token: one decision of eight clicks, and the one that is left takes all of them.
async def test_clicks_are_shared(stage: Stage, watch: Watch) -> None:
    token = {"SLACK_APP_TOKEN": stage.slack.state.workspace.app_token}
    bots = [await stage.started(**token), await stage.started(**token)]
    stage.slack.actor.socket = stage.slack.socket
    await stage.slack.socket.wait_for(opened=2)
    await stage.post(bots[0], event(1, draft=True))
    await watch.until(SHOWN)
    (card,) = stage.cards(key_of(1))
    people = [(U_ALICE, U_BOB)[n % 2] for n in range(8)]
    clicks = [stage.slack.actor.click(user, C_REVIEW, card.ts, "stet.approve") for user in people]
    assert all(reply.kept for reply in await asyncio.gather(*clicks))
    assert await watch.value(DECIDED) == 1
    await watch.until("SELECT count(*) = 1 FROM effect_outbox WHERE state = 'completed'")
    bots[0].signal(signal.SIGTERM)
    assert await bots[0].over() == 0
    await stage.slack.socket.wait_for_lines(1)
    assert (await stage.slack.actor.slash(U_ALICE, "status")).kept
    assert stage.sent().total() == 1
    await check_promises(stage, watch)


# Ready means that Slack can reach us; the address of HTTP is not there.
async def test_readiness(stage: Stage, watch: Watch) -> None:
    stage.slack.socket.greets = False
    bot = await stage.start(SLACK_APP_TOKEN=stage.slack.state.workspace.app_token)
    await stage.slack.socket.wait_for_lines(1)
    stage.slack.socket.greets = True
    stage.slack.socket.cut()
    await bot.ready()
    await stage.slack.socket.wait_for(opened=1)
    async with httpx2.AsyncClient(trust_env=False) as http:
        assert (await http.post(f"{bot.url}/slack/events", content=b"{}")).status_code == 404
        stage.slack.socket.greets = False
        stage.slack.socket.cut()
        await stage.slack.journal.wait_for("apps.connections.open", 3)  # So it has noticed.
        answer = await http.get(f"{bot.url}/readyz")
    assert answer.status_code == 503
    assert "SLACK_APP_TOKEN" in answer.json()["detail"]


# An app token that Slack refuses stops the start, by name and mend, and is not quoted.
async def test_wrong_token(stage: Stage, watch: Watch) -> None:
    bot = await stage.start(SLACK_APP_TOKEN="xapp-wrong-4711")
    assert await bot.over() == 1
    assert "SLACK_APP_TOKEN is refused by Slack (invalid_auth)" in bot.told()
    assert "4711" not in bot.told()
