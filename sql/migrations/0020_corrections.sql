-- The card of a correction says what had been sent before: found again when that is taken back.

-- squawk-ignore require-concurrent-index-creation
CREATE INDEX runs_correcting ON workflow_runs (replaces) WHERE replaces IS NOT NULL;
