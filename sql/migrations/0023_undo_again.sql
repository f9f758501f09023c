-- An undo that failed provably never left, so it may be asked for again: the failed one makes room for the next.
INSERT INTO state_moves (thing, before, after, why) VALUES
    ('effect', 'failed', 'cancelled', 'an undo that failed is asked for again');
