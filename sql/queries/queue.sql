-- name: try_queue_lock
-- Be the only one who gives out places, until the end of the transaction; false if another is at it.
SELECT pg_try_advisory_xact_lock(1467416579);

-- name: measure_lanes
-- For each channel and kind that cards wait in: how many do, and how many places are taken by drafts that are pending.
-- Steps from lane to lane through the index, however many wait in each.
WITH RECURSIVE lanes AS (
    (SELECT w.channel, w.place_kind AS kind FROM cards AS w WHERE w.waits_until IS NOT NULL
      ORDER BY w.channel, w.place_kind LIMIT 1)
    UNION ALL
    SELECT later.channel, later.kind
      FROM lanes CROSS JOIN LATERAL (
           SELECT w.channel, w.place_kind AS kind FROM cards AS w
            WHERE w.waits_until IS NOT NULL AND (w.channel, w.place_kind) > (lanes.channel, lanes.kind)
            ORDER BY w.channel, w.place_kind LIMIT 1) AS later
)
SELECT lanes.channel, lanes.kind,
       (SELECT count(*) FROM cards AS w
         WHERE w.waits_until IS NOT NULL AND w.channel = lanes.channel AND w.place_kind = lanes.kind) AS waiting,
       (SELECT count(*) FROM cards AS c JOIN drafts AS d ON d.draft_id = c.draft_id
         WHERE c.place_kind IS NOT NULL AND c.waits_until IS NULL AND c.channel = lanes.channel AND c.place_kind = lanes.kind
           AND d.status = 'pending') AS taken
  FROM lanes;

-- name: admit_cards
-- Give places to the cards of one lane whose drafts expire first: from now on they are drawn.
-- zero rows: nothing: they were decided, expired or given a place meanwhile
UPDATE cards AS c
   SET waits_until = NULL, next_attempt_at = now(), updated_at = now()
 WHERE c.card_id = ANY(ARRAY(
       SELECT w.card_id FROM cards AS w
        WHERE w.waits_until IS NOT NULL AND w.channel = %(channel)s AND w.place_kind = %(kind)s
        ORDER BY w.waits_until, w.draft_id LIMIT %(most)s FOR UPDATE SKIP LOCKED))
   AND c.waits_until IS NOT NULL;

-- name: want_queue_cards
-- Have the queue cards say how many wait: a channel's first is asked for, one that says another number is drawn again
-- when its turn comes, and where nobody waits any more it says so.
-- zero rows: nothing: they say so already
WITH wanted AS (
    SELECT channel, n FROM unnest(%(channels)s::text[], %(counts)s::integer[]) AS given (channel, n)
), emptied AS (
    UPDATE cards AS c
       SET queue_count = 0, wanted_version = wanted_version + 1, updated_at = now()
     WHERE c.queue_of IS NOT NULL AND c.queue_count > 0 AND c.queue_of <> ALL(%(channels)s::text[])
    RETURNING c.card_id
), asked AS (
    INSERT INTO cards AS c (card_id, queue_of, queue_count, channel)
    SELECT gen_random_uuid(), channel, n, channel FROM wanted
    ON CONFLICT (queue_of) WHERE queue_of IS NOT NULL DO UPDATE
       SET queue_count = excluded.queue_count, wanted_version = c.wanted_version + 1, updated_at = now()
     WHERE c.queue_count <> excluded.queue_count
    RETURNING c.card_id
)
SELECT (SELECT count(*) FROM emptied) + (SELECT count(*) FROM asked);

-- name: read_queue_cards
-- What the queue cards of these channels show.
SELECT c.card_id, c.channel, c.ts, c.wanted_version, c.noted_revision, c.post_id, c.attempts, c.problem, c.post_started_at,
       coalesce(extract(epoch FROM clock_timestamp() - c.post_started_at), 0)::double precision AS post_age_seconds,
       'queue:' || c.queue_of AS idempotency_key, '' AS kind, 1 AS revision, c.queue_count
  FROM cards AS c
 WHERE c.queue_of = ANY(%(channels)s::text[]);

-- name: list_next
-- Drafts that wait for a place in a channel, of some kinds, and could be decided now by somebody who has not voted on them:
-- who expires first in front, after the place of one that was passed over.
SELECT d.draft_id
  FROM unnest(%(kinds)s::text[]) AS k (kind)
 CROSS JOIN LATERAL (
       SELECT w.draft_id, w.waits_until
         FROM cards AS w
         JOIN drafts AS d ON d.draft_id = w.draft_id AND d.status = 'pending' AND d.expires_at > now()
         JOIN draft_heads AS h ON h.draft_key = d.draft_key AND h.source_version = d.known_version
        WHERE w.waits_until IS NOT NULL AND w.channel = %(channel)s AND w.place_kind = k.kind
          AND (w.waits_until, w.draft_id) > (coalesce(
                  (SELECT p.expires_at FROM drafts AS p WHERE p.draft_id = %(after)s::uuid), '-infinity'),
               coalesce(%(after)s::uuid, '00000000-0000-0000-0000-000000000000'))
          AND NOT EXISTS (SELECT FROM redrafts AS rd WHERE rd.draft_id = d.draft_id AND rd.closed_at IS NULL)
          AND NOT EXISTS (SELECT FROM votes AS v WHERE v.approval_id = d.approval_id AND v.subject = %(subject)s)
        ORDER BY w.waits_until, w.draft_id LIMIT %(most)s) AS d
 ORDER BY d.waits_until, d.draft_id LIMIT %(most)s;
