-- name: find_runs
-- What is already known of these keys, by a plain read: a duplicate then costs no WAL. A run that is superseded and
-- never moved (version 1) was born so: it was stale when it arrived.
SELECT r.idempotency_key, r.run_id, r.payload_hash, r.state, r.draft_key,
       r.state = 'superseded' AND r.version = 1 AS was_stale,
       CASE WHEN r.draft_id IS NOT NULL THEN
           (SELECT max(v.revision) FROM revisions AS v WHERE v.draft_id = r.draft_id AND v.run_id = r.run_id) END AS revision,
       CASE WHEN r.draft_id IS NOT NULL THEN
           (SELECT a.approver_subject FROM approvals AS a
             WHERE a.draft_id = r.draft_id AND a.run_id = r.run_id AND a.consumed_at IS NOT NULL
             ORDER BY a.consumed_at DESC LIMIT 1) END AS decided_by
  FROM workflow_runs AS r
 WHERE r.idempotency_key = ANY(%(keys)s::text[]);

-- name: insert_runs
-- Store arrivals with the first line of their record, each key and each draft_key at most once a call: the insert
-- decides races for a key, the head decides old against new. Keys first, then heads, each in order, so that two of
-- these never lock crosswise. A key that is not returned is somebody else's; one that is not newest was stale; only
-- where the head was there before can something older be open. A correction of equal version takes the head from the
-- run named in takes_from, if that holds it.
WITH given AS (
    SELECT *
      FROM json_to_recordset(%(arrivals)s::json) AS g (
           run_id uuid, idempotency_key text, source text, kind text, event_key text, entity text, draft_key text,
           source_version bigint, payload_hash text, replaces uuid, takes_from uuid, payload jsonb, draft jsonb,
           record_url text, requested_by text, reason text, n8n_workflow text, n8n_execution text, workflow_version text,
           waiter_id uuid, resume_url text, url_hash text, salt text, detail text)
), born AS (
    INSERT INTO workflow_runs (run_id, idempotency_key, source, kind, event_key, entity, draft_key, source_version,
                               payload_hash, replaces, is_waited, state)
    SELECT run_id, idempotency_key, source, kind, event_key, entity, draft_key, source_version, payload_hash,
           replaces, resume_url IS NOT NULL, 'received'
      FROM given
     ORDER BY idempotency_key
    ON CONFLICT (idempotency_key) DO NOTHING
    RETURNING run_id
), filled AS (
    INSERT INTO run_inputs (run_id, payload, draft, record_url, requested_by, reason, n8n_workflow, n8n_execution,
                            workflow_version)
    SELECT run_id, payload, draft, record_url, requested_by, reason, n8n_workflow, n8n_execution, workflow_version
      FROM given JOIN born USING (run_id)
), seen AS (
    INSERT INTO seen_events (idempotency_key, run_id) SELECT idempotency_key, run_id FROM given JOIN born USING (run_id)
), waiting AS (
    INSERT INTO waiters (waiter_id, run_id, resume_url, url_hash)
    SELECT waiter_id, run_id, resume_url, url_hash FROM given JOIN born USING (run_id) WHERE resume_url IS NOT NULL
), moved AS (
    INSERT INTO draft_heads (draft_key, source_version, run_id)
    SELECT draft_key, source_version, run_id FROM given JOIN born USING (run_id) ORDER BY draft_key
    ON CONFLICT (draft_key) DO UPDATE
       SET source_version = excluded.source_version, run_id = excluded.run_id, moves = draft_heads.moves + 1
     WHERE draft_heads.source_version < excluded.source_version
        OR (draft_heads.source_version = excluded.source_version
            AND draft_heads.run_id = (SELECT takes_from FROM given WHERE given.run_id = excluded.run_id))
    RETURNING run_id, moves
), lines AS (
    SELECT given.idempotency_key AS chain, clock_timestamp() AS at, 'source:' || given.source AS actor,
           CASE WHEN moved.run_id IS NULL THEN 'stale' ELSE 'received' END AS action,
           decode(given.salt, 'hex') AS salt, given.detail,
           sha256(decode(given.salt, 'hex') || convert_to(given.detail, 'UTF8')) AS detail_hash
      FROM given JOIN born USING (run_id) LEFT JOIN moved USING (run_id)
), recorded AS (
    INSERT INTO audit_log (chain, seq, at, actor, action, detail_hash, hash)
    SELECT chain, 1, at, actor, action, detail_hash,
           audit_hash(decode(repeat('00', 32), 'hex'), chain, 1, at, actor, action, detail_hash)
      FROM lines
), detailed AS (
    INSERT INTO audit_details (chain, seq, salt, detail) SELECT chain, 1, salt, detail FROM lines
)
SELECT born.run_id, moved.run_id IS NOT NULL AS is_newest, coalesce(moved.moves, 0) > 0 AS is_later
  FROM born LEFT JOIN moved USING (run_id);

