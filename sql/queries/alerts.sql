-- name: raise_alert
-- Ask for ops to be told, once an occasion: a second alert of the same key is the same occasion.
INSERT INTO alerts (alert_id, alert_key, name, facts)
VALUES (%(alert_id)s, %(alert_key)s, %(name)s, %(facts)s)
ON CONFLICT (alert_key) DO NOTHING;

-- name: claim_alerts
-- Take alerts that are due, the oldest first; one that is not recorded as sent comes again, later each time.
-- zero rows: nothing: no alert is due
UPDATE alerts AS a
   SET attempts = least(a.attempts + 1, 1000),
       next_attempt_at = clock_timestamp()
           + least(%(first_wait_seconds)s * power(2, least(a.attempts, 20)), %(longest_wait_seconds)s) * interval '1 second'
 WHERE a.alert_id = ANY(ARRAY(
       SELECT due.alert_id FROM alerts AS due
        WHERE due.sent_at IS NULL AND due.next_attempt_at <= now()
        ORDER BY due.next_attempt_at LIMIT %(most)s FOR UPDATE SKIP LOCKED))
RETURNING a.alert_id, a.alert_key, a.name, a.facts, a.raised_at, a.attempts;

-- name: mark_alert_sent
-- Ops was told.
-- zero rows: nothing: another worker told them too
UPDATE alerts SET sent_at = clock_timestamp() WHERE alert_id = %(alert_id)s AND sent_at IS NULL;

-- name: postpone_alert
-- Give an alert back that was proven not to be posted; the try does not count.
-- zero rows: nothing: another worker told them meanwhile
UPDATE alerts
   SET attempts = greatest(attempts - 1, 0),
       next_attempt_at = clock_timestamp() + %(wait_seconds)s * interval '1 second'
 WHERE alert_id = %(alert_id)s AND sent_at IS NULL AND attempts = %(attempts)s;
