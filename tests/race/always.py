"""What must hold whenever everything has come to rest, whatever happened before.

Not here: making it happen (test_any_sequence) or the process that it happens to (whole).
"""

import difflib
import json
from typing import Any

from bot.cards.blocks import shown_hash
from bot.demo.slack_workspace import C_REVIEW
from bot.flow.drawing import draw
from bot.flow.life import Scene
from bot.flow.picture import people_of
from bot.policy.keys import body_hash
from store import audit, queue, showing
from store.queue import QueueCard
from store.showing import DraftCard, EffectCard
from tests.makers import rows
from tests.race.whole import TARGET, Whole

NEVER = """
SELECT 'two open drafts of one key' AS fault, draft_key AS what FROM drafts
 WHERE status IN ('pending', 'scheduled', 'approved') GROUP BY draft_key HAVING count(*) > 1
UNION ALL
SELECT 'two effects of one key', idempotency_key FROM effect_outbox WHERE state <> 'cancelled'
 GROUP BY idempotency_key, effect_type, target HAVING count(*) > 1
UNION ALL
SELECT 'sent, and the run not completed', d.draft_id::text
  FROM drafts AS d JOIN workflow_runs AS r USING (run_id)
 WHERE (d.status = 'sent') <> (r.state = 'completed')
UNION ALL
SELECT 'completed, and the draft not sent', e.effect_id::text
  FROM effect_outbox AS e JOIN drafts AS d USING (draft_id)
 WHERE e.effect_type <> 'resume' AND e.state = 'completed' AND d.status <> 'sent' AND e.clause IS NULL
UNION ALL
SELECT 'one of several is not completed, and the draft sent', e.effect_id::text
  FROM effect_outbox AS e JOIN drafts AS d USING (draft_id)
 WHERE e.clause IS NOT NULL AND e.undo_of IS NULL AND d.status = 'sent'
   AND e.state NOT IN ('completed', 'cancelled')
UNION ALL
SELECT 'approved, and nothing of it is open', draft_id::text FROM drafts AS d
 WHERE status IN ('approved', 'scheduled') AND NOT EXISTS (
       SELECT FROM effect_outbox AS e
        WHERE e.draft_id = d.draft_id AND e.state IN ('pending', 'sending', 'unknown'))
UNION ALL
SELECT 'it waits for what never comes', e.effect_id::text
  FROM effect_outbox AS e JOIN effect_outbox AS o ON o.effect_id = e.after_id
 WHERE e.state IN ('pending', 'sending', 'unknown') AND o.state IN ('failed', 'cancelled')
UNION ALL
SELECT 'it left before what it waits for', e.effect_id::text
  FROM effect_outbox AS e JOIN effect_outbox AS o ON o.effect_id = e.after_id
 WHERE (e.started_at IS NOT NULL OR e.state = 'completed') AND o.state <> 'completed'
UNION ALL
SELECT 'undone, and never done', e.effect_id::text
  FROM effect_outbox AS e JOIN effect_outbox AS o ON o.effect_id = e.undo_of WHERE o.state <> 'completed'
UNION ALL
SELECT 'undone, and something of it is open', e.effect_id::text
  FROM effect_outbox AS e JOIN effect_outbox AS o ON o.run_id = e.run_id
 WHERE e.undo_of IS NOT NULL AND e.state <> 'cancelled' AND o.undo_of IS NULL AND o.effect_type <> 'resume'
   AND o.state IN ('pending', 'sending', 'unknown')
UNION ALL
SELECT 'a newer version, and one of several waits for nothing', e.effect_id::text
  FROM effect_outbox AS e JOIN draft_heads AS h USING (draft_key)
 WHERE e.clause IS NOT NULL AND e.undo_of IS NULL AND e.state = 'pending' AND e.ambiguous_at IS NULL
   AND h.source_version > e.known_version AND NOT EXISTS (
       SELECT FROM effect_outbox AS o
        WHERE o.run_id = e.run_id AND o.undo_of IS NULL AND o.effect_type <> 'resume'
          AND (o.state = 'unknown' OR o.state = 'pending' AND o.ambiguous_at IS NOT NULL))
UNION ALL
SELECT 'approved, and no effect', draft_id::text FROM drafts AS d WHERE status = 'approved'
   AND NOT EXISTS (SELECT FROM effect_outbox AS e WHERE e.draft_id = d.draft_id AND e.state <> 'cancelled')
UNION ALL
SELECT 'an effect that nobody approved', effect_id::text FROM effect_outbox AS e
 WHERE NOT EXISTS (SELECT FROM approvals AS a WHERE a.draft_id = e.draft_id AND a.decision = 'approve')
   AND NOT EXISTS (SELECT FROM audit_log AS l WHERE l.chain = e.idempotency_key AND l.action = 'scheduled')
UNION ALL
SELECT 'pending, and no question', draft_id::text FROM drafts AS d
 WHERE (status = 'pending') <> EXISTS (
       SELECT FROM approvals AS a
        WHERE a.approval_id = d.approval_id AND a.ended_at IS NULL AND a.revision = d.revision)
UNION ALL
SELECT 'two open questions of a draft', draft_id::text FROM approvals WHERE ended_at IS NULL
 GROUP BY draft_id HAVING count(*) > 1
UNION ALL
SELECT 'unknown, and no card for ops', effect_id::text FROM effect_outbox AS e WHERE state = 'unknown'
   AND NOT EXISTS (SELECT FROM cards AS c WHERE c.effect_id = e.effect_id)
UNION ALL
SELECT 'a draft without a card', draft_id::text FROM drafts AS d
 WHERE NOT EXISTS (SELECT FROM cards AS c WHERE c.draft_id = d.draft_id)
UNION ALL
SELECT 'a card behind', card_id::text FROM cards
 WHERE waits_until IS NULL AND (wanted_version > shown_version OR lease_owner IS NOT NULL)
UNION ALL
SELECT 'a newer version, and the older draft approved', d.draft_id::text
  FROM drafts AS d JOIN draft_heads AS h USING (draft_key)
 WHERE d.status IN ('approved', 'scheduled') AND h.source_version > d.known_version
   AND EXISTS (SELECT FROM effect_outbox AS e WHERE e.draft_id = d.draft_id AND e.state = 'pending'
                  AND e.ambiguous_at IS NULL AND e.clause IS NULL)
"""
MOVED = """
SELECT (SELECT jsonb_agg(to_jsonb(d) - 'updated_at' ORDER BY draft_id) FROM drafts AS d) AS drafts,
       (SELECT jsonb_agg(to_jsonb(v) ORDER BY approval_id, subject) FROM votes AS v) AS votes,
       (SELECT jsonb_agg(to_jsonb(a) ORDER BY approval_id) FROM approvals AS a) AS approvals,
       (SELECT jsonb_agg(jsonb_build_array(effect_id, state) ORDER BY effect_id)
          FROM effect_outbox) AS effects,
       (SELECT count(*) FROM redrafts) AS wishes, (SELECT count(*) FROM revisions) AS revisions
"""


