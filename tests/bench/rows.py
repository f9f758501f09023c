"""Fills a database with thousands of rows at once: questions, approved effects, and a long past.
Not here: single rows in any state (tests/makers). One event has one id for its run, draft, question and card.
"""

import time
from dataclasses import dataclass
from statistics import median
from typing import Any, LiteralString

import psycopg
from psycopg.types.json import Jsonb

from bot.policy.keys import body_hash
from bot.policy.kinds import Kind
from tests.bench.traffic import CHANNEL, REVIEWER, TEAM, TS

# Ids grow with time as ours do (UUID version 7), from the past on so that fresh ones come after them.
PLACES: LiteralString = """
CREATE TEMP TABLE places ON COMMIT DROP AS
SELECT n, id, 'n8n:' || %(kind)s || ':' || n AS key, n::text AS event_key,
       encode(sha256(convert_to(id::text, 'UTF8')), 'hex') AS draft_key,
       rtrim(translate(encode(sha256(convert_to('t' || id, 'UTF8')), 'base64'), '+/', '-_'), '=') AS token
  FROM (SELECT n, (lpad(to_hex(1700000000000 + n), 12, '0') || '7' || lpad(to_hex(n %% 4096), 3, '0') || '8'
               || substr(md5(n::text), 1, 15))::uuid AS id
          FROM generate_series(%(base)s::bigint, %(base)s::bigint + %(many)s::bigint - 1) AS n) AS given
"""
RUNS: LiteralString = """
INSERT INTO workflow_runs (run_id, idempotency_key, source, kind, event_key, entity, draft_key,
                           source_version, payload_hash, state, version, draft_id, finished_at)
SELECT id, key, 'n8n', %(kind)s, event_key, 'customer:' || event_key, draft_key, 17, draft_key, %(run)s, 4,
       CASE WHEN %(draft)s::text IS NOT NULL THEN id END, CASE WHEN %(run)s = 'completed' THEN now() END
  FROM places
"""
INPUTS: LiteralString = """
INSERT INTO run_inputs (run_id, payload)
SELECT id, jsonb_build_object('to', 'amy@example.test', 'text', repeat('Where is it? ', 60)) FROM places
"""
SEEN: LiteralString = "INSERT INTO seen_events (idempotency_key, run_id) SELECT key, id FROM places"
HEADS: LiteralString = """
INSERT INTO draft_heads (draft_key, source_version, run_id, draft_id)
SELECT draft_key, 17, id, CASE WHEN %(draft)s::text IS NOT NULL THEN id END FROM places
"""
LOG: LiteralString = """
INSERT INTO audit_log (chain, seq, at, actor, action, detail_hash, hash)
SELECT key, seq, now(), 'system', 'received', sha256(convert_to(key, 'UTF8')), sha256(convert_to(key, 'UTF8'))
  FROM places, generate_series(1, %(lines)s) AS seq
"""
DETAILS: LiteralString = """
INSERT INTO audit_details (chain, seq, salt, detail)
SELECT key, seq, '\\x00112233445566778899aabbccddeeff', '{"draft_key": "' || draft_key || '"}'
  FROM places, generate_series(1, %(lines)s) AS seq
"""
DRAFTS: LiteralString = """
INSERT INTO drafts (draft_id, draft_key, kind, entity, run_id, status, revision, approval_id, known_version,
                    snapshot_hash, expires_at, decided_at)
SELECT id, draft_key, %(kind)s, 'customer:' || event_key, id, %(draft)s, 1,
       CASE WHEN %(draft)s = 'pending' THEN id END, 17, %(snapshot)s, now() + interval '1 day', now()
  FROM places
"""
REVISIONS: LiteralString = """
INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)
SELECT id, 1, id,
       jsonb_build_object('subject', 'About your parcel', 'body', repeat('It ships on Monday. ', 10)),
       draft_key, 'model'
  FROM places
"""
APPROVALS: LiteralString = """
INSERT INTO approvals (approval_id, draft_id, revision, run_id, quorum, ended_at, end_reason, consumed_at,
                       decision, approver_subject)
SELECT id, id, 1, id, 1, over.at, CASE WHEN over.at IS NOT NULL THEN 'decided' END, over.at,
       CASE WHEN over.at IS NOT NULL THEN 'approve' END, CASE WHEN over.at IS NOT NULL THEN %(voter)s END
  FROM places, (SELECT CASE WHEN %(draft)s <> 'pending' THEN now() END AS at) AS over
"""
VOTES: LiteralString = """
INSERT INTO votes (approval_id, subject, decision, counted_as, shown_hash)
SELECT id, %(voter)s, 'approve', %(voter)s, repeat('0', 64) FROM places WHERE %(draft)s <> 'pending'
"""
TOKENS: LiteralString = """
INSERT INTO approval_tokens (token_hash, approval_id, revision, decision, surface, card_id, shown_hash,
                             expires_at)
SELECT encode(sha256(convert_to(token, 'UTF8')), 'hex'), id, 1, 'approve', 'message', id, repeat('0', 64),
       now() + interval '1 day'
  FROM places WHERE %(draft)s = 'pending'
"""
CARDS: LiteralString = """
INSERT INTO cards (card_id, draft_id, channel, ts, wanted_version, shown_version, shown_hash)
SELECT id, id, %(channel)s, %(ts)s, 1, 1, repeat('0', 64) FROM places
"""
EFFECTS: LiteralString = """
INSERT INTO effect_outbox (effect_id, idempotency_key, run_id, draft_id, draft_key, kind, effect_type, target,
                           known_version, state, version, fresh_until)
SELECT id, key, id, id, draft_key, %(kind)s, %(effect_type)s, 'https://sink.example/send', 17, %(effect)s, 1,
       CASE WHEN %(effect_type)s <> 'resume' THEN now() + interval '1 day' END
  FROM places
"""
PAYLOADS: LiteralString = """
INSERT INTO effect_payloads (effect_id, snapshot_hash, revision, recipient, body)
SELECT id, %(snapshot)s, 1, 'amy@example.test', convert_to(repeat('x', 500), 'UTF8') FROM places
"""
SNAPSHOT: LiteralString = """
INSERT INTO policy_snapshots (snapshot_hash, kind, body) VALUES (%(snapshot)s, %(kind)s, %(body)s)
ON CONFLICT (snapshot_hash) DO NOTHING
"""
COMMIT: LiteralString = "SELECT pg_logical_emit_message(true, 'bench', 'x')"
COMMITS = 100
CHUNK = 100_000  # Rows a transaction when a long past is made.


