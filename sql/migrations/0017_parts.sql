-- Several effects of one draft, and what undoes an effect. An outbox row says which part of its frozen policy it was made
-- of, what it waits for and what it undoes; a draft with one effect leaves all of that empty, and its row as narrow.

-- One list, whether the policy named one effect or several. (The only readers are in sql/queries.)
ALTER TABLE policy_snapshots ADD COLUMN effects jsonb
    -- One row a policy that ever was: rewriting the table takes no time.
    -- squawk-ignore adding-field-with-default
    GENERATED ALWAYS AS (coalesce(body -> 'effects', '[]'::jsonb || (body -> 'effect'))) STORED;
COMMENT ON COLUMN policy_snapshots.effects IS 'The small part that sending reads, beside the large one.';
-- squawk-ignore ban-drop-column
ALTER TABLE policy_snapshots DROP COLUMN effect;

ALTER TABLE effect_outbox ADD COLUMN clause text[];
ALTER TABLE effect_outbox ADD COLUMN after_id uuid;
ALTER TABLE effect_outbox ADD COLUMN undo_of uuid;
ALTER TABLE effect_outbox ADD COLUMN undo_by text;
COMMENT ON COLUMN effect_outbox.clause IS
    'Where in its snapshot''s effects its terms are: {1} is the second, {1,undo} what undoes that; none for an only one.';
COMMENT ON COLUMN effect_outbox.after_id IS 'The effect of the same draft that must be completed before this may leave.';
COMMENT ON COLUMN effect_outbox.undo_of IS 'The completed effect that this one takes back. No newer version outdates it.';
COMMENT ON COLUMN effect_outbox.undo_by IS 'Who asked for the undo; the others were let out by their draft''s approval.';
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE effect_outbox ADD CONSTRAINT effects_undone_by_somebody CHECK ((undo_of IS NULL) = (undo_by IS NULL));
-- The promise: an effect is undone at most once.
CREATE UNIQUE INDEX effects_one_undo ON effect_outbox (undo_of) WHERE undo_of IS NOT NULL AND state <> 'cancelled';

ALTER TABLE approval_tokens ADD COLUMN effect_id uuid;
COMMENT ON COLUMN approval_tokens.effect_id IS 'For undo: which effect the button takes back.';
-- squawk-ignore ban-drop-constraint
ALTER TABLE approval_tokens DROP CONSTRAINT approval_tokens_decision_check;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE approval_tokens ADD CONSTRAINT approval_tokens_decision_check CHECK (
    decision IN ('approve', 'reject', 'edit', 'redraft', 'cancel', 'undo', 'read'));
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE approval_tokens ADD CONSTRAINT tokens_undo_one_effect CHECK ((decision = 'undo') = (effect_id IS NOT NULL));

UPDATE state_moves SET why = 'cancelled, newer version, no longer fresh, or what it waits for did not complete'
 WHERE thing = 'effect' AND before = 'pending' AND after = 'cancelled';
UPDATE state_moves SET why = 'an effect failed for good, or only some of them left'
 WHERE thing = 'run' AND before = 'approved' AND after = 'failed_terminal';
UPDATE state_moves SET why = 'an effect failed for good, or only some of them left'
 WHERE thing = 'draft' AND before IN ('approved', 'scheduled') AND after = 'failed';
