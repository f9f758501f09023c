-- name: let_through
-- Let a draft through without a person, in the transaction that opened or revised it: its question is answered by the
-- gate, the run leaves drafting approved, each effect waits with its bytes (built as `vote` builds them), and the card
-- takes no place among those that wait for people. With a window nothing leaves before its end.
-- zero rows: the lease was lost; somebody else drafts this run now
WITH moved AS (
    UPDATE workflow_runs AS r
       SET state = 'approved', draft_id = %(draft_id)s,
           lease_owner = NULL, lease_expires_at = NULL, lease_taken_at = NULL, version = r.version + 1, updated_at = now()
     WHERE r.run_id = %(run_id)s AND r.state = 'processing' AND r.lease_owner = %(owner)s AND r.version = %(version)s
       AND r.lease_expires_at > clock_timestamp()
    RETURNING r.run_id, r.idempotency_key
), asked AS (
    SELECT moved.*, d.draft_id, d.draft_key, d.kind, d.entity, d.revision, d.known_version, d.snapshot_hash, d.approval_id,
           s.effects, (s.body ->> 'fresh_for_seconds')::double precision AS fresh_for_seconds,
           i.payload, rev.body AS output
      FROM moved
      JOIN drafts AS d ON d.draft_id = %(draft_id)s AND d.run_id = moved.run_id AND d.status = 'pending'
      JOIN policy_snapshots AS s ON s.snapshot_hash = d.snapshot_hash
      JOIN run_inputs AS i ON i.run_id = moved.run_id
      JOIN revisions AS rev ON rev.draft_id = d.draft_id AND rev.revision = d.revision AND rev.body IS NOT NULL
), spent AS (
    UPDATE approvals AS a
       SET consumed_at = clock_timestamp(), ended_at = clock_timestamp(), end_reason = 'decided', decision = 'approve',
           approver_subject = %(gate)s, reason = %(rule)s
      FROM asked
     WHERE a.approval_id = asked.approval_id AND a.ended_at IS NULL
    RETURNING a.approval_id, a.consumed_at,
              a.consumed_at + %(window_seconds)s::double precision * interval '1 second' AS not_before
), let AS (
    SELECT asked.*, spent.consumed_at, spent.not_before,
           coalesce(spent.not_before, spent.consumed_at) + fresh_for_seconds * interval '1 second' AS fresh_until
      FROM asked JOIN spent ON spent.approval_id = asked.approval_id
), settled AS (
    UPDATE drafts AS d
       SET status = CASE WHEN let.not_before IS NULL THEN 'approved' ELSE 'scheduled' END, approval_id = NULL,
           decided_at = let.consumed_at, expires_at = greatest(d.expires_at, let.fresh_until),
           version = d.version + 1, updated_at = now()
      FROM let
     WHERE d.draft_id = let.draft_id AND d.status = 'pending'
), part AS (
    SELECT let.*, one.effect, ids.effect_ids[one.n] AS effect_id,
           CASE WHEN jsonb_array_length(effects) > 1 THEN ARRAY[(one.n - 1)::text] END AS clause,
           CASE WHEN one.effect ->> 'after' IS NOT NULL THEN (
               SELECT ids.effect_ids[o.n] FROM jsonb_array_elements(effects) WITH ORDINALITY AS o (effect, n)
                WHERE o.effect ->> 'name' = one.effect ->> 'after') END AS after_id,
           payload #>> (string_to_array(one.effect ->> 'recipient', '.'))[2:] AS recipient
      FROM let
     CROSS JOIN (SELECT %(effect_ids)s::uuid[] AS effect_ids) AS ids
     CROSS JOIN LATERAL jsonb_array_elements(effects) WITH ORDINALITY AS one (effect, n)
), enqueued AS (
    INSERT INTO effect_outbox (effect_id, idempotency_key, run_id, draft_id, draft_key, kind, effect_type, target,
                               known_version, not_before, next_attempt_at, fresh_until, clause, after_id)
    SELECT effect_id, idempotency_key, run_id, draft_id, draft_key, kind, effect ->> 'type', effect ->> 'target',
           known_version, not_before, coalesce(not_before, now()), fresh_until, clause, after_id
      FROM part
), written AS (
    INSERT INTO effect_payloads (effect_id, snapshot_hash, revision, recipient, body)
    SELECT effect_id, snapshot_hash, revision, recipient,
           convert_to(fill_body(effect -> 'body', jsonb_build_object(
               'effect_id', effect_id, 'key', idempotency_key, 'kind', kind, 'entity', entity,
               'revision', revision, 'recipient', recipient, 'output', output, 'approved_by', %(gate)s::text,
               'approved_at', to_char(consumed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))), 'UTF8')
      FROM part
), drawn AS (
    UPDATE cards AS c SET place_kind = NULL, waits_until = NULL, updated_at = now()
      FROM let
     WHERE c.draft_id = let.draft_id
)
SELECT draft_id, revision, not_before FROM let;
