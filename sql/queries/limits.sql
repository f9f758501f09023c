-- name: write_limits
-- Put down the limits of the policy file; a row that says the same stays untouched. With new limits nothing is full
-- until the next claim says so.
INSERT INTO kind_limits (kind, concurrency, per_second, per_minute, cap_hour, cap_day, value_path, cap_value_day,
                         breaker_after, breaker_rest_seconds, breaker_rest_most_seconds)
SELECT kind, concurrency, per_second, per_minute, cap_hour, cap_day, value_path, cap_value_day,
       breaker_after, breaker_rest_seconds, breaker_rest_most_seconds
  FROM json_to_recordset(%(limits)s::json) AS given (
       kind text, concurrency integer, per_second integer, per_minute integer, cap_hour integer, cap_day integer,
       value_path text[], cap_value_day numeric, breaker_after integer, breaker_rest_seconds integer,
       breaker_rest_most_seconds integer)
 ORDER BY kind
ON CONFLICT (kind) DO UPDATE
   SET concurrency = excluded.concurrency, per_second = excluded.per_second, per_minute = excluded.per_minute,
       cap_hour = excluded.cap_hour, cap_day = excluded.cap_day, value_path = excluded.value_path,
       cap_value_day = excluded.cap_value_day, breaker_after = excluded.breaker_after,
       breaker_rest_seconds = excluded.breaker_rest_seconds,
       breaker_rest_most_seconds = excluded.breaker_rest_most_seconds, full_until = NULL, full_why = NULL,
       is_told = kind_limits.is_told AND kind_limits.full_until IS NULL
 WHERE (kind_limits.concurrency, kind_limits.per_second, kind_limits.per_minute, kind_limits.cap_hour,
        kind_limits.cap_day, kind_limits.value_path, kind_limits.cap_value_day, kind_limits.breaker_after,
        kind_limits.breaker_rest_seconds, kind_limits.breaker_rest_most_seconds)
       IS DISTINCT FROM
       (excluded.concurrency, excluded.per_second, excluded.per_minute, excluded.cap_hour,
        excluded.cap_day, excluded.value_path, excluded.cap_value_day, excluded.breaker_after,
        excluded.breaker_rest_seconds, excluded.breaker_rest_most_seconds);

-- name: drop_limits
-- Forget the limits of kinds that have none any more. Kinds that are gone from the file keep theirs.
-- zero rows: nothing: they had none
DELETE FROM kind_limits WHERE kind = ANY(%(kinds)s::text[]);

-- name: find_guarded_lanes
-- Lanes with waiting effects of limited kinds, and lanes whose target has rested: claims pass them by, they are claimed
-- under locks. Walked by their index as in a claim, and not at all while nothing is limited or has rested.
WITH RECURSIVE gate AS MATERIALIZED (
    SELECT scope FROM kill_switch
     WHERE scope = 'all' AND open AND %(enabled)s::boolean
       AND (EXISTS (SELECT FROM kind_limits WHERE is_guarded)
            OR EXISTS (SELECT FROM targets WHERE opened_at IS NOT NULL AND rests_until <= now()))
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
)
SELECT lanes.lane, lanes.kind, t.lane IS NOT NULL AS is_trial, l.kind IS NOT NULL AS is_limited
  FROM lanes
  LEFT JOIN kind_limits AS l ON l.kind = lanes.kind AND l.is_guarded AND lanes.effect_type <> 'resume'
  LEFT JOIN targets AS t ON t.lane = lanes.lane AND t.opened_at IS NOT NULL
 WHERE lanes.effect_type = ANY(%(effect_types)s::text[])
   AND CASE WHEN t.lane IS NULL THEN l.kind IS NOT NULL ELSE t.rests_until <= now() END
   AND NOT EXISTS (SELECT FROM kill_switch AS k
                    WHERE NOT k.open AND k.scope IN ('kind:' || lanes.kind, 'effect:' || lanes.effect_type));

-- name: lock_limits
-- Hold the limits of kinds: whoever holds them counts and claims alone. Who finds them held leaves those kinds to the
-- holder.
SELECT kind, concurrency, per_second, per_minute, cap_hour, cap_day, cap_value_day, full_until, full_why
  FROM kind_limits
 WHERE kind = ANY(%(kinds)s::text[]) AND is_guarded
 ORDER BY kind
   FOR UPDATE SKIP LOCKED;

-- name: lock_trials
-- Hold targets that have rested: whoever holds one makes the trial.
SELECT lane FROM targets
 WHERE lane = ANY(%(lanes)s::bigint[]) AND opened_at IS NOT NULL AND rests_until <= clock_timestamp()
 ORDER BY lane
   FOR UPDATE SKIP LOCKED;

