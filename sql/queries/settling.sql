-- name: settle_drafts
-- End drafts and their runs with their effects: sent once no effect of the draft is open, failed and the like at once.
-- The heads are locked. (IS NOT DISTINCT FROM: found by id, never through the index of open drafts; the scalar subquery
-- asks its index draft by draft, whatever the statistics say.)
-- zero rows: nothing: effects of theirs are still open, or they were ended before
WITH given AS MATERIALIZED (
    SELECT *
      FROM json_to_recordset(%(ends)s::json) AS g (
           draft_id uuid, run_id uuid, status text, run_state text, failure text)
), ended AS (
    UPDATE drafts AS d
       SET status = given.status, version = d.version + 1, updated_at = now()
      FROM given
     WHERE d.draft_id = given.draft_id AND d.draft_id = ANY(ARRAY(SELECT draft_id FROM given))
       AND (d.status IS NOT DISTINCT FROM 'approved' OR d.status IS NOT DISTINCT FROM 'scheduled')
       AND (given.status <> 'sent' OR (
            SELECT o.effect_id FROM effect_outbox AS o
             WHERE o.draft_key = d.draft_key AND o.state IN ('pending', 'sending', 'unknown')
               AND o.draft_id = d.draft_id AND o.effect_type <> 'resume' LIMIT 1) IS NULL)
    RETURNING d.draft_id, given.run_id, given.run_state, given.failure
)
UPDATE workflow_runs AS r
   SET state = ended.run_state, failure = coalesce(ended.failure, r.failure), version = r.version + 1,
       updated_at = now(), finished_at = clock_timestamp()
  FROM ended
 WHERE r.run_id = ended.run_id AND r.state IS NOT DISTINCT FROM 'approved'
RETURNING r.run_id;

-- name: cancel_leftovers
-- Cancel what of these approved runs of several effects may never leave: what waits for one that did not complete, and,
-- once one is over and none may be on its way, what a newer version or the clock overtook. Heads and rows are locked.
-- zero rows: nothing: all that is left may still leave
WITH RECURSIVE part AS MATERIALIZED (
    SELECT e.effect_id, e.run_id, e.draft_key, e.state, e.after_id, e.known_version, e.fresh_until,
           e.state IN ('pending', 'sending') AND e.started_at IS NULL AND e.ambiguous_at IS NULL AS is_here,
           e.state IN ('completed', 'failed', 'cancelled') AS is_over
      FROM workflow_runs AS r
     CROSS JOIN LATERAL (
           SELECT o.*, max(o.created_at) OVER () AS approved_at
             FROM (SELECT * FROM effect_outbox WHERE idempotency_key = r.idempotency_key AND state <> 'cancelled'
                   UNION ALL
                   SELECT * FROM effect_outbox WHERE idempotency_key = r.idempotency_key AND state = 'cancelled') AS o
            WHERE o.clause IS NOT NULL AND o.undo_of IS NULL) AS e
     WHERE r.run_id = ANY(%(run_ids)s::uuid[]) AND e.created_at = e.approved_at
), lost AS (
    SELECT p.effect_id
      FROM part AS p JOIN part AS o ON o.effect_id = p.after_id
     WHERE p.is_here AND o.state IN ('failed', 'cancelled')
    UNION
    SELECT p.effect_id FROM part AS p JOIN lost ON p.after_id = lost.effect_id WHERE p.is_here
), late AS (
    SELECT p.effect_id, h.source_version > p.known_version AS is_overtaken
      FROM part AS p
      JOIN draft_heads AS h ON h.draft_key = p.draft_key
     WHERE p.is_here AND (p.fresh_until <= clock_timestamp() OR h.source_version > p.known_version)
       AND EXISTS (SELECT FROM part AS o WHERE o.run_id = p.run_id AND o.is_over)
       AND NOT EXISTS (SELECT FROM part AS o WHERE o.run_id = p.run_id AND NOT o.is_here AND NOT o.is_over)
)
UPDATE effect_outbox AS e
   SET state = 'cancelled', lease_owner = NULL, lease_expires_at = NULL, version = e.version + 1, updated_at = now(),
       reason = gone.reason
  FROM (SELECT effect_id, 'after_failed' AS reason FROM lost
        UNION ALL
        SELECT effect_id, CASE WHEN is_overtaken THEN 'overtaken' ELSE 'outdated' END FROM late
         WHERE effect_id NOT IN (SELECT effect_id FROM lost)) AS gone
 WHERE e.effect_id = gone.effect_id AND e.state IN ('pending', 'sending')
   AND e.started_at IS NULL AND e.ambiguous_at IS NULL
RETURNING e.effect_id, e.reason, e.draft_id, e.run_id, e.idempotency_key, e.effect_type, e.attempts;

-- name: settle_parts
-- End drafts of several effects and their runs as these stand: failed as soon as one failed for good; else, once none is
-- open, completed if all were, superseded if none was, and failed if only some of them left. The heads are locked.
-- zero rows: nothing: effects of theirs are still open, or they were ended before
WITH standing AS (
    SELECT r.run_id, r.draft_id, bool_or(e.state = 'failed') AS has_failed,
           bool_or(e.state IN ('pending', 'sending', 'unknown')) AS is_open, bool_and(e.state = 'completed') AS is_sent,
           bool_and(e.state = 'cancelled') AS is_dropped,
           (array_agg(e.reason ORDER BY e.state = 'failed' DESC, e.clause)
                FILTER (WHERE e.state IN ('failed', 'cancelled')))[1] AS reason
      FROM workflow_runs AS r
     CROSS JOIN LATERAL (
           SELECT o.*, max(o.created_at) OVER () AS approved_at
             FROM (SELECT * FROM effect_outbox WHERE idempotency_key = r.idempotency_key AND state <> 'cancelled'
                   UNION ALL
                   SELECT * FROM effect_outbox WHERE idempotency_key = r.idempotency_key AND state = 'cancelled') AS o
            WHERE o.clause IS NOT NULL AND o.undo_of IS NULL) AS e
     WHERE r.run_id = ANY(%(run_ids)s::uuid[]) AND r.state = 'approved' AND e.created_at = e.approved_at
     GROUP BY r.run_id, r.draft_id
), given AS (
    SELECT *, CASE WHEN has_failed THEN 'failed' WHEN is_sent THEN 'sent' WHEN is_dropped THEN 'cancelled' ELSE 'failed' END AS ending
      FROM standing WHERE has_failed OR NOT is_open
), ended AS (
    UPDATE drafts AS d
       SET status = given.ending, version = d.version + 1, updated_at = now()
      FROM given
     WHERE d.draft_id = given.draft_id AND d.status IN ('approved', 'scheduled')
    RETURNING given.run_id, given.ending, given.reason
)
UPDATE workflow_runs AS r
   SET state = CASE ended.ending WHEN 'sent' THEN 'completed' WHEN 'cancelled' THEN 'superseded' ELSE 'failed_terminal' END,
       failure = CASE ended.ending WHEN 'failed' THEN coalesce(ended.reason, r.failure) ELSE r.failure END,
       version = r.version + 1, updated_at = now(), finished_at = clock_timestamp()
  FROM ended
 WHERE r.run_id = ended.run_id AND r.state = 'approved'
RETURNING r.run_id;

-- name: lock_runs
-- Hold runs that do not move themselves: what is said of them joins their chain of the record.
SELECT run_id FROM workflow_runs WHERE run_id = ANY(%(run_ids)s::uuid[]) ORDER BY run_id FOR UPDATE;
