-- name: keep_snapshot
-- Store what of a policy is frozen onto drafts, once.
INSERT INTO policy_snapshots (snapshot_hash, kind, body)
VALUES (%(snapshot_hash)s, %(kind)s, %(body)s)
ON CONFLICT (snapshot_hash) DO NOTHING;

-- name: find_open_draft
-- The open draft of a draft_key, locked; the head is locked already.
SELECT draft_id, run_id, status, revision, approval_id
  FROM drafts
 WHERE draft_key = %(draft_key)s AND status IN ('pending', 'scheduled', 'approved')
   FOR UPDATE;

-- name: open_draft
-- Open a draft with its first revision, its question and its card (which waits for a place), if this run still holds the
-- newest version.
-- zero rows: a newer event is known by now, or another draft of this key is open
WITH head AS (
    UPDATE draft_heads
       SET draft_id = %(draft_id)s
     WHERE draft_key = %(draft_key)s AND run_id = %(run_id)s
    RETURNING draft_key, source_version
), earlier AS (
    SELECT draft_id FROM draft_heads WHERE draft_key = %(draft_key)s
), opened AS (
    INSERT INTO drafts (draft_id, draft_key, kind, entity, run_id, status, revision, approval_id, known_version,
                        snapshot_hash, earlier_id, expires_at)
    SELECT %(draft_id)s, head.draft_key, %(kind)s, %(entity)s, %(run_id)s, 'pending', 1, %(approval_id)s,
           head.source_version, %(snapshot_hash)s, earlier.draft_id,
           clock_timestamp() + %(expires_after_seconds)s * interval '1 second'
      FROM head, earlier
    RETURNING draft_id, expires_at
), asked AS (
    INSERT INTO approvals (approval_id, draft_id, revision, run_id, quorum)
    SELECT %(approval_id)s, draft_id, 1, %(run_id)s, %(quorum)s FROM opened
), carded AS (
    INSERT INTO cards (card_id, draft_id, channel, place_kind, waits_until)
    SELECT %(card_id)s, draft_id, %(channel)s, %(kind)s, expires_at FROM opened
)
SELECT draft_id, 1 AS revision FROM opened;

-- name: revise_draft
-- Put a newer event's content into the draft that is still pending: next revision, new question, new term, same card.
-- zero rows: a newer event is known by now, or the draft was decided at this moment
WITH head AS (
    SELECT draft_key, source_version FROM draft_heads WHERE draft_key = %(draft_key)s AND run_id = %(run_id)s
), revised AS (
    UPDATE drafts AS d
       SET run_id = %(run_id)s, revision = d.revision + 1, approval_id = %(approval_id)s,
           known_version = head.source_version, snapshot_hash = %(snapshot_hash)s, notice = NULL,
           expires_at = clock_timestamp() + %(expires_after_seconds)s * interval '1 second',
           asked_at = clock_timestamp(), reminded = 0, reminder_ts = NULL,
           version = d.version + 1, updated_at = now()
      FROM head
     WHERE d.draft_id = %(draft_id)s AND d.draft_key = head.draft_key AND d.status = 'pending'
    RETURNING d.draft_id, d.revision, d.expires_at
), ended AS (
    UPDATE approvals AS a
       SET ended_at = clock_timestamp(), end_reason = 'superseded'
      FROM revised
     WHERE a.draft_id = revised.draft_id AND a.ended_at IS NULL AND a.approval_id <> %(approval_id)s
), asked AS (
    INSERT INTO approvals (approval_id, draft_id, revision, run_id, quorum)
    SELECT %(approval_id)s, draft_id, revision, %(run_id)s, %(quorum)s FROM revised
), carded AS (
    UPDATE cards AS c
       SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now(),
           waits_until = CASE WHEN c.waits_until IS NOT NULL THEN revised.expires_at END
      FROM revised
     WHERE c.draft_id = revised.draft_id
), redrafted AS (
    UPDATE redrafts AS rd
       SET closed_at = clock_timestamp(), outcome = 'newer_event', lease_owner = NULL, lease_expires_at = NULL,
           result = NULL
      FROM revised
     WHERE rd.draft_id = revised.draft_id AND rd.closed_at IS NULL
)
SELECT draft_id, revision FROM revised;

-- name: write_revision
-- Store one immutable content of a draft.
INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author, model, fingerprint, prompt_version, warnings)
VALUES (%(draft_id)s, %(revision)s, %(run_id)s, %(body)s, %(body_hash)s, %(author)s, %(model)s, %(fingerprint)s,
        %(prompt_version)s, %(warnings)s);
