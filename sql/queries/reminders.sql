-- name: list_unreminded
-- Pending drafts whose next reminder is due, the longest waiting first: shown in a thread's reach, and answerable now.
SELECT d.draft_id, d.kind, d.entity, d.expires_at, d.asked_at, d.reminded, d.reminder_ts, c.channel, c.ts,
       extract(epoch FROM now() - d.asked_at)::double precision AS waited_seconds
  FROM json_to_recordset(%(due)s::json) AS due (kind text, reminded smallint, after_seconds double precision)
  JOIN drafts AS d ON d.status = 'pending' AND d.kind = due.kind AND d.reminded = due.reminded
       AND d.asked_at <= now() - due.after_seconds * interval '1 second'
  JOIN draft_heads AS h ON h.draft_key = d.draft_key AND h.source_version = d.known_version
  JOIN cards AS c ON c.draft_id = d.draft_id AND c.ts IS NOT NULL
 WHERE d.expires_at > now()
   AND NOT EXISTS (SELECT FROM redrafts AS rd WHERE rd.draft_id = d.draft_id AND rd.closed_at IS NULL)
 ORDER BY d.asked_at LIMIT %(most)s;

-- name: take_reminder
-- Take reminders up to this one before it is posted: one that is lost on its way is not repeated.
-- zero rows: the draft was decided or has a new term, or another worker took the reminder
UPDATE drafts AS d
   SET reminded = %(number)s
 WHERE d.draft_id = %(draft_id)s AND d.asked_at = %(asked_at)s AND d.reminded < %(number)s
   AND d.status = 'pending' AND d.expires_at > clock_timestamp();

-- name: give_reminder_back
-- The reminder is proven not to have been posted: it is due again.
-- zero rows: nothing: the draft has a new term meanwhile
UPDATE drafts SET reminded = %(before)s
 WHERE draft_id = %(draft_id)s AND asked_at = %(asked_at)s AND reminded = %(number)s;

-- name: keep_reminder_line
-- Where the line stands that later reminders of this term edit.
-- zero rows: nothing: the draft has a new term meanwhile
UPDATE drafts SET reminder_ts = %(ts)s WHERE draft_id = %(draft_id)s AND asked_at = %(asked_at)s;
