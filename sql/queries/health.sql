-- name: server_version
-- The major version of the server, as a number.
SELECT current_setting('server_version_num')::int / 10000;

-- name: server_clock
-- What time it is there.
SELECT clock_timestamp();

-- name: try_role
-- Take the restricted role to see whether this user may.
SELECT set_config('role', %(role)s, false);
