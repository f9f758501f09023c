-- name: read_switch
-- Every scope as it stands.
SELECT scope, open, changed_by, changed_at, reason FROM kill_switch ORDER BY scope;

-- name: queue_for_switch
-- Stand in line before a start: whoever closes the switch waits for those before it and holds up those behind it. The
-- row lock alone has no line: shared holders one after another could keep a kill waiting for ever. A process that is
-- frozen here is cut off, unstarted, before a kill gives up (1.5 s): in this transaction nobody pauses for milliseconds.
SELECT set_config('idle_in_transaction_session_timeout', '1000', true), pg_advisory_xact_lock_shared(1467416578);

-- name: lock_switch
-- Hold the switch alone until the end of the transaction: every start in hand has committed, no other begins.
SELECT pg_advisory_xact_lock(1467416578);

-- name: lock_switch_row
-- The row that every start holds FOR SHARE; none if it is missing, which is closed.
SELECT scope FROM kill_switch WHERE scope = 'all' FOR UPDATE;

-- name: set_switch
-- Open or close one scope; a missing row is made again. Closed once more without a reason, the first one stands, with
-- who gave it and since when: it has been closed for that long.
INSERT INTO kill_switch AS k (scope, open, changed_by, reason) VALUES (%(scope)s, %(open)s, %(by)s, %(reason)s)
ON CONFLICT (scope) DO UPDATE
   SET open = excluded.open, reason = coalesce(excluded.reason, CASE WHEN NOT k.open AND NOT excluded.open THEN k.reason END),
       changed_by = CASE WHEN NOT k.open AND NOT excluded.open AND excluded.reason IS NULL
                         THEN k.changed_by ELSE excluded.changed_by END,
       changed_at = CASE WHEN NOT k.open AND NOT excluded.open AND excluded.reason IS NULL
                         THEN k.changed_at ELSE clock_timestamp() END;

-- name: note_switched
-- Keep in mind, in the transaction that switches, that the cards of what waits have to be asked for.
INSERT INTO unshown_switches (scope) VALUES (%(scope)s)
ON CONFLICT (scope) DO UPDATE SET changed_at = now();

-- name: take_unshown
-- Take the scopes whose cards are asked for in this transaction.
-- zero rows: nothing: every switch is on its cards
DELETE FROM unshown_switches RETURNING scope;

-- name: list_started
-- Effects of one scope whose calls may be on the wire: started, and not ended.
SELECT effect_id, idempotency_key, kind, effect_type, started_at
  FROM effect_outbox
 WHERE state = 'sending' AND started_at IS NOT NULL
   AND %(scope)s::text IN ('all', 'kind:' || kind, 'effect:' || effect_type)
 ORDER BY started_at;

-- name: want_waiting_cards
-- Have the cards drawn again whose effects wait: paused, or going on.
-- zero rows: nothing waits now
UPDATE cards
   SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now()
 WHERE draft_id IN (
       SELECT draft_id FROM effect_outbox
        WHERE state IN ('pending', 'sending') AND effect_type <> 'resume'
          AND %(scope)s::text IN ('all', 'kind:' || kind, 'effect:' || effect_type));