async def check(whole: Whole, *, deleted: set[str], resent: dict[str, int]) -> None:
    """Hold everything to SPEC section 5. `deleted`: messages that people took away; `resent`: effects that
    a person let out once more, and how often.
    """
    faults = rows(whole.dsn, NEVER)
    assert not faults, faults
    await check_cards(whole, deleted)
    check_far_side(whole, resent)
    await check_record(whole)


async def check_cards(whole: Whole, deleted: set[str]) -> None:
    """Each card in Slack is what is drawn from the rows now, and each row has one message at most."""
    posted = rows(whole.dsn, "SELECT * FROM cards ORDER BY card_id")
    messages = {message.ts: message for message in whole.cards()}
    known = {row["ts"] for row in posted}
    assert not messages.keys() - known, (
        f"a second card: {[messages[ts].text for ts in messages.keys() - known]}"
    )
    async with whole.process.parts.db.connection() as conn:
        found: list[DraftCard | EffectCard | QueueCard] = [
            *await showing.read_draft_cards(conn, [row["draft_id"] for row in posted if row["draft_id"]]),
            *await showing.read_effect_cards(conn, [row["effect_id"] for row in posted if row["effect_id"]]),
            *await queue.read_queue_cards(conn, [row["queue_of"] for row in posted if row["queue_of"]]),
        ]
    by_id = {card.card_id: card for card in found}
    assert len(by_id) == len(posted)
    names = await whole.names.of({person for card in found for person in people_of(card)})
    scene = Scene(True, names, "en")
    for row in posted:
        if row["waits_until"] is not None or row["ts"] in deleted:
            continue
        if row["ts"] is None:
            assert row["draft_id"] is not None, "only a draft that was over before it had a place has no card"
            continue
        message = messages[row["ts"]]
        shown = shown_hash(message.blocks or [])
        assert shown == row["shown_hash"], f"the row believes in another card: {message.blocks}"
        true = truths(by_id[row["card_id"]], scene)
        assert shown in true, f"not the truth: {difference(message.blocks, next(iter(true.values())))}"


