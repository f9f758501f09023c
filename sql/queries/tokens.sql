-- name: insert_tokens
-- Store the hashes of tokens that are about to be shown, each with its surface, its end and what stands beside it.
INSERT INTO approval_tokens (token_hash, approval_id, revision, decision, surface, card_id, holder, shown_hash, effect_id,
                             expires_at)
SELECT token_hash, approval_id, revision, decision, surface, card_id, holder, shown_hash, effect_id,
       coalesce(expires_at, clock_timestamp() + %(keep_seconds)s * interval '1 second')
  FROM json_to_recordset(%(tokens)s::json) AS given (token_hash text, approval_id uuid, revision integer, decision text,
       surface text, card_id uuid, holder text, shown_hash text, effect_id uuid, expires_at timestamptz);

-- name: drop_old_tokens
-- Remove tokens that ran out so long ago that nobody needs to be told what became of their questions, whose own end came
-- before or with it: the oldest first, some at a time, one process after the other.
-- zero rows: nothing: none is so old, or another process is at it
WITH alone AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(1467416581) AS is_held
)
DELETE FROM approval_tokens
 WHERE (SELECT is_held FROM alone) AND token_hash = ANY(ARRAY(
       SELECT token_hash FROM approval_tokens
        WHERE expires_at < now() - %(keep_seconds)s * interval '1 second'
        ORDER BY expires_at LIMIT %(most)s));

-- name: drop_ended_tokens
-- Remove a draft's tokens whose question ended so long ago that nobody needs to be told what became of it.
-- zero rows: nothing: none is so old
DELETE FROM approval_tokens AS t
 USING approvals AS a
 WHERE a.draft_id = %(draft_id)s AND a.ended_at < now() - %(keep_seconds)s * interval '1 second'
   AND t.approval_id = a.approval_id AND t.expires_at < now();
