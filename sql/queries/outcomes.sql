-- name: hold_ended_runs
-- Hold runs that are over and whose waiters do not all know it; those that somebody else is telling are passed over.
-- A waiter that joins after this waits for the lock, and sets the mark again.
SELECT run_id FROM workflow_runs
 WHERE is_waited AND finished_at IS NOT NULL
 ORDER BY finished_at LIMIT %(most)s
   FOR UPDATE SKIP LOCKED;

-- name: announce_outcomes
-- Give each waiter of these held runs its effect and its mark, and take the mark off the runs. All waiters of a run get
-- the same bytes, late ones those that the first one got. A person's answer is told only where it made the outcome:
-- an expired draft may have been approved and withdrawn before. An undo is no part of what is told: it came later.
-- zero rows: nothing: nobody waits any more
WITH run AS MATERIALIZED (
    SELECT r.run_id, r.idempotency_key, r.draft_id, r.draft_key, r.kind, r.source_version, r.state, r.failure,
           %(outcomes)s::jsonb ->> r.state AS outcome
      FROM workflow_runs AS r
     WHERE r.run_id = ANY(%(run_ids)s::uuid[]) AND r.finished_at IS NOT NULL
), told AS MATERIALIZED (
    SELECT run.*, d.snapshot_hash, v.revision,
           coalesce(first.body, convert_to(json_build_object(
               'key', run.idempotency_key, 'run_id', run.run_id, 'outcome', run.outcome,
               'reason', coalesce(a.reason, CASE run.state WHEN 'failed_terminal' THEN run.failure END),
               'decided_by', a.approver_subject,
               'decided_at', to_char(a.consumed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
               'revision', v.revision, 'body', v.body, 'effects', coalesce(e.effects, '[]'))::text, 'UTF8')) AS body
      FROM run
      LEFT JOIN drafts AS d ON d.draft_id = run.draft_id
      LEFT JOIN LATERAL (
           SELECT revision, body FROM revisions
            WHERE revisions.draft_id = run.draft_id AND revisions.run_id = run.run_id
            ORDER BY revision DESC LIMIT 1) AS v ON true
      LEFT JOIN LATERAL (
           SELECT reason, approver_subject, consumed_at FROM approvals
            WHERE approvals.draft_id = run.draft_id AND approvals.run_id = run.run_id AND consumed_at IS NOT NULL
              AND decision = CASE run.state WHEN 'completed' THEN 'approve' WHEN 'failed_terminal' THEN 'approve'
                                            WHEN 'rejected' THEN 'reject' WHEN 'cancelled' THEN 'cancel' END
            ORDER BY consumed_at DESC LIMIT 1) AS a ON true
      LEFT JOIN LATERAL (
           SELECT json_agg(json_build_object('effect_id', effect_id, 'effect_type', effect_type, 'state', state,
                                             'provider_id', provider_id) ORDER BY effect_id) AS effects
             FROM (SELECT * FROM effect_outbox WHERE idempotency_key = run.idempotency_key AND state <> 'cancelled'
                   UNION ALL
                   SELECT * FROM effect_outbox WHERE idempotency_key = run.idempotency_key AND state = 'cancelled') AS o
            WHERE effect_type <> 'resume' AND undo_of IS NULL) AS e ON true
      LEFT JOIN LATERAL (
           SELECT p.body FROM effect_outbox AS o JOIN effect_payloads AS p ON p.effect_id = o.effect_id
            WHERE o.idempotency_key = run.idempotency_key AND o.effect_type = 'resume' AND o.state <> 'cancelled'
              AND p.body IS NOT NULL
            ORDER BY o.effect_id LIMIT 1) AS first ON true
), settled AS (
    UPDATE waiters AS w SET settled_at = clock_timestamp()
     WHERE w.run_id = ANY(%(run_ids)s::uuid[]) AND w.settled_at IS NULL
    RETURNING w.waiter_id, w.run_id, substring(w.resume_url FROM '^[A-Za-z]+://[^/?#]+') || '#' || w.waiter_id AS target,
              greatest(clock_timestamp(), least(clock_timestamp(), w.added_at + interval '1 second' * %(answer_seconds)s::integer)
                       + interval '1 second' * %(delay_seconds)s::double precision) AS due_at
), enqueued AS (
    INSERT INTO effect_outbox (effect_id, idempotency_key, run_id, draft_id, draft_key, kind, effect_type, target,
                               known_version, not_before, next_attempt_at)
    SELECT waiter_id, idempotency_key, run_id, coalesce(draft_id, '00000000-0000-0000-0000-000000000000'), draft_key, kind,
           'resume', target, source_version, due_at, due_at
      FROM settled JOIN told USING (run_id)
), written AS (
    INSERT INTO effect_payloads (effect_id, snapshot_hash, revision, body)
    SELECT waiter_id, coalesce(snapshot_hash, ''), coalesce(revision, 0), body FROM settled JOIN told USING (run_id)
), marked AS (
    UPDATE workflow_runs AS r SET is_waited = false WHERE r.run_id = ANY(%(run_ids)s::uuid[]) AND r.is_waited
)
SELECT waiter_id FROM settled;
