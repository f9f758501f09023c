-- name: count_redrafts
-- How often the model was asked again about the content of the draft's present event; a wish that nobody could be
-- asked about does not count.
SELECT count(*)
  FROM redrafts AS rd
  JOIN drafts AS d ON d.draft_id = rd.draft_id
  JOIN revisions AS v ON v.draft_id = rd.draft_id AND v.revision = rd.revision AND v.run_id = d.run_id
 WHERE rd.draft_id = %(draft_id)s AND (rd.outcome IS NULL OR rd.outcome NOT IN ('unavailable', 'timed_out'));

-- name: open_redraft
-- Keep a person's wish for another revision; until it is closed nobody decides. The head is locked already, the tests
-- are those of a vote; a window asks once.
-- zero rows: the question is over, has changed, is not this token's, or the kind allows no more
WITH asked AS (
    SELECT d.draft_id, d.revision
      FROM approval_tokens AS t
      JOIN approvals AS a ON a.approval_id = t.approval_id
      JOIN drafts AS d ON d.draft_id = a.draft_id AND d.approval_id = a.approval_id AND d.revision = t.revision
      JOIN draft_heads AS h ON h.draft_key = d.draft_key AND h.source_version = d.known_version
      JOIN workflow_runs AS r ON r.run_id = d.run_id AND r.state = 'awaiting_human'
      JOIN revisions AS rev ON rev.draft_id = d.draft_id AND rev.revision = d.revision AND rev.body IS NOT NULL
     WHERE t.token_hash = %(token_hash)s AND t.decision = 'redraft' AND t.revision = %(revision)s
       AND t.surface = %(surface)s AND t.holder = %(subject)s
       AND t.expires_at > clock_timestamp() AND d.expires_at > clock_timestamp()
       AND a.ended_at IS NULL AND d.status = 'pending'
       AND NOT EXISTS (SELECT FROM redrafts AS rd
                        WHERE rd.draft_id = d.draft_id AND (rd.closed_at IS NULL OR rd.opened_at >= t.minted_at))
       AND %(most)s > (
           SELECT count(*) FROM redrafts AS rd
             JOIN revisions AS v ON v.draft_id = rd.draft_id AND v.revision = rd.revision AND v.run_id = d.run_id
            WHERE rd.draft_id = d.draft_id AND rd.outcome NOT IN ('unavailable', 'timed_out'))
), opened AS (
    INSERT INTO redrafts (redraft_id, draft_id, revision, requested_by, wish, opened_at)
    SELECT %(redraft_id)s, draft_id, revision, %(subject)s, %(wish)s, clock_timestamp() FROM asked
    RETURNING redraft_id, draft_id
), drawn AS (
    UPDATE cards AS c
       SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now()
      FROM opened
     WHERE c.draft_id = opened.draft_id
)
SELECT redraft_id FROM opened;

-- name: find_redraft_by
-- Whether a person's wish was kept: for a commit whose answer was lost.
SELECT rd.redraft_id
  FROM approval_tokens AS t
  JOIN approvals AS a ON a.approval_id = t.approval_id
  JOIN redrafts AS rd ON rd.draft_id = a.draft_id AND rd.revision = t.revision AND rd.opened_at >= t.minted_at
 WHERE t.token_hash = %(token_hash)s AND rd.requested_by = %(subject)s
 LIMIT 1;

