"""Makes rows in any state and age, as the owner, stepping past the program.

Not here: fixtures (tests/conftest) or stand-ins for the outside (bot/demo).
"""

import asyncio
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from bot.policy.keys import body_hash, draft_key
from bot.policy.tokens import hash_token, mint_token
from store.ids import new_id

SNAPSHOT: dict[str, Any] = {
    "reviewers": ["U0ALICE", "U0BOB"],
    "quorum": 1,
    "separate_duties": True,
    "expires_after_seconds": 172800,
    "fresh_for_seconds": 86400,
    "channel": "C0REVIEW",
    "regulated": False,
    "qualified": [],
    "effect": {
        "type": "http",
        "target": "https://n8n.example/webhook/send-mail",
        "recipient": "payload.to",
        "response_id": "id",
        "lookup": None,
        "settle_seconds": 60,
        "timeout_seconds": 10,
        "attempts": 5,
        "idempotent": False,
    },
}


_owners: dict[str, psycopg.Connection[Any]] = {}


@contextmanager
def owner_of(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction as the owner, on a connection that is kept: making one costs more than most tests."""
    conn = _owners.get(dsn)
    if conn is None or not _lives(conn):
        conn = _owners[dsn] = psycopg.connect(dsn, autocommit=True)
    with conn.transaction():
        yield conn


def _lives(conn: psycopg.Connection[Any]) -> bool:
    try:
        conn.execute("SELECT 1")
    except psycopg.Error:
        conn.close()
        return False
    return True


def forget_owner(dsn: str) -> None:
    """Close the kept connection of a database that goes away."""
    if dsn in _owners:
        _owners.pop(dsn).close()


def insert(conn: psycopg.Connection[Any], table: str, values: dict[str, Any]) -> None:
    """Insert one row as given."""
    names = sql.SQL(", ").join(sql.Identifier(name) for name in values)
    places = sql.SQL(", ").join(sql.Placeholder(name) for name in values)
    adapted = {
        name: Jsonb(value) if isinstance(value, dict | list) else value for name, value in values.items()
    }
    conn.execute(
        sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(sql.Identifier(table), names, places), adapted
    )


def rows(dsn: str, statement: LiteralString, **params: Any) -> list[dict[str, Any]]:
    """Read rows as the owner."""
    with owner_of(dsn) as conn:
        return conn.cursor(row_factory=dict_row).execute(statement, params).fetchall()


def change(dsn: str, statement: LiteralString, **params: Any) -> int:
    """Change rows as the owner: age a lease, empty a table."""
    with owner_of(dsn) as conn:
        return conn.execute(statement, params).rowcount


async def locked_out(dsn: str, count: int = 1) -> None:
    """Wait until so many sessions wait for a lock."""
    waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with asyncio.timeout(30):
        while len(rows(dsn, waits)) < count:  # noqa: ASYNC110 - PostgreSQL does not tell who waits for a lock
            await asyncio.sleep(0)


def make_run(
    dsn: str,
    *,
    state: str = "received",
    version: int = 17,
    entity: str = "customer:42",
    event_key: str | None = None,
    kind: str = "customer_email",
    head: bool = True,
    **more: Any,
) -> UUID:
    """Make a run with its input and (unless told otherwise) the head of its draft_key; give its run_id."""
    run_id = new_id()
    key = event_key or f"evt-{run_id}"
    final = state in {"completed", "rejected", "expired", "superseded", "cancelled", "failed_terminal"}
    age = more.pop("age_seconds", 0)
    inputs = {
        "payload": {"to": "amy@example.test", "subject": "Late parcel", "text": "Where is it?"}
    } | more.pop("inputs", {})
    with owner_of(dsn) as conn:
        now = conn.execute("SELECT now() - %s * interval '1 second'", (age,)).fetchone()[0]  # type: ignore[index]
        values: dict[str, Any] = {
            "run_id": run_id,
            "idempotency_key": f"n8n:{kind}:{key}",
            "source": "n8n",
            "kind": kind,
            "event_key": key,
            "entity": entity,
            "draft_key": draft_key(entity, kind),
            "source_version": version,
            "payload_hash": hashlib.sha256(key.encode()).hexdigest(),
            "state": state,
            "received_at": now,
            "next_attempt_at": now,
            "finished_at": now if final else None,
            "failure": "timeout" if state.startswith("failed") else None,
        }
        if state == "processing":
            values |= {"lease_owner": "test", "lease_expires_at": now, "lease_taken_at": now}
        insert(conn, "workflow_runs", values | more)
        insert(conn, "run_inputs", {"run_id": run_id} | inputs)
        insert(conn, "seen_events", {"idempotency_key": f"n8n:{kind}:{key}", "run_id": run_id})
        if head:
            conn.execute(
                "INSERT INTO draft_heads (draft_key, source_version, run_id) VALUES (%s, %s, %s)"
                " ON CONFLICT (draft_key) DO UPDATE SET source_version = excluded.source_version,"
                " run_id = excluded.run_id WHERE excluded.source_version > draft_heads.source_version",
                (values["draft_key"], version, run_id),
            )
    return run_id


def make_draft(
    dsn: str,
    *,
    status: str = "pending",
    body: dict[str, Any] | None = None,
    snapshot: dict[str, Any] | None = None,
    run: dict[str, Any] | None = None,
    author: str = "model",
    expires_in_seconds: float = 3600,
) -> dict[str, Any]:
    """Make a draft with one revision, an open question if pending, and a posted card; give its ids."""
    states = {
        "pending": "awaiting_human",
        "approved": "approved",
        "sent": "completed",
        "rejected": "rejected",
        "expired": "expired",
        "cancelled": "cancelled",
        "failed": "failed_terminal",
    }
    run_id = make_run(dsn, state=states[status], **(run or {}))
    made = rows(dsn, "SELECT * FROM workflow_runs WHERE run_id = %(run_id)s", run_id=run_id)[0]
    frozen = SNAPSHOT | (snapshot or {})
    text = body or {"subject": "About your parcel", "body": "It ships Monday."}
    draft_id, approval_id, card_id = new_id(), new_id(), new_id()
    snapshot_hash = body_hash(frozen)
    with owner_of(dsn) as conn:
        conn.execute(
            "INSERT INTO policy_snapshots (snapshot_hash, kind, body) VALUES (%s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            (snapshot_hash, made["kind"], Jsonb(frozen)),
        )
        lives = "SELECT now() + %s * interval '1 second'"
        expires = conn.execute(lives, (expires_in_seconds,)).fetchone()[0]  # type: ignore[index]
        insert(
            conn,
            "drafts",
            {
                "draft_id": draft_id,
                "draft_key": made["draft_key"],
                "kind": made["kind"],
                "entity": made["entity"],
                "run_id": run_id,
                "status": status,
                "revision": 1,
                "approval_id": approval_id if status == "pending" else None,
                "known_version": made["source_version"],
                "snapshot_hash": snapshot_hash,
                "expires_at": expires,
            },
        )
        conn.execute(
            "UPDATE draft_heads SET draft_id = %s WHERE draft_key = %s", (draft_id, made["draft_key"])
        )
        conn.execute("UPDATE workflow_runs SET draft_id = %s WHERE run_id = %s", (draft_id, run_id))
        insert(
            conn,
            "revisions",
            {
                "draft_id": draft_id,
                "revision": 1,
                "run_id": run_id,
                "body": text,
                "body_hash": body_hash(text),
                "author": author,
            },
        )
        insert(
            conn,
            "approvals",
            {
                "approval_id": approval_id,
                "draft_id": draft_id,
                "revision": 1,
                "run_id": run_id,
                "quorum": frozen["quorum"],
            },
        )
        insert(
            conn,
            "cards",
            {
                "card_id": card_id,
                "draft_id": draft_id,
                "channel": frozen["channel"],
                "ts": "1700000000.000100",
                "shown_version": 1,
                "wanted_version": 1,
            },
        )
    return {
        "draft_id": draft_id,
        "run_id": run_id,
        "approval_id": approval_id,
        "card_id": card_id,
        "draft_key": made["draft_key"],
        "key": made["idempotency_key"],
        "channel": frozen["channel"],
        "ts": "1700000000.000100",
        "snapshot_hash": snapshot_hash,
    }


def make_token(
    dsn: str, draft: dict[str, Any], decision: str = "approve", *, revision: int = 1, **more: Any
) -> str:
    """Mint a token for the card of a draft made by make_draft; give the token itself."""
    token = mint_token()
    with owner_of(dsn) as conn:
        expires = conn.execute("SELECT now() + interval '1 hour'").fetchone()[0]  # type: ignore[index]
        insert(
            conn,
            "approval_tokens",
            {
                "token_hash": hash_token(token),
                "approval_id": draft["approval_id"],
                "revision": revision,
                "decision": decision,
                "surface": "message",
                "card_id": draft["card_id"],
                "shown_hash": "0" * 64,
                "expires_at": expires,
            }
            | more,
        )
    return token


def make_effect(
    dsn: str,
    *,
    state: str = "pending",
    draft: dict[str, Any] | None = None,
    lease_age_seconds: float = 0,
    started: bool = False,
    body: bytes = b'{"effect_id": "x"}',
    effect_id: UUID | None = None,
    **more: Any,
) -> UUID:
    """Make an effect (and, if none is given, an approved draft for it) in any state; give its effect_id."""
    owner = draft or make_draft(dsn, status="approved", run={"entity": f"customer:{new_id()}"})
    run = rows(dsn, "SELECT * FROM workflow_runs WHERE run_id = %(run_id)s", run_id=owner["run_id"])[0]
    effect_id = effect_id or new_id()
    with owner_of(dsn) as conn:
        now, lease = conn.execute(  # type: ignore[misc]
            "SELECT now(), now() - %s * interval '1 second'", (lease_age_seconds,)
        ).fetchone()
        values: dict[str, Any] = {
            "effect_id": effect_id,
            "idempotency_key": run["idempotency_key"],
            "run_id": run["run_id"],
            "draft_id": owner["draft_id"],
            "draft_key": run["draft_key"],
            "kind": run["kind"],
            "effect_type": "http",
            "target": SNAPSHOT["effect"]["target"],
            "known_version": run["source_version"],
            "state": state,
            "started_at": now if started or state == "unknown" else None,
            "ambiguous_at": now if state == "unknown" else None,
            "reason": "http_400" if state == "failed" else None,
        }
        if state == "sending":
            values |= {"lease_owner": "test", "lease_expires_at": lease}
        insert(conn, "effect_outbox", values | more)
        insert(
            conn,
            "effect_payloads",
            {
                "effect_id": effect_id,
                "snapshot_hash": owner["snapshot_hash"],
                "revision": 1,
                "recipient": "amy@example.test",
                "body": body,
            },
        )
    return effect_id


def insert_vote(dsn: str, draft: dict[str, Any], *, subject: str, decision: str = "approve") -> UUID:
    """Make the decided question of a settled draft, with one vote; give its approval_id."""
    approval_id = new_id()
    run = rows(dsn, "SELECT run_id FROM drafts WHERE draft_id = %(draft_id)s", draft_id=draft["draft_id"])[0]
    with owner_of(dsn) as conn:
        now = conn.execute("SELECT now()").fetchone()[0]  # type: ignore[index]
        insert(
            conn,
            "approvals",
            {
                "approval_id": approval_id,
                "draft_id": draft["draft_id"],
                "revision": 1,
                "run_id": run["run_id"],
                "quorum": 1,
                "ended_at": now,
                "end_reason": "decided",
                "consumed_at": now,
                "decision": decision,
                "approver_subject": subject,
            },
        )
        vote = {"approval_id": approval_id, "subject": subject, "decision": decision}
        insert(conn, "votes", vote | {"counted_as": "user:U0ALICE", "shown_hash": "0" * 64})
    return approval_id


def make_effects(
    dsn: str, count: int, *, effect: dict[str, Any] | None = None, targets: int = 1, **more: Any
) -> list[UUID]:
    """Make many pending effects, each with an approved draft, run, head and card; give the ids in order.

    `effect` changes the policy of all of them; with several targets they take turns.
    """
    policy = SNAPSHOT["effect"] | (effect or {})
    frozen = SNAPSHOT | {"effect": policy}
    snapshot_hash = body_hash(frozen)
    made = []
    with owner_of(dsn) as conn:
        conn.execute(
            "INSERT INTO policy_snapshots (snapshot_hash, kind, body) VALUES (%s, 'customer_email', %s)"
            " ON CONFLICT DO NOTHING",
            (snapshot_hash, Jsonb(frozen)),
        )
        soon = conn.execute("SELECT now() + interval '1 hour'").fetchone()[0]  # type: ignore[index]
        for number in range(count):
            effect_id, run_id, draft_id = new_id(), new_id(), new_id()
            entity = f"customer:{effect_id}"
            of = {"draft_key": draft_key(entity, "customer_email"), "kind": "customer_email"}
            key = {"idempotency_key": f"n8n:customer_email:{effect_id}", "run_id": run_id}
            head = {"draft_key": of["draft_key"], "source_version": 17, "run_id": run_id}
            run = {"entity": entity, "draft_id": draft_id, "state": "approved", "source_version": 17}
            event = {"source": "n8n", "event_key": str(effect_id), "payload_hash": "0" * 64}
            draft = {"draft_id": draft_id, "entity": entity, "run_id": run_id, "status": "approved"}
            opened = {"revision": 1, "known_version": 17, "snapshot_hash": snapshot_hash, "expires_at": soon}
            target = f"{policy['target']}/{number % targets}" if targets > 1 else policy["target"]
            out = {"effect_id": effect_id, "draft_id": draft_id, "known_version": 17, "target": target}
            card = {"card_id": new_id(), "draft_id": draft_id, "channel": "C0REVIEW", "shown_version": 1}
            sent = {"snapshot_hash": snapshot_hash, "revision": 1, "recipient": "amy@example.test"}
            insert(conn, "draft_heads", head)
            insert(conn, "workflow_runs", of | key | run | event)
            insert(conn, "drafts", of | draft | opened)
            insert(conn, "cards", card)
            insert(conn, "effect_outbox", of | key | out | {"effect_type": policy["type"]} | more)
            insert(conn, "effect_payloads", {"effect_id": effect_id, "body": b"{}"} | sent)
            made.append(effect_id)
    return made


_PENDING: tuple[LiteralString, ...] = (
    """INSERT INTO workflow_runs (run_id, idempotency_key, source, kind, event_key, entity, draft_key,
           source_version, payload_hash, state, draft_id)
       SELECT run_id, key, 'n8n', kind, entity, entity, draft_key, 17, '0', 'awaiting_human', draft_id
         FROM made""",
    """INSERT INTO run_inputs (run_id, payload)
       SELECT run_id, '{"to": "amy@example.test", "text": "Where is it?"}' FROM made""",
    "INSERT INTO seen_events (idempotency_key, run_id) SELECT key, run_id FROM made",
    """INSERT INTO draft_heads (draft_key, source_version, run_id, draft_id)
       SELECT draft_key, 17, run_id, draft_id FROM made""",
    """INSERT INTO drafts (draft_id, draft_key, kind, entity, run_id, status, revision, approval_id,
           known_version, snapshot_hash, expires_at)
       SELECT draft_id, draft_key, kind, entity, run_id, 'pending', 1, approval_id, 17, snapshot_hash,
           now() + expires * interval '1 second' FROM made""",
    """INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)
       SELECT draft_id, 1, run_id, '{"subject": "About your parcel", "body": "It ships Monday."}', 'h',
           'model' FROM made""",
    """INSERT INTO approvals (approval_id, draft_id, revision, run_id, quorum)
       SELECT approval_id, draft_id, 1, run_id, 1 FROM made""",
    """INSERT INTO cards (card_id, draft_id, channel, place_kind, waits_until)
       SELECT card_id, draft_id, channel, kind, now() + expires * interval '1 second' FROM made""",
)


def make_waiting(
    dsn: str,
    count: int,
    *,
    kind: str = "customer_email",
    snapshot: dict[str, Any] | None = None,
    first_expires_in_seconds: float = 3600,
) -> list[dict[str, Any]]:
    """Make pending drafts whose cards wait for a place, each expiring a second after the one before it."""
    frozen = SNAPSHOT | (snapshot or {})
    snapshot_hash = body_hash(frozen)
    made = [
        {
            **{name: str(new_id()) for name in ("run_id", "draft_id", "approval_id", "card_id")},
            "entity": f"{kind}:{number:04}",
            "kind": kind,
            "key": f"n8n:{kind}:{kind}:{number:04}",
            "draft_key": draft_key(f"{kind}:{number:04}", kind),
            "channel": frozen["channel"],
            "snapshot_hash": snapshot_hash,
            "expires": first_expires_in_seconds + number,
        }
        for number in range(count)
    ]
    with owner_of(dsn) as conn:
        conn.execute(
            "INSERT INTO policy_snapshots (snapshot_hash, kind, body) VALUES (%s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            (snapshot_hash, kind, Jsonb(frozen)),
        )
        conn.execute(
            "CREATE TEMP TABLE made ON COMMIT DROP AS SELECT * FROM jsonb_to_recordset(%s) AS g (run_id uuid,"
            " draft_id uuid, approval_id uuid, card_id uuid, entity text, kind text, key text,"
            " draft_key text, channel text, snapshot_hash text, expires double precision)",
            (Jsonb(made),),
        )
        for statement in _PENDING:
            conn.execute(statement)
    ids = ("run_id", "draft_id", "approval_id", "card_id")
    return [one | {name: UUID(one[name]) for name in ids} | {"ts": None} for one in made]


def limit(
    dsn: str,
    *,
    kind: str = "customer_email",
    value: str | None = None,
    columns: dict[str, Any] | None = None,
    **more: Any,
) -> None:
    """Put limits of a kind down as a start does."""
    given = {"breaker_after": 50, "breaker_rest_seconds": 30, "breaker_rest_most_seconds": 900}
    given |= (columns or {}) | more
    names = sql.SQL(", ").join(sql.Identifier(name) for name in given)
    places = sql.SQL(", ").join(sql.Placeholder(name) for name in given)
    statement = sql.SQL(
        "INSERT INTO kind_limits (kind, value_path, {}) VALUES (%(kind)s, %(path)s::text[], {})"
    ).format(names, places)
    with owner_of(dsn) as conn:
        conn.execute("DELETE FROM kind_limits WHERE kind = %s", (kind,))
        conn.execute(statement, given | {"kind": kind, "path": None if value is None else value.split(".")})
