"""POST /events as an upstream system meets it: each documented answer over the real database.

Not here: what one transaction does (tests/flow/test_receive) or races (tests/race).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import jsonschema
import pytest

from bot.doors.openapi import PROBLEM, RECEIPT
from bot.policy.limits import MAX_EVENT_BYTES
from store.database import Database
from tests.makers import change, make_draft, make_effect, rows
from tests.upstream import E0, PUBLIC_URL, SECRET, Upstream, signed, upstream


@pytest.fixture
async def door(db: Database) -> AsyncIterator[Upstream]:
    async with upstream(db) as served:
        yield served


def assert_problem(answer: Any, status: int, kind: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body: dict[str, Any] = answer.json()
    jsonschema.validate(body, PROBLEM)
    assert body["type"] == kind
    assert body["message"] == body["detail"]
    assert body["request_id"] == answer.headers["x-request-id"]
    return body


def assert_receipt(answer: Any, status: int, word: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json()
    jsonschema.validate(body, RECEIPT)
    assert body["status"] == word
    assert body["run_url"] == f"{PUBLIC_URL}/runs/{body['run_id']}"
    return body


def stored(dsn: str) -> int:
    return len(rows(dsn, "SELECT 1 AS one FROM workflow_runs"))


# A new key is a 202 that names the run, with and without a slash, and wakes drafting.
async def test_new_key_is_accepted(door: Upstream, dsn: str) -> None:
    body = assert_receipt(await door.post(E0), 202, "accepted")
    assert body["key"] == "n8n:customer_email:evt-1001"
    assert body["state"] == "received"
    assert body["revision"] is None
    assert body["outcome"] is None
    assert door.woken == ["draft"]
    again = await door.client.post(
        "/events/", json=E0, headers={"authorization": "Bearer n8n-secret"}, follow_redirects=False
    )
    assert assert_receipt(again, 200, "duplicate")["run_id"] == body["run_id"]


# F003: escapes, spacing and order of names make no other event; one more character does, at once.
async def test_same_content_is_a_duplicate_other_content_a_conflict(door: Upstream, dsn: str) -> None:
    first = E0 | {"payload": {"to": "amy@example.test", "text": "café"}}
    run = assert_receipt(await door.post(json.dumps(first, ensure_ascii=False).encode()), 202, "accepted")
    turned = dict(reversed(first.items())) | {"payload": {"text": "café", "to": "amy@example.test"}}
    spaced = json.dumps(turned, ensure_ascii=True, indent=4).encode()
    assert rb"caf\u00e9" in spaced
    assert assert_receipt(await door.post(spaced), 200, "duplicate")["run_id"] == run["run_id"]
    other = first | {"payload": {"to": "amy@example.test", "text": "café?"}}
    for _ in range(3):
        assert_problem(await door.post(other), 409, "payload-conflict")
    alerts = rows(dsn, "SELECT alert_key, name, facts FROM alerts")
    assert [one["name"] for one in alerts] == ["payload_conflict"]
    assert alerts[0]["facts"]["key"] == run["key"]
    assert rows(dsn, "SELECT state FROM workflow_runs") == [{"state": "received"}]
    assert "alert" in door.woken


# F004: an absent or blank key is refused and leaves no row; the kind is part of the key.
@pytest.mark.parametrize("key", [None, "", "   ", "undefined", "null", " x", "x ", "é", "x" * 256, 7])
async def test_a_key_that_is_none_is_refused(door: Upstream, dsn: str, key: object) -> None:
    body = assert_problem(await door.post(E0 | {"event_key": key}), 422, "invalid-event")
    assert body["errors"][0]["field"] == "event_key"
    without = {name: value for name, value in E0.items() if name != "event_key"}
    assert_problem(await door.post(without), 422, "invalid-event")
    assert stored(dsn) == 0


# F004: two kinds with one event_key are two runs.
async def test_two_kinds_are_two_runs(door: Upstream, dsn: str) -> None:
    for kind in ("order.paid", "order.shipped"):
        assert_receipt(await door.post(E0 | {"kind": kind}), 202, "accepted")
    assert stored(dsn) == 2


# The key may come in the header alone; if both are there they must agree.
async def test_key_from_the_header(door: Upstream) -> None:
    without = {name: value for name, value in E0.items() if name != "event_key"}
    body = assert_receipt(await door.post(without, idempotency_key="from-header"), 202, "accepted")
    assert body["key"] == "n8n:customer_email:from-header"
    assert_problem(await door.post(E0, idempotency_key="another"), 422, "invalid-event")


# F005: versions are compared as whole numbers, however written; an older or equal one is stale for good.
@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        (9007199254740993, 9007199254740992, "stale"),
        ("9007199254740992", 9007199254740993, "accepted"),
        (9, "10", "accepted"),
        ("10", 9, "stale"),
        (8, 8, "stale"),
    ],
)
async def test_versions_are_whole_numbers(
    door: Upstream, dsn: str, first: object, second: object, word: str
) -> None:
    assert_receipt(await door.post(E0 | {"source_version": first}), 202, "accepted")
    later = E0 | {"source_version": second, "event_key": "evt-2"}
    assert_receipt(await door.post(later), 202 if word == "accepted" else 200, word)
    if word == "stale":
        body = assert_receipt(await door.post(later), 200, "stale")
        assert (body["state"], body["outcome"]) == ("superseded", "superseded")
        assert rows(dsn, "SELECT source_version FROM draft_heads") == [{"source_version": int(str(first))}]


# F005: what is no whole number of at least 0 is refused.
@pytest.mark.parametrize("version", [7.5, True, "1e3", -1, "", "-1", None, 2**63, "99999999999999999999"])
async def test_odd_versions_are_refused(door: Upstream, dsn: str, version: object) -> None:
    assert_problem(await door.post(E0 | {"source_version": version}), 422, "invalid-event")
    assert stored(dsn) == 0


# F005: an older version after the newer was sent changes no card and no draft.
async def test_older_after_sent_is_stale(door: Upstream, dsn: str) -> None:
    make_draft(dsn, status="sent", run={"version": 8, "entity": "cust-77"})
    before = rows(dsn, "SELECT wanted_version FROM cards")
    assert_receipt(await door.post(E0), 200, "stale")
    assert rows(dsn, "SELECT wanted_version FROM cards") == before


# F006: NUL and half a surrogate pair are refused at the border, never a 500.
@pytest.mark.parametrize("text", [r"a\u0000b", r"x\ud83d"])
async def test_unstorable_text_is_refused(door: Upstream, dsn: str, text: str) -> None:
    raw = json.dumps(E0).replace("Where is it?", text).encode()
    assert_problem(await door.post(raw), 422, "invalid-event")
    assert stored(dsn) == 0


# F007: the signature is over the raw bytes, before anything is parsed; one flipped bit is a 401.
async def test_signature_is_over_raw_bytes(door: Upstream, dsn: str) -> None:
    raw = rb'{"event_key": "evt-2",  "n": 1.0, "t":"\u001B"}'
    headers = signed(raw)
    body = assert_problem(await door.post(raw, token=None, **headers), 422, "invalid-event")
    assert {one["field"] for one in body["errors"]} >= {"kind", "n", "t"}
    flipped = raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:]
    assert_problem(await door.post(flipped, token=None, **headers), 401, "unauthorized")
    assert_problem(await door.post(b"not even json", token=None, **headers), 401, "unauthorized")
    assert stored(dsn) == 0


# A signature is tried against all secrets and the match names the source; an old one is refused.
async def test_signed_event_is_accepted_within_five_minutes(door: Upstream) -> None:
    raw = json.dumps(E0).encode()
    body = assert_receipt(await door.post(raw, token=None, **signed(raw)), 202, "accepted")
    assert body["key"].startswith("signed:")
    older = await door.post(raw, token=None, **signed(raw, secret=b"an older secret"))
    assert_receipt(older, 200, "duplicate")
    assert_problem(await door.post(raw, token=None, **signed(raw, age_seconds=312)), 401, "unauthorized")
    wrong = signed(raw, secret=SECRET + b"x")
    assert_problem(await door.post(raw, token=None, **wrong), 401, "unauthorized")


# If Authorization is sent it alone decides, even beside a good signature; neither is a 401 that says how.
async def test_authorization_alone_decides(door: Upstream) -> None:
    raw = json.dumps(E0).encode()
    answer = await door.post(raw, token="wrong", **signed(raw))
    assert_problem(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert_problem(await door.post(raw, token=None), 401, "unauthorized")


# Quick failed tries lock nobody out.
async def test_failed_tries_do_not_lock_out(door: Upstream) -> None:
    for _ in range(20):
        assert_problem(await door.post(E0, token="wrong"), 401, "unauthorized")
    assert_receipt(await door.post(E0), 202, "accepted")


# The size is enforced while the body arrives, whatever it says of itself; exactly the limit passes.
async def test_size_is_limited(door: Upstream, dsn: str) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(MAX_EVENT_BYTES // 1024 + 1):
            yield b" " * 1024

    bearer = {"authorization": "Bearer n8n-secret", "content-type": "application/json"}
    assert_problem(await door.client.post("/events", content=endless(), headers=bearer), 413, "too-large")
    assert_problem(await door.post(b" " * (MAX_EVENT_BYTES + 1)), 413, "too-large")
    raw = json.dumps(E0).encode()
    assert_receipt(await door.post(raw + b" " * (MAX_EVENT_BYTES - len(raw))), 202, "accepted")


# Only JSON is taken, with parameters or without.
async def test_media_type(door: Upstream) -> None:
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "application/jsonl", ""):
        answer = await door.post(E0, content_type=media_type)
        assert_problem(answer, 415, "unsupported-media-type")
    assert_problem(await door.post(E0, content_encoding="gzip"), 415, "unsupported-media-type")
    assert_receipt(await door.post(E0, content_type="Application/JSON; charset=utf-8"), 202, "accepted")


# Every wrong field is named at once.
async def test_every_wrong_field_is_named(door: Upstream) -> None:
    body = assert_problem(await door.post({"kind": "Bad!", "colour": 1}), 422, "invalid-event")
    fields = {one["field"] for one in body["errors"]}
    assert fields == {"kind", "colour", "event_key", "entity", "source_version", "payload"}


# What the kind asks: a policy, the source, one plain recipient, an allowed resume host, a good draft.
@pytest.mark.parametrize(
    ("change_", "field"),
    [
        ({"kind": "unheard_of"}, "kind"),
        ({"payload": {}}, "payload.to"),
        ({"payload": {"to": "amy@example.test, bob@example.test"}}, "payload.to"),
        ({"payload": {"to": "Amy <amy@example.test>"}}, "payload.to"),
        ({"resume_url": "https://evil.example/webhook-waiting/1"}, "resume_url"),
        ({"resume_url": "http://127.0.0.1/webhook-waiting/1"}, "resume_url"),
        ({"draft": {"subject": "x"}}, "draft"),
        ({"draft": {"subject": "x", "body": "y", "more": 1}}, "draft"),
        ({"draft": {"subject": "x", "body": "now!"}}, "draft.body"),
        ({"draft": {"subject": "x\ny", "body": "z"}}, "draft.subject"),
        ({"kind": "brought"}, "draft"),
        ({"replaces": "evt-1000"}, "reason"),
        ({"replaces": "evt-1000", "reason": "typo"}, "replaces"),
        ({"replaces": "evt-100", "event_key": "evt-100-2", "reason": "typo"}, "event_key"),
    ],
)
async def test_what_the_kind_asks(door: Upstream, dsn: str, change_: dict[str, Any], field: str) -> None:
    body = assert_problem(await door.post(E0 | change_), 422, "invalid-event")
    assert field in {one["field"] for one in body["errors"]}
    assert stored(dsn) == 0


# A source that the kind does not list is refused.
async def test_unlisted_source_is_refused(door: Upstream, dsn: str) -> None:
    answer = await door.post(E0 | {"kind": "order.paid"}, token="other-secret")
    assert assert_problem(answer, 422, "invalid-event")["errors"][0]["field"] == "kind"
    assert stored(dsn) == 0


# A good draft made upstream is stored with the event, and n8n's own words beside it.
async def test_good_draft_and_origin_are_stored(door: Upstream, dsn: str) -> None:
    draft = {"subject": "x", "body": "y"}
    answer = await door.post(
        E0 | {"kind": "brought", "draft": draft, "record_url": None},
        x_n8n_workflow="w",
        x_n8n_execution="231",
    )
    assert_receipt(answer, 202, "accepted")
    (stored_input,) = rows(dsn, "SELECT draft, n8n_workflow, n8n_execution, workflow_version FROM run_inputs")
    assert stored_input == {
        "draft": draft,
        "n8n_workflow": "w",
        "n8n_execution": "231",
        "workflow_version": None,
    }


# A correction while the replaced run has an unsettled effect is a 409 of its own; settled, it goes in.
async def test_unsettled_replaced_run(door: Upstream, dsn: str) -> None:
    old = make_draft(dsn, status="approved", run={"version": 7, "entity": "cust-77", "event_key": "old"})
    make_effect(dsn, draft=old, state="unknown")
    correction = E0 | {"source_version": 8, "replaces": "old", "reason": "typo"}
    assert_problem(await door.post(correction), 409, "effect-unsettled")
    change(dsn, "UPDATE effect_outbox SET state = 'completed'")
    assert_receipt(await door.post(correction), 202, "accepted")


# A redelivery after a rejection says by whom.
async def test_rejected_says_by_whom(door: Upstream, dsn: str) -> None:
    run_id = assert_receipt(await door.post(E0), 202, "accepted")["run_id"]
    old = make_draft(dsn, status="rejected", run={"entity": "cust-1"})
    change(
        dsn,
        "INSERT INTO approvals (approval_id, draft_id, revision, run_id, quorum, ended_at,"
        " consumed_at, decision, approver_subject)"
        " VALUES (gen_random_uuid(), %(d)s, 1, %(r)s, 1, now(), now(), 'reject', 'slack:T1:U1')",
        d=old["draft_id"],
        r=run_id,
    )
    change(dsn, "UPDATE revisions SET run_id = %(r)s WHERE draft_id = %(d)s", d=old["draft_id"], r=run_id)
    for state in ("processing", "awaiting_human", "rejected"):
        change(
            dsn,
            "UPDATE workflow_runs SET state = %(s)s, draft_id = %(d)s, version = version + 1,"
            " lease_owner = CASE WHEN %(s)s = 'processing' THEN 'x' END,"
            " lease_expires_at = CASE WHEN %(s)s = 'processing' THEN now() END,"
            " lease_taken_at = CASE WHEN %(s)s = 'processing' THEN now() END,"
            " finished_at = CASE WHEN %(s)s = 'rejected' THEN now() END WHERE run_id = %(r)s",
            s=state,
            d=old["draft_id"],
            r=run_id,
        )
    body = assert_receipt(await door.post(E0), 200, "duplicate")
    assert (body["state"], body["outcome"], body["revision"]) == ("rejected", "rejected", 1)
    assert body["message"] == "rejected by slack:T1:U1"


# Over the limit a source is told to come again; others are served meanwhile, and so is it afterwards.
async def test_over_the_limit(db: Database, dsn: str) -> None:
    async with upstream(db, most_waiting=2) as served:
        events = [E0 | {"event_key": f"k{i}", "entity": f"e{i}"} for i in range(5)]
        answers = await asyncio.gather(
            *[served.post(one) for one in events], served.post(E0, token="other-secret")
        )
        assert sorted(one.status_code for one in answers) == [202, 202, 202, 429, 429, 429]
        refused = next(one for one in answers if one.status_code == 429)
        assert_problem(refused, 429, "overloaded")
        assert int(refused.headers["retry-after"]) > 0
        assert_receipt(await served.post(events[4]), 202, "accepted")


# With the database away the answer is a 503 that says when to come again.
async def test_database_away() -> None:
    away = Database("postgresql://nobody@127.0.0.1:1/none")
    await away.open()
    try:
        async with upstream(away) as served:
            answer = await served.post(E0)
            assert_problem(answer, 503, "unavailable")
            assert int(answer.headers["retry-after"]) > 0
            assert_problem(await served.get("/runs?kind=a&event_key=b"), 503, "unavailable")
            ready = assert_problem(await served.client.get("/readyz"), 503, "unavailable")
            assert "DATABASE_URL" in ready["detail"]
            assert (await served.client.get("/healthz")).status_code == 200
    finally:
        await away.close()


# No GET or HEAD changes anything, and nothing redirects.
async def test_only_post(door: Upstream) -> None:
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        answer = await door.client.request(method, "/events")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "POST"
    assert_problem(await door.client.get("/nothing/here"), 404, "not-found")
