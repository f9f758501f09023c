-- name: drop_failed_undo
-- Make room where an earlier undo of the token's effect failed: a machine calls failed only what never left. One that a
-- person gave up may have left, and stays. The head is locked.
-- zero rows: nothing: there is none
UPDATE effect_outbox AS u
   SET state = 'cancelled', version = u.version + 1, updated_at = now()
  FROM approval_tokens AS t
 WHERE t.token_hash = %(token_hash)s AND t.decision = 'undo' AND u.undo_of = t.effect_id AND u.undo_of IS NOT NULL
   AND u.state <> 'cancelled' AND u.state = 'failed' AND u.ambiguous_at IS NULL;

-- name: undo_effect
-- Put what takes a completed effect back into the outbox, approved, with bytes built from the stored revision and from
-- what the provider called the original. Nothing of the run may be open any more, and no undo be there already. The head
-- is locked, and the run held for its record. The newest version there could be is its own: no event outdates an undo.
-- zero rows: it was undone already, or is open still, or the token is not for this, or its text is erased
WITH asked AS (
    SELECT t.token_hash, t.shown_hash, d.draft_id, d.draft_key, d.kind, d.entity, r.run_id, r.idempotency_key, e.effect_id,
           e.effect_type, e.provider_id, p.revision, p.snapshot_hash, coalesce(e.clause, '{0}') || 'undo'::text AS clause,
           s.effects #> (coalesce(e.clause, '{0}') || 'undo'::text) AS undo, rev.body AS output, i.payload,
           (s.body ->> 'fresh_for_seconds')::double precision AS fresh_for_seconds
      FROM approval_tokens AS t
      JOIN approvals AS a ON a.approval_id = t.approval_id
      JOIN drafts AS d ON d.draft_id = a.draft_id AND d.revision = t.revision
      JOIN effect_outbox AS e ON e.effect_id = t.effect_id AND e.draft_id = d.draft_id
      JOIN workflow_runs AS r ON r.run_id = e.run_id
      JOIN run_inputs AS i ON i.run_id = e.run_id
      JOIN effect_payloads AS p ON p.effect_id = e.effect_id
      JOIN policy_snapshots AS s ON s.snapshot_hash = p.snapshot_hash
      JOIN revisions AS rev ON rev.draft_id = d.draft_id AND rev.revision = p.revision AND rev.body IS NOT NULL
      JOIN cards AS c ON c.card_id = t.card_id
     WHERE t.token_hash = %(token_hash)s AND t.decision = 'undo' AND t.revision = %(revision)s
       AND t.surface = %(surface)s AND c.channel = %(channel)s AND (c.ts IS NULL OR c.ts = %(ts)s)
       AND t.expires_at > clock_timestamp() AND d.status IN ('sent', 'failed')
       AND e.state = 'completed' AND e.undo_of IS NULL
       AND jsonb_typeof(s.effects #> (coalesce(e.clause, '{0}') || 'undo'::text)) = 'object'
       AND NOT EXISTS (
           SELECT FROM effect_outbox AS o
            WHERE o.idempotency_key = r.idempotency_key AND o.state <> 'cancelled' AND o.effect_type <> 'resume'
              AND (o.undo_of = e.effect_id OR o.undo_of IS NULL AND o.state IN ('pending', 'sending', 'unknown')))
), made AS (
    SELECT asked.*, payload #>> (string_to_array(undo ->> 'recipient', '.'))[2:] AS recipient FROM asked
), allowed AS (
    SELECT * FROM made WHERE undo ->> 'recipient' IS NULL OR recipient IS NOT NULL
), enqueued AS (
    INSERT INTO effect_outbox (effect_id, idempotency_key, run_id, draft_id, draft_key, kind, effect_type, target,
                               known_version, fresh_until, clause, undo_of, undo_by)
    SELECT %(undo_id)s, idempotency_key, run_id, draft_id, draft_key, kind, undo ->> 'type', undo ->> 'target',
           9223372036854775807, clock_timestamp() + fresh_for_seconds * interval '1 second', clause, effect_id, %(subject)s
      FROM allowed
), written AS (
    INSERT INTO effect_payloads (effect_id, snapshot_hash, revision, recipient, body)
    SELECT %(undo_id)s, snapshot_hash, revision, recipient,
           convert_to(fill_body(undo -> 'body', jsonb_build_object(
               'effect_id', %(undo_id)s::uuid, 'key', idempotency_key, 'kind', kind, 'entity', entity,
               'revision', revision, 'recipient', recipient, 'output', output || coalesce(undo -> 'output', '{}'),
               'approved_by', %(subject)s::text,
               'approved_at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
               'undoes', jsonb_build_object('effect_id', effect_id, 'effect_type', effect_type,
                                            'provider_id', provider_id))), 'UTF8')
      FROM allowed
), drawn AS (
    UPDATE cards AS c
       SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now(),
           ts = coalesce(c.ts, %(ts)s)
      FROM allowed
     WHERE c.draft_id = allowed.draft_id
)
SELECT allowed.draft_id, allowed.run_id, allowed.effect_id, allowed.undo ->> 'type' AS effect_type, allowed.shown_hash
  FROM allowed;

-- name: find_undone
-- How the effect of an undo's token stands, undos that failed left out: why an undo cannot be asked for, or what one did
-- whose answer was lost.
SELECT e.state, d.status, u.undo_by, u.created_at AS undo_at, u.effect_id AS undo_id,
       EXISTS (SELECT FROM effect_outbox AS o
                WHERE o.idempotency_key = r.idempotency_key AND o.state IN ('pending', 'sending', 'unknown')
                  AND o.state <> 'cancelled' AND o.undo_of IS NULL AND o.effect_type <> 'resume') AS is_open
  FROM approval_tokens AS t
  JOIN effect_outbox AS e ON e.effect_id = t.effect_id
  JOIN drafts AS d ON d.draft_id = e.draft_id
  JOIN workflow_runs AS r ON r.run_id = e.run_id
  LEFT JOIN effect_outbox AS u ON u.undo_of = e.effect_id AND u.undo_of IS NOT NULL AND u.state <> 'cancelled'
        AND (u.state <> 'failed' OR u.ambiguous_at IS NOT NULL)
 WHERE t.token_hash = %(token_hash)s;
