-- name: add_tokens
-- Count what one question to the model has cost, whatever became of its answer.
INSERT INTO model_tokens AS t (day, kind, tokens)
VALUES ((clock_timestamp() AT TIME ZONE 'UTC')::date, %(kind)s, %(tokens)s)
ON CONFLICT (day, kind) DO UPDATE SET tokens = t.tokens + excluded.tokens;

-- name: read_tokens
-- What this day has cost so far, of one kind and of all, and how long the day lasts.
SELECT today.day, coalesce(sum(t.tokens), 0)::bigint AS of_all,
       coalesce(sum(t.tokens) FILTER (WHERE t.kind = %(kind)s), 0)::bigint AS of_kind,
       extract(epoch FROM (today.day + 1)::timestamp AT TIME ZONE 'UTC' - clock_timestamp())::float8 AS left_seconds
  FROM (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS day) AS today
  LEFT JOIN model_tokens AS t ON t.day = today.day
 GROUP BY today.day;
