-- The order of one draft_key's effects is the database's: ids carry the clock of the process that made them, and where that
-- is ahead, or was put back, a newer effect would pass an undo or another older one that is unfinished.

ALTER TABLE effect_outbox ADD COLUMN seq bigint;
UPDATE effect_outbox AS e
   SET seq = o.seq
  FROM (SELECT effect_id, row_number() OVER (ORDER BY effect_id) AS seq FROM effect_outbox) AS o
 WHERE o.effect_id = e.effect_id;
-- Whoever writes is shut out while this runs; the rows were all written just above.
-- squawk-ignore adding-not-nullable-field
ALTER TABLE effect_outbox ALTER COLUMN seq SET NOT NULL;
-- squawk-ignore ban-alter-identity
ALTER TABLE effect_outbox ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY;
SELECT setval(pg_get_serial_sequence('effect_outbox', 'seq'),
              (SELECT coalesce(max(seq), 0) + 1 FROM effect_outbox), false);
COMMENT ON COLUMN effect_outbox.seq IS
    'In which order they were written, each under its head''s lock: of one draft_key the lower leaves first.';
