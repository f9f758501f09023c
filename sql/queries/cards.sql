-- name: want_corrections
-- Ask for the cards of what corrects these runs to be drawn again: they say what was sent before, and taken back.
-- zero rows: nothing: nothing corrects them, or it has no card
UPDATE cards
   SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now()
 WHERE draft_id = ANY(ARRAY(
       SELECT r.draft_id FROM workflow_runs AS r
        WHERE r.replaces IS NOT NULL AND r.replaces = ANY(%(run_ids)s::uuid[]) AND r.draft_id IS NOT NULL));

-- name: want_cards
-- Ask for the cards of these drafts (and of effects that have one) to be drawn again, in the transaction of the change.
-- zero rows: nothing: a draft whose card was never asked for
UPDATE cards
   SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now()
 WHERE draft_id = ANY(%(draft_ids)s::uuid[]) OR effect_id = ANY(%(effect_ids)s::uuid[]);

-- name: open_card
-- Ask for the one card of a draft or of an unknown effect, unless it is there.
INSERT INTO cards (card_id, draft_id, effect_id, channel)
VALUES (%(card_id)s, %(draft_id)s, %(effect_id)s, %(channel)s)
ON CONFLICT DO NOTHING;

-- name: claim_cards
-- Take cards that are behind and due, of those longest due whoever expires first, unknown effects before them; those that
-- another worker holds are passed over. So many are looked at that what an outage of Slack left behind comes in that order.
-- A held card is due again when its lease ends, so that one index finds new work, retries and orphans. The commit is not
-- waited for: nothing is posted before begin_showing, whose own commit makes both durable.
-- zero rows: nothing: every card shows the truth, waits for its time or is held
UPDATE cards AS c
   SET lease_owner = %(owner)s, lease_expires_at = clock_timestamp() + %(lease_seconds)s * interval '1 second',
       next_attempt_at = clock_timestamp() + %(lease_seconds)s * interval '1 second', updated_at = now()
  FROM (SELECT set_config('synchronous_commit', 'off', true) OFFSET 0) AS unhurried
 WHERE c.card_id = ANY(ARRAY(
       SELECT due.card_id
         FROM (SELECT near.card_id FROM cards AS near
                WHERE near.wanted_version > near.shown_version AND near.waits_until IS NULL AND near.next_attempt_at <= now()
                  AND (near.lease_expires_at IS NULL OR near.lease_expires_at <= now())
                ORDER BY near.next_attempt_at LIMIT %(among)s) AS near
         JOIN cards AS due ON due.card_id = near.card_id
         LEFT JOIN drafts AS d ON d.draft_id = due.draft_id
        WHERE due.wanted_version > due.shown_version AND due.waits_until IS NULL AND due.next_attempt_at <= now()
          AND (due.lease_expires_at IS NULL OR due.lease_expires_at <= now())
        ORDER BY coalesce(d.expires_at, CASE WHEN due.effect_id IS NULL THEN 'infinity' ELSE '-infinity' END::timestamptz),
                 due.next_attempt_at
        LIMIT %(most)s FOR UPDATE OF due SKIP LOCKED))
RETURNING c.card_id, c.draft_id, c.effect_id, c.queue_of;

-- name: begin_showing
-- Right before the call: hold the card for as long as a call takes, and name a post, so that one whose answer is lost
-- can be found again.
-- zero rows: the card is another worker's by now, or a click has told where its message is
UPDATE cards
   SET lease_expires_at = clock_timestamp() + %(lease_seconds)s * interval '1 second',
       next_attempt_at = greatest(next_attempt_at, clock_timestamp() + %(lease_seconds)s * interval '1 second'),
       post_id = CASE WHEN ts IS NULL THEN %(post_id)s::uuid ELSE post_id END,
       post_started_at = CASE WHEN ts IS NULL THEN clock_timestamp() ELSE post_started_at END, updated_at = now()
 WHERE card_id = %(card_id)s AND lease_owner = %(owner)s AND lease_expires_at > clock_timestamp()
   AND ts IS NOT DISTINCT FROM %(ts)s::text;

-- name: keep_found_message
-- A post whose answer was lost is there after all. A ts that a click has told before stays.
-- zero rows: the card is another worker's by now
UPDATE cards
   SET ts = coalesce(ts, %(ts)s), post_id = NULL, post_started_at = NULL, updated_at = now()
 WHERE card_id = %(card_id)s AND lease_owner = %(owner)s AND lease_expires_at > clock_timestamp();

-- name: note_revision
-- Take the one line in the thread that this revision gets, before it is posted: a lost line is not repeated.
-- zero rows: that revision has its line, or the card is another worker's by now
UPDATE cards
   SET noted_revision = %(revision)s, updated_at = now()
 WHERE card_id = %(card_id)s AND lease_owner = %(owner)s AND lease_expires_at > clock_timestamp()
   AND noted_revision < %(revision)s;

-- name: record_shown
-- Slack shows it: what, which version, where. The lease may have run out meanwhile, what Slack said is true all the
-- same; whoever took the card over has another owner.
-- zero rows: another worker has taken the card over; it finds the message itself
UPDATE cards
   SET ts = coalesce(ts, %(ts)s), shown_version = greatest(shown_version, %(shown_version)s),
       shown_hash = %(shown_hash)s, noted_revision = greatest(noted_revision, %(noted_revision)s),
       post_id = NULL, post_started_at = NULL, attempts = 0, problem = NULL, lease_owner = NULL, lease_expires_at = NULL,
       next_attempt_at = clock_timestamp() + %(wait_seconds)s * interval '1 second', updated_at = now()
 WHERE card_id = %(card_id)s AND lease_owner = %(owner)s;

-- name: drop_post
-- The post is proven not to have happened: there is nothing to look for.
-- zero rows: the card is another worker's by now
UPDATE cards
   SET post_id = NULL, post_started_at = NULL, updated_at = now()
 WHERE card_id = %(card_id)s AND lease_owner = %(owner)s AND post_id = %(post_id)s;

-- name: forget_message
-- The message is gone from Slack: the card is posted anew, at once.
-- zero rows: the card is another worker's by now
UPDATE cards
   SET ts = NULL, post_id = NULL, post_started_at = NULL, lease_owner = NULL, lease_expires_at = NULL,
       next_attempt_at = now(), updated_at = now()
 WHERE card_id = %(card_id)s AND lease_owner = %(owner)s AND ts = %(ts)s;

-- name: postpone_card
-- Give the card back until later; a try that failed counts, waiting for our turn does not. The commit is not waited
-- for: what a crash loses of it ends with the lease.
-- zero rows: the card is another worker's by now
UPDATE cards
   SET lease_owner = NULL, lease_expires_at = NULL,
       next_attempt_at = clock_timestamp() + %(wait_seconds)s * interval '1 second',
       attempts = least(attempts + %(counted)s, 1000), updated_at = now()
  FROM (SELECT set_config('synchronous_commit', 'off', true) OFFSET 0) AS unhurried
 WHERE card_id = %(card_id)s AND lease_owner = %(owner)s;

-- name: keep_problem
-- Slack refuses the card: say why, and give it back until later.
-- zero rows: the card is another worker's by now
UPDATE cards
   SET problem = %(problem)s, lease_owner = NULL, lease_expires_at = NULL,
       next_attempt_at = clock_timestamp() + %(wait_seconds)s * interval '1 second',
       attempts = least(attempts + 1, 1000), updated_at = now()
 WHERE card_id = %(card_id)s AND lease_owner = %(owner)s;