-- name: claim_redrafts
-- Claim wishes that are due: new ones, postponed ones, and those whose owner's lease ran out. Nothing is claimed while
-- the switch holds the model back, nor what is so old that it is about to be closed; what is of kinds that the claimer's
-- policy lacks is left to others for a while.
-- zero rows: nothing is due
WITH due AS (
    SELECT redraft_id
      FROM redrafts
     WHERE closed_at IS NULL AND next_attempt_at <= clock_timestamp()
       AND opened_at > clock_timestamp() - %(longest_seconds)s * interval '1 second'
       AND NOT EXISTS (SELECT FROM kill_switch AS k WHERE k.scope = 'llm' AND NOT k.open)
       AND (next_attempt_at <= clock_timestamp() - %(kind_gone_seconds)s * interval '1 second'
            OR (SELECT d.kind = ANY(%(kinds)s::text[]) FROM drafts AS d WHERE d.draft_id = redrafts.draft_id))
     ORDER BY next_attempt_at
     LIMIT %(most)s
       FOR UPDATE SKIP LOCKED
)
UPDATE redrafts AS rd
   SET attempts = rd.attempts + 1, lease_owner = %(owner)s,
       lease_expires_at = clock_timestamp() + %(lease_seconds)s * interval '1 second',
       next_attempt_at = clock_timestamp() + %(lease_seconds)s * interval '1 second'
  FROM due, drafts AS d, revisions AS v, workflow_runs AS r, run_inputs AS i, policy_snapshots AS s
 WHERE rd.redraft_id = due.redraft_id AND d.draft_id = rd.draft_id
   AND v.draft_id = rd.draft_id AND v.revision = rd.revision
   AND r.run_id = d.run_id AND i.run_id = d.run_id AND s.snapshot_hash = d.snapshot_hash
RETURNING rd.redraft_id, rd.draft_id, rd.revision, rd.requested_by, rd.wish, rd.attempts, rd.result,
          extract(epoch FROM rd.opened_at - clock_timestamp())::double precision
              + %(longest_seconds)s::double precision AS left_seconds,
          d.draft_key, d.kind, v.body, i.payload, r.idempotency_key, s.body -> 'output' AS output;

-- name: renew_redraft
-- Keep a claimed wish, by its owner only, until its time is over.
-- zero rows: the lease was lost, the wish was closed or its time is over; stop and write nothing
UPDATE redrafts
   SET lease_expires_at = clock_timestamp() + %(lease_seconds)s * interval '1 second',
       next_attempt_at = clock_timestamp() + %(lease_seconds)s * interval '1 second'
 WHERE redraft_id = %(redraft_id)s AND closed_at IS NULL AND lease_owner = %(owner)s AND attempts = %(attempts)s
   AND lease_expires_at > clock_timestamp()
   AND opened_at > clock_timestamp() - %(longest_seconds)s * interval '1 second'
RETURNING redraft_id;

-- name: keep_redraft_answer
-- Keep the model's answer before anything is done with it, so that it is not asked twice for one wish.
-- zero rows: the lease was lost or the wish was closed; stop and write nothing
UPDATE redrafts
   SET result = %(result)s
 WHERE redraft_id = %(redraft_id)s AND closed_at IS NULL AND lease_owner = %(owner)s AND attempts = %(attempts)s
   AND lease_expires_at > clock_timestamp()
RETURNING redraft_id;

-- name: postpone_redraft
-- Give a wish back until later, if there is time enough left.
-- zero rows: the lease was lost, the wish was closed, or its time would be over by then
UPDATE redrafts
   SET lease_owner = NULL, lease_expires_at = NULL,
       next_attempt_at = clock_timestamp() + %(wait_seconds)s * interval '1 second'
 WHERE redraft_id = %(redraft_id)s AND closed_at IS NULL AND lease_owner = %(owner)s AND attempts = %(attempts)s
   AND lease_expires_at > clock_timestamp()
   AND opened_at > clock_timestamp() + (%(wait_seconds)s::double precision - %(longest_seconds)s::double precision) * interval '1 second'
RETURNING redraft_id;

