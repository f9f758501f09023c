-- Telling outcomes to whoever waits upstream. A run says itself that somebody waits: its end then puts it into a small
-- index, whoever ended it and however the process died, and no place that ends runs has to think of it. A hundred
-- thousand executions that wait for runs still open are never looked at.

ALTER TABLE workflow_runs ADD COLUMN is_waited boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN workflow_runs.is_waited IS
    'Somebody waits who has not been told the outcome; set with the waiter, cleared with its effect, under the run''s lock.';
UPDATE workflow_runs SET is_waited = true WHERE run_id IN (SELECT run_id FROM waiters WHERE settled_at IS NULL);
-- Outcomes to tell, flat however many runs are finished.
CREATE INDEX runs_to_announce ON workflow_runs (finished_at) WHERE is_waited AND finished_at IS NOT NULL;

COMMENT ON COLUMN waiters.waiter_id IS 'Also the effect_id of its resume effect: nobody can be told twice.';
COMMENT ON COLUMN effect_outbox.draft_id IS
    'The draft whose content it carries; all zeroes for a resume effect of a run that never had one.';
COMMENT ON COLUMN effect_outbox.target IS
    'Where it goes. For resume effects only the host, and which waiter: the URL itself is a secret and stays in waiters.';
