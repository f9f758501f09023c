-- name: find_questions
-- Everything clicks have to be judged by, read by their tokens before anything is locked; decides nothing.
SELECT t.token_hash, t.approval_id, t.decision AS allows, t.surface, t.card_id, t.holder, t.shown_hash, t.revision,
       c.channel AS card_channel, c.ts AS card_ts,
       d.draft_id, d.draft_key, d.kind, d.entity, d.status, d.revision AS newest_revision, d.run_id,
       d.approval_id = t.approval_id AS is_current,
       d.expires_at <= clock_timestamp() OR t.expires_at <= clock_timestamp() AS is_expired, d.expires_at,
       h.source_version > d.known_version AS is_blocked,
       EXISTS (SELECT FROM redrafts AS rd WHERE rd.draft_id = d.draft_id AND rd.closed_at IS NULL) AS is_redrafting,
       s.body AS snapshot, r.idempotency_key, i.requested_by,
       coalesce((SELECT v.author FROM revisions AS v
                  WHERE v.draft_id = d.draft_id AND v.run_id = d.run_id AND v.revision <= t.revision
                    AND starts_with(v.author, 'slack:')
                  ORDER BY v.revision DESC LIMIT 1), rev.author) AS editor, rev.body_hash,
       o.decision AS over_decision, o.approver_subject AS over_by, o.consumed_at AS over_at, o.end_reason AS over_reason,
       (SELECT coalesce(array_agg(v.subject ORDER BY v.voted_at), '{}') FROM votes AS v
         WHERE v.approval_id = t.approval_id AND v.decision = 'approve') AS voters
  FROM approval_tokens AS t
  JOIN approvals AS a ON a.approval_id = t.approval_id
  JOIN drafts AS d ON d.draft_id = a.draft_id
  JOIN draft_heads AS h ON h.draft_key = d.draft_key
  JOIN policy_snapshots AS s ON s.snapshot_hash = d.snapshot_hash
  JOIN workflow_runs AS r ON r.run_id = d.run_id
  JOIN run_inputs AS i ON i.run_id = d.run_id
  JOIN revisions AS rev ON rev.draft_id = d.draft_id AND rev.revision = t.revision
  LEFT JOIN cards AS c ON c.card_id = t.card_id
  LEFT JOIN LATERAL (SELECT * FROM approvals AS newest WHERE newest.draft_id = d.draft_id AND newest.ended_at IS NOT NULL
                      ORDER BY newest.ended_at DESC LIMIT 1) AS o ON true
 WHERE t.token_hash = ANY(%(token_hashes)s::text[]);

