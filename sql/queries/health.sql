-- name: server_version
-- The major version of the server, as a number.
SELECT current_setting('server_version_num')::int / 10000;
