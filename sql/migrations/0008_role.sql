-- What the running program may touch. serve takes this role after connecting, whoever it connected as, so
-- a fault in it can append to the record and never rewrite it. Roles belong to the whole server: another
-- database may have made it already, or a DBA beforehand.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'stet_app') THEN
        BEGIN
            CREATE ROLE stet_app NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- another migration made it at this moment
        END;
    END IF;
    -- From 16 on whoever makes a role is a member that may hand it out and may not take it.
    IF NOT pg_has_role(current_user, 'stet_app',
                       CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END) THEN
        BEGIN
            EXECUTE format('GRANT stet_app TO %I', current_user);
        EXCEPTION WHEN unique_violation THEN
            NULL;
        END;
    END IF;
END $$;

GRANT USAGE ON SCHEMA public TO stet_app;
GRANT SELECT, INSERT, UPDATE ON workflow_runs, run_inputs, draft_heads, seen_events, event_counters, policy_snapshots,
    drafts, revisions, approvals, effect_outbox, effect_payloads, effect_look_ups, cards, alerts, kill_switch,
    redrafts, votes, waiters TO stet_app;
-- Only what retention may remove.
GRANT DELETE ON waiters, event_counters, alerts TO stet_app;
GRANT SELECT, INSERT, DELETE ON approval_tokens TO stet_app;
GRANT SELECT, INSERT ON audit_log, audit_roots, effect_evidence TO stet_app;
GRANT SELECT, INSERT, DELETE ON audit_details TO stet_app;
GRANT SELECT ON state_moves TO stet_app;