@dataclass(frozen=True, slots=True)
class Filling:
    """In which states the rows are; `effect_type` resume has no draft, run or record that follows."""

    run: str
    draft: str | None = None
    effect: str | None = None
    effect_type: str = "http"
    lines: int = 2


WAITING = Filling("received", lines=1)
QUESTIONS = Filling("awaiting_human", "pending")
APPROVED = Filling("approved", "approved", "pending", lines=3)
BARE = Filling("completed", None, "pending", "resume", lines=0)
FINISHED = Filling("completed", "sent", "completed", lines=4)


def fill(dsn: str, kind: Kind, filling: Filling, many: int, *, base: int = 1) -> None:
    """Make so many events; the rows of two fillings must not overlap."""
    steps = [PLACES, RUNS, INPUTS, SEEN, HEADS]
    steps += [LOG, DETAILS] if filling.lines else []
    steps += [DRAFTS, REVISIONS, APPROVALS, VOTES, TOKENS, CARDS] if filling.draft else []
    steps += [EFFECTS, PAYLOADS] if filling.effect else []
    frozen = kind.snapshot()
    given: dict[str, Any] = {name: getattr(filling, name) for name in Filling.__dataclass_fields__}
    given |= {"kind": kind.name, "channel": CHANNEL, "ts": TS, "voter": f"slack:{TEAM}:{REVIEWER}"}
    given |= {"snapshot": body_hash(frozen), "body": Jsonb(frozen)}
    with psycopg.ClientCursor(psycopg.connect(dsn, autocommit=True)) as cursor:
        conn = cursor.connection
        for start in range(base, base + many, CHUNK):
            given |= {"base": start, "many": min(CHUNK, base + many - start)}
            with conn.transaction():
                # The triggers guard moves that nobody makes here, and cost more than the rows.
                cursor.execute("SET LOCAL session_replication_role = replica")
                cursor.execute("SET LOCAL synchronous_commit = off")
                for step in [SNAPSHOT, *steps]:
                    cursor.execute(step, given) if "%(" in step else cursor.execute(step)
        cursor.execute("VACUUM (ANALYZE)")
        cursor.execute("CHECKPOINT")
        conn.close()


def tokens(dsn: str, many: int, *, base: int = 1) -> list[str]:
    """The tokens of questions made by `fill`, in order."""
    with psycopg.connect(dsn) as conn, psycopg.ClientCursor(conn) as cursor:
        cursor.execute(PLACES, {"kind": "", "base": base, "many": many})
        return [token for (token,) in cursor.execute("SELECT token FROM places ORDER BY n")]


def commit_ms(dsn: str) -> float:
    """What the disk takes of every click: one commit with next to nothing in it, one at a time."""
    took: list[float] = []
    with psycopg.connect(dsn, autocommit=True) as conn:
        for _ in range(COMMITS):
            began = time.perf_counter()
            conn.execute(COMMIT)
            took.append(time.perf_counter() - began)
    return 1000 * median(took)


def run(dsn: str, statement: LiteralString) -> None:
    """Run one statement as the owner."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(statement)


def value(dsn: str, statement: LiteralString) -> Any:
    """One value, read as the owner."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        found = conn.execute(statement).fetchone()
        return None if found is None else found[0]


def values(dsn: str, statement: LiteralString) -> list[Any]:
    """One column, read as the owner."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        return [row[0] for row in conn.execute(statement)]
