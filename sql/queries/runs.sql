-- name: claim_runs
-- Claim due runs for drafting: new ones, due retries, and those whose owner's lease ran out. A draft_key with an
-- effect on the wire or unknown waits: what became of it decides what the next draft may say. While the model may not be
-- asked (its switch is closed, or it asked for quiet) only those are claimed that have their draft: from upstream, or
-- from an earlier claim. Those of kinds that the claimer's policy lacks are left to others for a while.
-- zero rows: nothing is due, or the kill switch is closed
WITH llm AS MATERIALIZED (
    SELECT %(may_ask)s::boolean AND NOT EXISTS (SELECT FROM kill_switch WHERE scope = 'llm' AND NOT open) AS is_open
), due AS (
    SELECT run_id, state
      FROM workflow_runs
     WHERE state IN ('received', 'processing', 'failed_retryable') AND next_attempt_at <= clock_timestamp()
       AND NOT EXISTS (SELECT FROM effect_outbox AS e
                        WHERE e.draft_key = workflow_runs.draft_key AND e.state IN ('sending', 'unknown')
                          AND e.effect_type <> 'resume')
       AND ((SELECT is_open FROM llm) OR result IS NOT NULL
            OR (SELECT i.draft IS NOT NULL FROM run_inputs AS i WHERE i.run_id = workflow_runs.run_id))
       AND (kind = ANY(%(kinds)s::text[])
            OR next_attempt_at <= clock_timestamp() - %(kind_gone_seconds)s * interval '1 second')
     ORDER BY next_attempt_at
     LIMIT %(most)s
       FOR UPDATE SKIP LOCKED
)
UPDATE workflow_runs AS r
   SET state = 'processing', lease_owner = %(owner)s, lease_taken_at = clock_timestamp(),
       lease_expires_at = clock_timestamp() + %(lease_seconds)s * interval '1 second',
       next_attempt_at = clock_timestamp() + %(lease_seconds)s * interval '1 second',
       takeovers = r.takeovers + (due.state = 'processing')::int, version = r.version + 1, updated_at = now()
  FROM due, run_inputs AS i
 WHERE r.run_id = due.run_id AND r.state = due.state AND i.run_id = r.run_id
RETURNING r.run_id, r.idempotency_key, r.kind, r.entity, r.draft_key, r.source_version, r.version, r.attempts,
          r.takeovers, r.result, i.payload, i.draft, i.requested_by;

-- name: renew_run
-- Keep a claimed run, by its owner only, for half an hour in all.
-- zero rows: the lease was lost or has been held for too long; stop and write nothing
UPDATE workflow_runs
   SET lease_expires_at = clock_timestamp() + %(lease_seconds)s * interval '1 second',
       next_attempt_at = clock_timestamp() + %(lease_seconds)s * interval '1 second'
 WHERE run_id = %(run_id)s AND state = 'processing' AND lease_owner = %(owner)s AND version = %(version)s
   AND lease_expires_at > clock_timestamp()
   AND lease_taken_at > clock_timestamp() - %(longest_seconds)s * interval '1 second'
RETURNING run_id;

-- name: store_result
-- Keep the model's answer before anything is done with it, so that it is never asked twice for one event.
-- zero rows: the lease was lost; somebody else drafts this run now
UPDATE workflow_runs
   SET result = %(result)s, version = version + 1, updated_at = now()
 WHERE run_id = %(run_id)s AND state = 'processing' AND lease_owner = %(owner)s AND version = %(version)s
   AND lease_expires_at > clock_timestamp()
RETURNING version;

-- name: postpone_run
-- Give a run back to be tried later; counted only if the failure was the run's own.
-- zero rows: the lease was lost; somebody else drafts this run now
UPDATE workflow_runs
   SET state = 'failed_retryable', failure = %(failure)s, attempts = attempts + %(counted)s,
       next_attempt_at = clock_timestamp() + %(wait_seconds)s * interval '1 second',
       lease_owner = NULL, lease_expires_at = NULL, lease_taken_at = NULL, version = version + 1, updated_at = now()
 WHERE run_id = %(run_id)s AND state = 'processing' AND lease_owner = %(owner)s AND version = %(version)s
   AND lease_expires_at > clock_timestamp()
RETURNING version;

-- name: fail_run
-- End a run that cannot be drafted; the head is locked, so that an older draft can be reopened with it.
-- zero rows: the lease was lost; somebody else drafts this run now
UPDATE workflow_runs
   SET state = 'failed_terminal', failure = %(failure)s, finished_at = clock_timestamp(),
       lease_owner = NULL, lease_expires_at = NULL, lease_taken_at = NULL, version = version + 1, updated_at = now()
 WHERE run_id = %(run_id)s AND state = 'processing' AND lease_owner = %(owner)s AND version = %(version)s
   AND lease_expires_at > clock_timestamp()
RETURNING version;

-- name: supersede_claimed_run
-- End a claimed run that is no longer the newest: it gets no card.
-- zero rows: the lease was lost, or intake superseded it already
UPDATE workflow_runs
   SET state = 'superseded', finished_at = clock_timestamp(),
       lease_owner = NULL, lease_expires_at = NULL, lease_taken_at = NULL, version = version + 1, updated_at = now()
 WHERE run_id = %(run_id)s AND state = 'processing' AND lease_owner = %(owner)s AND version = %(version)s
   AND lease_expires_at > clock_timestamp()
RETURNING version;

-- name: supersede_shown_run
-- End the older run whose draft takes the newer content.
-- zero rows: it was decided or expired at this moment
UPDATE workflow_runs
   SET state = 'superseded', finished_at = clock_timestamp(), version = version + 1, updated_at = now()
 WHERE run_id = %(run_id)s AND state = 'awaiting_human'
RETURNING version;

-- name: settle_drafted_run
-- Hand a drafted run to people: its draft is open.
-- zero rows: the lease was lost; somebody else drafts this run now
UPDATE workflow_runs
   SET state = 'awaiting_human', draft_id = %(draft_id)s,
       lease_owner = NULL, lease_expires_at = NULL, lease_taken_at = NULL, version = version + 1, updated_at = now()
 WHERE run_id = %(run_id)s AND state = 'processing' AND lease_owner = %(owner)s AND version = %(version)s
   AND lease_expires_at > clock_timestamp()
RETURNING version;

-- name: find_key
-- The key of a run, for its chain in the record.
SELECT idempotency_key FROM workflow_runs WHERE run_id = %(run_id)s;
