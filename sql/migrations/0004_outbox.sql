-- What is to happen outside. The row is narrow and moves three times; the bytes to send lie beside it and
-- are written once, so a claim of two hundred rows copies no payload.

CREATE TABLE effect_outbox (
    effect_id        uuid PRIMARY KEY,
    idempotency_key  text NOT NULL,
    run_id           uuid NOT NULL,
    draft_id         uuid NOT NULL,
    draft_key        text NOT NULL,
    kind             text NOT NULL,
    effect_type      text NOT NULL,
    target           text NOT NULL,
    lane             bigint NOT NULL GENERATED ALWAYS AS (hashtextextended(effect_type || ' ' || kind
        || CASE WHEN effect_type = 'resume' THEN '' ELSE ' ' || target END, 0)) STORED,
    known_version    bigint NOT NULL,
    state            text NOT NULL DEFAULT 'pending' CONSTRAINT effects_known_state CHECK (state IN (
        'pending', 'sending', 'completed', 'unknown', 'failed', 'cancelled')),
    version          integer NOT NULL DEFAULT 1,
    attempts         smallint NOT NULL DEFAULT 0,
    not_before       timestamptz,
    next_attempt_at  timestamptz NOT NULL DEFAULT now(),
    fresh_until      timestamptz,
    lease_owner      text,
    lease_expires_at timestamptz,
    started_at       timestamptz,
    ambiguous_at     timestamptz,
    provider_id      text,
    reason           text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT effects_lease_while_sending CHECK (
        (state = 'sending') = (lease_owner IS NOT NULL)
        AND (lease_owner IS NULL) = (lease_expires_at IS NULL)),
    CONSTRAINT effects_unknown_was_started CHECK (state <> 'unknown' OR ambiguous_at IS NOT NULL),
    CONSTRAINT effects_failed_says_why CHECK (state <> 'failed' OR reason IS NOT NULL)
);
COMMENT ON TABLE effect_outbox IS 'One thing to do in the outside world, written with the decision that allowed it.';
COMMENT ON COLUMN effect_outbox.known_version IS 'The head''s version the decision was taken under; a newer head stops the send.';
COMMENT ON COLUMN effect_outbox.lane IS
    'Which queue it waits in: one a type, kind and target (resume URLs share one), so that a stuck target delays only itself.';
COMMENT ON COLUMN effect_outbox.attempts IS 'Tries that were started since the decision, or since a person said "send again".';
COMMENT ON COLUMN effect_outbox.next_attempt_at IS 'Pending: due. Unknown: when the provider is asked next.';
COMMENT ON COLUMN effect_outbox.fresh_until IS 'After this the approval is too old to send; none for effects without a person''s approval to outlive.';
COMMENT ON COLUMN effect_outbox.started_at IS
    'Set right before the call of this try: splits an expired lease into not sent and unknown.';
COMMENT ON COLUMN effect_outbox.ambiguous_at IS 'First time a try may have reached the provider; then no machine writes failed.';

-- The promise: at most one effect leaves per key, type and target.
CREATE UNIQUE INDEX effects_once ON effect_outbox (idempotency_key, effect_type, target) WHERE state <> 'cancelled';
-- All effects of one key: effects_once finds the living ones, this the cancelled.
CREATE INDEX effects_cancelled_by_key ON effect_outbox (idempotency_key) WHERE state = 'cancelled';
-- Claims, lease recovery and look-ups, each flat however many effects are done.
CREATE INDEX effects_due ON effect_outbox (lane, next_attempt_at) WHERE state = 'pending';
CREATE INDEX effects_leased ON effect_outbox (lease_expires_at) WHERE state = 'sending';
CREATE INDEX effects_unknown ON effect_outbox (next_attempt_at) WHERE state = 'unknown';
-- The freshness sweep: approvals that outlive themselves while they wait. NOT NULL also keeps claims off it, whatever
-- the statistics say.
CREATE INDEX effects_going_stale ON effect_outbox (fresh_until) WHERE state = 'pending' AND fresh_until IS NOT NULL;
-- "Nothing older unfinished of the same draft_key", and runs that wait for an unsettled effect.
CREATE INDEX effects_open_by_draft_key ON effect_outbox (draft_key) WHERE state IN ('pending', 'sending', 'unknown');

-- The two moves that every effect makes pass without being looked up: that would cost a third of the update.
CREATE TRIGGER effects_listed_moves BEFORE UPDATE OF state ON effect_outbox FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state
          AND NOT (OLD.state = 'pending' AND NEW.state = 'sending')
          AND NOT (OLD.state = 'sending' AND NEW.state = 'completed'))
    EXECUTE FUNCTION refuse_unlisted_move('effect');

CREATE TABLE effect_payloads (
    effect_id     uuid PRIMARY KEY,
    snapshot_hash text NOT NULL,
    revision      integer NOT NULL,
    recipient     text,
    body          bytea,
    erased_at     timestamptz,
    CONSTRAINT effect_payloads_erased_or_there CHECK ((body IS NULL) = (erased_at IS NOT NULL))
);
COMMENT ON TABLE effect_payloads IS 'The very bytes of an effect, the same on every try.';

CREATE TABLE effect_look_ups (
    effect_id    uuid PRIMARY KEY,
    asked        smallint NOT NULL DEFAULT 0,
    last_answer  text,
    last_at      timestamptz
);
COMMENT ON TABLE effect_look_ups IS 'What the provider said when asked about an unknown effect; changes no version.';

CREATE TABLE effect_evidence (
    evidence_id uuid PRIMARY KEY,
    effect_id   uuid NOT NULL,
    attempt     smallint NOT NULL,
    answer      text NOT NULL,
    provider_id text,
    seen_at     timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE effect_evidence IS 'Answers that came after the lease was lost: they move nothing, reconciliation reads them.';
CREATE INDEX evidence_of_effect ON effect_evidence (effect_id);
