-- What waits for people, and how they are told: reminders, the queue behind a full channel, App Homes. The card's row
-- says itself that it waits: one row a draft from birth to history, and admitting a card is one update of it.

ALTER TABLE drafts ADD COLUMN asked_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE drafts ADD COLUMN reminded smallint NOT NULL DEFAULT 0;
ALTER TABLE drafts ADD COLUMN reminder_ts text;
COMMENT ON COLUMN drafts.asked_at IS 'Since when this term runs: set with expires_at, and like it not by edit or redraft.';
COMMENT ON COLUMN drafts.reminded IS 'How many reminders of this term were taken; each is taken before it is posted.';
COMMENT ON COLUMN drafts.reminder_ts IS 'The line of this term in the card''s thread, which later reminders edit.';
UPDATE drafts SET asked_at = opened_at WHERE status = 'pending';
-- Reminders that are due, flat however many drafts had theirs.
CREATE INDEX drafts_to_remind ON drafts (kind, reminded, asked_at) WHERE status = 'pending';

ALTER TABLE cards ADD COLUMN place_kind text;
ALTER TABLE cards ADD COLUMN waits_until timestamptz;
ALTER TABLE cards ADD COLUMN queue_of text;
ALTER TABLE cards ADD COLUMN queue_count integer;
-- squawk-ignore ban-drop-constraint
ALTER TABLE cards DROP CONSTRAINT cards_of_one_thing;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE cards ADD CONSTRAINT cards_of_one_thing CHECK (num_nonnulls(draft_id, effect_id, queue_of) = 1);
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE cards ADD CONSTRAINT cards_queue_counts CHECK ((queue_of IS NULL) = (queue_count IS NULL));
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE cards ADD CONSTRAINT cards_wait_for_a_place CHECK (waits_until IS NULL OR place_kind IS NOT NULL);
COMMENT ON TABLE cards IS 'The one Slack message of a draft, of an unknown effect (in the ops channel), or of a channel''s queue.';
COMMENT ON COLUMN cards.place_kind IS 'While its draft is pending: the kind whose places in the channel it takes or waits for.';
COMMENT ON COLUMN cards.waits_until IS 'The draft''s expiry while the card waits for a place; until it has one it is not drawn.';
COMMENT ON COLUMN cards.queue_of IS 'The channel whose queue this card stands for.';
COMMENT ON COLUMN cards.queue_count IS 'How many drafts wait behind the queue card, as it is to say.';
UPDATE cards SET place_kind = d.kind FROM drafts AS d WHERE d.draft_id = cards.draft_id AND d.status = 'pending';
-- One queue card a channel.
CREATE UNIQUE INDEX cards_one_per_queue ON cards (queue_of) WHERE queue_of IS NOT NULL;
-- The card worker's queue again, without those that wait for a place.
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX cards_behind;
CREATE INDEX cards_behind ON cards (next_attempt_at) WHERE wanted_version > shown_version AND waits_until IS NULL;
-- Who gets the next place: oldest expiry first.
CREATE INDEX cards_waiting ON cards (channel, place_kind, waits_until, draft_id) WHERE waits_until IS NOT NULL;
-- Which places are taken.
CREATE INDEX cards_in_place ON cards (channel, place_kind) WHERE place_kind IS NOT NULL AND waits_until IS NULL;

CREATE TABLE homes (
    team_id       text NOT NULL,
    user_id       text NOT NULL,
    page          smallint NOT NULL DEFAULT 1 CHECK (page >= 1),
    opened_at     timestamptz NOT NULL DEFAULT now(),
    next_check_at timestamptz NOT NULL DEFAULT now(),
    shown_hash    text,
    view_hash     text,
    CONSTRAINT homes_one_a_person PRIMARY KEY (team_id, user_id)
);
COMMENT ON TABLE homes IS 'App Homes that were opened; those opened lately are drawn again when something of them changes.';
COMMENT ON COLUMN homes.shown_hash IS 'SHA-256 of the blocks shown, without button values and block ids.';
COMMENT ON COLUMN homes.view_hash IS 'Slack''s own hash of the Home we published: whoever publishes over another''s is refused.';
-- Homes to look at, flat however many people ever opened one.
CREATE INDEX homes_to_check ON homes (next_check_at);

-- What somebody decided lately; votes are only ever added.
CREATE INDEX votes_of_person ON votes (subject, voted_at);
-- The buttons of one person's Home, to drop those of drawings long gone.
CREATE INDEX tokens_of_home ON approval_tokens (holder, minted_at) WHERE surface = 'home';

GRANT SELECT, INSERT, UPDATE, DELETE ON homes TO stet_app;
