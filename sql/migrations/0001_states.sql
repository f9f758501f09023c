-- Which moves exist, and a trigger that refuses every other one. A table rather than an enum type or a
-- check in code: a value must be able to leave, and no program may step past the list by mistake.

CREATE TABLE state_moves (
    thing  text NOT NULL CHECK (thing IN ('run', 'draft', 'effect')),
    before text NOT NULL,
    after  text NOT NULL,
    why    text NOT NULL,
    CONSTRAINT state_moves_once PRIMARY KEY (thing, before, after)
);
COMMENT ON TABLE state_moves IS 'Every allowed change of state; equal to store/states.py, a test compares them.';

INSERT INTO state_moves (thing, before, after, why) VALUES
    ('run', 'received', 'processing', 'claimed by a drafting worker'),
    ('run', 'received', 'superseded', 'a newer event was accepted'),
    ('run', 'processing', 'processing', 'taken over after the lease ran out'),
    ('run', 'processing', 'awaiting_human', 'valid draft, the gate wants a person'),
    ('run', 'processing', 'approved', 'the gate lets it through, outbox row with it'),
    ('run', 'processing', 'failed_retryable', 'a failure that may pass'),
    ('run', 'processing', 'failed_terminal', 'invalid after repair, refused or misconfigured'),
    ('run', 'processing', 'superseded', 'a newer event was accepted'),
    ('run', 'failed_retryable', 'processing', 'due again and claimed'),
    ('run', 'failed_retryable', 'superseded', 'a newer event was accepted'),
    ('run', 'awaiting_human', 'superseded', 'the newer event''s draft opened'),
    ('run', 'awaiting_human', 'approved', 'a decision reached its quorum, outbox row with it'),
    ('run', 'awaiting_human', 'rejected', 'a person rejected it and said why'),
    ('run', 'awaiting_human', 'expired', 'nobody decided in time'),
    ('run', 'approved', 'completed', 'all its effects completed'),
    ('run', 'approved', 'cancelled', 'a person cancelled before any effect started'),
    ('run', 'approved', 'awaiting_human', 'withdrawn: newer event, or the approval outlived fresh_for'),
    ('run', 'approved', 'failed_terminal', 'an effect failed for good'),
    ('run', 'approved', 'superseded', 'an unknown effect was dropped for a newer version'),
    ('draft', 'pending', 'approved', 'a decision reached its quorum'),
    ('draft', 'pending', 'rejected', 'a person rejected it'),
    ('draft', 'pending', 'expired', 'nobody decided in time'),
    ('draft', 'pending', 'scheduled', 'a newer event under the delayed gate'),
    ('draft', 'approved', 'sent', 'all its effects completed'),
    ('draft', 'approved', 'failed', 'an effect failed for good'),
    ('draft', 'approved', 'cancelled', 'cancelled, or dropped for a newer version'),
    ('draft', 'approved', 'pending', 'withdrawn: newer event, or the approval outlived fresh_for'),
    ('draft', 'scheduled', 'sent', 'all its effects completed'),
    ('draft', 'scheduled', 'failed', 'an effect failed for good'),
    ('draft', 'scheduled', 'cancelled', 'cancelled within the window'),
    ('draft', 'scheduled', 'pending', 'withdrawn: newer event, or it outlived fresh_for'),
    ('effect', 'pending', 'sending', 'claimed: lease held, switch open, due, nothing older unfinished'),
    ('effect', 'pending', 'failed', 'attempts used up and no try was ambiguous'),
    ('effect', 'pending', 'cancelled', 'cancelled, newer version, or no longer fresh'),
    ('effect', 'sending', 'pending', 'not started, or proven not sent and a try is left'),
    ('effect', 'sending', 'completed', 'the provider confirmed'),
    ('effect', 'sending', 'unknown', 'the provider may have it, or the lease ran out after the start'),
    ('effect', 'sending', 'failed', 'proven refused, or attempts used up'),
    ('effect', 'sending', 'cancelled', 'not started: cancelled, newer version, or no longer fresh'),
    ('effect', 'unknown', 'completed', 'found at the provider, or a person says it was delivered'),
    ('effect', 'unknown', 'pending', 'a person said: not delivered, send again'),
    ('effect', 'unknown', 'failed', 'a person gave up'),
    ('effect', 'unknown', 'cancelled', 'a person said: not delivered, and a newer version waits');

CREATE FUNCTION refuse_unlisted_move() RETURNS trigger LANGUAGE plpgsql AS $$
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
END $$;
