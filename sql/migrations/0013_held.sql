-- An effect whose record cannot be checked waits, visibly, and uses no try up.

ALTER TABLE effect_outbox ADD COLUMN held_since timestamptz;
COMMENT ON COLUMN effect_outbox.held_since IS
    'Since when the probe of its record tells nothing; the wait until it is asked again grows with this.';
