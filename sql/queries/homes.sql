-- name: open_home
-- Somebody has their Home before them: it is to be drawn now, and kept true from now on. Without a page the one they had.
INSERT INTO homes (team_id, user_id, page) VALUES (%(team_id)s, %(user_id)s, coalesce(%(page)s::smallint, 1))
ON CONFLICT (team_id, user_id) DO UPDATE
   SET page = coalesce(%(page)s::smallint, homes.page), opened_at = now(), next_check_at = now()
RETURNING team_id, user_id, page, shown_hash, view_hash;

-- name: forget_homes
-- Homes that nobody opened lately are not kept true any more.
-- zero rows: nothing: all were opened lately
DELETE FROM homes WHERE opened_at < now() - %(open_seconds)s * interval '1 second';

-- name: claim_homes
-- Take Homes that are due to be looked at; each is another worker's only after a rest.
-- zero rows: nothing: none is due
UPDATE homes AS h
   SET next_check_at = clock_timestamp() + %(rest_seconds)s * interval '1 second'
  FROM (SELECT due.team_id, due.user_id FROM homes AS due
         WHERE due.next_check_at <= now()
         ORDER BY due.next_check_at LIMIT %(most)s FOR UPDATE SKIP LOCKED) AS taken
 WHERE h.team_id = taken.team_id AND h.user_id = taken.user_id
RETURNING h.team_id, h.user_id, h.page, h.shown_hash, h.view_hash;

-- name: record_home
-- What the person has before them by now, and Slack's own hash of it.
-- zero rows: nothing: nobody opened it lately
UPDATE homes
   SET shown_hash = %(shown_hash)s, view_hash = %(view_hash)s, page = %(page)s,
       next_check_at = clock_timestamp() + %(rest_seconds)s * interval '1 second'
 WHERE team_id = %(team_id)s AND user_id = %(user_id)s;

-- name: drop_home_tokens
-- Remove the buttons of drawings of one person's Home that were replaced a while ago.
-- zero rows: nothing: none is so old
DELETE FROM approval_tokens
 WHERE surface = 'home' AND holder = %(holder)s AND minted_at < now() - %(keep_seconds)s * interval '1 second';

-- name: list_decided
-- What somebody decided lately, the newest first.
SELECT v.decision, v.voted_at, a.draft_id
  FROM votes AS v
  JOIN approvals AS a ON a.approval_id = v.approval_id
 WHERE v.subject = %(subject)s
 ORDER BY v.voted_at DESC LIMIT %(most)s;

-- name: list_unsettled
-- Effects nobody knows the outcome of, longest first, with what their buttons are bound to; and how many there are in all.
SELECT e.effect_id, e.version, e.idempotency_key, e.kind, e.effect_type, e.target, e.ambiguous_at, p.recipient,
       coalesce(d.entity, '') AS entity,
       e.effect_type <> 'resume' AND h.source_version > e.known_version AS newer_waits, count(*) OVER () AS total
  FROM effect_outbox AS e
  JOIN effect_payloads AS p ON p.effect_id = e.effect_id
  JOIN draft_heads AS h ON h.draft_key = e.draft_key
  LEFT JOIN drafts AS d ON d.draft_id = e.draft_id
 WHERE e.state = 'unknown'
 ORDER BY e.ambiguous_at, e.effect_id LIMIT %(most)s;

-- name: count_week
-- The last seven days in numbers. Ids are made in order of time, so that a week of questions and of effects is a range of
-- their keys.
WITH since AS (
    SELECT (lpad(to_hex((extract(epoch FROM now() - interval '7 days') * 1000)::bigint), 12, '0')
            || '00000000000000000000')::uuid AS id
), events AS (
    SELECT c.status, sum(c.n) AS n FROM event_counters AS c
     WHERE c.day > (now() AT TIME ZONE 'UTC')::date - 7 GROUP BY c.status
), asked AS (
    SELECT coalesce(a.decision, a.end_reason) AS word, count(*) AS n
      FROM approvals AS a, since WHERE a.approval_id >= since.id AND a.ended_at IS NOT NULL GROUP BY 1
), effects AS (
    SELECT e.state, count(*) AS n
      FROM effect_outbox AS e, since WHERE e.effect_id >= since.id AND e.effect_type <> 'resume' GROUP BY e.state
)
SELECT coalesce((SELECT n FROM events WHERE status = 'accepted'), 0)::bigint AS accepted,
       coalesce((SELECT n FROM events WHERE status = 'duplicate'), 0)::bigint AS duplicates,
       coalesce((SELECT n FROM events WHERE status = 'stale'), 0)::bigint AS stales,
       coalesce((SELECT n FROM events WHERE status = 'conflict'), 0)::bigint AS conflicts,
       coalesce((SELECT n FROM asked WHERE word = 'approve'), 0)::bigint AS approved,
       coalesce((SELECT n FROM asked WHERE word = 'reject'), 0)::bigint AS rejected,
       coalesce((SELECT n FROM asked WHERE word = 'expired'), 0)::bigint AS expired,
       coalesce((SELECT n FROM effects WHERE state = 'completed'), 0)::bigint AS sent,
       coalesce((SELECT n FROM effects WHERE state = 'failed'), 0)::bigint AS failed;