-- name: measure_kinds
-- What of the caps of these kinds is used in this hour and day (UTC): a share counts once an effect, while it is on its
-- way, has arrived, or may have. What is proven not to have left has given its share back; what takes something back
-- needs none. The value is the draft's: it counts once, however many effects the draft has.
SELECT l.kind, used.hour::int AS used_hour, used.day::int AS used_day, used.value AS used_value,
       extract(epoch FROM windows.day + interval '1 day' - clock_timestamp())::double precision AS day_seconds,
       extract(epoch FROM windows.hour + interval '1 hour' - clock_timestamp())::double precision AS hour_seconds
  FROM (SELECT date_trunc('day', now(), 'UTC') AS day,
               date_trunc('hour', now(), 'UTC') AS hour) AS windows
 CROSS JOIN kind_limits AS l
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(one.hour), 0) AS hour, coalesce(sum(one.day), 0) AS day, coalesce(sum(one.value), 0) AS value
         FROM (SELECT count(*) FILTER (WHERE last.taken_at >= windows.hour) AS hour, count(*) AS day,
                      max(last.value) AS value
                 FROM (SELECT DISTINCT ON (d.effect_id) d.effect_id, d.taken_at, d.value
                         FROM departures AS d
                        WHERE d.kind = l.kind AND d.taken_at >= windows.day
                        ORDER BY d.effect_id, d.taken_at DESC) AS last
                CROSS JOIN LATERAL (
                      SELECT e.idempotency_key, e.state, e.ambiguous_at, e.undo_of FROM effect_outbox AS e
                       WHERE e.effect_id = last.effect_id OFFSET 0) AS e
                WHERE e.undo_of IS NULL
                  AND (e.state IN ('sending', 'completed', 'unknown') OR e.ambiguous_at IS NOT NULL)
                GROUP BY e.idempotency_key) AS one) AS used
 WHERE l.kind = ANY(%(kinds)s::text[])
 ORDER BY l.kind;

-- name: measure_sends
-- How many sends of each lane are under way, how many were taken in the last second and minute, and in how many seconds
-- the first of those counts no more. (now() is what the planner can reckon with; it lies before the lock.)
SELECT asked.lane, under_way.n AS in_flight, recent.second, recent.minute,
       coalesce(recent.second_in, 1)::double precision AS second_in,
       coalesce(recent.minute_in, 60)::double precision AS minute_in
  FROM unnest(%(lanes)s::bigint[]) AS asked (lane)
 CROSS JOIN LATERAL (
       SELECT count(*) AS n FROM effect_outbox AS e WHERE e.state = 'sending' AND e.lane = asked.lane) AS under_way
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE d.taken_at > clock_timestamp() - interval '1 second') AS second, count(*) AS minute,
              1 - extract(epoch FROM clock_timestamp() - min(d.taken_at)
                  FILTER (WHERE d.taken_at > clock_timestamp() - interval '1 second')) AS second_in,
              60 - extract(epoch FROM clock_timestamp() - min(d.taken_at)) AS minute_in
         FROM departures AS d
        WHERE d.lane = asked.lane AND d.taken_at > now() - interval '1 minute') AS recent;