-- name: retire_stale_runs
-- End runs that were not newer than the newest when they arrived: in the transaction of their birth, so that they
-- are born superseded; the version stays 1 and says so.
-- zero rows: nothing, none was stale
UPDATE workflow_runs SET state = 'superseded', finished_at = now(), updated_at = now()
 WHERE run_id = ANY(%(run_ids)s::uuid[]) AND state = 'received' AND version = 1;

-- name: overtake
-- End the older runs of these draft_keys that no draft shows yet, and name the open drafts that are now blocked. The
-- heads are locked by the statement before this one, so nothing older is missed. The states are written so that only
-- the index by draft_key fits: the one over everything due would read all that waits.
-- zero rows: nothing, there was nothing older
WITH ended AS (
    UPDATE workflow_runs AS r
       SET state = 'superseded', lease_owner = NULL, lease_expires_at = NULL, lease_taken_at = NULL,
           version = r.version + 1, finished_at = now(), updated_at = now()
     WHERE r.draft_key = ANY(%(draft_keys)s::text[]) AND r.run_id <> ALL(%(run_ids)s::uuid[])
       AND r.state IN ('received', 'processing', 'failed_retryable', 'awaiting_human', 'approved')
       AND r.state NOT IN ('awaiting_human', 'approved')
    RETURNING r.run_id, r.idempotency_key, r.draft_key
)
SELECT run_id, idempotency_key, draft_key, NULL::uuid AS draft_id, NULL::text AS draft_status FROM ended
UNION ALL
SELECT d.run_id, r.idempotency_key, d.draft_key, d.draft_id, d.status
  FROM drafts AS d
  JOIN workflow_runs AS r ON r.run_id = d.run_id
 WHERE d.draft_key = ANY(%(draft_keys)s::text[]) AND d.status IN ('pending', 'scheduled', 'approved');

-- name: close_overtaken_redrafts
-- A newer event ends the redraft of an older draft.
-- zero rows: nothing, none was open
UPDATE redrafts
   SET closed_at = now(), outcome = 'newer_event', lease_owner = NULL, lease_expires_at = NULL, result = NULL
 WHERE draft_id = ANY(%(draft_ids)s::uuid[]) AND closed_at IS NULL;

-- name: lock_unfinished_effects
-- Hold the effects of these draft_keys still, so that what is read after this cannot start or end meanwhile.
SELECT effect_id FROM effect_outbox
 WHERE draft_key = ANY(%(draft_keys)s::text[]) AND state IN ('pending', 'sending', 'unknown') AND effect_type <> 'resume'
 ORDER BY effect_id
   FOR UPDATE;

-- name: find_open_effects
-- The open effects of these draft_keys, also of drafts that are over since another effect of theirs failed; their heads
-- are locked.
SELECT effect_id, run_id, draft_id, draft_key, state = 'unknown' AS is_unknown, clause IS NOT NULL AND undo_of IS NULL AS is_part
  FROM effect_outbox
 WHERE draft_key = ANY(%(draft_keys)s::text[]) AND state IN ('pending', 'sending', 'unknown')
   AND effect_type <> 'resume';

-- name: cancel_unstarted_effects
-- Cancel the effects of these drafts where not one of the draft's was started; their rows are locked.
-- zero rows: nothing, each draft had an effect that was started
UPDATE effect_outbox AS e
   SET state = 'cancelled', reason = 'newer_version', lease_owner = NULL, lease_expires_at = NULL,
       version = e.version + 1, updated_at = now()
  FROM drafts AS d
  JOIN workflow_runs AS r ON r.run_id = d.run_id
 WHERE d.draft_id = ANY(%(draft_ids)s::uuid[]) AND d.status IN ('approved', 'scheduled') AND r.state = 'approved'
   AND e.idempotency_key = r.idempotency_key AND e.effect_type <> 'resume' AND e.state IN ('pending', 'sending')
   AND NOT EXISTS (
       SELECT FROM effect_outbox AS o
        WHERE o.idempotency_key = r.idempotency_key AND o.effect_type <> 'resume' AND o.state <> 'cancelled'
          AND (o.ambiguous_at IS NOT NULL OR o.state NOT IN ('pending', 'sending')
               OR (o.state = 'sending' AND o.started_at IS NOT NULL)))
