-- The Slack side. Level-triggered: whoever changes something a card shows bumps wanted_version in the same
-- transaction; one worker draws the truth of that moment and records shown_version. Many changes, one edit.

CREATE TABLE cards (
    card_id          uuid PRIMARY KEY,
    draft_id         uuid CONSTRAINT cards_one_per_draft UNIQUE,
    effect_id        uuid CONSTRAINT cards_one_per_effect UNIQUE,
    channel          text NOT NULL,
    ts               text,
    wanted_version   integer NOT NULL DEFAULT 1,
    shown_version    integer NOT NULL DEFAULT 0,
    shown_hash       text,
    noted_revision   integer NOT NULL DEFAULT 1,
    post_id          uuid,
    post_started_at  timestamptz,
    attempts         smallint NOT NULL DEFAULT 0,
    next_attempt_at  timestamptz NOT NULL DEFAULT now(),
    lease_owner      text,
    lease_expires_at timestamptz,
    problem          text,
    updated_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT cards_of_one_thing CHECK ((draft_id IS NULL) <> (effect_id IS NULL)),
    CONSTRAINT cards_never_ahead CHECK (shown_version <= wanted_version),
    CONSTRAINT cards_lease_whole CHECK ((lease_owner IS NULL) = (lease_expires_at IS NULL))
);
COMMENT ON TABLE cards IS 'The one Slack message of a draft (or of an unknown effect, in the ops channel).';
COMMENT ON COLUMN cards.shown_hash IS 'SHA-256 of the blocks shown, without button values and block ids.';
COMMENT ON COLUMN cards.post_id IS 'Metadata of a post whose answer is not recorded yet: look for it before posting again.';
COMMENT ON COLUMN cards.noted_revision IS 'The newest revision that got its line in the thread.';
COMMENT ON COLUMN cards.problem IS 'Slack''s error word while the card cannot be shown; ops was told.';
-- The card worker's queue, flat however many cards are up to date.
CREATE INDEX cards_behind ON cards (next_attempt_at) WHERE wanted_version > shown_version;

CREATE TABLE alerts (
    alert_id        uuid PRIMARY KEY,
    alert_key       text NOT NULL CONSTRAINT alerts_once UNIQUE,
    name            text NOT NULL,
    facts           jsonb NOT NULL DEFAULT '{}',
    raised_at       timestamptz NOT NULL DEFAULT now(),
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    attempts        smallint NOT NULL DEFAULT 0,
    sent_at         timestamptz
);
COMMENT ON TABLE alerts IS 'What the ops channel is told, once an occasion (alert_key). Facts are ids and words, never content.';
CREATE INDEX alerts_to_send ON alerts (next_attempt_at) WHERE sent_at IS NULL;
