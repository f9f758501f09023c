-- What is left over is found again, however little of it there is beside the rest: switches whose cards were not asked
-- for, and tokens that nobody can press any more.

CREATE TABLE unshown_switches (
    scope      text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT unshown_switches_pkey PRIMARY KEY (scope)
);
COMMENT ON TABLE unshown_switches IS 'Scopes that were switched and whose cards have not been asked for since: empty but for moments.';
GRANT DELETE, INSERT, SELECT, UPDATE ON unshown_switches TO stet_app;

-- The oldest tokens, flat however many are good.
CREATE INDEX tokens_expiring ON approval_tokens (expires_at);
