-- What came in: one run an event, its content apart, the newest version known of each draft_key, and who
-- waits for the outcome. Content lives outside workflow_runs because a run moves five times and each move
-- copies the row; erasing content must also leave the run's hashes behind.

CREATE TABLE workflow_runs (
    run_id           uuid PRIMARY KEY,
    idempotency_key  text NOT NULL CONSTRAINT runs_one_per_key UNIQUE,
    source           text NOT NULL,
    kind             text NOT NULL,
    event_key        text NOT NULL,
    entity           text NOT NULL,
    draft_key        text NOT NULL,
    source_version   bigint NOT NULL CHECK (source_version >= 0),
    payload_hash     text NOT NULL,
    state            text NOT NULL CONSTRAINT runs_known_state CHECK (state IN (
        'received', 'processing', 'awaiting_human', 'approved', 'failed_retryable', 'completed',
        'rejected', 'expired', 'superseded', 'cancelled', 'failed_terminal')),
    version          integer NOT NULL DEFAULT 1,
    draft_id         uuid,
    replaces         uuid,
    failure          text,
    attempts         smallint NOT NULL DEFAULT 0,
    takeovers        smallint NOT NULL DEFAULT 0,
    next_attempt_at  timestamptz NOT NULL DEFAULT now(),
    lease_owner      text,
    lease_expires_at timestamptz,
    lease_taken_at   timestamptz,
    result           jsonb,
    received_at      timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    finished_at      timestamptz,
    CONSTRAINT runs_lease_while_processing CHECK (
        (state = 'processing') = (lease_owner IS NOT NULL)
        AND (lease_owner IS NULL) = (lease_expires_at IS NULL)
        AND (lease_owner IS NULL) = (lease_taken_at IS NULL)),
    CONSTRAINT runs_finished_when_final CHECK ((finished_at IS NOT NULL) = (state IN (
        'completed', 'rejected', 'expired', 'superseded', 'cancelled', 'failed_terminal'))),
    CONSTRAINT runs_failure_named CHECK (
        state NOT IN ('failed_retryable', 'failed_terminal') OR failure IS NOT NULL)
);
COMMENT ON TABLE workflow_runs IS 'The work for one event. Rows stay for ever: a late redelivery must still be known.';
COMMENT ON COLUMN workflow_runs.next_attempt_at IS
    'When a worker may claim it: at arrival, after a backoff, or when the lease of a claimed run runs out.';
COMMENT ON COLUMN workflow_runs.lease_taken_at IS 'When this owner claimed; a lease is renewed for 30 minutes in all.';
COMMENT ON COLUMN workflow_runs.result IS 'The model''s checked answer with model, fingerprint, prompt version, tokens.';
COMMENT ON COLUMN workflow_runs.failure IS 'Class of the last failure, a row of the retry matrix.';

-- Claims: keeps finding a due run flat however many are finished. next_attempt_at also carries the lease's
-- end while processing, so one index finds new runs, due retries and orphans.
CREATE INDEX runs_due ON workflow_runs (next_attempt_at)
    WHERE state IN ('received', 'processing', 'failed_retryable');
-- Superseding at intake and "is a newer run being drafted": finds the open runs of one draft_key.
CREATE INDEX runs_open_by_draft_key ON workflow_runs (draft_key)
    WHERE state IN ('received', 'processing', 'failed_retryable', 'awaiting_human', 'approved');

CREATE TRIGGER runs_listed_moves BEFORE UPDATE OF state ON workflow_runs FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION refuse_unlisted_move('run');

CREATE TABLE run_inputs (
    run_id           uuid PRIMARY KEY,
    payload          jsonb,
    draft            jsonb,
    record_url       text,
    requested_by     text,
    reason           text,
    n8n_workflow     text,
    n8n_execution    text,
    workflow_version text,
    erased_at        timestamptz,
    CONSTRAINT run_inputs_erased_or_there CHECK ((payload IS NULL) = (erased_at IS NOT NULL))
);
COMMENT ON TABLE run_inputs IS 'Content of the event; erasing empties the row, workflow_runs keeps the hash.';

CREATE TABLE draft_heads (
    draft_key      text PRIMARY KEY,
    source_version bigint NOT NULL,
    run_id         uuid NOT NULL,
    draft_id       uuid,
    moves          integer NOT NULL DEFAULT 0
);
COMMENT ON TABLE draft_heads IS
    'The newest version known of each draft_key, for ever: the version gate, and the first lock of every decision.';
COMMENT ON COLUMN draft_heads.run_id IS 'The run that holds the newest version.';
COMMENT ON COLUMN draft_heads.moves IS 'How often a newer version came; 0 says that nothing older can be open.';
COMMENT ON COLUMN draft_heads.draft_id IS 'The newest draft of this key, open or not.';

CREATE TABLE seen_events (
    idempotency_key text PRIMARY KEY,
    run_id          uuid NOT NULL,
    first_seen_at   timestamptz NOT NULL DEFAULT now(),
    last_seen_at    timestamptz NOT NULL DEFAULT now(),
    duplicates      integer NOT NULL DEFAULT 0,
    stales          integer NOT NULL DEFAULT 0,
    conflicts       integer NOT NULL DEFAULT 0
);
COMMENT ON TABLE seen_events IS 'One row a key that ever arrived, and how often it came again.';

CREATE TABLE event_counters (
    day    date NOT NULL,
    source text NOT NULL,
    kind   text NOT NULL,
    status text NOT NULL CHECK (status IN ('accepted', 'duplicate', 'stale', 'conflict')),
    n      bigint NOT NULL,
    CONSTRAINT event_counters_one_a_day PRIMARY KEY (day, kind, source, status)
);
COMMENT ON TABLE event_counters IS 'Answers of POST /events by day (UTC), written within a second.';

CREATE TABLE waiters (
    waiter_id  uuid PRIMARY KEY,
    run_id     uuid NOT NULL,
    resume_url text NOT NULL,
    url_hash   text NOT NULL,
    added_at   timestamptz NOT NULL DEFAULT now(),
    settled_at timestamptz,
    CONSTRAINT waiters_once UNIQUE (run_id, url_hash)
);
COMMENT ON TABLE waiters IS 'Executions upstream that wait for the outcome; each is told once. The URL is a secret.';
COMMENT ON COLUMN waiters.settled_at IS 'When its resume effect was put into the outbox.';
