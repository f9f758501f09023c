-- The kill switch, default deny: nothing leaves unless the row of scope all is there and open and no
-- narrower scope is closed. all is put in open once; whether effects may leave at all is the setting's.

CREATE TABLE kill_switch (
    scope      text PRIMARY KEY CONSTRAINT kill_switch_scope CHECK (
        scope IN ('all', 'llm') OR scope ~ '^kind:[a-z0-9][a-z0-9_.-]{0,63}$' OR scope ~ '^effect:[a-z0-9_]{1,64}$'),
    open       boolean NOT NULL,
    changed_by text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now(),
    reason     text
);
COMMENT ON TABLE kill_switch IS 'Kill and resume lock the row of scope all FOR UPDATE first; a start holds it FOR SHARE.';

INSERT INTO kill_switch (scope, open, changed_by, reason) VALUES ('all', true, 'migration', 'first installation');
