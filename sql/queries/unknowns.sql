-- name: add_evidence
-- Keep an answer that came after its lease was lost. A confirmation has an effect that is unknown by now looked at at
-- once, and so one that was to be sent again and whose next try has not started. Its version moves, so that a start, a
-- person's choice and a look-up that knew nothing of this come too late. Gives those that were given up or dropped as
-- never sent, and did arrive.
-- zero rows: nothing is told: the effect is not over
WITH kept AS (
    INSERT INTO effect_evidence (evidence_id, effect_id, attempt, answer, provider_id)
    SELECT evidence_id, effect_id, attempt, answer, provider_id
      FROM unnest(%(evidence_ids)s::uuid[], %(effect_ids)s::uuid[], %(attempts)s::smallint[], %(answers)s::text[],
                  %(provider_ids)s::text[]) AS late (evidence_id, effect_id, attempt, answer, provider_id)
    RETURNING effect_id, answer
), woken AS (
    UPDATE effect_outbox AS e
       SET state = 'unknown', lease_owner = NULL, lease_expires_at = NULL, next_attempt_at = clock_timestamp(),
           reason = CASE e.state WHEN 'unknown' THEN e.reason ELSE 'evidence' END,
           version = e.version + 1, updated_at = CASE e.state WHEN 'unknown' THEN e.updated_at ELSE now() END
      FROM kept
     WHERE e.effect_id = kept.effect_id AND kept.answer = 'sent' AND e.ambiguous_at IS NOT NULL
       AND (e.state IN ('unknown', 'pending') OR e.state = 'sending' AND e.started_at IS NULL)
)
SELECT e.effect_id, e.idempotency_key
  FROM kept JOIN effect_outbox AS e ON e.effect_id = kept.effect_id
 WHERE kept.answer = 'sent' AND e.state IN ('failed', 'cancelled');

-- name: take_unknowns
-- Take unknown effects whose settle window is over to ask about them; until then nobody else asks. No version moves.
-- zero rows: nothing is to be asked now
WITH asked AS (
    UPDATE effect_outbox AS e
       SET next_attempt_at = clock_timestamp() + interval '1 second' * %(hold_seconds)s::integer
     WHERE e.effect_id = ANY(ARRAY(
           SELECT u.effect_id FROM effect_outbox AS u
            WHERE u.state = 'unknown' AND u.next_attempt_at <= now() AND u.effect_type = ANY(%(effect_types)s::text[])
            ORDER BY u.next_attempt_at LIMIT %(most)s FOR UPDATE SKIP LOCKED)) AND e.state = 'unknown'
    RETURNING e.effect_id, e.version, e.idempotency_key, e.run_id, e.draft_id, e.draft_key, e.kind, e.effect_type,
              e.target, e.lane, e.known_version, e.attempts, e.ambiguous_at IS NOT NULL AS is_ambiguous, e.clause,
              e.created_at
)
SELECT asked.*, p.snapshot_hash, p.revision, p.recipient, p.body, coalesce(d.entity, '') AS entity,
       coalesce(l.asked, 0) AS times_asked, v.evidence_id IS NOT NULL AS has_evidence,
       v.provider_id AS evidence_provider_id
  FROM asked
  JOIN effect_payloads AS p ON p.effect_id = asked.effect_id
  LEFT JOIN drafts AS d ON d.draft_id = asked.draft_id
  LEFT JOIN effect_look_ups AS l ON l.effect_id = asked.effect_id
  LEFT JOIN LATERAL (
       SELECT evidence_id, provider_id FROM effect_evidence
        WHERE effect_evidence.effect_id = asked.effect_id AND answer = 'sent'
        ORDER BY seen_at LIMIT 1) AS v ON true;

-- name: note_look_up
-- Write down what the provider said and when it is asked again; the version stays, the buttons stay good.
-- zero rows: nothing: the effect was settled meanwhile
WITH later AS (
    UPDATE effect_outbox AS e
       SET next_attempt_at = clock_timestamp() + interval '1 second' * %(wait_seconds)s::double precision
     WHERE e.effect_id = %(effect_id)s AND e.state = 'unknown' AND e.version = %(version)s
    RETURNING e.effect_id
)
INSERT INTO effect_look_ups (effect_id, asked, last_answer, last_at)
SELECT effect_id, 1, %(answer)s, clock_timestamp() FROM later
ON CONFLICT (effect_id) DO UPDATE
   SET asked = least(effect_look_ups.asked + 1, 32000), last_answer = excluded.last_answer, last_at = excluded.last_at;

