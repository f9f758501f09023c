-- name: lock_heads
-- Take the first lock of everything that decides, expires, withdraws, opens or settles; in order of draft_key.
SELECT draft_key, source_version, run_id, draft_id
  FROM draft_heads
 WHERE draft_key = ANY(%(draft_keys)s::text[])
 ORDER BY draft_key
   FOR UPDATE;

-- name: lock_free_heads
-- The same for those that nobody holds: votes that go together wait for nobody.
SELECT draft_key, source_version, run_id, draft_id
  FROM draft_heads
 WHERE draft_key = ANY(%(draft_keys)s::text[])
 ORDER BY draft_key
   FOR UPDATE SKIP LOCKED;

-- name: reopen_drafts
-- Put drafts back to pending with a fresh question about the same revision: after a withdrawal, or (when still
-- pending) because the newer event failed. The old question ends; the caller holds the heads and moves the runs.
-- zero rows: no such draft is open any more
WITH asked AS (
    SELECT draft_id, approval_id, notice
      FROM unnest(%(draft_ids)s::uuid[], %(approval_ids)s::uuid[], %(notices)s::text[]) AS given (draft_id, approval_id, notice)
), reopened AS (
    UPDATE drafts AS d
       SET status = 'pending', approval_id = asked.approval_id, notice = asked.notice, decided_at = NULL,
           known_version = CASE WHEN asked.notice = 'newer_failed' THEN h.source_version ELSE d.known_version END,
           expires_at = CASE WHEN d.status = 'pending' THEN d.expires_at
                        ELSE clock_timestamp() + (s.body ->> 'expires_after_seconds')::double precision * interval '1 second' END,
           asked_at = CASE WHEN d.status = 'pending' THEN d.asked_at ELSE clock_timestamp() END,
           reminded = CASE WHEN d.status = 'pending' THEN d.reminded ELSE 0 END,
           reminder_ts = CASE WHEN d.status = 'pending' THEN d.reminder_ts END,
           version = d.version + 1, updated_at = now()
      FROM asked, policy_snapshots AS s, draft_heads AS h
     WHERE d.draft_id = asked.draft_id AND d.status IN ('pending', 'approved', 'scheduled')
       AND s.snapshot_hash = d.snapshot_hash AND h.draft_key = d.draft_key
    RETURNING d.draft_id, d.kind, d.run_id, d.revision, d.approval_id, asked.notice, (s.body ->> 'quorum')::smallint AS quorum
), ended AS (
    UPDATE approvals AS a
       SET ended_at = now(), end_reason = coalesce(a.end_reason, r.notice)
      FROM reopened AS r
     WHERE a.draft_id = r.draft_id AND a.ended_at IS NULL AND a.approval_id <> r.approval_id
), opened AS (
    INSERT INTO approvals (approval_id, draft_id, revision, run_id, quorum)
    SELECT approval_id, draft_id, revision, run_id, quorum FROM reopened
), wanted AS (
    UPDATE cards AS c
       SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now(),
           place_kind = r.kind
      FROM reopened AS r
     WHERE c.draft_id = r.draft_id
)
SELECT draft_id, run_id FROM reopened;