-- name: pick_effects
-- Due effects of lanes that are held, at most so many a lane in the order of their queue, as a claim would take them,
-- those of kinds that the claimer's policy lacks later than others, with what the approved revision says that they are
-- worth, and whether another effect of the same draft has taken that from the cap already; and those that may have left
-- before and wait to be sent again, wherever in the queue they stand.
WITH room AS MATERIALIZED (
    SELECT lane, slots, CASE WHEN is_ours THEN now()
                             ELSE now() - interval '1 second' * %(kind_gone_seconds)s::double precision END AS due_by
      FROM unnest(%(lanes)s::bigint[], %(most)s::integer[], %(ours)s::boolean[]) AS asked (lane, slots, is_ours)
), queued AS MATERIALIZED (
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
            ORDER BY e.next_attempt_at LIMIT room.slots) AS due
), again AS MATERIALIZED (
    SELECT DISTINCT d.effect_id
      FROM departures AS d
     CROSS JOIN LATERAL (
           SELECT e.effect_id FROM effect_outbox AS e
            WHERE e.effect_id = d.effect_id AND e.state IS NOT DISTINCT FROM 'pending' AND e.ambiguous_at IS NOT NULL
              AND e.next_attempt_at <= now() AND e.lane = ANY(%(lanes)s::bigint[]) OFFSET 0) AS e
     WHERE d.kind = ANY(%(kinds)s::text[]) AND d.taken_at >= date_trunc('day', now(), 'UTC')
)
SELECT e.effect_id, e.idempotency_key, e.kind, e.lane,
       CASE WHEN e.undo_of IS NOT NULL THEN 0 WHEN l.value_path IS NOT NULL THEN (
           SELECT CASE WHEN jsonb_typeof(rev.body #> l.value_path[2:]) = 'number'
                       THEN (rev.body #>> l.value_path[2:])::numeric END
             FROM effect_payloads AS p
             JOIN revisions AS rev ON rev.draft_id = e.draft_id AND rev.revision = p.revision
            WHERE p.effect_id = e.effect_id) END AS value,
       l.value_path IS NOT NULL AND EXISTS (
           SELECT FROM effect_outbox AS o
             JOIN departures AS d ON d.effect_id = o.effect_id AND d.taken_at >= date_trunc('day', now(), 'UTC')
            WHERE o.idempotency_key = e.idempotency_key AND o.state <> 'cancelled' AND o.effect_id <> e.effect_id
              AND o.undo_of IS NULL
              AND (o.state IN ('sending', 'completed', 'unknown') OR o.ambiguous_at IS NOT NULL)) AS is_counted,
       e.undo_of IS NOT NULL
           OR coalesce(e.ambiguous_at IS NOT NULL AND last.taken_at >= date_trunc('hour', now(), 'UTC'), false)
           AS holds_hour,
       e.undo_of IS NOT NULL
           OR coalesce(e.ambiguous_at IS NOT NULL AND last.taken_at >= date_trunc('day', now(), 'UTC'), false)
           AS holds_day
  FROM (SELECT effect_id FROM queued UNION SELECT effect_id FROM again) AS found
 CROSS JOIN LATERAL (
       SELECT effect_id, idempotency_key, draft_id, kind, lane, ambiguous_at, undo_of, next_attempt_at
         FROM effect_outbox WHERE effect_id = found.effect_id OFFSET 0) AS e
  LEFT JOIN kind_limits AS l ON l.kind = e.kind
  LEFT JOIN LATERAL (
       SELECT max(d.taken_at) AS taken_at FROM departures AS d WHERE d.effect_id = e.effect_id) AS last ON true
 ORDER BY e.next_attempt_at, e.effect_id;

-- name: note_departures
-- Count what was just claimed; the limits of its kind are held.
INSERT INTO departures (effect_id, kind, lane, value)
SELECT effect_id, kind, lane, value
  FROM unnest(%(effect_ids)s::uuid[], %(kinds)s::text[], %(lanes)s::bigint[], %(values)s::numeric[])
    AS taken (effect_id, kind, lane, value);

-- name: begin_trial
-- Let one effect try a target that has rested; nobody else does before its lease runs out.
-- zero rows: nothing: the target answered meanwhile
UPDATE targets AS t
   SET trial_id = e.effect_id, rests_until = e.lease_expires_at
  FROM effect_outbox AS e
 WHERE e.effect_id = ANY(%(effect_ids)s::uuid[]) AND t.lane = e.lane AND t.opened_at IS NOT NULL;

-- name: set_full
-- Say which cap effects of a kind wait for, and until when; none if nothing waits. A later window is news.
-- zero rows: nothing: it was said already
UPDATE kind_limits
   SET full_why = %(why)s::text, is_told = false,
       full_until = CASE %(why)s::text
           WHEN 'cap_hour' THEN date_trunc('hour', clock_timestamp(), 'UTC') + interval '1 hour'
           WHEN 'cap_day' THEN date_trunc('day', clock_timestamp(), 'UTC') + interval '1 day'
           WHEN 'cap_value_day' THEN date_trunc('day', clock_timestamp(), 'UTC') + interval '1 day' END
 WHERE kind = %(kind)s
   AND (full_why IS DISTINCT FROM %(why)s::text OR full_until <= clock_timestamp());

-- name: hold_effects
-- Put effects off that fit into no window, and say why; what was tried before keeps its own reason.
-- zero rows: nothing: they moved meanwhile
UPDATE effect_outbox AS e
   SET reason = held.reason, next_attempt_at = clock_timestamp() + interval '1 second' * %(wait_seconds)s::integer,
       updated_at = now()
  FROM json_to_recordset(%(held)s::json) AS held (effect_id uuid, reason text)
 WHERE e.effect_id = held.effect_id AND e.state = 'pending'
RETURNING e.effect_id, e.idempotency_key, e.draft_id, e.kind, e.reason;

-- name: forget_departures
-- What no window counts any more.
-- zero rows: nothing: nothing is that old
DELETE FROM departures
 WHERE taken_at < now() - interval '25 hours' AND effect_id = ANY(ARRAY(
       SELECT old.effect_id
         FROM (SELECT kind FROM kind_limits WHERE is_guarded) AS l
        CROSS JOIN LATERAL (
              SELECT effect_id FROM departures
               WHERE kind = l.kind AND taken_at < now() - interval '25 hours'
               ORDER BY taken_at LIMIT %(most)s::integer) AS old));

-- name: take_untold_kinds
-- Kinds whose cap began or ended to hold back effects, and nobody was told.
-- zero rows: nothing: all is told
UPDATE kind_limits SET is_told = true
 WHERE NOT is_told
RETURNING kind, full_until, full_why;

-- name: list_limits
-- The caps of every limited kind.
SELECT kind, cap_hour, cap_day, cap_value_day, full_until, full_why,
       coalesce(full_until > clock_timestamp(), false) AS is_full
  FROM kind_limits
 WHERE is_guarded ORDER BY kind;
