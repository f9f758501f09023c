-- name: set_session
-- Fix the settings of a fresh connection for its life. Every statement of ours is found by an index whatever its
-- parameters are, so the plan made once is the right one; planning the large ones anew would cost ten times their run.
-- A plan that was made while a table was empty would read it from end to end for as long as the connection lives: no
-- sequential scan where there is an index. Compiling plans costs more than they do. Our joins are written in the order
-- in which they are to be made, so few orders are tried: planning the largest takes a third of the time, and every
-- ANALYZE has it planned again on each connection. Between the statements of a pipeline a session is not idle: only
-- the limit of a whole transaction, which PostgreSQL has since 17, lets go of what a frozen process holds there. A commit
-- that was answered must outlive a crash of the server: a database or role that is set not to wait for it loses here.
SELECT set_config('lock_timeout', %(lock_timeout)s, false), set_config('statement_timeout', %(statement_timeout)s, false),
       set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, false),
       CASE WHEN current_setting('server_version_num')::integer >= 170000
            THEN set_config('transaction_timeout', %(transaction_timeout)s, false) END,
       set_config('TimeZone', 'UTC', false), set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false),
       set_config('join_collapse_limit', '4', false), set_config('from_collapse_limit', '4', false),
       CASE WHEN current_setting('synchronous_commit') = 'off'
            THEN set_config('synchronous_commit', 'on', false) END;

-- name: take_role
-- Take the restricted role, whoever connected.
SELECT set_config('role', %(role)s, false);

-- name: make_ledger
-- Make the list of migrations; it exists before the first migration, so it cannot be one.
CREATE TABLE IF NOT EXISTS schema_migrations (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: lock_migrations
-- Let one process migrate at a time; the lock ends with the connection.
SELECT pg_advisory_lock(%(lock_id)s);

-- name: limit_lock_waits
-- Let a migration wait for a table no longer than this, for the rest of its connection.
SELECT set_config('lock_timeout', %(milliseconds)s, false);

-- name: list_migrations
-- Which migrations ran here, and how they read then.
SELECT number, checksum FROM schema_migrations;

-- name: record_migration
-- Note that a migration ran, in its own transaction.
INSERT INTO schema_migrations (number, name, checksum) VALUES (%(number)s, %(name)s, %(checksum)s);

-- name: let_app_read_ledger
-- serve checks the schema's version in the restricted role.
GRANT SELECT ON schema_migrations TO stet_app;

-- name: wake_others
-- Tell other processes that there is work; on a connection of its own, never inside a transaction.
SELECT pg_notify('stet_wake', %(message)s);

-- name: listen_for_wakes
-- Hear what other processes tell.
LISTEN stet_wake;
