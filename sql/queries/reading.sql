-- name: read_run
-- Everything an upstream system may know of one of its own runs, as one snapshot. Revisions and decisions are those of
-- the run's draft that came from the same source; the sender's own payload is not repeated.
WITH run AS (
    SELECT r.*, i.record_url, i.requested_by, i.reason, i.n8n_workflow, i.n8n_execution, i.workflow_version, i.erased_at
      FROM workflow_runs AS r
      JOIN run_inputs AS i ON i.run_id = r.run_id
     WHERE r.source = %(source)s AND (r.run_id = %(run_id)s::uuid OR r.idempotency_key = %(key)s::text)
), own AS (
    SELECT d.draft_id, o.run_id
      FROM run JOIN drafts AS d ON d.draft_id = run.draft_id
      CROSS JOIN LATERAL (
           SELECT DISTINCT v.run_id FROM revisions AS v WHERE v.draft_id = d.draft_id) AS o
      JOIN workflow_runs AS r ON r.run_id = o.run_id AND r.source = run.source
)
SELECT run.state, run.idempotency_key,
       jsonb_build_object(
           'run_id', run.run_id, 'key', run.idempotency_key, 'source', run.source, 'kind', run.kind,
           'event_key', run.event_key, 'entity', run.entity, 'draft_key', run.draft_key,
           'source_version', run.source_version::text, 'payload_hash', run.payload_hash, 'state', run.state,
           'failure', run.failure, 'attempts', run.attempts, 'takeovers', run.takeovers, 'received_at', run.received_at,
           'updated_at', run.updated_at, 'finished_at', run.finished_at, 'record_url', run.record_url,
           'requested_by', run.requested_by, 'reason', run.reason, 'n8n_workflow', run.n8n_workflow,
           'n8n_execution', run.n8n_execution, 'workflow_version', run.workflow_version, 'erased_at', run.erased_at,
           'replaces', (SELECT o.event_key FROM workflow_runs AS o WHERE o.run_id = run.replaces)) AS run,
       (SELECT jsonb_build_object(
           'draft_id', d.draft_id, 'draft_key', d.draft_key, 'status', d.status, 'revision', d.revision,
           'opened_at', d.opened_at, 'expires_at', d.expires_at, 'decided_at', d.decided_at, 'notice', d.notice)
          FROM drafts AS d WHERE d.draft_id = run.draft_id) AS draft,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
           'revision', v.revision, 'body', v.body, 'body_hash', v.body_hash, 'author', v.author, 'model', v.model,
           'fingerprint', v.fingerprint, 'prompt_version', v.prompt_version, 'warnings', v.warnings,
           'created_at', v.created_at, 'erased_at', v.erased_at, 'run_id', v.run_id) ORDER BY v.revision), '[]')
          FROM revisions AS v JOIN own ON own.draft_id = v.draft_id AND own.run_id = v.run_id) AS revisions,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
           'revision', a.revision, 'decision', a.decision, 'decided_by', a.approver_subject, 'decided_at', a.consumed_at,
           'reason', a.reason, 'run_id', a.run_id, 'votes', (
               SELECT coalesce(jsonb_agg(jsonb_build_object('by', t.subject, 'decision', t.decision, 'at', t.voted_at,
                                                            'counted_as', t.counted_as) ORDER BY t.voted_at), '[]')
                 FROM votes AS t WHERE t.approval_id = a.approval_id)) ORDER BY a.consumed_at), '[]')
          FROM approvals AS a JOIN own ON own.draft_id = a.draft_id AND own.run_id = a.run_id
         WHERE a.consumed_at IS NOT NULL) AS decisions,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
           'effect_id', e.effect_id, 'effect_type', e.effect_type, 'state', e.state, 'provider_id', e.provider_id,
           'attempts', e.attempts, 'reason', e.reason, 'waits_for', e.after_id, 'undoes', e.undo_of, 'undo_by', e.undo_by,
           'created_at', e.created_at, 'updated_at', e.updated_at)
           ORDER BY e.effect_type = 'resume', e.effect_id), '[]')
          FROM (SELECT * FROM effect_outbox WHERE idempotency_key = run.idempotency_key AND state <> 'cancelled'
                UNION ALL
                SELECT * FROM effect_outbox WHERE idempotency_key = run.idempotency_key AND state = 'cancelled') AS e
       ) AS effects,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
           'seq', l.seq, 'at', l.at, 'actor', l.actor, 'action', l.action, 'detail', t.detail::jsonb) ORDER BY l.seq), '[]')
          FROM audit_log AS l LEFT JOIN audit_details AS t ON t.chain = l.chain AND t.seq = l.seq
         WHERE l.chain = run.idempotency_key) AS audit
  FROM run;

-- name: count_events
-- Answers of POST /events since the first day kept.
SELECT source, kind, status, sum(n)::bigint AS n FROM event_counters GROUP BY source, kind, status;

-- name: count_open_work
-- What is open at this moment, through the partial indexes: finished rows are never looked at.
SELECT 'effect' AS thing, state, kind, count(*) AS n, NULL::double precision AS oldest_seconds
  FROM effect_outbox WHERE state = 'pending' GROUP BY state, kind
UNION ALL
SELECT 'effect', state, kind, count(*), NULL FROM effect_outbox WHERE state = 'sending' GROUP BY state, kind
UNION ALL
SELECT 'effect', state, kind, count(*), NULL FROM effect_outbox WHERE state = 'unknown' GROUP BY state, kind
UNION ALL
SELECT 'draft', status, kind, count(*), extract(epoch FROM now() - min(opened_at))::double precision
  FROM drafts WHERE status = 'pending' GROUP BY status, kind
UNION ALL
SELECT 'run', state, kind, count(*), extract(epoch FROM now() - min(received_at))::double precision
  FROM workflow_runs WHERE state IN ('received', 'processing', 'failed_retryable') GROUP BY state, kind;

-- name: newest_migration
-- Which schema the database has; that it answers at all is half of the question.
SELECT max(number) FROM schema_migrations;
