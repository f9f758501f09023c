"""Makes executions that wait upstream, and reads what they are told.

Not here: the runs they wait for (tests/makers).
"""

import json
from typing import Any
from uuid import UUID

import psycopg

from store.ids import new_id
from store.intake import url_hash
from tests import makers

N8N = "https://n8n.example"


def make_waiter(dsn: str, run_id: UUID, *, place: str = "17/gate-1", age_seconds: float = 60) -> UUID:
    """Let an execution wait for a run's outcome, as intake notes it; gives the waiter_id."""
    waiter_id, url = new_id(), f"{N8N}/webhook-waiting/{place}?signature=secret"
    with psycopg.connect(dsn) as conn:
        conn.execute(
            "INSERT INTO waiters (waiter_id, run_id, resume_url, url_hash, added_at)"
            " VALUES (%s, %s, %s, %s, now() - %s * interval '1 second')",
            (waiter_id, run_id, url, url_hash(url), age_seconds),
        )
        conn.execute("UPDATE workflow_runs SET is_waited = true WHERE run_id = %s", (run_id,))
    return waiter_id


def told(dsn: str) -> list[dict[str, Any]]:
    """The resume effects with their bytes and waiters, in order of the waiters."""
    return makers.rows(
        dsn,
        "SELECT e.*, p.body, p.recipient, p.revision, w.settled_at, r.is_waited,"
        " e.not_before - clock_timestamp() AS wait"
        " FROM effect_outbox AS e JOIN effect_payloads AS p USING (effect_id)"
        " JOIN waiters AS w ON w.waiter_id = e.effect_id JOIN workflow_runs AS r ON r.run_id = e.run_id"
        " WHERE e.effect_type = 'resume' ORDER BY e.effect_id",
    )


def outcome(dsn: str) -> dict[str, Any]:
    """The one outcome that all waiters were told."""
    bodies = {bytes(row["body"]) for row in told(dsn)}
    assert len(bodies) == 1
    document: dict[str, Any] = json.loads(bodies.pop())
    return document
