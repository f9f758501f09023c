-- name: want_cards
-- Ask for the cards of these drafts (and of effects that have one) to be drawn again, in the transaction of the change.
-- zero rows: nothing: a draft whose card was never asked for
UPDATE cards
   SET wanted_version = wanted_version + 1, next_attempt_at = least(next_attempt_at, now()), updated_at = now()
 WHERE draft_id = ANY(%(draft_ids)s::uuid[]) OR effect_id = ANY(%(effect_ids)s::uuid[]);

-- name: open_card
-- Ask for the one card of a draft or of an unknown effect; one that is there is drawn again instead.
INSERT INTO cards (card_id, draft_id, effect_id, channel)
VALUES (%(card_id)s, %(draft_id)s, %(effect_id)s, %(channel)s)
ON CONFLICT DO NOTHING;
