-- name: find_chain
-- The key of an effect, or of a run, with the head whose lock its record is written under.
SELECT idempotency_key, draft_key FROM effect_outbox WHERE effect_id = %(effect_id)s::uuid
UNION ALL
SELECT idempotency_key, draft_key FROM workflow_runs WHERE idempotency_key = %(key)s::text;

-- name: find_history
-- What became of one key: its run, the newest revision of it, the last decision on it and its effects, as one moment.
-- An effect and the one it waits for or takes back are called as in their policy, else by their type.
SELECT r.idempotency_key, r.kind, r.state, r.received_at, r.failure, s.duplicates + s.conflicts AS repeats,
       v.revision, v.author, v.model, v.prompt_version,
       a.decision, a.approver_subject AS decided_by, a.consumed_at AS decided_at, a.reason,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
               'effect_type', e.effect_type, 'state', e.state, 'provider_id', e.provider_id, 'undo_by', e.undo_by,
               'name', s.effects #>> array_append(coalesce(e.clause, '{0}'), 'name'),
               'undoes', CASE WHEN e.undo_of = o.effect_id THEN other.called END,
               'waits_for', CASE WHEN e.state = 'pending' AND e.after_id = o.effect_id AND o.state <> 'completed'
                                 THEN other.called END) ORDER BY e.effect_id), '[]')
          FROM (SELECT * FROM effect_outbox WHERE idempotency_key = r.idempotency_key AND state <> 'cancelled'
                UNION ALL
                SELECT * FROM effect_outbox WHERE idempotency_key = r.idempotency_key AND state = 'cancelled') AS e
          LEFT JOIN effect_payloads AS p ON p.effect_id = e.effect_id
          LEFT JOIN policy_snapshots AS s ON s.snapshot_hash = p.snapshot_hash
          LEFT JOIN effect_outbox AS o ON o.effect_id = coalesce(e.undo_of, e.after_id)
          CROSS JOIN LATERAL (SELECT coalesce(s.effects #>> array_append(coalesce(o.clause, '{0}'), 'name'),
                                              o.effect_type) AS called) AS other
         WHERE e.effect_type <> 'resume') AS effects
  FROM workflow_runs AS r
  LEFT JOIN seen_events AS s ON s.idempotency_key = r.idempotency_key
  LEFT JOIN LATERAL (
       SELECT revision, author, model, prompt_version FROM revisions
        WHERE revisions.draft_id = r.draft_id AND revisions.run_id = r.run_id
        ORDER BY revision DESC LIMIT 1) AS v ON true
  LEFT JOIN LATERAL (
       SELECT decision, approver_subject, consumed_at, reason FROM approvals
        WHERE approvals.draft_id = r.draft_id AND approvals.run_id = r.run_id AND consumed_at IS NOT NULL
        ORDER BY consumed_at DESC LIMIT 1) AS a ON true
 WHERE r.idempotency_key = ANY(%(keys)s::text[])
 LIMIT 1;

-- name: list_waiting
-- Open questions of some kinds that somebody can answer now and has not, oldest first.
SELECT d.draft_id, d.kind, d.entity, d.opened_at, d.expires_at
  FROM drafts AS d
  JOIN draft_heads AS h ON h.draft_key = d.draft_key AND h.source_version = d.known_version
 WHERE d.status = 'pending' AND d.expires_at > now() AND d.kind = ANY(%(kinds)s::text[])
   AND NOT EXISTS (SELECT FROM redrafts AS rd WHERE rd.draft_id = d.draft_id AND rd.closed_at IS NULL)
   AND NOT EXISTS (SELECT FROM votes AS v WHERE v.approval_id = d.approval_id AND v.subject = %(subject)s)
 ORDER BY d.opened_at, d.draft_id
OFFSET %(passed)s LIMIT %(most)s;

-- name: count_waiting
-- How many such questions there are of each kind.
SELECT d.kind, count(*) AS n
  FROM drafts AS d
  JOIN draft_heads AS h ON h.draft_key = d.draft_key AND h.source_version = d.known_version
 WHERE d.status = 'pending' AND d.expires_at > now() AND d.kind = ANY(%(kinds)s::text[])
   AND NOT EXISTS (SELECT FROM redrafts AS rd WHERE rd.draft_id = d.draft_id AND rd.closed_at IS NULL)
   AND NOT EXISTS (SELECT FROM votes AS v WHERE v.approval_id = d.approval_id AND v.subject = %(subject)s)
 GROUP BY d.kind ORDER BY d.kind;

-- name: list_unknown
-- Effects nobody knows the outcome of, longest first, and how many there are in all.
SELECT idempotency_key, effect_type, ambiguous_at, count(*) OVER () AS total
  FROM effect_outbox
 WHERE state = 'unknown'
 ORDER BY ambiguous_at, effect_id
 LIMIT %(most)s;

-- name: find_holder
-- Whose view a token was minted for; a submission may come without the person's team.
SELECT holder FROM approval_tokens WHERE token_hash = %(token_hash)s;
