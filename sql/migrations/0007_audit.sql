-- The record. One hash chain a key; what happened in words lies in audit_details, whose salted hash is part
-- of the chain: erasing a detail leaves the chain whole. Triggers that are ALWAYS on refuse every role.

CREATE TABLE audit_log (
    chain       text NOT NULL,
    seq         integer NOT NULL,
    at          timestamptz NOT NULL,
    actor       text NOT NULL,
    action      text NOT NULL,
    detail_hash bytea NOT NULL,
    hash        bytea NOT NULL,
    CONSTRAINT audit_chain_once PRIMARY KEY (chain, seq),
    CONSTRAINT audit_one_line CHECK (actor !~ '[\n\r]' AND action ~ '^[a-z_.]{1,64}$')
);
COMMENT ON TABLE audit_log IS 'Append-only: who did what to which key, each line chained to the one before.';

CREATE TABLE audit_details (
    chain  text NOT NULL,
    seq    integer NOT NULL,
    salt   bytea NOT NULL,
    detail text NOT NULL,
    CONSTRAINT audit_details_once PRIMARY KEY (chain, seq)
);
COMMENT ON TABLE audit_details IS 'What a line of the record says in words and values (JSON); may be erased, never changed.';

-- hash = SHA-256(previous hash, then the fields one a line); the first line of a chain follows 32 zero bytes.
CREATE FUNCTION audit_hash(previous bytea, chain text, seq integer, at timestamptz, actor text, action text,
                           detail_hash bytea) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT sha256(previous || convert_to(concat_ws(E'\n', chain, seq::text,
        to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), actor, action,
        encode(detail_hash, 'hex')), 'UTF8'))
$$;

CREATE TABLE audit_roots (
    day     date PRIMARY KEY,
    chains  bigint NOT NULL,
    root    bytea NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE audit_roots IS 'A daily hash over all chain heads; its copies in Slack and on disk are what convicts.';

CREATE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege', HINT = 'Erasing removes rows of audit_details only.';
END $$;

CREATE TRIGGER audit_log_append_only BEFORE UPDATE OR DELETE ON audit_log
    FOR EACH ROW EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER audit_log_no_truncate BEFORE TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER audit_details_no_update BEFORE UPDATE ON audit_details
    FOR EACH ROW EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER audit_details_no_truncate BEFORE TRUNCATE ON audit_details
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER audit_roots_append_only BEFORE UPDATE OR DELETE ON audit_roots
    FOR EACH ROW EXECUTE FUNCTION refuse_rewriting();
CREATE TRIGGER audit_roots_no_truncate BEFORE TRUNCATE ON audit_roots
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_append_only;
ALTER TABLE audit_log ENABLE ALWAYS TRIGGER audit_log_no_truncate;
ALTER TABLE audit_details ENABLE ALWAYS TRIGGER audit_details_no_update;
ALTER TABLE audit_details ENABLE ALWAYS TRIGGER audit_details_no_truncate;
ALTER TABLE audit_roots ENABLE ALWAYS TRIGGER audit_roots_append_only;
ALTER TABLE audit_roots ENABLE ALWAYS TRIGGER audit_roots_no_truncate;