RETURNING d.draft_id;

-- name: withdraw_runs
-- Put approved runs back before their reviewers, with the draft, after all their effects were cancelled unstarted.
-- zero rows: the run is not approved any more
UPDATE workflow_runs SET state = 'awaiting_human', version = version + 1, updated_at = now()
 WHERE run_id = ANY(%(run_ids)s::uuid[]) AND state = 'approved'
RETURNING run_id;

-- name: outdate_equals
-- A correction may be of equal version; what then is open of its draft_key answers to that very version, since the run
-- that is corrected failed and gave it back to people. It answers to an older one from now on.
-- zero rows: nothing: no effect of the key is open, or all are older
WITH blocked AS (
    UPDATE drafts
       SET known_version = %(source_version)s::bigint - 1, version = version + 1, updated_at = now()
     WHERE draft_key = %(draft_key)s AND status IN ('pending', 'scheduled', 'approved')
       AND known_version >= %(source_version)s::bigint
)
UPDATE effect_outbox
   SET known_version = %(source_version)s::bigint - 1, updated_at = now()
 WHERE draft_key = %(draft_key)s AND state IN ('pending', 'sending', 'unknown') AND effect_type <> 'resume'
   AND undo_of IS NULL AND known_version >= %(source_version)s::bigint;

-- name: find_replaced
-- The run that a correction replaces, and whether it has an effect whose outcome is open; the head is locked.
SELECT r.run_id, r.entity, r.state,
       EXISTS (SELECT FROM effect_outbox AS e
                WHERE e.idempotency_key = r.idempotency_key AND e.effect_type <> 'resume'
                  AND e.state <> 'cancelled' AND e.state IN ('sending', 'unknown')) AS is_unsettled
  FROM workflow_runs AS r
 WHERE r.idempotency_key = %(key)s;

-- name: add_waiters
-- Note who else waits for these runs' outcomes; an execution that is known already stays as it is. The run is marked
-- whatever its mark says: whoever tells its outcome at this moment holds it, has not seen this waiter, and takes the
-- mark off; we wait for that.
-- zero rows: nothing: all of them are known already
WITH added AS (
    INSERT INTO waiters (waiter_id, run_id, resume_url, url_hash)
    SELECT waiter_id, run_id, resume_url, url_hash
      FROM unnest(%(waiter_ids)s::uuid[], %(run_ids)s::uuid[], %(resume_urls)s::text[], %(url_hashes)s::text[])
           AS given (waiter_id, run_id, resume_url, url_hash)
     ORDER BY run_id, url_hash
    ON CONFLICT (run_id, url_hash) DO NOTHING
    RETURNING run_id
), held AS (
    SELECT r.run_id FROM workflow_runs AS r
     WHERE r.run_id IN (SELECT run_id FROM added)
     ORDER BY r.run_id
       FOR UPDATE
)
UPDATE workflow_runs AS r SET is_waited = true FROM held WHERE r.run_id = held.run_id;

-- name: lock_run_of_key
-- Hold the run of one key, which serialises its chain of the record.
SELECT run_id FROM workflow_runs WHERE idempotency_key = %(key)s FOR UPDATE;

-- name: add_event_counts
-- Add what was answered since the last flush to today's counters.
INSERT INTO event_counters (day, source, kind, status, n)
SELECT (now() AT TIME ZONE 'UTC')::date, source, kind, status, n
  FROM unnest(%(sources)s::text[], %(kinds)s::text[], %(statuses)s::text[], %(numbers)s::bigint[])
       AS given (source, kind, status, n)
 ORDER BY kind, source, status
ON CONFLICT (day, kind, source, status) DO UPDATE SET n = event_counters.n + excluded.n;

-- name: add_repeats
-- Add to each key how often it came again since the last flush.
-- zero rows: nothing, no such key is kept
WITH given AS (
    SELECT *
      FROM unnest(%(keys)s::text[], %(duplicates)s::integer[], %(stales)s::integer[], %(conflicts)s::integer[])
           AS g (idempotency_key, duplicates, stales, conflicts)
), held AS (
    SELECT s.idempotency_key FROM seen_events AS s
     WHERE s.idempotency_key = ANY(%(keys)s::text[])
     ORDER BY s.idempotency_key
       FOR UPDATE
)
UPDATE seen_events AS s
   SET duplicates = s.duplicates + given.duplicates, stales = s.stales + given.stales,
       conflicts = s.conflicts + given.conflicts, last_seen_at = now()
  FROM given JOIN held USING (idempotency_key)
 WHERE s.idempotency_key = given.idempotency_key;
