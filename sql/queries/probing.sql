-- name: find_probed_versions
-- Which versions of the record an effect was decided under: the draft's own, and the newest known then.
SELECT r.source_version, e.known_version
  FROM effect_outbox AS e JOIN workflow_runs AS r ON r.run_id = e.run_id
 WHERE e.effect_id = %(effect_id)s;

-- name: hold_effect
-- Give back an effect whose record could not be checked: nothing left us, no try is used up. Each wait is as long as all
-- those before it together, within bounds.
-- zero rows: nothing: cancelled meanwhile, or given back by the recovery of leases
UPDATE effect_outbox AS e
   SET state = 'pending', lease_owner = NULL, lease_expires_at = NULL, version = e.version + 1, updated_at = now(),
       reason = %(reason)s, held_since = coalesce(e.held_since, clock_timestamp()),
       next_attempt_at = clock_timestamp() + interval '1 second' * least(%(most_seconds)s::double precision, greatest(
           %(least_seconds)s::double precision, extract(epoch FROM clock_timestamp() - e.held_since)::double precision))
 WHERE e.effect_id = %(effect_id)s AND e.version = %(version)s AND e.state = 'sending'
   AND e.started_at IS NULL AND e.lease_owner = %(owner)s
RETURNING e.effect_id, e.held_since >= now() AS is_new;

-- name: withdraw_changed_effect
-- Cancel a held effect whose record changed since, before it was started; the head is locked.
-- zero rows: nothing: cancelled meanwhile, or given back by the recovery of leases
UPDATE effect_outbox AS e
   SET state = 'cancelled', reason = 'record_changed', lease_owner = NULL, lease_expires_at = NULL,
       version = e.version + 1, updated_at = now()
 WHERE e.effect_id = %(effect_id)s AND e.version = %(version)s AND e.state = 'sending'
   AND e.started_at IS NULL AND e.ambiguous_at IS NULL AND e.lease_owner = %(owner)s
RETURNING e.effect_id;
