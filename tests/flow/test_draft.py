"""Drafting: a run becomes a draft in front of people, or says why not.

Not here: how the model is asked (tests/drafting).
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bot.demo.model_script import HANG, Script, Step, fail, say
from bot.flow import opening
from bot.flow.draft import Drafter
from bot.policy.limits import MAX_MODEL_WORKERS
from store import audit
from store.database import Database
from store.errors import DatabaseAway
from tests.makers import change, make_draft, make_effect, make_run, rows

D0 = json.dumps({"subject": "About your parcel", "body": "It ships Monday.", "label": "shipping"})
UPSTREAM: dict[str, Any] = {"inputs": {"draft": {"subject": "Hi", "body": "From upstream."}}}

Make = Callable[..., Drafter]


async def work(drafter: Drafter) -> int:
    """One step, until nothing is being drafted any more."""
    claimed = await drafter.run_once()
    await drafter.drain()
    return claimed


def run_of(dsn: str, run_id: Any) -> dict[str, Any]:
    return rows(dsn, "SELECT * FROM workflow_runs WHERE run_id = %(run_id)s", run_id=run_id)[0]


# A received run is drafted by the model, once, and waits for a person with a card asked for.
async def test_model_drafts(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    script.then(say(D0))
    run_id = make_run(dsn)
    assert await work(drafter_on(db)) == 1
    run = run_of(dsn, run_id)
    assert run["state"] == "awaiting_human"
    assert run["result"]["model"]
    draft = rows(dsn, "SELECT * FROM drafts")[0]
    assert (draft["status"], draft["revision"], draft["known_version"]) == ("pending", 1, 17)
    assert rows(dsn, "SELECT body, author FROM revisions") == [{"body": json.loads(D0), "author": "model"}]
    assert rows(dsn, "SELECT wanted_version, shown_version FROM cards") == [
        {"wanted_version": 1, "shown_version": 0}
    ]
    assert await work(drafter_on(db)) == 0
    async with db.connection() as conn:
        assert not audit.faults_of(await audit.read_chain(conn, run["idempotency_key"]))


# A run of a kind that our policy lacks is left to a process that has it; after a while nobody has.
async def test_kind_of_another_policy(dsn: str, db: Database, drafter_on: Make) -> None:
    run_id = make_run(dsn, kind="new_kind")
    assert await work(drafter_on(db)) == 0
    change(dsn, "UPDATE workflow_runs SET next_attempt_at = now() - interval '301 seconds'")
    assert await work(drafter_on(db)) == 1
    run = run_of(dsn, run_id)
    assert run["state"] == "failed_terminal"
    assert run["failure"] == "misconfigured"
    assert [alert["name"] for alert in rows(dsn, "SELECT name FROM alerts")] == ["drafting_failed"]


# An event that brings its draft costs no model call.
async def test_upstream_draft(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    make_run(dsn, **UPSTREAM)
    await work(drafter_on(db))
    assert not script.journal
    assert rows(dsn, "SELECT author FROM revisions") == [{"author": "upstream"}]


# A stored answer is used again: the model is not asked twice for one event.
async def test_stored_answer(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    stored = {"output": json.loads(D0), "model": "m", "fingerprint": None, "prompt_version": "old"}
    make_run(dsn, state="processing", result=stored, age_seconds=10)
    await work(drafter_on(db))
    assert not script.journal
    assert rows(dsn, "SELECT prompt_version FROM revisions") == [{"prompt_version": "old"}]


# A newer event's content goes into the draft that is pending: same card, next revision, old question over.
async def test_newer_revises(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    old = make_draft(dsn)
    run_id = make_run(dsn, version=18, **UPSTREAM)
    await work(drafter_on(db))
    assert run_of(dsn, old["run_id"])["state"] == "superseded"
    assert run_of(dsn, run_id)["state"] == "awaiting_human"
    draft = rows(dsn, "SELECT * FROM drafts")[0]
    assert (draft["draft_id"], draft["revision"], draft["known_version"]) == (old["draft_id"], 2, 18)
    questions = rows(dsn, "SELECT revision, end_reason FROM approvals ORDER BY revision")
    assert questions == [{"revision": 1, "end_reason": "superseded"}, {"revision": 2, "end_reason": None}]
    assert rows(dsn, "SELECT count(*) AS n FROM cards")[0]["n"] == 1


# A run that is no longer the newest gets no card.
async def test_overtaken_run_gets_no_card(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    old = make_run(dsn, version=17, **UPSTREAM)
    change(dsn, "UPDATE draft_heads SET source_version = 18, run_id = gen_random_uuid()")
    await work(drafter_on(db))
    assert run_of(dsn, old)["state"] == "superseded"
    assert rows(dsn, "SELECT count(*) AS n FROM drafts")[0]["n"] == 0


# After a settled draft a newer event opens a new one that remembers the earlier.
async def test_new_draft_after_settled(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    old = make_draft(dsn, status="rejected")
    make_run(dsn, version=18, **UPSTREAM)
    await work(drafter_on(db))
    drafts = rows(dsn, "SELECT draft_id, earlier_id, status FROM drafts ORDER BY opened_at")
    assert len(drafts) == 2
    assert drafts[1]["earlier_id"] == old["draft_id"]


# A passing failure waits longer each time and is counted; throttling waits as told and is not.
async def test_failures_that_pass(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    script.then(fail(503), fail(503), fail(503))
    run_id = make_run(dsn)
    await work(drafter_on(db))
    run = run_of(dsn, run_id)
    assert (run["state"], run["attempts"]) == ("failed_retryable", 1)
    assert 50 < (run["next_attempt_at"] - run["updated_at"]).total_seconds() < 70
    change(dsn, "UPDATE workflow_runs SET next_attempt_at = now()")
    script.then(replace(fail(429), headers={"Retry-After": "7"}))
    await work(drafter_on(db))
    run = run_of(dsn, run_id)
    assert (run["state"], run["attempts"], run["failure"]) == ("failed_retryable", 1, "throttled")
    assert (run["next_attempt_at"] - run["updated_at"]).total_seconds() < 10


# When the attempts are used up the run ends, ops hears once, and an older open draft goes back to its people.
async def test_terminal_failure_reopens_the_older(
    dsn: str, db: Database, drafter_on: Make, script: Script
) -> None:
    old = make_draft(dsn)
    run_id = make_run(dsn, version=18, attempts=4)
    script.always(fail(503))
    await work(drafter_on(db))
    assert run_of(dsn, run_id)["state"] == "failed_terminal"
    draft = rows(dsn, "SELECT * FROM drafts")[0]
    assert (draft["notice"], draft["known_version"], draft["revision"]) == ("newer_failed", 18, 1)
    assert draft["approval_id"] != old["approval_id"]
    assert run_of(dsn, old["run_id"])["state"] == "awaiting_human"
    assert [alert["name"] for alert in rows(dsn, "SELECT name FROM alerts")] == ["drafting_failed"]


# A run whose key has an effect on the wire or unknown waits until that is settled.
async def test_waits_for_unsettled_effect(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    draft = make_draft(dsn, status="approved")
    make_effect(dsn, state="unknown", draft=draft)
    make_run(dsn, version=18, **UPSTREAM)
    assert await work(drafter_on(db)) == 0
    change(dsn, "UPDATE effect_outbox SET state = 'completed'")
    change(dsn, "UPDATE drafts SET status = 'sent'")
    assert await work(drafter_on(db)) == 1


# A policy that changed since the event came may look for its recipient elsewhere: not plain, no call.
@pytest.mark.parametrize("to", [None, ["amy@example.test"], "amy@example.test, bob@example.test"])
async def test_recipient_of_todays_policy(
    dsn: str, db: Database, drafter_on: Make, script: Script, to: object
) -> None:
    run_id = make_run(dsn, inputs={"payload": {"to": to, "text": "Where is it?"}})
    await work(drafter_on(db))
    assert (run_of(dsn, run_id)["state"], run_of(dsn, run_id)["failure"]) == (
        "failed_terminal",
        "misconfigured",
    )
    assert not script.journal
    assert [alert["name"] for alert in rows(dsn, "SELECT name FROM alerts")] == ["drafting_failed"]


# A model that is throttled is left alone by the whole process: who waits is not refused one after the other.
async def test_throttled_model_is_left_alone(
    dsn: str, db: Database, drafter_on: Make, script: Script
) -> None:
    for number in range(MAX_MODEL_WORKERS + 3):
        make_run(dsn, entity=str(number))
    script.always(replace(fail(429), headers={"Retry-After": "30"}))
    drafter = drafter_on(db)
    assert await work(drafter) == MAX_MODEL_WORKERS
    upstream = make_run(dsn, entity="upstream", **UPSTREAM)
    assert await work(drafter) == 1
    assert run_of(dsn, upstream)["state"] == "awaiting_human"
    assert len(script.journal) == MAX_MODEL_WORKERS
    assert rows(
        dsn, "SELECT state, count(*) AS n FROM workflow_runs WHERE failure IS NULL GROUP BY 1 ORDER BY 1"
    ) == [
        {"state": "awaiting_human", "n": 1},
        {"state": "received", "n": 3},
    ]


# With the scope llm closed the model is not asked; what has its draft already goes on, the rest later.
async def test_closed_llm_scope(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    script.always(say(D0))
    stored = {"output": json.loads(D0), "model": "m", "fingerprint": None, "prompt_version": "old"}
    make_run(dsn, entity="a", **UPSTREAM)
    make_run(dsn, entity="b", state="processing", result=stored, age_seconds=10)
    waiting = make_run(dsn, entity="c")
    change(dsn, "INSERT INTO kill_switch (scope, open, changed_by) VALUES ('llm', false, 'slack:T1:U1')")
    assert await work(drafter_on(db)) == 2
    assert run_of(dsn, waiting)["state"] == "received"
    assert not script.journal
    change(dsn, "UPDATE kill_switch SET open = true WHERE scope = 'llm'")
    assert await work(drafter_on(db)) == 1
    assert run_of(dsn, waiting)["state"] == "awaiting_human"


# Two workers on the same runs: each run is drafted once.
async def test_two_workers(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    script.always(say(D0))
    for n in range(12):
        make_run(dsn, entity=f"customer:{n}")
    one, two = drafter_on(db, "one"), drafter_on(db, "two")
    while sum(await asyncio.gather(work(one), work(two))):
        pass
    assert len(script.journal) == 12
    assert rows(dsn, "SELECT count(*) AS n FROM drafts")[0]["n"] == 12


# An owner whose lease ran out and was taken over writes nothing.
async def test_stale_owner_writes_nothing(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    script.then(say(D0))
    run_id = make_run(dsn)
    drafter = drafter_on(db, "slow")
    script.always(None)
    await drafter.run_once()
    change(dsn, "UPDATE workflow_runs SET lease_owner = 'other', version = version + 1")
    await drafter.drain()
    assert run_of(dsn, run_id)["state"] == "processing"
    assert rows(dsn, "SELECT count(*) AS n FROM drafts")[0]["n"] == 0


# A process that stops gives its runs back, due now and uncounted.
async def test_stop_gives_back(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    script.then(Step(how=HANG))
    run_id = make_run(dsn)
    drafter = drafter_on(db)
    await drafter.run_once()
    await script.arrived(1)
    await drafter.stop()
    run = run_of(dsn, run_id)
    assert (run["state"], run["attempts"], run["failure"]) == ("failed_retryable", 0, "stopped")


# The same before the task of a claimed run has begun to run.
async def test_stop_right_after_the_claim(dsn: str, db: Database, drafter_on: Make, script: Script) -> None:
    run_id = make_run(dsn)
    drafter = drafter_on(db)
    await drafter.run_once()
    await drafter.stop()
    assert run_of(dsn, run_id)["state"] == "failed_retryable"
    assert not script.journal


# What the database went away from is taken up again at once after that, and the model is not asked again;
# twice in a row it waits out its lease, and the takeover counts.
async def test_database_away(
    dsn: str, db: Database, drafter_on: Make, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise DatabaseAway("gone")

    run_id = make_run(dsn)
    drafter = drafter_on(db)
    with monkeypatch.context() as patched:
        patched.setattr(opening, "open_or_revise", away)
        for _ in range(2):
            assert await work(drafter) == 1
        assert await work(drafter) == 0
    assert script.requests == 1
    (run,) = rows(dsn, "SELECT state, attempts, takeovers FROM workflow_runs")
    assert run == {"state": "processing", "attempts": 0, "takeovers": 0}
    change(dsn, "UPDATE workflow_runs SET lease_expires_at = now(), next_attempt_at = now()")
    assert await work(drafter) == 1
    (run,) = rows(dsn, "SELECT state, takeovers FROM workflow_runs WHERE run_id = %(id)s", id=run_id)
    assert run == {"state": "awaiting_human", "takeovers": 1}
    assert script.requests == 1
