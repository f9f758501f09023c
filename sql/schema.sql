-- The whole schema as the migrations leave it. Written by `make schema`: change a migration, never this file.

CREATE OR REPLACE FUNCTION audit_hash(previous bytea, chain text, seq integer, at timestamp with time zone, actor text, action text, detail_hash bytea)
 RETURNS bytea
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
    SELECT sha256(previous || convert_to(concat_ws(E'\n', chain, seq::text,
        to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), actor, action,
        encode(detail_hash, 'hex')), 'UTF8'))
$function$;

CREATE OR REPLACE FUNCTION fill_body(template jsonb, standard jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
    SELECT CASE WHEN jsonb_typeof(template) IS DISTINCT FROM 'array' THEN standard::text ELSE (
        SELECT string_agg(CASE
                   WHEN part ? 'text' THEN part ->> 'text'
                   WHEN (part -> 'inside')::boolean THEN
                       substr(to_jsonb(coalesce(standard #>> steps, ''))::text, 2,
                              length(to_jsonb(coalesce(standard #>> steps, ''))::text) - 2)
                   ELSE coalesce(standard #> steps, 'null')::text END, '' ORDER BY number)
          FROM jsonb_array_elements(template) WITH ORDINALITY AS given (part, number)
         CROSS JOIN LATERAL (
               SELECT ARRAY(SELECT jsonb_array_elements_text(coalesce(part -> 'path', '[]'))) AS steps) AS place) END
$function$;

CREATE OR REPLACE FUNCTION keep_body()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    IF TG_OP = 'INSERT' THEN
        NEW.body_hash := encode(sha256(NEW.body), 'hex');
    ELSIF NEW.body_hash IS DISTINCT FROM OLD.body_hash OR (NEW.body IS NOT NULL AND NEW.body IS DISTINCT FROM OLD.body) THEN
        RAISE EXCEPTION 'the bytes of effect % were fixed when it was decided', OLD.effect_id USING ERRCODE = '23514';
    END IF;
    RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION refuse_rewriting()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege', HINT = 'Erasing removes rows of audit_details only.';
END $function$;

CREATE OR REPLACE FUNCTION refuse_unlisted_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    -- TG_ARGV[0]: the thing. The column is called state for runs and effects, status for drafts.
    IF TG_ARGV[0] = 'draft' THEN
        PERFORM FROM state_moves WHERE thing = 'draft' AND before = OLD.status AND after = NEW.status;
    ELSE
        PERFORM FROM state_moves WHERE thing = TG_ARGV[0] AND before = OLD.state AND after = NEW.state;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% may not make this move', TG_ARGV[0]
            USING ERRCODE = 'check_violation', CONSTRAINT = 'state_moves_listed';
    END IF;
    RETURN NEW;
END $function$;

CREATE TABLE schema_migrations (
    number     integer NOT NULL,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT schema_migrations_pkey PRIMARY KEY (number)
);
GRANT SELECT ON schema_migrations TO stet_app;

CREATE TABLE state_moves (
    thing  text NOT NULL,
    before text NOT NULL,
    after  text NOT NULL,
    why    text NOT NULL,
    CONSTRAINT state_moves_once PRIMARY KEY (thing, before, after),
    CONSTRAINT state_moves_thing_check CHECK (thing = ANY (ARRAY['run'::text, 'draft'::text, 'effect'::text]))
);
COMMENT ON TABLE state_moves IS 'Every allowed change of state; equal to store/states.py, a test compares them.';
GRANT SELECT ON state_moves TO stet_app;

CREATE TABLE workflow_runs (
    run_id           uuid NOT NULL,
    idempotency_key  text NOT NULL,
    source           text NOT NULL,
    kind             text NOT NULL,
    event_key        text NOT NULL,
    entity           text NOT NULL,
    draft_key        text NOT NULL,
    source_version   bigint NOT NULL,
    payload_hash     text NOT NULL,
    state            text NOT NULL,
    version          integer NOT NULL DEFAULT 1,
    draft_id         uuid,
    replaces         uuid,
    failure          text,
    attempts         smallint NOT NULL DEFAULT 0,
    takeovers        smallint NOT NULL DEFAULT 0,
    next_attempt_at  timestamp with time zone NOT NULL DEFAULT now(),
    lease_owner      text,
    lease_expires_at timestamp with time zone,
    lease_taken_at   timestamp with time zone,
    result           jsonb,
    received_at      timestamp with time zone NOT NULL DEFAULT now(),
    updated_at       timestamp with time zone NOT NULL DEFAULT now(),
    finished_at      timestamp with time zone,
    is_waited        boolean NOT NULL DEFAULT false,
    CONSTRAINT workflow_runs_pkey PRIMARY KEY (run_id),
    CONSTRAINT runs_one_per_key UNIQUE (idempotency_key),
    CONSTRAINT runs_failure_named CHECK ((state <> ALL (ARRAY['failed_retryable'::text, 'failed_terminal'::text])) OR failure IS NOT NULL),
    CONSTRAINT runs_finished_when_final CHECK ((finished_at IS NOT NULL) = (state = ANY (ARRAY['completed'::text, 'rejected'::text, 'expired'::text, 'superseded'::text, 'cancelled'::text, 'failed_terminal'::text]))),
    CONSTRAINT runs_known_state CHECK (state = ANY (ARRAY['received'::text, 'processing'::text, 'awaiting_human'::text, 'approved'::text, 'failed_retryable'::text, 'completed'::text, 'rejected'::text, 'expired'::text, 'superseded'::text, 'cancelled'::text, 'failed_terminal'::text])),
    CONSTRAINT runs_lease_while_processing CHECK ((state = 'processing'::text) = (lease_owner IS NOT NULL) AND (lease_owner IS NULL) = (lease_expires_at IS NULL) AND (lease_owner IS NULL) = (lease_taken_at IS NULL)),
    CONSTRAINT workflow_runs_source_version_check CHECK (source_version >= 0)
);
COMMENT ON TABLE workflow_runs IS 'The work for one event. Rows stay for ever: a late redelivery must still be known.';
COMMENT ON COLUMN workflow_runs.failure IS 'Class of the last failure, a row of the retry matrix.';
COMMENT ON COLUMN workflow_runs.next_attempt_at IS 'When a worker may claim it: at arrival, after a backoff, or when the lease of a claimed run runs out.';
COMMENT ON COLUMN workflow_runs.lease_taken_at IS 'When this owner claimed; a lease is renewed for 30 minutes in all.';
COMMENT ON COLUMN workflow_runs.result IS 'The model''s checked answer with model, fingerprint, prompt version, tokens.';
COMMENT ON COLUMN workflow_runs.is_waited IS 'Somebody waits who has not been told the outcome; set with the waiter, cleared with its effect, under the run''s lock.';
CREATE INDEX runs_correcting ON workflow_runs USING btree (replaces) WHERE replaces IS NOT NULL;
CREATE INDEX runs_due ON workflow_runs USING btree (next_attempt_at) WHERE state = ANY (ARRAY['received'::text, 'processing'::text, 'failed_retryable'::text]);
CREATE INDEX runs_open_by_draft_key ON workflow_runs USING btree (draft_key) WHERE state = ANY (ARRAY['received'::text, 'processing'::text, 'failed_retryable'::text, 'awaiting_human'::text, 'approved'::text]);
CREATE INDEX runs_to_announce ON workflow_runs USING btree (finished_at) WHERE is_waited AND finished_at IS NOT NULL;
CREATE TRIGGER runs_listed_moves BEFORE UPDATE OF state ON workflow_runs FOR EACH ROW WHEN (old.state IS DISTINCT FROM new.state AND NOT (old.state = 'received'::text AND new.state = 'processing'::text) AND NOT (old.state = 'processing'::text AND new.state = 'awaiting_human'::text) AND NOT (old.state = 'awaiting_human'::text AND new.state = 'approved'::text) AND NOT (old.state = 'approved'::text AND new.state = 'completed'::text)) EXECUTE FUNCTION refuse_unlisted_move('run');
GRANT INSERT, SELECT, UPDATE ON workflow_runs TO stet_app;

CREATE TABLE run_inputs (
    run_id           uuid NOT NULL,
    payload          jsonb,
    draft            jsonb,
    record_url       text,
    requested_by     text,
    reason           text,
    n8n_workflow     text,
    n8n_execution    text,
    workflow_version text,
    erased_at        timestamp with time zone,
    CONSTRAINT run_inputs_pkey PRIMARY KEY (run_id),
    CONSTRAINT run_inputs_erased_or_there CHECK ((payload IS NULL) = (erased_at IS NOT NULL))
);
COMMENT ON TABLE run_inputs IS 'Content of the event; erasing empties the row, workflow_runs keeps the hash.';
GRANT INSERT, SELECT, UPDATE ON run_inputs TO stet_app;

CREATE TABLE draft_heads (
    draft_key      text NOT NULL,
    source_version bigint NOT NULL,
    run_id         uuid NOT NULL,
    draft_id       uuid,
    moves          integer NOT NULL DEFAULT 0,
    CONSTRAINT draft_heads_pkey PRIMARY KEY (draft_key)
);
COMMENT ON TABLE draft_heads IS 'The newest version known of each draft_key, for ever: the version gate, and the first lock of every decision.';
COMMENT ON COLUMN draft_heads.run_id IS 'The run that holds the newest version.';
COMMENT ON COLUMN draft_heads.draft_id IS 'The newest draft of this key, open or not.';
COMMENT ON COLUMN draft_heads.moves IS 'How often a newer version came; 0 says that nothing older can be open.';
GRANT INSERT, SELECT, UPDATE ON draft_heads TO stet_app;

CREATE TABLE seen_events (
    idempotency_key text NOT NULL,
    run_id          uuid NOT NULL,
    first_seen_at   timestamp with time zone NOT NULL DEFAULT now(),
    last_seen_at    timestamp with time zone NOT NULL DEFAULT now(),
    duplicates      integer NOT NULL DEFAULT 0,
    stales          integer NOT NULL DEFAULT 0,
    conflicts       integer NOT NULL DEFAULT 0,
    CONSTRAINT seen_events_pkey PRIMARY KEY (idempotency_key)
);
COMMENT ON TABLE seen_events IS 'One row a key that ever arrived, and how often it came again.';
GRANT INSERT, SELECT, UPDATE ON seen_events TO stet_app;

CREATE TABLE event_counters (
    day    date NOT NULL,
    source text NOT NULL,
    kind   text NOT NULL,
    status text NOT NULL,
    n      bigint NOT NULL,
    CONSTRAINT event_counters_one_a_day PRIMARY KEY (day, kind, source, status),
    CONSTRAINT event_counters_status_check CHECK (status = ANY (ARRAY['accepted'::text, 'duplicate'::text, 'stale'::text, 'conflict'::text]))
);
COMMENT ON TABLE event_counters IS 'Answers of POST /events by day (UTC), written within a second.';
GRANT DELETE, INSERT, SELECT, UPDATE ON event_counters TO stet_app;

CREATE TABLE waiters (
    waiter_id  uuid NOT NULL,
    run_id     uuid NOT NULL,
    resume_url text NOT NULL,
    url_hash   text NOT NULL,
    added_at   timestamp with time zone NOT NULL DEFAULT now(),
    settled_at timestamp with time zone,
    CONSTRAINT waiters_pkey PRIMARY KEY (waiter_id),
    CONSTRAINT waiters_once UNIQUE (run_id, url_hash)
);
COMMENT ON TABLE waiters IS 'Executions upstream that wait for the outcome; each is told once. The URL is a secret.';
COMMENT ON COLUMN waiters.waiter_id IS 'Also the effect_id of its resume effect: nobody can be told twice.';
COMMENT ON COLUMN waiters.settled_at IS 'When its resume effect was put into the outbox.';
GRANT DELETE, INSERT, SELECT, UPDATE ON waiters TO stet_app;

CREATE TABLE policy_snapshots (
    snapshot_hash text NOT NULL,
    kind          text NOT NULL,
    body          jsonb NOT NULL,
    first_used_at timestamp with time zone NOT NULL DEFAULT now(),
    effects       jsonb GENERATED ALWAYS AS (COALESCE((body -> 'effects'::text), ('[]'::jsonb || (body -> 'effect'::text)))) STORED,
    CONSTRAINT policy_snapshots_pkey PRIMARY KEY (snapshot_hash)
);
COMMENT ON TABLE policy_snapshots IS 'What of a kind''s policy is frozen onto a draft; many drafts share one row.';
COMMENT ON COLUMN policy_snapshots.effects IS 'The small part that sending reads, beside the large one.';
GRANT INSERT, SELECT, UPDATE ON policy_snapshots TO stet_app;

CREATE TABLE drafts (
    draft_id      uuid NOT NULL,
    draft_key     text NOT NULL,
    kind          text NOT NULL,
    entity        text NOT NULL,
    run_id        uuid NOT NULL,
    status        text NOT NULL,
    version       integer NOT NULL DEFAULT 1,
    revision      integer NOT NULL,
    approval_id   uuid,
    known_version bigint NOT NULL,
    snapshot_hash text NOT NULL,
    notice        text,
    earlier_id    uuid,
    opened_at     timestamp with time zone NOT NULL DEFAULT now(),
    expires_at    timestamp with time zone NOT NULL,
    decided_at    timestamp with time zone,
    updated_at    timestamp with time zone NOT NULL DEFAULT now(),
    asked_at      timestamp with time zone NOT NULL DEFAULT now(),
    reminded      smallint NOT NULL DEFAULT 0,
    reminder_ts   text,
    CONSTRAINT drafts_pkey PRIMARY KEY (draft_id),
    CONSTRAINT drafts_known_status CHECK (status = ANY (ARRAY['pending'::text, 'scheduled'::text, 'approved'::text, 'sent'::text, 'rejected'::text, 'expired'::text, 'cancelled'::text, 'failed'::text])),
    CONSTRAINT drafts_question_while_pending CHECK ((status = 'pending'::text) = (approval_id IS NOT NULL)),
    CONSTRAINT drafts_revision_check CHECK (revision >= 1)
);
COMMENT ON TABLE drafts IS 'The proposal for one draft_key; rows stay as history once settled.';
COMMENT ON COLUMN drafts.run_id IS 'The run whose content is the current revision.';
COMMENT ON COLUMN drafts.approval_id IS 'The open question; none unless pending. Whatever else asks is over.';
COMMENT ON COLUMN drafts.known_version IS 'The head''s version this draft answers to: a head that is newer blocks every decision.';
COMMENT ON COLUMN drafts.notice IS 'A word for the card: newer_failed, withdrawn_newer, withdrawn_stale.';
COMMENT ON COLUMN drafts.earlier_id IS 'The draft before this one for the same key, for "was rejected by".';
COMMENT ON COLUMN drafts.asked_at IS 'Since when this term runs: set with expires_at, and like it not by edit or redraft.';
COMMENT ON COLUMN drafts.reminded IS 'How many reminders of this term were taken; each is taken before it is posted.';
COMMENT ON COLUMN drafts.reminder_ts IS 'The line of this term in the card''s thread, which later reminders edit.';
CREATE INDEX drafts_expiring ON drafts USING btree (expires_at) WHERE status = 'pending'::text;
CREATE UNIQUE INDEX drafts_one_open_per_key ON drafts USING btree (draft_key) WHERE status = ANY (ARRAY['pending'::text, 'scheduled'::text, 'approved'::text]);
CREATE INDEX drafts_to_remind ON drafts USING btree (kind, reminded, asked_at) WHERE status = 'pending'::text;
CREATE TRIGGER drafts_listed_moves BEFORE UPDATE OF status ON drafts FOR EACH ROW WHEN (old.status IS DISTINCT FROM new.status AND NOT (old.status = 'pending'::text AND new.status = 'approved'::text) AND NOT (old.status = 'approved'::text AND new.status = 'sent'::text)) EXECUTE FUNCTION refuse_unlisted_move('draft');
GRANT INSERT, SELECT, UPDATE ON drafts TO stet_app;

CREATE TABLE revisions (
    draft_id       uuid NOT NULL,
    revision       integer NOT NULL,
    run_id         uuid NOT NULL,
    body           jsonb,
    body_hash      text NOT NULL,
    author         text NOT NULL,
    model          text,
    fingerprint    text,
    prompt_version text,
    warnings       jsonb NOT NULL DEFAULT '[]'::jsonb,
    created_at     timestamp with time zone NOT NULL DEFAULT now(),
    erased_at      timestamp with time zone,
    CONSTRAINT revisions_once PRIMARY KEY (draft_id, revision),
    CONSTRAINT revisions_erased_or_there CHECK ((body IS NULL) = (erased_at IS NOT NULL))
);
COMMENT ON TABLE revisions IS 'Immutable contents of a draft; author is model, upstream or slack:TEAM:USER.';
GRANT INSERT, SELECT, UPDATE ON revisions TO stet_app;

CREATE TABLE approvals (
    approval_id      uuid NOT NULL,
    draft_id         uuid NOT NULL,
    revision         integer NOT NULL,
    run_id           uuid NOT NULL,
    quorum           smallint NOT NULL,
    opened_at        timestamp with time zone NOT NULL DEFAULT now(),
    ended_at         timestamp with time zone,
    end_reason       text,
    consumed_at      timestamp with time zone,
    decision         text,
    approver_subject text,
    token_hash       text,
    shown_hash       text,
    reason           text,
    CONSTRAINT approvals_pkey PRIMARY KEY (approval_id),
    CONSTRAINT approvals_decided_is_over CHECK (consumed_at IS NULL OR ended_at IS NOT NULL),
    CONSTRAINT approvals_decided_whole CHECK ((consumed_at IS NULL) = (decision IS NULL) AND (consumed_at IS NULL) = (approver_subject IS NULL)),
    CONSTRAINT approvals_decision_check CHECK (decision = ANY (ARRAY['approve'::text, 'reject'::text, 'edit'::text, 'redraft'::text, 'cancel'::text])),
    CONSTRAINT approvals_quorum_check CHECK (quorum >= 1)
);
COMMENT ON TABLE approvals IS 'The question about one revision. It is open while its draft points at it.';
COMMENT ON COLUMN approvals.shown_hash IS 'Hash of what the deciding click''s surface showed.';
CREATE INDEX approvals_of_draft ON approvals USING btree (draft_id);
GRANT INSERT, SELECT, UPDATE ON approvals TO stet_app;

CREATE TABLE approval_tokens (
    token_hash  text NOT NULL,
    approval_id uuid NOT NULL,
    revision    integer NOT NULL,
    decision    text NOT NULL,
    surface     text NOT NULL,
    card_id     uuid,
    holder      text,
    shown_hash  text NOT NULL,
    minted_at   timestamp with time zone NOT NULL DEFAULT now(),
    expires_at  timestamp with time zone NOT NULL,
    effect_id   uuid,
    CONSTRAINT approval_tokens_pkey PRIMARY KEY (token_hash),
    CONSTRAINT approval_tokens_decision_check CHECK (decision = ANY (ARRAY['approve'::text, 'reject'::text, 'edit'::text, 'redraft'::text, 'cancel'::text, 'undo'::text, 'read'::text])),
    CONSTRAINT approval_tokens_surface_check CHECK (surface = ANY (ARRAY['message'::text, 'view'::text, 'home'::text])),
    CONSTRAINT tokens_bound_to_surface CHECK ((surface = 'message'::text) = (card_id IS NOT NULL) AND (surface = 'message'::text) = (holder IS NULL)),
    CONSTRAINT tokens_undo_one_effect CHECK ((decision = 'undo'::text) = (effect_id IS NOT NULL))
);
COMMENT ON TABLE approval_tokens IS 'Single-use answers, one a button. Only the SHA-256 is stored; the end of the approval kills them all.';
COMMENT ON COLUMN approval_tokens.card_id IS 'For a message: the card whose channel and ts the click must come from.';
COMMENT ON COLUMN approval_tokens.holder IS 'For a view or a Home: the one person (slack:TEAM:USER) it was drawn for.';
COMMENT ON COLUMN approval_tokens.effect_id IS 'For undo: which effect the button takes back.';
CREATE INDEX tokens_expiring ON approval_tokens USING btree (expires_at);
CREATE INDEX tokens_of_approval ON approval_tokens USING btree (approval_id);
CREATE INDEX tokens_of_home ON approval_tokens USING btree (holder, minted_at) WHERE surface = 'home'::text;
GRANT DELETE, INSERT, SELECT ON approval_tokens TO stet_app;

CREATE TABLE votes (
    approval_id uuid NOT NULL,
    subject     text NOT NULL,
    decision    text NOT NULL,
    counted_as  text NOT NULL,
    shown_hash  text NOT NULL,
    voted_at    timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT votes_one_a_person PRIMARY KEY (approval_id, subject),
    CONSTRAINT votes_decision_check CHECK (decision = ANY (ARRAY['approve'::text, 'reject'::text]))
);
COMMENT ON TABLE votes IS 'One row a person and approval, recounted under the lock.';
COMMENT ON COLUMN votes.counted_as IS 'What made the person a reviewer: user:U… or group:S….';
CREATE INDEX votes_of_person ON votes USING btree (subject, voted_at);
GRANT INSERT, SELECT, UPDATE ON votes TO stet_app;

CREATE TABLE redrafts (
    redraft_id       uuid NOT NULL,
    draft_id         uuid NOT NULL,
    revision         integer NOT NULL,
    requested_by     text NOT NULL,
    wish             text,
    attempts         smallint NOT NULL DEFAULT 0,
    lease_owner      text,
    lease_expires_at timestamp with time zone,
    next_attempt_at  timestamp with time zone NOT NULL DEFAULT now(),
    result           jsonb,
    opened_at        timestamp with time zone NOT NULL DEFAULT now(),
    closed_at        timestamp with time zone,
    outcome          text,
    CONSTRAINT redrafts_pkey PRIMARY KEY (redraft_id),
    CONSTRAINT redrafts_answer_while_open CHECK (closed_at IS NULL OR result IS NULL),
    CONSTRAINT redrafts_closed_with_outcome CHECK ((closed_at IS NULL) = (outcome IS NULL)),
    CONSTRAINT redrafts_lease_while_open CHECK (closed_at IS NULL OR lease_owner IS NULL),
    CONSTRAINT redrafts_lease_whole CHECK ((lease_owner IS NULL) = (lease_expires_at IS NULL))
);
COMMENT ON TABLE redrafts IS 'A person''s wish for another revision by the model; leased like a run.';
COMMENT ON COLUMN redrafts.attempts IS 'Claims so far; an owner of an earlier claim writes nothing.';
COMMENT ON COLUMN redrafts.result IS 'The model''s checked answer until it is a revision; gone once the wish is closed.';
COMMENT ON COLUMN redrafts.outcome IS 'done, failed, unavailable, timed_out, overtaken, newer_event or expired: why the wish is over.';
CREATE INDEX redrafts_due ON redrafts USING btree (next_attempt_at) WHERE closed_at IS NULL;
CREATE INDEX redrafts_of_draft ON redrafts USING btree (draft_id);
CREATE UNIQUE INDEX redrafts_one_open ON redrafts USING btree (draft_id) WHERE closed_at IS NULL;
GRANT INSERT, SELECT, UPDATE ON redrafts TO stet_app;

CREATE TABLE effect_outbox (
    effect_id        uuid NOT NULL,
    idempotency_key  text NOT NULL,
    run_id           uuid NOT NULL,
    draft_id         uuid NOT NULL,
    draft_key        text NOT NULL,
    kind             text NOT NULL,
    effect_type      text NOT NULL,
    target           text NOT NULL,
    lane             bigint NOT NULL GENERATED ALWAYS AS (hashtextextended((((effect_type || ' '::text) || kind) ||
CASE
    WHEN (effect_type = 'resume'::text) THEN ''::text
    ELSE (' '::text || target)
END), (0)::bigint)) STORED,
    known_version    bigint NOT NULL,
    state            text NOT NULL DEFAULT 'pending'::text,
    version          integer NOT NULL DEFAULT 1,
    attempts         smallint NOT NULL DEFAULT 0,
    not_before       timestamp with time zone,
    next_attempt_at  timestamp with time zone NOT NULL DEFAULT now(),
    fresh_until      timestamp with time zone,
    lease_owner      text,
    lease_expires_at timestamp with time zone,
    started_at       timestamp with time zone,
    ambiguous_at     timestamp with time zone,
    provider_id      text,
    reason           text,
    created_at       timestamp with time zone NOT NULL DEFAULT now(),
    updated_at       timestamp with time zone NOT NULL DEFAULT now(),
    held_since       timestamp with time zone,
    clause           text[],
    after_id         uuid,
    undo_of          uuid,
    undo_by          text,
    seq              bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    CONSTRAINT effect_outbox_pkey PRIMARY KEY (effect_id),
    CONSTRAINT effects_failed_says_why CHECK (state <> 'failed'::text OR reason IS NOT NULL),
    CONSTRAINT effects_known_state CHECK (state = ANY (ARRAY['pending'::text, 'sending'::text, 'completed'::text, 'unknown'::text, 'failed'::text, 'cancelled'::text])),
    CONSTRAINT effects_lease_while_sending CHECK ((state = 'sending'::text) = (lease_owner IS NOT NULL) AND (lease_owner IS NULL) = (lease_expires_at IS NULL)),
    CONSTRAINT effects_undone_by_somebody CHECK ((undo_of IS NULL) = (undo_by IS NULL)),
    CONSTRAINT effects_unknown_was_started CHECK (state <> 'unknown'::text OR ambiguous_at IS NOT NULL)
);
COMMENT ON TABLE effect_outbox IS 'One thing to do in the outside world, written with the decision that allowed it.';
COMMENT ON COLUMN effect_outbox.draft_id IS 'The draft whose content it carries; all zeroes for a resume effect of a run that never had one.';
COMMENT ON COLUMN effect_outbox.target IS 'Where it goes. For resume effects only the host, and which waiter: the URL itself is a secret and stays in waiters.';
COMMENT ON COLUMN effect_outbox.lane IS 'Which queue it waits in: one a type, kind and target (resume URLs share one), so that a stuck target delays only itself.';
COMMENT ON COLUMN effect_outbox.known_version IS 'The head''s version the decision was taken under; a newer head stops the send.';
COMMENT ON COLUMN effect_outbox.attempts IS 'Tries that were started since the decision, or since a person said "send again".';
COMMENT ON COLUMN effect_outbox.next_attempt_at IS 'Pending: due. Unknown: when the provider is asked next.';
COMMENT ON COLUMN effect_outbox.fresh_until IS 'After this the approval is too old to send; none for effects without a person''s approval to outlive.';
COMMENT ON COLUMN effect_outbox.started_at IS 'Set right before the call of this try: splits an expired lease into not sent and unknown.';
COMMENT ON COLUMN effect_outbox.ambiguous_at IS 'First time a try may have reached the provider; then no machine writes failed.';
COMMENT ON COLUMN effect_outbox.held_since IS 'Since when the probe of its record tells nothing; the wait until it is asked again grows with this.';
COMMENT ON COLUMN effect_outbox.clause IS 'Where in its snapshot''s effects its terms are: {1} is the second, {1,undo} what undoes that; none for an only one.';
COMMENT ON COLUMN effect_outbox.after_id IS 'The effect of the same draft that must be completed before this may leave.';
COMMENT ON COLUMN effect_outbox.undo_of IS 'The completed effect that this one takes back. No newer version outdates it.';
COMMENT ON COLUMN effect_outbox.undo_by IS 'Who asked for the undo; the others were let out by their draft''s approval.';
COMMENT ON COLUMN effect_outbox.seq IS 'In which order they were written, each under its head''s lock: of one draft_key the lower leaves first.';
CREATE INDEX effects_cancelled_by_key ON effect_outbox USING btree (idempotency_key) WHERE state = 'cancelled'::text;
CREATE INDEX effects_due ON effect_outbox USING btree (lane, next_attempt_at) WHERE state = 'pending'::text;
CREATE INDEX effects_going_stale ON effect_outbox USING btree (fresh_until) WHERE state = 'pending'::text AND fresh_until IS NOT NULL;
CREATE INDEX effects_leased ON effect_outbox USING btree (lease_expires_at) WHERE state = 'sending'::text;
CREATE UNIQUE INDEX effects_once ON effect_outbox USING btree (idempotency_key, effect_type, target) WHERE state <> 'cancelled'::text;
CREATE UNIQUE INDEX effects_one_undo ON effect_outbox USING btree (undo_of) WHERE undo_of IS NOT NULL AND state <> 'cancelled'::text;
CREATE INDEX effects_open_by_draft_key ON effect_outbox USING btree (draft_key) WHERE state = ANY (ARRAY['pending'::text, 'sending'::text, 'unknown'::text]);
CREATE INDEX effects_unknown ON effect_outbox USING btree (next_attempt_at) WHERE state = 'unknown'::text;
CREATE TRIGGER effects_listed_moves BEFORE UPDATE OF state ON effect_outbox FOR EACH ROW WHEN (old.state IS DISTINCT FROM new.state AND NOT (old.state = 'pending'::text AND new.state = 'sending'::text) AND NOT (old.state = 'sending'::text AND new.state = 'completed'::text)) EXECUTE FUNCTION refuse_unlisted_move('effect');
GRANT INSERT, SELECT, UPDATE ON effect_outbox TO stet_app;

CREATE TABLE effect_payloads (
    effect_id     uuid NOT NULL,
    snapshot_hash text NOT NULL,
    revision      integer NOT NULL,
    recipient     text,
    body          bytea,
    erased_at     timestamp with time zone,
    body_hash     text,
    CONSTRAINT effect_payloads_pkey PRIMARY KEY (effect_id),
    CONSTRAINT effect_payloads_erased_or_there CHECK ((body IS NULL) = (erased_at IS NOT NULL))
);
COMMENT ON TABLE effect_payloads IS 'The very bytes of an effect, the same on every try.';
COMMENT ON COLUMN effect_payloads.body_hash IS 'Hex SHA-256 of the bytes as they were written; it outlives them.';
CREATE TRIGGER bodies_stay BEFORE INSERT OR UPDATE ON effect_payloads FOR EACH ROW EXECUTE FUNCTION keep_body();
GRANT INSERT, SELECT, UPDATE ON effect_payloads TO stet_app;

CREATE TABLE effect_look_ups (
    effect_id   uuid NOT NULL,
    asked       smallint NOT NULL DEFAULT 0,
    last_answer text,
    last_at     timestamp with time zone,
    CONSTRAINT effect_look_ups_pkey PRIMARY KEY (effect_id)
);
COMMENT ON TABLE effect_look_ups IS 'What the provider said when asked about an unknown effect; changes no version.';
GRANT INSERT, SELECT, UPDATE ON effect_look_ups TO stet_app;

CREATE TABLE effect_evidence (
    evidence_id uuid NOT NULL,
    effect_id   uuid NOT NULL,
    attempt     smallint NOT NULL,
    answer      text NOT NULL,
    provider_id text,
    seen_at     timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT effect_evidence_pkey PRIMARY KEY (evidence_id)
);
COMMENT ON TABLE effect_evidence IS 'Answers that came after the lease was lost: they move nothing, reconciliation reads them.';
CREATE INDEX evidence_of_effect ON effect_evidence USING btree (effect_id);
GRANT INSERT, SELECT ON effect_evidence TO stet_app;

CREATE TABLE cards (
    card_id          uuid NOT NULL,
    draft_id         uuid,
    effect_id        uuid,
    channel          text NOT NULL,
    ts               text,
    wanted_version   integer NOT NULL DEFAULT 1,
    shown_version    integer NOT NULL DEFAULT 0,
    shown_hash       text,
    noted_revision   integer NOT NULL DEFAULT 1,
    post_id          uuid,
    post_started_at  timestamp with time zone,
    attempts         smallint NOT NULL DEFAULT 0,
    next_attempt_at  timestamp with time zone NOT NULL DEFAULT now(),
    lease_owner      text,
    lease_expires_at timestamp with time zone,
    problem          text,
    updated_at       timestamp with time zone NOT NULL DEFAULT now(),
    place_kind       text,
    waits_until      timestamp with time zone,
    queue_of         text,
    queue_count      integer,
    CONSTRAINT cards_pkey PRIMARY KEY (card_id),
    CONSTRAINT cards_one_per_draft UNIQUE (draft_id),
    CONSTRAINT cards_one_per_effect UNIQUE (effect_id),
    CONSTRAINT cards_lease_whole CHECK ((lease_owner IS NULL) = (lease_expires_at IS NULL)),
    CONSTRAINT cards_never_ahead CHECK (shown_version <= wanted_version),
    CONSTRAINT cards_of_one_thing CHECK (num_nonnulls(draft_id, effect_id, queue_of) = 1),
    CONSTRAINT cards_queue_counts CHECK ((queue_of IS NULL) = (queue_count IS NULL)),
    CONSTRAINT cards_wait_for_a_place CHECK (waits_until IS NULL OR place_kind IS NOT NULL)
);
COMMENT ON TABLE cards IS 'The one Slack message of a draft, of an unknown effect (in the ops channel), or of a channel''s queue.';
COMMENT ON COLUMN cards.shown_hash IS 'SHA-256 of the blocks shown, without button values and block ids.';
COMMENT ON COLUMN cards.noted_revision IS 'The newest revision that got its line in the thread.';
COMMENT ON COLUMN cards.post_id IS 'Metadata of a post whose answer is not recorded yet: look for it before posting again.';
COMMENT ON COLUMN cards.problem IS 'Slack''s error word while the card cannot be shown; ops was told.';
COMMENT ON COLUMN cards.place_kind IS 'While its draft is pending: the kind whose places in the channel it takes or waits for.';
COMMENT ON COLUMN cards.waits_until IS 'The draft''s expiry while the card waits for a place; until it has one it is not drawn.';
COMMENT ON COLUMN cards.queue_of IS 'The channel whose queue this card stands for.';
COMMENT ON COLUMN cards.queue_count IS 'How many drafts wait behind the queue card, as it is to say.';
CREATE INDEX cards_behind ON cards USING btree (next_attempt_at) WHERE wanted_version > shown_version AND waits_until IS NULL;
CREATE INDEX cards_in_place ON cards USING btree (channel, place_kind) WHERE place_kind IS NOT NULL AND waits_until IS NULL;
CREATE UNIQUE INDEX cards_one_per_queue ON cards USING btree (queue_of) WHERE queue_of IS NOT NULL;
CREATE INDEX cards_waiting ON cards USING btree (channel, place_kind, waits_until, draft_id) WHERE waits_until IS NOT NULL;
GRANT INSERT, SELECT, UPDATE ON cards TO stet_app;

CREATE TABLE alerts (
    alert_id        uuid NOT NULL,
    alert_key       text NOT NULL,
    name            text NOT NULL,
    facts           jsonb NOT NULL DEFAULT '{}'::jsonb,
    raised_at       timestamp with time zone NOT NULL DEFAULT now(),
    next_attempt_at timestamp with time zone NOT NULL DEFAULT now(),
    attempts        smallint NOT NULL DEFAULT 0,
    sent_at         timestamp with time zone,
    CONSTRAINT alerts_pkey PRIMARY KEY (alert_id),
    CONSTRAINT alerts_once UNIQUE (alert_key)
);
COMMENT ON TABLE alerts IS 'What the ops channel is told, once an occasion (alert_key). Facts are ids and words, never content.';
CREATE INDEX alerts_to_send ON alerts USING btree (next_attempt_at) WHERE sent_at IS NULL;
GRANT DELETE, INSERT, SELECT, UPDATE ON alerts TO stet_app;

CREATE TABLE kill_switch (
    scope      text NOT NULL,
    open       boolean NOT NULL,
    changed_by text NOT NULL,
    changed_at timestamp with time zone NOT NULL DEFAULT now(),
    reason     text,
    CONSTRAINT kill_switch_pkey PRIMARY KEY (scope),
    CONSTRAINT kill_switch_scope CHECK ((scope = ANY (ARRAY['all'::text, 'llm'::text])) OR scope ~ '^kind:[a-z0-9][a-z0-9_.-]{0,63}$'::text OR scope ~ '^effect:[a-z0-9_]{1,64}$'::text)
);
COMMENT ON TABLE kill_switch IS 'Kill and resume lock the row of scope all FOR UPDATE first; a start holds it FOR SHARE.';
GRANT INSERT, SELECT, UPDATE ON kill_switch TO stet_app;

CREATE TABLE audit_log (
    chain       text NOT NULL,
    seq         integer NOT NULL,
    at          timestamp with time zone NOT NULL,
    actor       text NOT NULL,
    action      text NOT NULL,
    detail_hash bytea NOT NULL,
    hash        bytea NOT NULL,
    CONSTRAINT audit_chain_once PRIMARY KEY (chain, seq),
    CONSTRAINT audit_one_line CHECK (actor !~ '[\n\r]'::text AND action ~ '^[a-z_.]{1,64}$'::text)
);
COMMENT ON TABLE audit_log IS 'Append-only: who did what to which key, each line chained to the one before.';
CREATE TRIGGER audit_log_append_only BEFORE DELETE OR UPDATE ON audit_log FOR EACH ROW EXECUTE FUNCTION refuse_rewriting();
ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_append_only;
CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_no_truncate;
GRANT INSERT, SELECT ON audit_log TO stet_app;

CREATE TABLE audit_details (
    chain  text NOT NULL,
    seq    integer NOT NULL,
    salt   bytea NOT NULL,
    detail text NOT NULL,
    CONSTRAINT audit_details_once PRIMARY KEY (chain, seq)
);
COMMENT ON TABLE audit_details IS 'What a line of the record says in words and values (JSON); may be erased, never changed.';
CREATE TRIGGER audit_details_no_truncate BEFORE TRUNCATE ON audit_details FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
ALTER TABLE audit_details ENABLE ALWAYS TRIGGER audit_details_no_truncate;
CREATE TRIGGER audit_details_no_update BEFORE UPDATE ON audit_details FOR EACH ROW EXECUTE FUNCTION refuse_rewriting();
ALTER TABLE audit_details ENABLE ALWAYS TRIGGER audit_details_no_update;
GRANT DELETE, INSERT, SELECT ON audit_details TO stet_app;

CREATE TABLE audit_roots (
    day     date NOT NULL,
    chains  bigint NOT NULL,
    root    bytea NOT NULL,
    made_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT audit_roots_pkey PRIMARY KEY (day)
);
COMMENT ON TABLE audit_roots IS 'A daily hash over all chain heads; its copies in Slack and on disk are what convicts.';
CREATE TRIGGER audit_roots_append_only BEFORE DELETE OR UPDATE ON audit_roots FOR EACH ROW EXECUTE FUNCTION refuse_rewriting();
ALTER TABLE audit_roots ENABLE ALWAYS TRIGGER audit_roots_append_only;
CREATE TRIGGER audit_roots_no_truncate BEFORE TRUNCATE ON audit_roots FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
ALTER TABLE audit_roots ENABLE ALWAYS TRIGGER audit_roots_no_truncate;
GRANT INSERT, SELECT ON audit_roots TO stet_app;

CREATE TABLE homes (
    team_id       text NOT NULL,
    user_id       text NOT NULL,
    page          smallint NOT NULL DEFAULT 1,
    opened_at     timestamp with time zone NOT NULL DEFAULT now(),
    next_check_at timestamp with time zone NOT NULL DEFAULT now(),
    shown_hash    text,
    view_hash     text,
    CONSTRAINT homes_one_a_person PRIMARY KEY (team_id, user_id),
    CONSTRAINT homes_page_check CHECK (page >= 1)
);
COMMENT ON TABLE homes IS 'App Homes that were opened; those opened lately are drawn again when something of them changes.';
COMMENT ON COLUMN homes.shown_hash IS 'SHA-256 of the blocks shown, without button values and block ids.';
COMMENT ON COLUMN homes.view_hash IS 'Slack''s own hash of the Home we published: whoever publishes over another''s is refused.';
CREATE INDEX homes_to_check ON homes USING btree (next_check_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON homes TO stet_app;

CREATE TABLE agreements (
    ground     text NOT NULL,
    decided_at timestamp with time zone NOT NULL,
    run_id     uuid NOT NULL,
    unedited   boolean NOT NULL,
    CONSTRAINT agreements_newest PRIMARY KEY (ground, decided_at, run_id)
);
COMMENT ON TABLE agreements IS 'One row a decision of people (approve, reject or cancel); only ever added.';
COMMENT ON COLUMN agreements.ground IS 'Hash of kind, prompt, model, output and rules: evidence of one tells of no other.';
COMMENT ON COLUMN agreements.unedited IS 'They approved the very revision that the run opened with.';
GRANT INSERT, SELECT ON agreements TO stet_app;

CREATE TABLE earnings (
    ground     text NOT NULL,
    kind       text NOT NULL,
    is_earned  boolean NOT NULL,
    changes    integer NOT NULL DEFAULT 1,
    changed_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT earnings_pkey PRIMARY KEY (ground)
);
COMMENT ON TABLE earnings IS 'Whether actions of a kind last went out without a person: so that ops is told once when they stop.';
COMMENT ON COLUMN earnings.changes IS 'How often that turned; names the occasion of the alert.';
GRANT INSERT, SELECT, UPDATE ON earnings TO stet_app;

CREATE TABLE model_tokens (
    day    date NOT NULL,
    kind   text NOT NULL,
    tokens bigint NOT NULL DEFAULT 0,
    CONSTRAINT model_tokens_one_a_day PRIMARY KEY (day, kind),
    CONSTRAINT model_tokens_tokens_check CHECK (tokens >= 0)
);
COMMENT ON TABLE model_tokens IS 'Tokens as the endpoint counted them, answers and failed tries alike, by UTC day.';
GRANT INSERT, SELECT, UPDATE ON model_tokens TO stet_app;

CREATE TABLE kind_limits (
    kind                      text NOT NULL,
    concurrency               integer,
    per_second                integer,
    per_minute                integer,
    cap_hour                  integer,
    cap_day                   integer,
    value_path                text[],
    cap_value_day             numeric,
    breaker_after             integer NOT NULL,
    breaker_rest_seconds      integer NOT NULL,
    breaker_rest_most_seconds integer NOT NULL,
    is_guarded                boolean NOT NULL GENERATED ALWAYS AS ((num_nonnulls(concurrency, per_second, per_minute, cap_hour, cap_day, cap_value_day) > 0)) STORED,
    full_until                timestamp with time zone,
    full_why                  text,
    is_told                   boolean NOT NULL DEFAULT true,
    CONSTRAINT kind_limits_pkey PRIMARY KEY (kind),
    CONSTRAINT kind_limits_breaker_after_check CHECK (breaker_after >= 0),
    CONSTRAINT kind_limits_breaker_rest_seconds_check CHECK (breaker_rest_seconds >= 1),
    CONSTRAINT kind_limits_cap_day_check CHECK (cap_day >= 1),
    CONSTRAINT kind_limits_cap_hour_check CHECK (cap_hour >= 1),
    CONSTRAINT kind_limits_cap_value_day_check CHECK (cap_value_day > 0::numeric AND cap_value_day < 'Infinity'::numeric),
    CONSTRAINT kind_limits_check CHECK (breaker_rest_most_seconds >= breaker_rest_seconds),
    CONSTRAINT kind_limits_concurrency_check CHECK (concurrency >= 1),
    CONSTRAINT kind_limits_per_minute_check CHECK (per_minute >= 1),
    CONSTRAINT kind_limits_per_second_check CHECK (per_second >= 1),
    CONSTRAINT limits_full_whole CHECK ((full_until IS NULL) = (full_why IS NULL)),
    CONSTRAINT limits_full_why CHECK (full_why = ANY (ARRAY['cap_hour'::text, 'cap_day'::text, 'cap_value_day'::text])),
    CONSTRAINT limits_value_whole CHECK ((value_path IS NULL) = (cap_value_day IS NULL))
);
COMMENT ON TABLE kind_limits IS 'The limits of the policy file, as the newest start read them; its row is held while a limited kind is claimed.';
COMMENT ON COLUMN kind_limits.is_guarded IS 'Effects of this kind are claimed under the lock of this row, one process at a time.';
COMMENT ON COLUMN kind_limits.full_until IS 'While something waits for a cap: the end of the window that it waits for.';
COMMENT ON COLUMN kind_limits.is_told IS 'Cards and ops know of full_until as it stands.';
GRANT DELETE, INSERT, SELECT, UPDATE ON kind_limits TO stet_app;

CREATE TABLE departures (
    effect_id uuid NOT NULL,
    taken_at  timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    kind      text NOT NULL,
    lane      bigint NOT NULL,
    value     numeric,
    CONSTRAINT departures_once PRIMARY KEY (effect_id, taken_at),
    CONSTRAINT departures_value_finite CHECK (value >= 0::numeric AND value < 'Infinity'::numeric)
);
COMMENT ON TABLE departures IS 'Claims of effects of limited kinds, for a day. Whether one still counts against a cap is read from its effect.';
CREATE INDEX departures_of_kind ON departures USING btree (kind, taken_at);
CREATE INDEX departures_of_lane ON departures USING btree (lane, taken_at);
GRANT DELETE, INSERT, SELECT ON departures TO stet_app;

CREATE TABLE targets (
    lane        bigint NOT NULL,
    kind        text NOT NULL,
    effect_type text NOT NULL,
    target      text NOT NULL,
    failures    integer NOT NULL,
    opened_at   timestamp with time zone,
    rests_until timestamp with time zone,
    trials      smallint NOT NULL DEFAULT 0,
    trial_id    uuid,
    is_told     boolean NOT NULL DEFAULT true,
    CONSTRAINT targets_pkey PRIMARY KEY (lane),
    CONSTRAINT targets_failures_check CHECK (failures >= 0),
    CONSTRAINT targets_rest_while_open CHECK ((opened_at IS NULL) = (rests_until IS NULL)),
    CONSTRAINT targets_trial_while_open CHECK (opened_at IS NOT NULL OR trial_id IS NULL)
);
COMMENT ON TABLE targets IS 'Targets (lanes) that failed: how often in a row, and until when they are left in peace.';
COMMENT ON COLUMN targets.failures IS 'Answers in a row that prove "not sent" or are ambiguous, over all processes.';
COMMENT ON COLUMN targets.opened_at IS 'Since when nothing is sent but one trial at a time; names the occasion for ops.';
COMMENT ON COLUMN targets.rests_until IS 'When the next trial may be claimed; while one is under way, when its lease runs out.';
COMMENT ON COLUMN targets.trials IS 'Trials that failed since it opened: each doubles the rest, up to the kind''s most.';
GRANT INSERT, SELECT, UPDATE ON targets TO stet_app;

CREATE TABLE unshown_switches (
    scope      text NOT NULL,
    changed_at timestamp with time zone NOT NULL DEFAULT now(),
    CONSTRAINT unshown_switches_pkey PRIMARY KEY (scope)
);
COMMENT ON TABLE unshown_switches IS 'Scopes that were switched and whose cards have not been asked for since: empty but for moments.';
GRANT DELETE, INSERT, SELECT, UPDATE ON unshown_switches TO stet_app;
