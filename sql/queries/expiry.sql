-- name: list_expired
-- The draft_keys of pending drafts whose time is over, the longest over first.
SELECT draft_key FROM drafts
 WHERE status = 'pending' AND expires_at <= now()
 ORDER BY expires_at LIMIT %(most)s;

-- name: expire_drafts
-- End the pending drafts of these keys whose time is over, with their runs, questions and wishes, and ask for their
-- cards; one that still waits for a place is never posted. The heads are locked, so a decision came before or comes after.
-- zero rows: nothing: they were decided, revised or expired meanwhile
WITH expired AS (
    UPDATE drafts AS d
       SET status = 'expired', approval_id = NULL, notice = NULL,
           version = d.version + 1, updated_at = now()
     WHERE d.draft_key = ANY(%(draft_keys)s::text[]) AND d.status = 'pending' AND d.expires_at <= clock_timestamp()
    RETURNING d.draft_id, d.run_id, d.revision
), moved AS (
    UPDATE workflow_runs AS r
       SET state = 'expired', finished_at = clock_timestamp(), version = r.version + 1, updated_at = now()
      FROM expired
     WHERE r.run_id = expired.run_id AND r.state = 'awaiting_human'
    RETURNING r.run_id, r.idempotency_key
), ended AS (
    UPDATE approvals AS a
       SET ended_at = clock_timestamp(), end_reason = 'expired'
      FROM expired
     WHERE a.draft_id = expired.draft_id AND a.ended_at IS NULL
), closed AS (
    UPDATE redrafts AS rd
       SET closed_at = clock_timestamp(), outcome = 'expired', lease_owner = NULL, lease_expires_at = NULL,
           result = NULL
      FROM expired
     WHERE rd.draft_id = expired.draft_id AND rd.closed_at IS NULL
), drawn AS (
    UPDATE cards AS c
       SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now(),
           shown_version = CASE WHEN c.waits_until IS NULL THEN c.shown_version ELSE c.wanted_version + 1 END,
           place_kind = NULL, waits_until = NULL
      FROM expired
     WHERE c.draft_id = expired.draft_id
)
SELECT expired.draft_id, expired.revision, moved.idempotency_key
  FROM expired JOIN moved ON moved.run_id = expired.run_id;