-- name: find_unknown
-- One effect as it stands, for whoever is about to settle it by hand.
SELECT effect_id, version, idempotency_key, run_id, draft_id, draft_key, effect_type, known_version, attempts, clause
  FROM effect_outbox WHERE effect_id = %(effect_id)s;

-- name: find_unknown_card
-- Where the card of one effect stands; without a ts its post's answer is not recorded yet.
SELECT channel, ts FROM cards WHERE effect_id = %(effect_id)s;

-- name: resolve_unknown
-- Settle an unknown effect: found at the provider, or as a person says. Sent again, it is fresh anew and its tries
-- count from nothing; ambiguous it stays. With a confirmation on file there is nothing to send again. The head is locked.
-- zero rows: it was settled already, or has changed since the card was drawn, or is confirmed
UPDATE effect_outbox AS e
   SET state = %(state)s, reason = %(reason)s, provider_id = coalesce(%(provider_id)s::text, e.provider_id),
       attempts = CASE %(state)s::text WHEN 'pending' THEN 0 ELSE e.attempts END,
       started_at = CASE %(state)s::text WHEN 'pending' THEN NULL ELSE e.started_at END,
       next_attempt_at = clock_timestamp(),
       fresh_until = CASE WHEN %(state)s::text = 'pending' AND e.fresh_until IS NOT NULL THEN
           clock_timestamp() + interval '1 second' * coalesce((
               SELECT (s.body ->> 'fresh_for_seconds')::double precision
                 FROM effect_payloads AS p
                 JOIN policy_snapshots AS s ON s.snapshot_hash = p.snapshot_hash
                WHERE p.effect_id = e.effect_id), 0)
           ELSE e.fresh_until END,
       version = e.version + 1, updated_at = now()
 WHERE e.effect_id = %(effect_id)s AND e.state = 'unknown' AND e.version = %(version)s
   AND (%(state)s::text <> 'pending' OR NOT EXISTS (
        SELECT FROM effect_evidence AS v WHERE v.effect_id = e.effect_id AND v.answer = 'sent'))
RETURNING e.effect_id, e.version;

-- name: list_rising_unknowns
-- Effects that have been unknown for longer than people were told of: the newest step due of each, none that was told.
-- The first step is the end of the settle window; an effect's version stays while it is unknown.
SELECT DISTINCT ON (e.effect_id) e.effect_id, e.version, e.idempotency_key, e.ambiguous_at, step.number
  FROM effect_outbox AS e
  JOIN effect_payloads AS p ON p.effect_id = e.effect_id
  LEFT JOIN policy_snapshots AS s ON s.snapshot_hash = p.snapshot_hash
 CROSS JOIN LATERAL (
       SELECT number, coalesce(seconds, (s.effects #>> array_append(coalesce(e.clause, '{0}'), 'settle_seconds'))::integer,
                               %(settle_seconds)s::integer) AS seconds
         FROM unnest(%(steps)s::integer[]) WITH ORDINALITY AS given (seconds, number)) AS step
 WHERE e.state = 'unknown' AND e.updated_at <= now() - step.seconds * interval '1 second'
   AND NOT EXISTS (
       SELECT FROM alerts AS a
        WHERE a.alert_key = ANY(ARRAY(
              SELECT 'unknown:' || e.effect_id || ':' || e.version || ':' || later
                FROM generate_series(step.number, cardinality(%(steps)s::integer[])) AS later)))
 ORDER BY e.effect_id, step.number DESC LIMIT %(most)s;

-- name: find_unknown_thread
-- Where the card of an unknown effect stands, and whether it still waits in this version.
SELECT e.state = 'unknown' AND e.version = %(version)s AS is_open, c.channel, c.ts
  FROM effect_outbox AS e LEFT JOIN cards AS c ON c.effect_id = e.effect_id
 WHERE e.effect_id = %(effect_id)s;
