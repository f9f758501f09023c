-- name: list_decided_questions
-- Questions that people decided, in the order of asking, a page after one that is known.
SELECT approval_id FROM approvals
 WHERE approval_id > %(after)s AND consumed_at IS NOT NULL AND decision IN ('approve', 'reject', 'cancel')
   AND starts_with(approver_subject, 'slack:')
 ORDER BY approval_id LIMIT %(most)s;

-- name: read_decided_questions
-- What a gate would have been asked about the runs of these questions, and what people made of it: the content that each
-- run opened with. Content of older decisions, which only count as evidence, is not read.
SELECT d.kind, r.idempotency_key AS key, r.run_id, d.entity, r.replaces IS NOT NULL AS corrects,
       a.consumed_at AS decided_at, first.created_at AS opened_at,
       a.decision = 'approve' AND a.revision = first.revision AS unedited, a.consumed_at >= since.at AS is_judged,
       CASE WHEN a.consumed_at >= since.at THEN first.body END AS output,
       CASE WHEN a.consumed_at >= since.at THEN i.payload END AS payload
  FROM (SELECT now() - %(days)s * interval '1 day' AS at) AS since
 CROSS JOIN approvals AS a
  JOIN drafts AS d ON d.draft_id = a.draft_id
  JOIN workflow_runs AS r ON r.run_id = a.run_id
  JOIN run_inputs AS i ON i.run_id = a.run_id
 CROSS JOIN LATERAL (
       SELECT v.revision, v.body, v.created_at FROM revisions AS v
        WHERE v.draft_id = a.draft_id AND v.run_id = a.run_id
        ORDER BY v.revision LIMIT 1) AS first
 WHERE a.approval_id = ANY(%(approval_ids)s::uuid[]);
