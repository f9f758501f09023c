-- How much may leave, and when a target is left in peace. Limits are the policy file's, written here at every start, so
-- that all processes go by one truth; what was taken is counted from the effects themselves, so that no crash leaks a
-- share or a place. Kinds without limits have no row and pay nothing.

CREATE TABLE kind_limits (
    kind                      text PRIMARY KEY,
    concurrency               integer CHECK (concurrency >= 1),
    per_second                integer CHECK (per_second >= 1),
    per_minute                integer CHECK (per_minute >= 1),
    cap_hour                  integer CHECK (cap_hour >= 1),
    cap_day                   integer CHECK (cap_day >= 1),
    value_path                text[],
    cap_value_day             numeric CHECK (cap_value_day > 0 AND cap_value_day < 'Infinity'),
    breaker_after             integer NOT NULL CHECK (breaker_after >= 0),
    breaker_rest_seconds      integer NOT NULL CHECK (breaker_rest_seconds >= 1),
    breaker_rest_most_seconds integer NOT NULL CHECK (breaker_rest_most_seconds >= breaker_rest_seconds),
    is_guarded                boolean NOT NULL GENERATED ALWAYS AS (
        num_nonnulls(concurrency, per_second, per_minute, cap_hour, cap_day, cap_value_day) > 0) STORED,
    full_until                timestamptz,
    full_why                  text CONSTRAINT limits_full_why CHECK (full_why IN ('cap_hour', 'cap_day', 'cap_value_day')),
    is_told                   boolean NOT NULL DEFAULT true,
    CONSTRAINT limits_full_whole CHECK ((full_until IS NULL) = (full_why IS NULL)),
    CONSTRAINT limits_value_whole CHECK ((value_path IS NULL) = (cap_value_day IS NULL))
);
COMMENT ON TABLE kind_limits IS 'The limits of the policy file, as the newest start read them; its row is held while a limited kind is claimed.';
COMMENT ON COLUMN kind_limits.is_guarded IS 'Effects of this kind are claimed under the lock of this row, one process at a time.';
COMMENT ON COLUMN kind_limits.full_until IS 'While something waits for a cap: the end of the window that it waits for.';
COMMENT ON COLUMN kind_limits.is_told IS 'Cards and ops know of full_until as it stands.';

CREATE TABLE departures (
    effect_id uuid NOT NULL,
    taken_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind      text NOT NULL,
    lane      bigint NOT NULL,
    value     numeric CONSTRAINT departures_value_finite CHECK (value >= 0 AND value < 'Infinity'),
    CONSTRAINT departures_once PRIMARY KEY (effect_id, taken_at)
);
COMMENT ON TABLE departures IS
    'Claims of effects of limited kinds, for a day. Whether one still counts against a cap is read from its effect.';
-- A kind's shares of the day, a lane's rate, and what is old enough to forget.
CREATE INDEX departures_of_kind ON departures (kind, taken_at);
CREATE INDEX departures_of_lane ON departures (lane, taken_at);

CREATE TABLE targets (
    lane        bigint PRIMARY KEY,
    kind        text NOT NULL,
    effect_type text NOT NULL,
    target      text NOT NULL,
    failures    integer NOT NULL CHECK (failures >= 0),
    opened_at   timestamptz,
    rests_until timestamptz,
    trials      smallint NOT NULL DEFAULT 0,
    trial_id    uuid,
    is_told     boolean NOT NULL DEFAULT true,
    CONSTRAINT targets_rest_while_open CHECK ((opened_at IS NULL) = (rests_until IS NULL)),
    CONSTRAINT targets_trial_while_open CHECK (opened_at IS NOT NULL OR trial_id IS NULL)
);
COMMENT ON TABLE targets IS 'Targets (lanes) that failed: how often in a row, and until when they are left in peace.';
COMMENT ON COLUMN targets.failures IS 'Answers in a row that prove "not sent" or are ambiguous, over all processes.';
COMMENT ON COLUMN targets.opened_at IS 'Since when nothing is sent but one trial at a time; names the occasion for ops.';
COMMENT ON COLUMN targets.rests_until IS 'When the next trial may be claimed; while one is under way, when its lease runs out.';
COMMENT ON COLUMN targets.trials IS 'Trials that failed since it opened: each doubles the rest, up to the kind''s most.';

-- What a value cap adds up: a number of JSON at a path. Anything else, and whatever is not JSON, is none.
CREATE FUNCTION read_value(body bytea, path text[]) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    found jsonb;
BEGIN
    found := convert_from(body, 'UTF8')::jsonb #> path;
    RETURN CASE WHEN jsonb_typeof(found) = 'number' AND (found #>> '{}')::numeric >= 0 THEN (found #>> '{}')::numeric END;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

GRANT SELECT, INSERT, UPDATE, DELETE ON kind_limits TO stet_app;
GRANT SELECT, INSERT, DELETE ON departures TO stet_app;
GRANT SELECT, INSERT, UPDATE ON targets TO stet_app;
