-- A late confirmation takes back what waits to be sent again: no wait of the second try may outlast the proof of the first.
INSERT INTO state_moves (thing, before, after, why) VALUES
    ('effect', 'pending', 'unknown', 'an earlier try turns out to have arrived: reconciliation completes it');
UPDATE state_moves SET why = 'the provider may have it, the lease ran out after the start, or an earlier try arrived'
 WHERE thing = 'effect' AND before = 'sending' AND after = 'unknown';