-- name: vote
-- Record people's answers, each to a draft of its own, and, at the quorum, everything that follows: the question is
-- spent, draft and run move, each effect is put into the outbox with the very bytes of the stored revision. The heads are
-- locked already, so what is tested here stays true until the commit; deadlines are tested against clock_timestamp().
-- A vote counts while its voter is a reviewer: one that is given again counts where those of others count again by now.
-- (The array of tokens finds each by its key, where a join would read them all.)
-- zero rows: the question is over, has changed, is not this token's, or was already answered by this person
WITH given AS (
    SELECT *
      FROM json_to_recordset(%(votes)s::json) AS g (
           token_hash text, revision integer, decision text, surface text, channel text, ts text, subject text,
           counted_as text, reason text, considered text[], still_reviewers text[], effect_ids uuid[])
), asked AS (
    SELECT g.decision, g.surface, g.ts, g.subject, g.counted_as, g.reason, g.still_reviewers, g.effect_ids,
           t.token_hash, t.shown_hash, a.approval_id, a.quorum, d.draft_id, d.draft_key, d.kind, d.entity, d.revision,
           d.known_version, d.snapshot_hash, r.run_id, r.idempotency_key, s.effects,
           s.body ->> 'ground' AS ground, (s.body ->> 'fresh_for_seconds')::double precision AS fresh_for_seconds,
           i.payload, rev.body AS output
      FROM given AS g
      JOIN approval_tokens AS t ON t.token_hash = g.token_hash AND t.decision = g.decision AND t.revision = g.revision
       AND t.surface = g.surface
      JOIN approvals AS a ON a.approval_id = t.approval_id
      JOIN drafts AS d ON d.draft_id = a.draft_id AND d.approval_id = a.approval_id AND d.revision = t.revision
      JOIN draft_heads AS h ON h.draft_key = d.draft_key AND h.source_version = d.known_version
      JOIN policy_snapshots AS s ON s.snapshot_hash = d.snapshot_hash
      JOIN workflow_runs AS r ON r.run_id = d.run_id AND r.state = 'awaiting_human'
      JOIN run_inputs AS i ON i.run_id = d.run_id
      JOIN revisions AS rev ON rev.draft_id = d.draft_id AND rev.revision = d.revision AND rev.body IS NOT NULL
      LEFT JOIN cards AS c ON c.card_id = t.card_id
     WHERE t.token_hash = ANY(ARRAY(SELECT token_hash FROM given)) AND (t.holder IS NULL OR t.holder = g.subject)
       AND (t.card_id IS NULL OR (c.channel = g.channel AND (c.ts IS NULL OR c.ts = g.ts)))
       AND t.expires_at > clock_timestamp() AND d.expires_at > clock_timestamp()
       AND a.ended_at IS NULL AND d.status = 'pending'
       AND NOT EXISTS (SELECT FROM redrafts AS rd WHERE rd.draft_id = d.draft_id AND rd.closed_at IS NULL)
       AND NOT EXISTS (SELECT FROM votes AS v WHERE v.approval_id = a.approval_id AND v.decision = 'approve'
                          AND v.subject <> ALL(g.considered))
), voted AS (
    INSERT INTO votes (approval_id, subject, decision, counted_as, shown_hash)
    SELECT approval_id, subject, decision, counted_as, shown_hash FROM asked
    ON CONFLICT (approval_id, subject) DO UPDATE
       SET decision = excluded.decision, counted_as = excluded.counted_as, shown_hash = excluded.shown_hash,
           voted_at = clock_timestamp()
     WHERE votes.decision <> excluded.decision
        OR EXISTS (SELECT FROM asked
                    WHERE asked.approval_id = excluded.approval_id AND asked.quorum <= 1 + (
                          SELECT count(*) FROM votes AS v
                           WHERE v.approval_id = asked.approval_id AND v.decision = 'approve'
                             AND v.subject <> asked.subject AND v.subject = ANY(asked.still_reviewers)))
    RETURNING approval_id
), counted AS (
    SELECT asked.*,
           1 + (SELECT count(*) FROM votes AS v
                 WHERE v.approval_id = asked.approval_id AND v.decision = 'approve'
                   AND v.subject <> asked.subject AND v.subject = ANY(asked.still_reviewers)) AS votes
      FROM asked JOIN voted ON voted.approval_id = asked.approval_id
), reached AS (
    SELECT * FROM counted WHERE decision = 'reject' OR votes >= quorum
), spent AS (
    UPDATE approvals AS a
       SET consumed_at = clock_timestamp(), ended_at = clock_timestamp(), end_reason = 'decided', decision = reached.decision,
           approver_subject = reached.subject, token_hash = reached.token_hash, shown_hash = reached.shown_hash,
           reason = reached.reason
      FROM reached
     WHERE a.approval_id = reached.approval_id
    RETURNING a.approval_id, a.consumed_at
), agreed AS (
    INSERT INTO agreements (ground, decided_at, run_id, unedited)
    SELECT ground, spent.consumed_at, run_id, decision = 'approve' AND NOT EXISTS (
           SELECT FROM revisions AS first
            WHERE first.draft_id = reached.draft_id AND first.revision < reached.revision AND first.run_id = reached.run_id)
      FROM reached JOIN spent ON spent.approval_id = reached.approval_id
     WHERE ground IS NOT NULL
), settled AS (
    UPDATE drafts AS d
       SET status = CASE reached.decision WHEN 'approve' THEN 'approved' ELSE 'rejected' END, approval_id = NULL,
           notice = NULL, decided_at = clock_timestamp(), version = d.version + 1, updated_at = now()
      FROM reached
     WHERE d.draft_id = reached.draft_id AND d.status = 'pending'
), moved AS (
    UPDATE workflow_runs AS r
       SET state = CASE reached.decision WHEN 'approve' THEN 'approved' ELSE 'rejected' END,
           finished_at = CASE reached.decision WHEN 'reject' THEN clock_timestamp() END,
           version = r.version + 1, updated_at = now()
      FROM reached
     WHERE r.run_id = reached.run_id AND r.state = 'awaiting_human'
), part AS (
    SELECT reached.*, spent.consumed_at, one.effect, effect_ids[one.n] AS effect_id,
           CASE WHEN jsonb_array_length(effects) > 1 THEN ARRAY[(one.n - 1)::text] END AS clause,
           CASE WHEN one.effect ->> 'after' IS NOT NULL THEN (
               SELECT effect_ids[o.n] FROM jsonb_array_elements(effects) WITH ORDINALITY AS o (effect, n)
                WHERE o.effect ->> 'name' = one.effect ->> 'after') END AS after_id,
           payload #>> (string_to_array(one.effect ->> 'recipient', '.'))[2:] AS recipient
      FROM reached
      JOIN spent ON spent.approval_id = reached.approval_id
     CROSS JOIN LATERAL jsonb_array_elements(effects) WITH ORDINALITY AS one (effect, n)
     WHERE decision = 'approve'
), enqueued AS (
    INSERT INTO effect_outbox (effect_id, idempotency_key, run_id, draft_id, draft_key, kind, effect_type, target,
                               known_version, fresh_until, clause, after_id)
    SELECT effect_id, idempotency_key, run_id, draft_id, draft_key, kind, effect ->> 'type', effect ->> 'target',
           known_version, clock_timestamp() + fresh_for_seconds * interval '1 second', clause, after_id
      FROM part
), written AS (
    INSERT INTO effect_payloads (effect_id, snapshot_hash, revision, recipient, body)
    SELECT effect_id, snapshot_hash, revision, recipient,
           convert_to(fill_body(effect -> 'body', jsonb_build_object(
               'effect_id', effect_id, 'key', idempotency_key, 'kind', kind, 'entity', entity,
               'revision', revision, 'recipient', recipient, 'output', output, 'approved_by', subject,
               'approved_at', to_char(consumed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))), 'UTF8')
      FROM part
), drawn AS (
    UPDATE cards AS c
       SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now(),
           ts = CASE WHEN c.ts IS NULL AND counted.surface = 'message' THEN counted.ts ELSE c.ts END,
           place_kind = CASE WHEN reached.draft_id IS NULL THEN c.place_kind END,
           waits_until = CASE WHEN reached.draft_id IS NULL THEN c.waits_until END
      FROM counted LEFT JOIN reached ON reached.approval_id = counted.approval_id
     WHERE c.draft_id = counted.draft_id
)
SELECT counted.token_hash, counted.idempotency_key, counted.draft_id, counted.run_id, counted.revision, counted.votes,
       counted.quorum, reached.approval_id IS NOT NULL AS reached, counted.shown_hash
  FROM counted LEFT JOIN reached ON reached.approval_id = counted.approval_id;

-- name: find_decision
-- What became of the question of one token: for a commit whose answer was lost.
SELECT a.decision, a.approver_subject, a.consumed_at, a.token_hash,
       EXISTS (SELECT FROM votes AS v WHERE v.approval_id = a.approval_id AND v.subject = %(subject)s
                  AND v.decision = %(decision)s) AS voted
  FROM approval_tokens AS t JOIN approvals AS a ON a.approval_id = t.approval_id
 WHERE t.token_hash = %(token_hash)s;