def truths(card: DraftCard | EffectCard | QueueCard, scene: Scene) -> dict[str, Any]:
    """What a card may show, by its hash. How often its event came again is no news that draws it anew."""
    counts = range(card.repeats + 1) if isinstance(card, DraftCard) else range(1)
    drawn = [
        draw(card.model_copy(update={"repeats": count}) if isinstance(card, DraftCard) else card, scene)
        for count in counts
    ]
    return {one.shown_hash: one.blocks for one in drawn}


def difference(shown: Any, true: Any) -> str:
    """Where two drawings part, for a failing test."""
    one, other = (json.dumps(blocks, indent=1, sort_keys=True).splitlines() for blocks in (shown, true))
    changed = difflib.unified_diff(one, other, "shown", "true", n=2)
    return "\n".join(line for line in changed if '"value"' not in line and '"block_id"' not in line)


def check_far_side(whole: Whole, resent: dict[str, int]) -> None:
    """What left us is what somebody saw who approved it, once."""
    journal = [one for one in whole.world.world.journal if one.path.startswith(TARGET)]
    effects = {
        row["id"]: row
        for row in rows(
            whole.dsn,
            "SELECT e.effect_id::text AS id, e.state, e.draft_id, e.idempotency_key, e.started_at"
            " FROM effect_outbox AS e",
        )
    }
    bytes_of: dict[str, set[str]] = {}
    for one in journal:
        assert one.signed
        bytes_of.setdefault(str(one.effect_id), set()).add(one.body)
    for effect_id, sent in bytes_of.items():
        (body,) = sent  # The same bytes on every try.
        done = sum(one.done for one in journal if one.effect_id == effect_id)
        row = effects[effect_id]
        assert done <= 1 + resent.get(effect_id, 0), f"sent twice: {body}"
        if done and effect_id not in resent:
            assert row["state"] in {"completed", "unknown"}, f"it arrived, and is {row['state']}"
        check_bytes(whole, row, json.loads(body))
    for effect_id, row in effects.items():
        if row["state"] == "completed" and effect_id not in resent:  # A person may say "delivered" wrongly.
            assert effect_id in bytes_of, "completed, and nothing left"


def check_bytes(whole: Whole, effect: dict[str, Any], body: dict[str, Any]) -> None:
    """The content is that of the approved revision, and it stood on the card that was clicked."""
    (revision,) = rows(
        whole.dsn,
        "SELECT body_hash FROM revisions WHERE draft_id = %(draft_id)s AND revision = %(revision)s",
        draft_id=effect["draft_id"],
        revision=body["revision"],
    )
    assert revision["body_hash"] == body_hash(body["output"])
    if "undoes" in body:
        return
    decided = rows(
        whole.dsn,
        "SELECT * FROM approvals WHERE draft_id = %(draft_id)s AND revision = %(revision)s"
        " AND decision = 'approve' AND approver_subject = %(by)s",
        draft_id=effect["draft_id"],
        revision=body["revision"],
        by=body["approved_by"],
    )
    if body["approved_by"].startswith("gate:"):
        return
    assert decided, "nobody approved it"
    for approval in decided:
        seen = whole.seen[approval["token_hash"]]
        assert not seen.whole or approval["shown_hash"] == shown_hash(seen.blocks), "another card was clicked"
        assert body["output"]["body"].split()[-1] in json.dumps(seen.blocks), "it did not stand there"


async def check_record(whole: Whole) -> None:
    """Every chain of the record holds."""
    async with whole.process.parts.db.connection() as conn:
        for name in await audit.list_chains(conn, after="", most=1000):
            faults = list(audit.faults_of(await audit.read_chain(conn, name)))
            assert not faults, faults


def ended_tokens(whole: Whole) -> list[dict[str, Any]]:
    """Buttons that were seen on cards and belong to approvals that have ended."""
    return rows(
        whole.dsn,
        "SELECT t.token_hash, t.revision, t.decision, c.channel, c.ts FROM approval_tokens AS t"
        " JOIN approvals AS a USING (approval_id) JOIN cards AS c USING (card_id)"
        " WHERE a.ended_at IS NOT NULL AND t.surface = 'message'"
        " AND t.decision NOT IN ('cancel', 'read', 'undo')"
        " AND c.ts IS NOT NULL AND t.token_hash = ANY(%(seen)s) AND c.channel = %(channel)s"
        " ORDER BY a.ended_at DESC, t.token_hash",
        seen=list(whole.seen),
        channel=C_REVIEW,
    )


def standing(whole: Whole) -> dict[str, Any]:
    """All that a click can move."""
    return rows(whole.dsn, MOVED)[0]
