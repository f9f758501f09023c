"""GET /runs: an upstream system reads its own runs, whole, and nobody else's.

Not here: POST /events (test_intake).
"""

from collections.abc import AsyncIterator

import jsonschema
import pytest

from bot.doors.openapi import PROBLEM, RUN
from store.database import Database
from store.ids import new_id
from tests.makers import change, insert_vote, make_draft, make_effect, make_run, rows
from tests.upstream import E0, PUBLIC_URL, Upstream, signed, upstream


@pytest.fixture
async def door(db: Database) -> AsyncIterator[Upstream]:
    async with upstream(db) as served:
        yield served


# A run is found by its id and by kind and event_key, with its line of the record.
async def test_run_by_id_and_by_key(door: Upstream) -> None:
    receipt = (await door.post(E0)).json()
    by_id = (await door.get(receipt["run_url"].removeprefix(PUBLIC_URL))).json()
    by_key = (await door.get("/runs?kind=customer_email&event_key=evt-1001")).json()
    assert by_id == by_key
    jsonschema.validate(by_id, RUN)
    assert (by_id["state"], by_id["outcome"], by_id["draft"]) == ("received", None, None)
    assert by_id["run"]["key"] == receipt["key"]
    assert by_id["run"]["run_url"] == receipt["run_url"]
    assert by_id["run"]["source_version"] == "7"
    assert [line["action"] for line in by_id["audit"]] == ["received"]
    assert by_id["audit"][0]["detail"]["release"] == "test"


# What a person decided and what left is all there: revisions with bodies, decisions with votes, provider ids.
async def test_whole_run(door: Upstream, dsn: str) -> None:
    draft = make_draft(dsn, status="sent", run={"event_key": "evt-9"})
    make_effect(dsn, draft=draft, state="completed", provider_id="p-17")
    make_effect(dsn, draft=draft, state="cancelled")
    insert_vote(dsn, draft, subject="slack:T1:U0ALICE")
    answer = await door.get("/runs?kind=customer_email&event_key=evt-9")
    whole = answer.json()
    jsonschema.validate(whole, RUN)
    assert answer.headers["cache-control"] == "no-store"
    assert (whole["state"], whole["outcome"], whole["draft"]["status"]) == ("completed", "sent", "sent")
    assert whole["revisions"][0]["body"] == {"subject": "About your parcel", "body": "It ships Monday."}
    assert whole["revisions"][0]["revision"] == 1
    (decision,) = whole["decisions"]
    assert (decision["decision"], decision["decided_by"]) == ("approve", "slack:T1:U0ALICE")
    assert [vote["by"] for vote in decision["votes"]] == ["slack:T1:U0ALICE"]
    assert {(one["state"], one["provider_id"]) for one in whole["effects"]} == {
        ("completed", "p-17"),
        ("cancelled", None),
    }
    assert "token" not in answer.text


# Of several effects each tells which it waits for, and an undo which it takes back and for whom.
async def test_effects_of_effects(door: Upstream, dsn: str) -> None:
    draft = make_draft(dsn, status="sent", run={"event_key": "evt-9"})
    mail = make_effect(dsn, draft=draft, state="completed", provider_id="p-17")
    note = make_effect(dsn, draft=draft, state="completed", after_id=mail, target="https://crm.example/n")
    who, back = "slack:T1:U0ALICE", "https://crm.example/back"
    undo = make_effect(dsn, draft=draft, target=back, undo_of=mail, undo_by=who)
    whole = (await door.get("/runs?kind=customer_email&event_key=evt-9")).json()
    jsonschema.validate(whole, RUN)
    told = {one["effect_id"]: (one["waits_for"], one["undoes"], one["undo_by"]) for one in whole["effects"]}
    assert told == {
        str(mail): (None, None, None),
        str(note): (str(mail), None, None),
        str(undo): (None, str(mail), who),
    }


# Another source's run is 404 like one that never was, by id and by key; so is what is no id.
async def test_only_own_runs(door: Upstream, dsn: str) -> None:
    run_id = make_run(dsn, event_key="evt-9")
    paths = (f"/runs/{run_id}", "/runs?kind=customer_email&event_key=evt-9", f"/runs/{new_id()}", "/runs/x")
    for path in paths:
        answer = await door.get(path, token="other-secret")
        assert answer.status_code == 404
        jsonschema.validate(answer.json(), PROBLEM)
        assert answer.json()["type"] == "not-found"
    assert (await door.get(f"/runs/{run_id}/")).status_code == 200


# A revision that another source's event wrote into the same draft is not shown.
async def test_revisions_of_other_sources_are_left_out(door: Upstream, dsn: str) -> None:
    draft = make_draft(dsn, run={"event_key": "evt-9"})
    foreign = make_run(dsn, state="superseded", head=False, source="other", idempotency_key="other:x:y")
    change(
        dsn,
        "INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)"
        " VALUES (%(d)s, 2, %(r)s, '{}', '', 'model')",
        d=draft["draft_id"],
        r=foreign,
    )
    whole = (await door.get("/runs?kind=customer_email&event_key=evt-9")).json()
    assert [one["revision"] for one in whole["revisions"]] == [1]


# A reader signs an empty body, or brings a bearer token; anything else is a 401.
async def test_reader_is_recognised(door: Upstream, dsn: str) -> None:
    run_id = make_run(dsn, source="signed")
    path = f"/runs/{run_id}"
    assert (await door.client.get(path, headers=signed(b""))).status_code == 200
    assert (await door.client.get(path, headers=signed(b"x"))).status_code == 401
    assert (await door.client.get(path)).status_code == 401
    assert (await door.get(path, token="wrong")).status_code == 401


# A question without kind or event_key, or with ones that cannot be, is told what is missing.
@pytest.mark.parametrize(
    "query",
    [
        "",
        "kind=customer_email",
        "event_key=a",
        "kind=a&kind=b&event_key=c",
        "kind=a&event_key=%00",
        "&".join("x" * 30),
    ],
)
async def test_incomplete_question(door: Upstream, query: str) -> None:
    answer = await door.get(f"/runs?{query}")
    assert answer.status_code == 422
    assert answer.json()["errors"]


# HEAD says the same without a body; no other method is taken.
async def test_methods(door: Upstream, dsn: str) -> None:
    path = f"/runs/{make_run(dsn)}"
    headers = {"authorization": "Bearer n8n-secret"}
    answer = await door.client.head(path, headers=headers)
    assert (answer.status_code, answer.content) == (200, b"")
    assert (await door.client.post(path, headers=headers)).status_code == 405
    assert rows(dsn, "SELECT state FROM workflow_runs") == [{"state": "received"}]
