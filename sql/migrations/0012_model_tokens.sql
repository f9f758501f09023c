-- What the model has cost a day and kind, so that a daily budget is one look at a handful of rows.

CREATE TABLE model_tokens (
    day    date NOT NULL,
    kind   text NOT NULL,
    tokens bigint NOT NULL DEFAULT 0 CHECK (tokens >= 0),
    CONSTRAINT model_tokens_one_a_day PRIMARY KEY (day, kind)
);
COMMENT ON TABLE model_tokens IS 'Tokens as the endpoint counted them, answers and failed tries alike, by UTC day.';

GRANT SELECT, INSERT, UPDATE ON model_tokens TO stet_app;
