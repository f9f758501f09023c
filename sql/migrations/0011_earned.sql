-- What by_exception rests on: how people decided, kept apart from the questions themselves, so that the last fifty
-- decisions about one kind of draft are fifty neighbours in one index however much was decided or sent without anybody.

CREATE TABLE agreements (
    ground     text NOT NULL,
    decided_at timestamptz NOT NULL,
    run_id     uuid NOT NULL,
    unedited   boolean NOT NULL,
    CONSTRAINT agreements_newest PRIMARY KEY (ground, decided_at, run_id)
);
COMMENT ON TABLE agreements IS 'One row a decision of people (approve, reject or cancel); only ever added.';
COMMENT ON COLUMN agreements.ground IS 'Hash of kind, prompt, model, output and rules: evidence of one tells of no other.';
COMMENT ON COLUMN agreements.unedited IS 'They approved the very revision that the run opened with.';

CREATE TABLE earnings (
    ground     text PRIMARY KEY,
    kind       text NOT NULL,
    is_earned  boolean NOT NULL,
    changes    integer NOT NULL DEFAULT 1,
    changed_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE earnings IS 'Whether actions of a kind last went out without a person: so that ops is told once when they stop.';
COMMENT ON COLUMN earnings.changes IS 'How often that turned; names the occasion of the alert.';

GRANT SELECT, INSERT ON agreements TO stet_app;
GRANT SELECT, INSERT, UPDATE ON earnings TO stet_app;
