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

-- name: lock_runs
-- Hold runs that do not move themselves: what is said of them joins their chain of the record.
SELECT run_id FROM workflow_runs WHERE run_id = ANY(%(run_ids)s::uuid[]) ORDER BY run_id FOR UPDATE;
