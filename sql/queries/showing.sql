-- name: read_draft_cards
-- All that the cards of these drafts show, as one moment's truth, with the wanted version that this truth answers.
-- Whose votes counted for an approval stands in its line of the record: of those who had left by then none did.
SELECT c.card_id, c.channel, c.ts, c.wanted_version, c.noted_revision, c.post_id, c.attempts, c.problem, c.post_started_at,
       coalesce(extract(epoch FROM clock_timestamp() - c.post_started_at), 0)::double precision AS post_age_seconds,
       d.draft_id, d.kind, d.entity, d.status, d.revision, d.notice, d.opened_at, d.expires_at, d.decided_at,
       d.approval_id, asked.approval_id AS newest_approval_id,
       h.source_version > d.known_version AS is_blocked,
       d.expires_at <= clock_timestamp() AS is_expired,
       s.body AS snapshot,
       r.idempotency_key, r.state AS run_state, r.finished_at, i.record_url, i.requested_by, i.reason AS run_reason,
       (SELECT jsonb_agg(i.payload #>> (string_to_array(one.effect ->> 'recipient', '.'))[2:] ORDER BY one.n)
          FROM jsonb_array_elements(s.effects) WITH ORDINALITY AS one (effect, n)) AS recipients,
       (SELECT jsonb_agg(i.payload #>> (string_to_array(one.effect #>> '{undo,recipient}', '.'))[2:] ORDER BY one.n)
          FROM jsonb_array_elements(s.effects) WITH ORDINALITY AS one (effect, n)) AS undo_recipients,
       rev.body, rev.author, rev.model, rev.prompt_version, rev.warnings,
       before.revision AS before_revision, before.body AS before_body,
       coalesce((SELECT seen.duplicates FROM seen_events AS seen WHERE seen.idempotency_key = r.idempotency_key), 0) AS repeats,
       coalesce((SELECT array_agg(v.subject ORDER BY v.voted_at) FROM votes AS v
                  WHERE v.approval_id = d.approval_id AND v.decision = 'approve'), '{}') AS voters,
       decided.decision, decided.approver_subject AS decided_by, decided.consumed_at, decided.reason AS decision_reason,
       coalesce((SELECT array_agg(v.subject ORDER BY v.voted_at) FROM votes AS v
                  WHERE v.approval_id = decided.approval_id AND v.decision = 'approve'
                    AND coalesce(counted.approvers ? v.subject, true)), '{}') AS approvers,
       redraft.requested_by AS redraft_by, redraft.wish AS redraft_wish,
       d.status = 'pending' AND EXISTS (
           SELECT FROM redrafts AS rd
            WHERE rd.draft_id = d.draft_id AND rd.revision = d.revision AND rd.outcome IN ('failed', 'unavailable', 'timed_out')
           ) AS redraft_failed,
       (SELECT count(*) FROM redrafts AS rd
          JOIN revisions AS v ON v.draft_id = rd.draft_id AND v.revision = rd.revision AND v.run_id = d.run_id
         WHERE rd.draft_id = d.draft_id AND (rd.outcome IS NULL OR rd.outcome NOT IN ('unavailable', 'timed_out'))
       ) AS redrafts_used,
       earlier.approver_subject AS earlier_by, earlier.consumed_at AS earlier_at, earlier.reason AS earlier_reason,
       replaced.idempotency_key AS replaced_key,
       coalesce((SELECT array_agg(coalesce(e.provider_id, e.effect_id::text) ORDER BY e.effect_id) FROM effect_outbox AS e
                  WHERE e.idempotency_key = replaced.idempotency_key AND e.state <> 'cancelled' AND e.state = 'completed'
                    AND e.effect_type <> 'resume' AND e.undo_of IS NULL), '{}') AS replaced_sent,
       coalesce((SELECT array_agg(coalesce(e.provider_id, e.effect_id::text) ORDER BY e.effect_id) FROM effect_outbox AS e
                   JOIN effect_outbox AS u ON u.undo_of = e.effect_id AND u.undo_of IS NOT NULL AND u.state <> 'cancelled'
                  WHERE e.idempotency_key = replaced.idempotency_key AND e.state <> 'cancelled' AND e.state = 'completed'
                    AND u.state = 'completed'), '{}') AS replaced_undone,
       coalesce((SELECT jsonb_agg(jsonb_build_object(
                    'effect_id', e.effect_id, 'effect_type', e.effect_type, 'state', e.state, 'attempts', e.attempts,
                    'reason', e.reason, 'provider_id', e.provider_id, 'started_at', e.started_at,
                    'ambiguous_at', e.ambiguous_at, 'not_before', e.not_before, 'next_attempt_at', e.next_attempt_at,
                    'held_since', e.held_since, 'target', e.target,
                    'rests_until', kept.rests_until, 'full_until', kept.full_until, 'full_why', kept.full_why,
                    'created_at', e.created_at, 'updated_at', e.updated_at, 'clause', e.clause, 'after_id', e.after_id,
                    'undo_of', e.undo_of, 'undo_by', e.undo_by, 'settled_by', CASE WHEN e.state IN ('completed', 'failed') THEN (
                        SELECT l.actor FROM audit_log AS l
                          LEFT JOIN audit_details AS t ON t.chain = l.chain AND t.seq = l.seq
                         WHERE l.chain = r.idempotency_key AND starts_with(l.action, 'effect_')
                           AND coalesce(t.detail::jsonb ->> 'effect_id', e.effect_id::text) = e.effect_id::text
                         ORDER BY l.seq DESC LIMIT 1) END) ORDER BY e.clause NULLS FIRST, e.effect_id)
                   FROM (SELECT *, max(created_at) FILTER (WHERE undo_of IS NULL) OVER () AS approved_at
                           FROM (SELECT * FROM effect_outbox WHERE idempotency_key = r.idempotency_key AND state <> 'cancelled'
                                 UNION ALL
                                 SELECT * FROM effect_outbox WHERE idempotency_key = r.idempotency_key AND state = 'cancelled'
                                    AND undo_of IS NULL) AS o
                          WHERE effect_type <> 'resume' AND o.draft_id = d.draft_id) AS e
                   LEFT JOIN LATERAL (
                        SELECT t.rests_until, l.full_until, l.full_why
                          FROM (SELECT coalesce(e.not_before <= clock_timestamp(), true) AS is_due) AS one
                          LEFT JOIN targets AS t ON t.lane = e.lane AND t.opened_at IS NOT NULL
                          LEFT JOIN kind_limits AS l ON l.kind = e.kind AND l.full_until > clock_timestamp()
                         WHERE one.is_due AND e.state = 'pending') AS kept ON true
                  WHERE e.created_at = e.approved_at OR e.clause IS NULL OR e.undo_of IS NOT NULL), '[]') AS effects,
       coalesce((SELECT jsonb_object_agg(k.scope, k.open) FROM kill_switch AS k), '{}') AS switch_rows,
       stopped.actor AS cancelled_by, stopped.at AS cancelled_at
  FROM cards AS c
  JOIN drafts AS d ON d.draft_id = c.draft_id
  JOIN draft_heads AS h ON h.draft_key = d.draft_key
  JOIN policy_snapshots AS s ON s.snapshot_hash = d.snapshot_hash
  JOIN workflow_runs AS r ON r.run_id = d.run_id
  JOIN run_inputs AS i ON i.run_id = d.run_id
  JOIN revisions AS rev ON rev.draft_id = d.draft_id AND rev.revision = d.revision
  LEFT JOIN revisions AS before ON before.draft_id = d.draft_id AND before.revision = d.revision - 1
  LEFT JOIN workflow_runs AS replaced ON replaced.run_id = r.replaces
  LEFT JOIN redrafts AS redraft ON redraft.draft_id = d.draft_id AND redraft.closed_at IS NULL
  LEFT JOIN LATERAL (
       SELECT a.approval_id FROM approvals AS a WHERE a.draft_id = d.draft_id ORDER BY a.opened_at DESC LIMIT 1) AS asked ON true
  LEFT JOIN LATERAL (
       SELECT a.* FROM approvals AS a WHERE a.draft_id = d.draft_id AND a.consumed_at IS NOT NULL
        ORDER BY a.consumed_at DESC LIMIT 1) AS decided ON true
  LEFT JOIN LATERAL (
       SELECT t.detail::jsonb -> 'approvers' AS approvers
         FROM workflow_runs AS o
         JOIN audit_log AS l ON l.chain = o.idempotency_key
         LEFT JOIN audit_details AS t ON t.chain = l.chain AND t.seq = l.seq
        WHERE decided.decision = 'approve' AND o.run_id = decided.run_id AND l.action = 'approved'
        ORDER BY l.seq DESC LIMIT 1) AS counted ON true
  LEFT JOIN LATERAL (
       SELECT a.approver_subject, a.consumed_at, a.reason FROM approvals AS a
        WHERE a.draft_id = d.earlier_id AND a.decision = 'reject' ORDER BY a.consumed_at DESC LIMIT 1) AS earlier ON true
  LEFT JOIN LATERAL (
       SELECT l.actor, l.at FROM audit_log AS l
        WHERE d.status = 'cancelled' AND l.chain = r.idempotency_key AND l.action = 'cancelled'
        ORDER BY l.seq DESC LIMIT 1) AS stopped ON true
 WHERE c.draft_id = ANY(%(draft_ids)s::uuid[]);

-- name: read_effect_cards
-- All that the cards of these unknown effects show, settled or not, as one moment's truth.
SELECT c.card_id, c.channel, c.ts, c.wanted_version, c.noted_revision, c.post_id, c.attempts, c.problem, c.post_started_at,
       coalesce(extract(epoch FROM clock_timestamp() - c.post_started_at), 0)::double precision AS post_age_seconds,
       e.effect_id, e.version, e.idempotency_key, e.kind, e.effect_type, e.target, e.state, e.provider_id,
       CASE e.state WHEN 'unknown' THEN e.reason ELSE died.detail::jsonb ->> 'reason' END AS reason,
       CASE e.state WHEN 'unknown' THEN e.attempts ELSE (died.detail::jsonb ->> 'attempts')::integer END AS tries,
       e.updated_at, e.next_attempt_at, coalesce(e.ambiguous_at, e.updated_at) AS dead_at,
       r.entity, p.revision, p.recipient, rev.body,
       e.effect_type <> 'resume' AND h.source_version > e.known_version AS newer_waits,
       e.undo_of IS NOT NULL AS is_undo,
       s.effects #>> array_append(coalesce(e.clause, '{0}'), 'lookup') AS lookup,
       coalesce(look.asked, 0) AS asked, look.last_answer, look.last_at,
       said.actor AS settled_by, said.at AS settled_at, said.detail::jsonb ->> 'choice' AS choice
  FROM cards AS c
  JOIN effect_outbox AS e ON e.effect_id = c.effect_id
  JOIN effect_payloads AS p ON p.effect_id = e.effect_id
  JOIN workflow_runs AS r ON r.run_id = e.run_id
  JOIN draft_heads AS h ON h.draft_key = e.draft_key
  LEFT JOIN policy_snapshots AS s ON s.snapshot_hash = p.snapshot_hash
  LEFT JOIN revisions AS rev ON rev.draft_id = e.draft_id AND rev.revision = p.revision
  LEFT JOIN effect_look_ups AS look ON look.effect_id = e.effect_id
  LEFT JOIN LATERAL (
       SELECT l.seq, t.detail FROM audit_log AS l
         LEFT JOIN audit_details AS t ON t.chain = l.chain AND t.seq = l.seq
        WHERE l.chain = e.idempotency_key AND l.action = 'effect_unknown'
          AND coalesce(t.detail::jsonb ->> 'effect_id', e.effect_id::text) = e.effect_id::text
        ORDER BY l.seq DESC LIMIT 1) AS died ON true
  LEFT JOIN LATERAL (
       SELECT l.actor, l.at, t.detail FROM audit_log AS l
         LEFT JOIN audit_details AS t ON t.chain = l.chain AND t.seq = l.seq
        WHERE l.chain = e.idempotency_key AND l.action = 'effect_resolved' AND l.seq > coalesce(died.seq, 0)
          AND coalesce(t.detail::jsonb ->> 'effect_id', e.effect_id::text) = e.effect_id::text
        ORDER BY l.seq DESC LIMIT 1) AS said ON true
 WHERE c.effect_id = ANY(%(effect_ids)s::uuid[]);
