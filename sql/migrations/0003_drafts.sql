-- The proposal, its immutable revisions, the open question about one revision, the tokens that may answer
-- it, and the votes. The partial unique index is the promise "at most one open draft a draft_key".

CREATE TABLE policy_snapshots (
    snapshot_hash text PRIMARY KEY,
    kind          text NOT NULL,
    body          jsonb NOT NULL,
    effect        jsonb GENERATED ALWAYS AS (body -> 'effect') STORED,
    first_used_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE policy_snapshots IS 'What of a kind''s policy is frozen onto a draft; many drafts share one row.';
COMMENT ON COLUMN policy_snapshots.effect IS 'The small part that sending reads, beside the large one.';

CREATE TABLE drafts (
    draft_id       uuid PRIMARY KEY,
    draft_key      text NOT NULL,
    kind           text NOT NULL,
    entity         text NOT NULL,
    run_id         uuid NOT NULL,
    status         text NOT NULL CONSTRAINT drafts_known_status CHECK (status IN (
        'pending', 'scheduled', 'approved', 'sent', 'rejected', 'expired', 'cancelled', 'failed')),
    version        integer NOT NULL DEFAULT 1,
    revision       integer NOT NULL CHECK (revision >= 1),
    approval_id    uuid,
    known_version  bigint NOT NULL,
    snapshot_hash  text NOT NULL,
    notice         text,
    earlier_id     uuid,
    opened_at      timestamptz NOT NULL DEFAULT now(),
    expires_at     timestamptz NOT NULL,
    decided_at     timestamptz,
    updated_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT drafts_question_while_pending CHECK ((status = 'pending') = (approval_id IS NOT NULL))
);
COMMENT ON TABLE drafts IS 'The proposal for one draft_key; rows stay as history once settled.';
COMMENT ON COLUMN drafts.run_id IS 'The run whose content is the current revision.';
COMMENT ON COLUMN drafts.approval_id IS 'The open question; none unless pending. Whatever else asks is over.';
COMMENT ON COLUMN drafts.known_version IS
    'The head''s version this draft answers to: a head that is newer blocks every decision.';
COMMENT ON COLUMN drafts.notice IS 'A word for the card: newer_failed, withdrawn_newer, withdrawn_stale.';
COMMENT ON COLUMN drafts.earlier_id IS 'The draft before this one for the same key, for "was rejected by".';

-- The promise: at most one open draft a draft_key.
CREATE UNIQUE INDEX drafts_one_open_per_key ON drafts (draft_key)
    WHERE status IN ('pending', 'scheduled', 'approved');
-- The expiry sweep, flat however many drafts are settled.
CREATE INDEX drafts_expiring ON drafts (expires_at) WHERE status = 'pending';

CREATE TRIGGER drafts_listed_moves BEFORE UPDATE OF status ON drafts FOR EACH ROW
    WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION refuse_unlisted_move('draft');

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
    warnings       jsonb NOT NULL DEFAULT '[]',
    created_at     timestamptz NOT NULL DEFAULT now(),
    erased_at      timestamptz,
    CONSTRAINT revisions_once PRIMARY KEY (draft_id, revision),
    CONSTRAINT revisions_erased_or_there CHECK ((body IS NULL) = (erased_at IS NOT NULL))
);
COMMENT ON TABLE revisions IS 'Immutable contents of a draft; author is model, upstream or slack:TEAM:USER.';

CREATE TABLE approvals (
    approval_id      uuid PRIMARY KEY,
    draft_id         uuid NOT NULL,
    revision         integer NOT NULL,
    run_id           uuid NOT NULL,
    quorum           smallint NOT NULL CHECK (quorum >= 1),
    opened_at        timestamptz NOT NULL DEFAULT now(),
    ended_at         timestamptz,
    end_reason       text,
    consumed_at      timestamptz,
    decision         text CHECK (decision IN ('approve', 'reject', 'edit', 'redraft', 'cancel')),
    approver_subject text,
    token_hash       text,
    shown_hash       text,
    reason           text,
    CONSTRAINT approvals_decided_whole CHECK (
        (consumed_at IS NULL) = (decision IS NULL) AND (consumed_at IS NULL) = (approver_subject IS NULL)),
    CONSTRAINT approvals_decided_is_over CHECK (consumed_at IS NULL OR ended_at IS NOT NULL)
);
COMMENT ON TABLE approvals IS 'The question about one revision. It is open while its draft points at it.';
COMMENT ON COLUMN approvals.shown_hash IS 'Hash of what the deciding click''s surface showed.';
-- History of one draft. No index names consumed_at: the deciding update stays HOT.
CREATE INDEX approvals_of_draft ON approvals (draft_id);