-- name: use_redraft
-- Make room for what the model wrote: next revision, new question without votes, same term, same run, same card; the
-- wish is done. The head is locked; the content follows in the same transaction (write_revision).
-- zero rows: the lease was lost, the wish was closed, or its revision is not the open one any more
WITH held AS (
    SELECT rd.redraft_id, a.approval_id, a.quorum, d.draft_id
      FROM redrafts AS rd
      JOIN drafts AS d ON d.draft_id = rd.draft_id AND d.revision = rd.revision
      JOIN draft_heads AS h ON h.draft_key = d.draft_key AND h.source_version = d.known_version
      JOIN workflow_runs AS r ON r.run_id = d.run_id AND r.state = 'awaiting_human'
      JOIN approvals AS a ON a.approval_id = d.approval_id AND a.ended_at IS NULL
     WHERE rd.redraft_id = %(redraft_id)s AND rd.closed_at IS NULL
       AND rd.lease_owner = %(owner)s AND rd.attempts = %(attempts)s AND rd.lease_expires_at > clock_timestamp()
       AND d.status = 'pending' AND d.expires_at > clock_timestamp()
), closed AS (
    UPDATE redrafts AS rd
       SET closed_at = clock_timestamp(), outcome = 'done', lease_owner = NULL, lease_expires_at = NULL, result = NULL
      FROM held
     WHERE rd.redraft_id = held.redraft_id AND rd.closed_at IS NULL AND rd.attempts = %(attempts)s
    RETURNING rd.redraft_id
), revised AS (
    UPDATE drafts AS d
       SET revision = d.revision + 1, approval_id = %(approval_id)s, version = d.version + 1, updated_at = now()
      FROM held JOIN closed ON closed.redraft_id = held.redraft_id
     WHERE d.draft_id = held.draft_id AND d.status = 'pending'
    RETURNING d.draft_id, d.revision, d.run_id, held.quorum, held.approval_id AS old_id
), ended AS (
    UPDATE approvals AS a
       SET ended_at = clock_timestamp(), end_reason = 'redrafted'
      FROM revised
     WHERE a.approval_id = revised.old_id AND a.ended_at IS NULL
), opened AS (
    INSERT INTO approvals (approval_id, draft_id, revision, run_id, quorum)
    SELECT %(approval_id)s, draft_id, revision, run_id, quorum FROM revised
), drawn AS (
    UPDATE cards AS c
       SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now()
      FROM revised
     WHERE c.draft_id = revised.draft_id
)
SELECT draft_id, revision, run_id FROM revised;

-- name: close_redraft
-- End a wish that its owner could not fulfil: the draft can be decided again. The head is locked.
-- zero rows: the lease was lost, or somebody else has closed it
WITH closed AS (
    UPDATE redrafts
       SET closed_at = clock_timestamp(), outcome = %(outcome)s, lease_owner = NULL, lease_expires_at = NULL,
           result = NULL
     WHERE redraft_id = %(redraft_id)s AND closed_at IS NULL AND lease_owner = %(owner)s AND attempts = %(attempts)s
       AND lease_expires_at > clock_timestamp()
    RETURNING redraft_id, draft_id
), drawn AS (
    UPDATE cards AS c
       SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now()
      FROM closed
     WHERE c.draft_id = closed.draft_id
)
SELECT redraft_id FROM closed;

-- name: list_overdue_redrafts
-- The draft_keys of wishes whose time is over, the oldest first.
SELECT d.draft_key
  FROM redrafts AS rd
  JOIN drafts AS d ON d.draft_id = rd.draft_id
 WHERE rd.closed_at IS NULL AND rd.opened_at <= now() - %(longest_seconds)s * interval '1 second'
 ORDER BY rd.opened_at LIMIT %(most)s;

-- name: close_overdue_redrafts
-- End the wishes about drafts of these keys whose time is over, whoever holds them: the drafts can be decided again.
-- The heads are locked.
-- zero rows: nothing: they were fulfilled or closed meanwhile
WITH closed AS (
    UPDATE redrafts AS rd
       SET closed_at = clock_timestamp(), outcome = 'timed_out', lease_owner = NULL, lease_expires_at = NULL,
           result = NULL
      FROM drafts AS d
     WHERE d.draft_key = ANY(%(draft_keys)s::text[]) AND rd.draft_id = d.draft_id AND rd.closed_at IS NULL
       AND rd.opened_at <= clock_timestamp() - %(longest_seconds)s * interval '1 second'
    RETURNING rd.redraft_id, rd.draft_id, rd.revision, d.run_id
), drawn AS (
    UPDATE cards AS c
       SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now()
      FROM closed
     WHERE c.draft_id = closed.draft_id
)
SELECT closed.redraft_id, closed.draft_id, closed.revision, r.idempotency_key
  FROM closed JOIN workflow_runs AS r ON r.run_id = closed.run_id;
