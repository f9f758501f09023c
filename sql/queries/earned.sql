-- name: read_evidence
-- How people decided last about drafts of one ground, and whether that was enough the last time.
SELECT count(*) AS decisions, count(*) FILTER (WHERE last.unedited) AS unedited,
       coalesce((SELECT e.is_earned FROM earnings AS e WHERE e.ground = %(ground)s), false) AS was_earned
  FROM (SELECT a.unedited FROM agreements AS a
         WHERE a.ground = %(ground)s
         ORDER BY a.decided_at DESC, a.run_id DESC LIMIT %(most)s) AS last;

-- name: is_correction
-- Whether a run corrects another one.
SELECT replaces IS NOT NULL FROM workflow_runs WHERE run_id = %(run_id)s;

-- name: note_earned
-- Remember that actions of this ground go out without a person from now on.
-- zero rows: nothing: somebody else noted it at this moment
INSERT INTO earnings AS e (ground, kind, is_earned) VALUES (%(ground)s, %(kind)s, true)
ON CONFLICT (ground) DO UPDATE
   SET is_earned = true, changes = e.changes + 1, changed_at = now()
 WHERE NOT e.is_earned
RETURNING changes;

-- name: note_lost
-- Remember that they do not any more; the one who changes it tells ops.
-- zero rows: nothing: somebody else noted it at this moment
UPDATE earnings
   SET is_earned = false, changes = changes + 1, changed_at = now()
 WHERE ground = %(ground)s AND is_earned
RETURNING changes;
