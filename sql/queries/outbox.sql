-- name: claim_effects
-- Take due effects for an owner that is about to send them, at most so many a lane. Lanes are walked by their index,
-- so a lane's long queue costs the others nothing; which lanes come first when not all fit is left to chance. Lanes
-- that are held to limits or whose target rests are passed by: of those the caller names what it chose under locks.
-- Effects that were approved together go side by side, but for what one of them waits for. Those of kinds that the
-- claimer's policy lacks are left to others for a while: hosts and variables come and go with kinds. The commit is not
-- waited for: a claim that a crash loses was not started, and the start's own commit makes both durable.
-- zero rows: nothing is due, or the kill switch is closed
WITH RECURSIVE gate AS MATERIALIZED (
    SELECT scope, set_config('synchronous_commit', 'off', true)
      FROM kill_switch WHERE scope = 'all' AND open AND %(enabled)s::boolean
), lanes AS (
    (SELECT e.lane, e.kind, e.effect_type FROM effect_outbox AS e
      WHERE e.state = 'pending' AND EXISTS (SELECT FROM gate)
      ORDER BY e.lane LIMIT 1)
    UNION ALL
    SELECT beyond.lane, beyond.kind, beyond.effect_type
      FROM lanes
     CROSS JOIN LATERAL (
           SELECT e.lane, e.kind, e.effect_type FROM effect_outbox AS e
            WHERE e.state = 'pending' AND e.lane > lanes.lane
            ORDER BY e.lane LIMIT 1) AS beyond
), room AS MATERIALIZED (
    SELECT lanes.lane, coalesce(known.slots, %(slots)s::integer) AS slots,
           CASE WHEN %(kinds)s::text[] IS NULL OR lanes.kind = ANY(%(kinds)s::text[]) THEN now()
                ELSE now() - interval '1 second' * %(kind_gone_seconds)s::double precision END AS due_by
      FROM lanes
      LEFT JOIN unnest(%(lanes)s::bigint[], %(lane_slots)s::integer[]) AS known (lane, slots) ON known.lane = lanes.lane
     WHERE lanes.effect_type = ANY(%(effect_types)s::text[])
       AND NOT EXISTS (SELECT FROM kill_switch AS k
                        WHERE NOT k.open AND k.scope IN ('kind:' || lanes.kind, 'effect:' || lanes.effect_type))
       AND NOT EXISTS (SELECT FROM targets AS t WHERE t.lane = lanes.lane AND t.opened_at IS NOT NULL)
       AND (lanes.effect_type = 'resume' OR NOT EXISTS (
            SELECT FROM kind_limits AS l WHERE l.kind = lanes.kind AND l.is_guarded))
     ORDER BY random()
), taken AS MATERIALIZED (
    SELECT due.effect_id
      FROM room
     CROSS JOIN LATERAL (
           SELECT e.effect_id FROM effect_outbox AS e
            WHERE e.state = 'pending' AND e.lane = room.lane AND e.next_attempt_at <= room.due_by
              AND (e.not_before IS NULL OR e.not_before <= now())
              AND (e.fresh_until IS NULL OR e.fresh_until > now() OR e.ambiguous_at IS NOT NULL)
              AND (e.after_id IS NULL OR (
                   SELECT o.state FROM effect_outbox AS o WHERE o.effect_id = e.after_id) = 'completed')
              AND (e.effect_type = 'resume' OR NOT EXISTS (
                   SELECT FROM effect_outbox AS older
                    WHERE older.draft_key = e.draft_key AND older.state IN ('pending', 'sending', 'unknown')
                      AND older.seq < e.seq AND older.effect_type <> 'resume'
                      AND (older.run_id <> e.run_id OR older.clause IS NULL OR e.clause IS NULL)))
            ORDER BY e.next_attempt_at LIMIT room.slots
              FOR UPDATE SKIP LOCKED) AS due
     LIMIT %(most)s::integer
), chosen AS MATERIALIZED (
    SELECT e.effect_id FROM effect_outbox AS e
     WHERE e.effect_id = ANY(%(chosen)s::uuid[]) AND e.state IS NOT DISTINCT FROM 'pending' AND EXISTS (SELECT FROM gate)
       FOR UPDATE SKIP LOCKED
), held AS (
    UPDATE effect_outbox AS e
       SET state = 'sending', lease_owner = %(owner)s, started_at = NULL, version = e.version + 1, updated_at = now(),
           lease_expires_at = clock_timestamp() + interval '1 second' * (%(extra_seconds)s::integer + coalesce((
               SELECT (s.effects #>> array_append(coalesce(e.clause, '{0}'), 'timeout_seconds'))::integer
                 FROM effect_payloads AS p
                 JOIN policy_snapshots AS s ON s.snapshot_hash = p.snapshot_hash
                WHERE p.effect_id = e.effect_id), %(timeout_seconds)s::integer))
     WHERE e.effect_id = ANY(ARRAY(SELECT effect_id FROM taken UNION ALL SELECT effect_id FROM chosen))
       AND e.state IS NOT DISTINCT FROM 'pending'
    RETURNING e.effect_id, e.version, e.idempotency_key, e.run_id, e.draft_id, e.draft_key, e.kind, e.effect_type,
              e.target, e.lane, e.known_version, e.attempts, e.ambiguous_at IS NOT NULL AS is_ambiguous, e.clause,
              e.created_at
)
SELECT held.*, content.*
  FROM held
 CROSS JOIN LATERAL (
       SELECT p.snapshot_hash, p.revision, p.recipient, p.body, coalesce(d.entity, '') AS entity,
              CASE WHEN held.effect_type = 'resume' THEN (
                  SELECT w.resume_url FROM waiters AS w WHERE w.waiter_id = held.effect_id) END AS address
         FROM effect_payloads AS p
         LEFT JOIN drafts AS d ON d.draft_id = held.draft_id
        WHERE p.effect_id = held.effect_id
       OFFSET 0) AS content;

-- name: start_effects
-- Mark the effects whose calls are made right after this commits. The row of scope all is held FOR SHARE, so that a
-- kill waits for us or we for it; rows that somebody else is changing are passed over, never waited for. The lease
-- must outlive the call. (IS NOT DISTINCT FROM: rows named by id are found by id, never through a queue's index.)
-- zero rows: the switch is closed, the lease ran out, a newer version is known or it is not fresh any more: no call
WITH gate AS MATERIALIZED (
    SELECT scope FROM kill_switch WHERE scope = 'all' AND open AND %(enabled)s::boolean FOR SHARE
), mine AS MATERIALIZED (
    SELECT effect_id, version, timeout_seconds
      FROM json_to_recordset(%(effects)s::json) AS g (effect_id uuid, version integer, timeout_seconds integer)
), free AS MATERIALIZED (
    SELECT e.effect_id FROM effect_outbox AS e
     WHERE e.effect_id = ANY(ARRAY(SELECT effect_id FROM mine)) AND EXISTS (SELECT FROM gate)
       FOR UPDATE SKIP LOCKED
)
UPDATE effect_outbox AS e
   SET started_at = clock_timestamp(), attempts = e.attempts + 1, held_since = NULL, version = e.version + 1, updated_at = now()
  FROM mine
 WHERE e.effect_id = mine.effect_id AND e.version = mine.version
   AND e.effect_id = ANY(ARRAY(SELECT effect_id FROM free))
   AND e.state IS NOT DISTINCT FROM 'sending' AND e.started_at IS NULL AND e.lease_owner = %(owner)s
   AND e.lease_expires_at > clock_timestamp() + interval '1 second' * mine.timeout_seconds
   AND (e.fresh_until IS NULL OR e.fresh_until > clock_timestamp())
   AND (e.effect_type = 'resume' OR EXISTS (
        SELECT FROM draft_heads AS h WHERE h.draft_key = e.draft_key AND h.source_version <= e.known_version))
   AND NOT EXISTS (SELECT FROM kill_switch AS k
                    WHERE NOT k.open AND k.scope IN ('kind:' || e.kind, 'effect:' || e.effect_type))
RETURNING e.effect_id, e.version, e.attempts;

-- name: release_effects
-- Give back what was claimed and never started: nothing left us, so it counts for nothing.
-- zero rows: nothing: cancelled meanwhile, or given back by the recovery of leases
UPDATE effect_outbox AS e
   SET state = 'pending', lease_owner = NULL, lease_expires_at = NULL, version = e.version + 1, updated_at = now(),
       next_attempt_at = clock_timestamp() + interval '1 second' * %(wait_seconds)s::double precision
  FROM json_to_recordset(%(effects)s::json) AS mine (effect_id uuid, version integer)
 WHERE e.effect_id = mine.effect_id AND e.version = mine.version
   AND e.state IS NOT DISTINCT FROM 'sending' AND e.started_at IS NULL AND e.lease_owner = %(owner)s
RETURNING e.effect_id;

-- name: find_outdated_effects
-- Which of these not started effects a newer version or the clock has overtaken.
SELECT e.effect_id
  FROM effect_outbox AS e
 WHERE e.effect_id = ANY(%(effect_ids)s::uuid[]) AND e.effect_type <> 'resume'
   AND e.state IN ('pending', 'sending') AND e.started_at IS NULL
   AND (e.fresh_until <= clock_timestamp() OR NOT EXISTS (
        SELECT FROM draft_heads AS h WHERE h.draft_key = e.draft_key AND h.source_version <= e.known_version));

-- name: record_outcomes
-- Write what became of effects that we hold, each under the version we know. A try may not count.
-- zero rows: nothing: the leases were lost or ran out, reconciliation owns the outcomes now
UPDATE effect_outbox AS e
   SET state = o.state, reason = o.reason, lease_owner = NULL, lease_expires_at = NULL,
       attempts = CASE WHEN o.uncounted THEN e.attempts - 1 ELSE e.attempts END,
       provider_id = coalesce(o.provider_id, e.provider_id),
       started_at = CASE WHEN o.state <> 'pending' THEN e.started_at END,
       ambiguous_at = CASE WHEN o.is_ambiguous THEN coalesce(e.ambiguous_at, clock_timestamp()) ELSE e.ambiguous_at END,
       next_attempt_at = clock_timestamp() + interval '1 second' * o.wait_seconds,
       version = e.version + 1, updated_at = now()
  FROM json_to_recordset(%(effects)s::json) AS o (
       effect_id uuid, version integer, state text, reason text, provider_id text, wait_seconds double precision,
       is_ambiguous boolean, uncounted boolean)
 WHERE e.effect_id = o.effect_id AND e.version = o.version
   AND e.state IS NOT DISTINCT FROM 'sending' AND e.lease_owner = %(owner)s AND e.lease_expires_at > clock_timestamp()
RETURNING e.effect_id, e.version;

-- name: find_expired_leases
-- Effects whose owner is gone or late, oldest first.
SELECT effect_id, version, idempotency_key, run_id, draft_id, draft_key, effect_type, known_version, attempts, clause
  FROM effect_outbox
 WHERE state = 'sending' AND lease_expires_at <= now()
 ORDER BY lease_expires_at LIMIT %(most)s;

-- name: recover_effects
-- Take effects from owners whose lease ran out: what was not started goes back, what was started is unknown; evidence
-- that is there already is looked at without waiting.
-- zero rows: nothing: their owners were only late
UPDATE effect_outbox AS e
   SET state = CASE WHEN e.started_at IS NULL THEN 'pending' ELSE 'unknown' END,
       lease_owner = NULL, lease_expires_at = NULL,
       ambiguous_at = CASE WHEN e.started_at IS NULL THEN e.ambiguous_at
                      ELSE coalesce(e.ambiguous_at, clock_timestamp()) END,
       reason = CASE WHEN e.started_at IS NOT NULL THEN 'lease_expired' END,
       next_attempt_at = CASE
           WHEN e.started_at IS NULL OR EXISTS (
               SELECT FROM effect_evidence AS v WHERE v.effect_id = e.effect_id AND v.answer = 'sent')
           THEN clock_timestamp()
           ELSE clock_timestamp() + interval '1 second' * coalesce((
               SELECT (s.effects #>> array_append(coalesce(e.clause, '{0}'), 'settle_seconds'))::integer
                 FROM effect_payloads AS p
                 JOIN policy_snapshots AS s ON s.snapshot_hash = p.snapshot_hash
                WHERE p.effect_id = e.effect_id), %(settle_seconds)s::integer) END,
       version = e.version + 1, updated_at = now()
  FROM json_to_recordset(%(effects)s::json) AS late (effect_id uuid, version integer)
 WHERE e.effect_id = late.effect_id AND e.version = late.version
   AND e.state IS NOT DISTINCT FROM 'sending' AND e.lease_expires_at <= clock_timestamp()
RETURNING e.effect_id, e.state, e.version;

-- name: find_stale_effects
-- Approvals that outlived themselves while their effects waited; an ambiguous effect is not taken back, it may be out,
-- and while it or another of its run is, the rest waits for what becomes of that.
SELECT effect_id, version, idempotency_key, run_id, draft_id, draft_key, effect_type, known_version, attempts, clause
  FROM effect_outbox AS e
 WHERE state = 'pending' AND fresh_until <= now() AND ambiguous_at IS NULL AND effect_type <> 'resume'
   AND (clause IS NULL OR NOT EXISTS (
        SELECT FROM effect_outbox AS o
         WHERE o.draft_key = e.draft_key AND o.state IN ('pending', 'sending', 'unknown') AND o.run_id = e.run_id
           AND o.effect_type <> 'resume' AND (o.started_at IS NOT NULL OR o.ambiguous_at IS NOT NULL)))
 ORDER BY fresh_until LIMIT %(most)s;

-- name: withdraw_effects
-- Cancel outdated effects that were not started, each with all the others of its run, so that its draft can go back to
-- its reviewers; not one of these may have started, and nothing else of the run: then none is touched. The heads and
-- rows are locked.
-- zero rows: nothing: started, cancelled or up to date again
UPDATE effect_outbox AS e
   SET state = 'cancelled', lease_owner = NULL, lease_expires_at = NULL, version = e.version + 1, updated_at = now(),
       reason = CASE WHEN h.source_version > late.known_version THEN 'newer_version' ELSE 'stale' END
  FROM effect_outbox AS late
  JOIN draft_heads AS h ON h.draft_key = late.draft_key
 WHERE late.effect_id = ANY(%(effect_ids)s::uuid[]) AND late.state IN ('pending', 'sending')
   AND late.started_at IS NULL AND late.ambiguous_at IS NULL
   AND (late.fresh_until <= clock_timestamp() OR h.source_version > late.known_version)
   AND (late.clause IS NULL OR late.undo_of IS NOT NULL OR NOT EXISTS (
        SELECT FROM effect_outbox AS o
         WHERE o.idempotency_key = late.idempotency_key AND o.state <> 'cancelled' AND o.effect_type <> 'resume'
           AND (o.state NOT IN ('pending', 'sending') OR o.started_at IS NOT NULL OR o.ambiguous_at IS NOT NULL)))
   AND (e.effect_id = late.effect_id OR late.clause IS NOT NULL AND late.undo_of IS NULL)
   AND e.idempotency_key = late.idempotency_key AND e.state <> 'cancelled' AND e.effect_type <> 'resume'
   AND e.state IN ('pending', 'sending') AND e.started_at IS NULL AND e.ambiguous_at IS NULL
RETURNING e.effect_id, e.reason, e.draft_id, e.run_id, e.idempotency_key, e.undo_of;

-- name: withdraw_siblings
-- Cancel the others of an effect that was just cancelled before it started, if not one of them has left. Heads and rows
-- are locked.
-- zero rows: one of them has left, or there are no others
UPDATE effect_outbox AS e
   SET state = 'cancelled', lease_owner = NULL, lease_expires_at = NULL, version = e.version + 1, updated_at = now(),
       reason = gone.reason
  FROM effect_outbox AS gone
 WHERE gone.effect_id = %(effect_id)s AND e.idempotency_key = gone.idempotency_key AND e.state <> 'cancelled'
   AND e.clause IS NOT NULL AND e.undo_of IS NULL
   AND NOT EXISTS (
       SELECT FROM effect_outbox AS o
        WHERE o.idempotency_key = gone.idempotency_key AND o.state <> 'cancelled' AND o.effect_type <> 'resume'
          AND (o.state NOT IN ('pending', 'sending') OR o.started_at IS NOT NULL OR o.ambiguous_at IS NOT NULL))
RETURNING e.effect_id, e.reason, e.draft_id, e.run_id, e.idempotency_key, e.undo_of;

-- name: read_effect_policies
-- The small part of frozen policies that sending reads.
SELECT snapshot_hash, effects FROM policy_snapshots WHERE snapshot_hash = ANY(%(snapshot_hashes)s::text[]);
