-- name: find_content
-- What one revision says, and the event's payload that its rules are checked against; decides nothing.
SELECT v.body, i.payload
  FROM revisions AS v
  JOIN run_inputs AS i ON i.run_id = v.run_id
 WHERE v.draft_id = %(draft_id)s AND v.revision = %(revision)s;

-- name: edit_draft
-- Make room for what a person wrote: next revision, new question without votes, same term, same run, same card. The
-- head is locked already; the tests are those of a vote. The content follows in the same transaction (write_revision).
-- zero rows: the question is over, has changed, or is not this token's
WITH asked AS (
    SELECT a.approval_id, a.quorum, d.draft_id, d.run_id
      FROM approval_tokens AS t
      JOIN approvals AS a ON a.approval_id = t.approval_id
      JOIN drafts AS d ON d.draft_id = a.draft_id AND d.approval_id = a.approval_id AND d.revision = t.revision
      JOIN draft_heads AS h ON h.draft_key = d.draft_key AND h.source_version = d.known_version
      JOIN workflow_runs AS r ON r.run_id = d.run_id AND r.state = 'awaiting_human'
      JOIN revisions AS rev ON rev.draft_id = d.draft_id AND rev.revision = d.revision AND rev.body IS NOT NULL
     WHERE t.token_hash = %(token_hash)s AND t.decision = 'edit' AND t.revision = %(revision)s
       AND t.surface = %(surface)s AND t.holder = %(subject)s
       AND t.expires_at > clock_timestamp() AND d.expires_at > clock_timestamp()
       AND a.ended_at IS NULL AND d.status = 'pending'
       AND NOT EXISTS (SELECT FROM redrafts AS rd WHERE rd.draft_id = d.draft_id AND rd.closed_at IS NULL)
), revised AS (
    UPDATE drafts AS d
       SET revision = d.revision + 1, approval_id = %(approval_id)s, version = d.version + 1, updated_at = now()
      FROM asked
     WHERE d.draft_id = asked.draft_id AND d.status = 'pending'
    RETURNING d.draft_id, d.revision, d.run_id, asked.quorum, asked.approval_id AS old_id
), ended AS (
    UPDATE approvals AS a
       SET ended_at = clock_timestamp(), end_reason = 'edited', token_hash = %(token_hash)s
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

-- name: find_revision_by
-- Whether a person's words became the next revision: for a commit whose answer was lost.
SELECT v.revision
  FROM approval_tokens AS t
  JOIN approvals AS a ON a.approval_id = t.approval_id
  JOIN revisions AS v ON v.draft_id = a.draft_id AND v.revision = t.revision + 1
 WHERE t.token_hash = %(token_hash)s AND a.end_reason = 'edited' AND a.token_hash = t.token_hash
   AND v.author = %(subject)s;
