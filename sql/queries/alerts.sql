-- name: raise_alert
-- Ask for ops to be told, once an occasion: a second alert of the same key is the same occasion.
INSERT INTO alerts (alert_id, alert_key, name, facts)
VALUES (%(alert_id)s, %(alert_key)s, %(name)s, %(facts)s)
ON CONFLICT (alert_key) DO NOTHING;