CREATE TABLE approval_tokens (
    token_hash      text PRIMARY KEY,
    approval_id     uuid NOT NULL,
    revision        integer NOT NULL,
    decision        text NOT NULL CHECK (decision IN ('approve', 'reject', 'edit', 'redraft', 'cancel', 'read')),
    surface         text NOT NULL CHECK (surface IN ('message', 'view', 'home')),
    card_id         uuid,
    holder          text,
    shown_hash      text NOT NULL,
    minted_at       timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    CONSTRAINT tokens_bound_to_surface CHECK (
        (surface = 'message') = (card_id IS NOT NULL) AND (surface = 'message') = (holder IS NULL))
);
COMMENT ON TABLE approval_tokens IS
    'Single-use answers, one a button. Only the SHA-256 is stored; the end of the approval kills them all.';
COMMENT ON COLUMN approval_tokens.card_id IS 'For a message: the card whose channel and ts the click must come from.';
COMMENT ON COLUMN approval_tokens.holder IS 'For a view or a Home: the one person (slack:TEAM:USER) it was drawn for.';
CREATE INDEX tokens_of_approval ON approval_tokens (approval_id);

CREATE TABLE votes (
    approval_id uuid NOT NULL,
    subject     text NOT NULL,
    decision    text NOT NULL CHECK (decision IN ('approve', 'reject')),
    counted_as  text NOT NULL,
    shown_hash  text NOT NULL,
    voted_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT votes_one_a_person PRIMARY KEY (approval_id, subject)
);
COMMENT ON TABLE votes IS 'One row a person and approval, recounted under the lock.';
COMMENT ON COLUMN votes.counted_as IS 'What made the person a reviewer: user:U… or group:S….';

CREATE TABLE redrafts (
    redraft_id       uuid PRIMARY KEY,
    draft_id         uuid NOT NULL,
    revision         integer NOT NULL,
    requested_by     text NOT NULL,
    wish             text,
    attempts         smallint NOT NULL DEFAULT 0,
    lease_owner      text,
    lease_expires_at timestamptz,
    next_attempt_at  timestamptz NOT NULL DEFAULT now(),
    result           jsonb,
    opened_at        timestamptz NOT NULL DEFAULT now(),
    closed_at        timestamptz,
    outcome          text,
    CONSTRAINT redrafts_closed_with_outcome CHECK ((closed_at IS NULL) = (outcome IS NULL)),
    CONSTRAINT redrafts_answer_while_open CHECK (closed_at IS NULL OR result IS NULL),
    CONSTRAINT redrafts_lease_while_open CHECK (closed_at IS NULL OR lease_owner IS NULL),
    CONSTRAINT redrafts_lease_whole CHECK ((lease_owner IS NULL) = (lease_expires_at IS NULL))
);
COMMENT ON TABLE redrafts IS 'A person''s wish for another revision by the model; leased like a run.';
COMMENT ON COLUMN redrafts.attempts IS 'Claims so far; an owner of an earlier claim writes nothing.';
COMMENT ON COLUMN redrafts.result IS 'The model''s checked answer until it is a revision; gone once the wish is closed.';
COMMENT ON COLUMN redrafts.outcome IS
    'done, failed, unavailable, timed_out, overtaken, newer_event or expired: why the wish is over.';
-- At most one open a draft.
CREATE UNIQUE INDEX redrafts_one_open ON redrafts (draft_id) WHERE closed_at IS NULL;
CREATE INDEX redrafts_due ON redrafts (next_attempt_at) WHERE closed_at IS NULL;
-- What was asked about one draft: how many wishes are left, and how the last one ended.
CREATE INDEX redrafts_of_draft ON redrafts (draft_id);
