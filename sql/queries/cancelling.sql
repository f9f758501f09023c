-- name: cancel_draft
-- Stop an approved draft before any of its effects was started: effects, draft and run are cancelled, and the
-- cancellation is a decision of its own beside the approval that it undoes, and counts against what the kind has
-- earned. The head is locked; each effect's own row decides against its start. The token belongs to the newest question
-- of the draft: an older approval's stops nothing.
-- zero rows: an effect was started, or the draft is not approved any more, or the token is not for this
WITH asked AS (
    SELECT t.token_hash, t.shown_hash, d.draft_id, d.run_id, d.revision, a.quorum, r.idempotency_key,
           s.body ->> 'ground' AS ground
      FROM approval_tokens AS t
      JOIN approvals AS a ON a.approval_id = t.approval_id
      JOIN drafts AS d ON d.draft_id = a.draft_id AND d.revision = t.revision
      JOIN workflow_runs AS r ON r.run_id = d.run_id AND r.state = 'approved'
      JOIN policy_snapshots AS s ON s.snapshot_hash = d.snapshot_hash
      JOIN cards AS c ON c.card_id = t.card_id
     WHERE t.token_hash = %(token_hash)s AND t.decision = 'cancel' AND t.revision = %(revision)s
       AND t.surface = %(surface)s AND c.channel = %(channel)s AND (c.ts IS NULL OR c.ts = %(ts)s)
       AND t.expires_at > clock_timestamp() AND d.status IN ('approved', 'scheduled')
       AND NOT EXISTS (SELECT FROM approvals AS newer
                        WHERE newer.draft_id = d.draft_id AND newer.opened_at > a.opened_at)
), stopped AS (
    UPDATE effect_outbox AS e
       SET state = 'cancelled', reason = 'cancelled', lease_owner = NULL, lease_expires_at = NULL,
           version = e.version + 1, updated_at = now()
      FROM asked
     WHERE e.idempotency_key = asked.idempotency_key AND e.draft_id = asked.draft_id AND e.effect_type <> 'resume'
       AND e.state <> 'cancelled' AND e.state IN ('pending', 'sending')
       AND e.started_at IS NULL AND e.ambiguous_at IS NULL
    RETURNING e.effect_id
), allowed AS (
    SELECT asked.*
      FROM asked
     WHERE (SELECT count(*) FROM stopped) = (
           SELECT count(*) FROM effect_outbox AS o
            WHERE o.idempotency_key = asked.idempotency_key AND o.draft_id = asked.draft_id
              AND o.effect_type <> 'resume' AND o.state <> 'cancelled')
), settled AS (
    UPDATE drafts AS d
       SET status = 'cancelled', decided_at = clock_timestamp(), version = d.version + 1, updated_at = now()
      FROM allowed
     WHERE d.draft_id = allowed.draft_id AND d.status IN ('approved', 'scheduled')
), moved AS (
    UPDATE workflow_runs AS r
       SET state = 'cancelled', finished_at = clock_timestamp(), version = r.version + 1, updated_at = now()
      FROM allowed
     WHERE r.run_id = allowed.run_id AND r.state = 'approved'
), decided AS (
    INSERT INTO approvals (approval_id, draft_id, revision, run_id, quorum, ended_at, end_reason, consumed_at, decision,
                           approver_subject, token_hash, shown_hash)
    SELECT %(approval_id)s, draft_id, revision, run_id, 1, clock_timestamp(), 'decided', clock_timestamp(), 'cancel',
           %(subject)s, token_hash, shown_hash
      FROM allowed
), agreed AS (
    INSERT INTO agreements (ground, decided_at, run_id, unedited)
    SELECT ground, clock_timestamp(), run_id, false FROM allowed WHERE ground IS NOT NULL
), drawn AS (
    UPDATE cards AS c
       SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now(),
           ts = coalesce(c.ts, %(ts)s)
      FROM allowed
     WHERE c.draft_id = allowed.draft_id
)
SELECT allowed.draft_id, allowed.run_id, allowed.revision, (SELECT count(*) FROM stopped) AS effects FROM allowed;

-- name: find_cancelled
-- What the newest decision on a token's draft is, and whether anything of it was ever started: why a cancellation came
-- too late, or what one did whose answer was lost.
SELECT d.status, last.decision, last.approver_subject, last.consumed_at, last.token_hash,
       EXISTS (SELECT FROM effect_outbox AS e
                WHERE e.idempotency_key = r.idempotency_key AND e.draft_id = d.draft_id AND e.effect_type <> 'resume'
                  AND e.state <> 'cancelled'
                  AND (e.started_at IS NOT NULL OR e.ambiguous_at IS NOT NULL OR e.state NOT IN ('pending', 'sending')))
           AS is_started
  FROM approval_tokens AS t
  JOIN approvals AS a ON a.approval_id = t.approval_id
  JOIN drafts AS d ON d.draft_id = a.draft_id
  JOIN workflow_runs AS r ON r.run_id = d.run_id
  LEFT JOIN LATERAL (
       SELECT o.decision, o.approver_subject, o.consumed_at, o.token_hash FROM approvals AS o
        WHERE o.draft_id = d.draft_id AND o.consumed_at IS NOT NULL
        ORDER BY o.consumed_at DESC LIMIT 1) AS last ON true
 WHERE t.token_hash = %(token_hash)s;
