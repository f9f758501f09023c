"""What those who run the bot ask it: alive, ready, figures, the description.

Not here: events and runs (test_intake, test_runs).
"""

from collections.abc import AsyncIterator
from typing import Any

import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bot.contracts.problem import STATUS_AND_TITLE, ProblemType
from bot.doors.openapi import describe
from store.database import Database
from tests.makers import change, make_draft, make_effect, make_run
from tests.upstream import E0, Upstream, upstream


@pytest.fixture
async def door(db: Database) -> AsyncIterator[Upstream]:
    async with upstream(db) as served:
        yield served


async def figures(door: Upstream) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """The scrape, by name and labels."""
    answer = await door.client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


# Alive needs nothing; ready names each thing that is not there, and nothing else.
async def test_alive_and_ready(door: Upstream, dsn: str) -> None:
    assert (await door.client.get("/healthz")).json() == {"status": "alive"}
    assert (await door.client.get("/readyz")).json() == {"status": "ready"}
    door.ready["slack"] = False
    answer = await door.client.get("/readyz")
    assert answer.status_code == 503
    assert "SLACK_BOT_TOKEN" in answer.json()["detail"]
    assert "scheduler" not in answer.json()["detail"]
    door.ready["scheduler"] = False
    assert "scheduler" in (await door.client.get("/readyz")).json()["detail"]


# A schema that is not ours is said to be so.
async def test_other_schema_is_not_ready(own_db: Database, own_dsn: str) -> None:
    change(own_dsn, "INSERT INTO schema_migrations (number, name, checksum) VALUES (9999, 'x', 'x')")
    async with upstream(own_db) as served:
        answer = await served.client.get("/readyz")
        assert answer.status_code == 503
        assert "9999" in answer.json()["detail"]


# Events are counted by status, kind and source, the same before and after the counts reach the database.
async def test_events_are_counted(door: Upstream) -> None:
    for _ in range(3):
        await door.post(E0)
    labels = {"kind": "customer_email", "source": "n8n"}
    duplicates, accepted = (
        frozenset((labels | {"status": status}).items()) for status in ("duplicate", "accepted")
    )
    for _ in range(2):
        totals = (await figures(door))["stet_events_total"]
        assert (totals[accepted], totals[duplicates]) == (1, 2)
        await door.tally.flush()


# Open work is counted by state and kind; what is finished is not.
async def test_open_work_is_counted(door: Upstream, dsn: str) -> None:
    make_run(dsn, entity="a")
    make_run(dsn, state="completed", entity="b")
    draft = make_draft(dsn, run={"entity": "c"})
    change(
        dsn,
        "UPDATE drafts SET opened_at = now() - interval '1 hour' WHERE draft_id = %(d)s",
        d=draft["draft_id"],
    )
    make_effect(dsn, state="unknown")
    found = await figures(door)
    kind = ("kind", "customer_email")
    assert found["stet_runs"] == {frozenset({kind, ("state", "received")}): 1}
    assert found["stet_effects"] == {frozenset({kind, ("state", "unknown")}): 1}
    assert found["stet_drafts_waiting"] == {frozenset({kind}): 1}
    assert 3600 <= found["stet_oldest_draft_seconds"][frozenset({kind})] < 3700


def _answers(document: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (path, method, status)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        for status in operation["responses"]
    }


# The description names every address and every status that the contract has.
async def test_description_is_whole(door: Upstream) -> None:
    document = (await door.client.get("/openapi.json")).json()
    assert document == describe(public_url="https://stet.example", release="test")
    assert set(document["paths"]) == {
        "/events",
        "/runs/{run_id}",
        "/runs",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
    }
    events = {status for path, _, status in _answers(document) if path == "/events"}
    problems = {str(STATUS_AND_TITLE[kind][0]) for kind in ProblemType if kind is not ProblemType.NOT_FOUND}
    assert events == {"200", "202"} | problems
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


# Each documented address is there, and answers with a documented status whatever it is asked.
async def test_description_is_true(door: Upstream) -> None:
    document = (await door.client.get("/openapi.json")).json()
    known = _answers(document)
    for path, methods in document["paths"].items():
        for method in methods:
            answer = await door.client.request(method, path.replace("{run_id}", "x"))
            assert (path, method, str(answer.status_code)) in known
