"""The day's tokens: counted whatever became of the answer, and none is asked once they are used up.

Not here: the rest of drafting (test_draft) and redrafting (test_redraft).
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from bot.demo.model import ModelServer
from bot.demo.model_script import Script, say
from bot.drafting.model import Endpoint, ModelClient
from bot.flow.draft import Drafter, Drafting
from bot.policy.kinds import Policy
from bot.registry import find_gates
from store.database import Database
from tests.makers import change, make_run, rows

Work = Callable[[Policy], Awaitable[int]]

D0 = json.dumps({"subject": "About your parcel", "body": "It ships Monday.", "label": "shipping"})


@pytest.fixture
async def work(db: Database, model_server: ModelServer) -> AsyncIterator[Work]:
    """Draft what is due under a policy, as one process; give how many runs were claimed."""
    endpoint = Endpoint(api_key="sk-test", base_url=model_server.base_url, model="pretend")
    async with ModelClient(endpoint) as model:

        async def draft(policy: Policy) -> int:
            gates = {name: module.judge for name, module in find_gates().items()}
            drafter = Drafter(Drafting(db, "one", policy, model, gates))
            claimed = await drafter.run_once()
            await drafter.drain()
            return claimed

        yield draft


def limited(policy: Policy, *, of_kind: int | None = None, of_all: int | None = None) -> Policy:
    kinds = {name: kind.model_copy(update={"daily_tokens": of_kind}) for name, kind in policy.kinds.items()}
    return policy.model_copy(update={"kinds": kinds, "daily_tokens": of_all})


def spend(dsn: str, kind: str, tokens: int, *, days_ago: int = 0) -> None:
    change(
        dsn,
        "INSERT INTO model_tokens (day, kind, tokens)"
        " VALUES ((now() AT TIME ZONE 'UTC')::date - %(days_ago)s::int, %(kind)s, %(tokens)s)",
        kind=kind,
        tokens=tokens,
        days_ago=days_ago,
    )


def tokens(dsn: str) -> list[dict[str, Any]]:
    return rows(dsn, "SELECT kind, tokens FROM model_tokens ORDER BY kind")


# An answer costs its tokens, and so do answers that did not pass: all of them are counted, on today.
async def test_counted(dsn: str, work: Work, script: Script, policy: Policy) -> None:
    script.then(say(D0))
    make_run(dsn, entity="a")
    await work(policy)
    [first] = tokens(dsn)
    assert first["kind"] == "customer_email"
    cost = rows(dsn, "SELECT result FROM workflow_runs")[0]["result"]
    assert first["tokens"] == cost["prompt_tokens"] + cost["completion_tokens"] > 0
    script.then(say("no json"), say("no json"), say("no json"))
    make_run(dsn, entity="b")
    await work(policy)
    [second] = tokens(dsn)
    assert second["tokens"] > first["tokens"]
    assert rows(dsn, "SELECT day = (now() AT TIME ZONE 'UTC')::date AS ok FROM model_tokens") == [
        {"ok": True}
    ]


# Used up: no call, the run waits for the day to turn and loses no attempt, ops hears once a day and scope.
@pytest.mark.parametrize("scope", ["kind:customer_email", "all"])
async def test_used_up(dsn: str, work: Work, script: Script, policy: Policy, scope: str) -> None:
    script.always(say(D0))
    spend(dsn, "customer_email", 100)
    spend(dsn, "another", 100)
    for entity in "abc":
        make_run(dsn, entity=entity)
    assert await work(limited(policy, **({"of_all": 130} if scope == "all" else {"of_kind": 100}))) == 3
    assert not script.journal
    waiting = rows(
        dsn,
        "SELECT state, attempts, failure, abs(extract(epoch FROM next_attempt_at"
        " - ((now() AT TIME ZONE 'UTC')::date + 1)::timestamp AT TIME ZONE 'UTC')) < 60 AS at_the_turn"
        " FROM workflow_runs",
    )
    assert {(row["state"], row["attempts"], row["failure"], row["at_the_turn"]) for row in waiting} == {
        ("failed_retryable", 0, "budget", True)
    }
    assert rows(dsn, "SELECT name, facts FROM alerts") == [{"name": "budget", "facts": {"scope": scope}}]


# One token left is enough for a question; another kind or another day is no part of a kind's figure.
async def test_not_used_up(dsn: str, work: Work, script: Script, policy: Policy) -> None:
    script.always(say(D0))
    spend(dsn, "customer_email", 900, days_ago=1)
    spend(dsn, "customer_email", 99)
    spend(dsn, "another", 900)
    make_run(dsn)
    await work(limited(policy, of_kind=100, of_all=1_000))
    assert rows(dsn, "SELECT state FROM workflow_runs") == [{"state": "awaiting_human"}]


# What came with its draft, or has its answer, costs nothing and does not wait.
async def test_free(dsn: str, work: Work, script: Script, policy: Policy) -> None:
    spend(dsn, "customer_email", 100)
    stored = {"output": json.loads(D0), "model": "m", "fingerprint": None, "prompt_version": "old"}
    make_run(dsn, entity="a", inputs={"draft": {"subject": "Hi", "body": "From upstream."}})
    make_run(dsn, entity="b", state="processing", result=stored, age_seconds=10)
    await work(limited(policy, of_kind=100))
    assert {row["state"] for row in rows(dsn, "SELECT state FROM workflow_runs")} == {"awaiting_human"}
