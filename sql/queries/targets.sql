-- name: forget_failures
-- A target answered: its failures are no longer in a row, and if it rested, it is used again.
-- zero rows: nothing: it had not failed
UPDATE targets
   SET failures = 0, trials = 0, trial_id = NULL, opened_at = NULL, rests_until = NULL,
       is_told = is_told AND opened_at IS NULL
 WHERE lane = ANY(%(lanes)s::bigint[]) AND (failures > 0 OR opened_at IS NOT NULL);

-- name: lock_targets
-- Hold what is known of these targets, in the order of their lanes.
SELECT lane FROM targets WHERE lane = ANY(%(lanes)s::bigint[]) ORDER BY lane FOR UPDATE;

-- name: count_failures
-- Count failures in a row. Every target of the batch is held from here on, in the order of their lanes.
INSERT INTO targets AS t (lane, kind, effect_type, target, failures)
SELECT lane, kind, effect_type, target, failures
  FROM json_to_recordset(%(failed)s::json) AS given (
       lane bigint, kind text, effect_type text, target text, failures integer)
 ORDER BY lane
ON CONFLICT (lane) DO UPDATE SET failures = least(t.failures + excluded.failures, 1000000);

-- name: rest_targets
-- Let targets rest that failed too often in a row, and longer those whose trial failed.
-- zero rows: nothing: they did not fail as often as that
UPDATE targets AS t
   SET opened_at = coalesce(t.opened_at, clock_timestamp()), trial_id = NULL, is_told = false,
       trials = CASE WHEN t.opened_at IS NULL THEN 0 ELSE least(t.trials + 1, 100) END,
       rests_until = clock_timestamp() + interval '1 second' * least(
           bounds.most, bounds.rest * power(2, CASE WHEN t.opened_at IS NULL THEN 0 ELSE least(t.trials + 1, 20) END))
  FROM (SELECT given.lane, coalesce(l.breaker_after, %(after)s::integer) AS after,
               coalesce(l.breaker_rest_seconds, %(rest_seconds)s::integer) AS rest,
               coalesce(l.breaker_rest_most_seconds, %(rest_most_seconds)s::integer) AS most
          FROM unnest(%(lanes)s::bigint[], %(kinds)s::text[]) AS given (lane, kind)
          LEFT JOIN kind_limits AS l ON l.kind = given.kind) AS bounds
 WHERE t.lane = bounds.lane
   AND CASE WHEN t.opened_at IS NULL THEN bounds.after > 0 AND t.failures >= bounds.after
            ELSE t.trial_id = ANY(%(failed_ids)s::uuid[]) END;

-- name: list_resting
-- Which of these lanes rest.
SELECT lane FROM targets WHERE lane = ANY(%(lanes)s::bigint[]) AND opened_at IS NOT NULL;

-- name: take_untold_targets
-- Targets that began or ended to rest, or rest longer now, and nobody was told.
-- zero rows: nothing: all is told
UPDATE targets SET is_told = true
 WHERE NOT is_told
RETURNING lane, kind, effect_type, target, failures, opened_at, rests_until, trials;

-- name: list_resting_targets
-- Targets that are left in peace, those first that are tried next.
SELECT kind, effect_type, target, opened_at, rests_until FROM targets
 WHERE opened_at IS NOT NULL ORDER BY rests_until;

-- name: want_lane_cards
-- Have the cards of drafts drawn again whose effects wait in these lanes, or are of these kinds.
-- zero rows: nothing waits there
UPDATE cards
   SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now()
 WHERE draft_id IN (
       SELECT draft_id FROM effect_outbox
        WHERE state = 'pending' AND effect_type <> 'resume'
          AND (lane = ANY(%(lanes)s::bigint[]) OR kind = ANY(%(kinds)s::text[])));
