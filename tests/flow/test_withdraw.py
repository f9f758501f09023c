"""Approvals that got too old before anything was sent.

Not here: what a newer event withdraws (test_receive, test_dispatch).
"""

import pytest

from bot.flow import withdraw
from bot.flow.withdraw import Withdrawing
from store.database import Database
from tests import makers
from tests.flow.outlets import actions, effect_row

STALE = "UPDATE effect_outbox SET fresh_until = now() - interval '1 second'"


# A stale approval goes back to its reviewers with a fresh question, also while the switch is closed.
@pytest.mark.parametrize("switch_open", [True, False])
async def test_stale(db: Database, dsn: str, *, switch_open: bool) -> None:
    effect_id = makers.make_effect(dsn)
    makers.change(dsn, STALE)
    makers.change(dsn, "UPDATE kill_switch SET open = %(open)s", open=switch_open)
    assert await withdraw.run_once(Withdrawing(db)) == 1
    row = effect_row(dsn, effect_id)
    assert (row["state"], row["reason"]) == ("cancelled", "stale")
    assert (row["draft_status"], row["run_state"], row["wanted_version"]) == ("pending", "awaiting_human", 2)
    draft = makers.rows(dsn, "SELECT notice, approval_id FROM drafts")[0]
    assert draft["notice"] == "withdrawn_stale"
    question = makers.rows(
        dsn, "SELECT ended_at FROM approvals WHERE approval_id = %(id)s", id=draft["approval_id"]
    )
    assert question[0]["ended_at"] is None
    assert actions(dsn, row["idempotency_key"]) == [("system", "withdrawn")]
    assert await withdraw.run_once(Withdrawing(db)) == 0


# Nothing is taken back that is fresh, was claimed, or may have arrived already.
@pytest.mark.parametrize(
    "kept",
    [
        "UPDATE effect_outbox SET fresh_until = now() + interval '1 hour'",
        "UPDATE effect_outbox SET fresh_until = NULL",
        f"{STALE}, ambiguous_at = now()",
        f"{STALE}, state = 'sending', lease_owner = 'x', lease_expires_at = now()",
        f"{STALE}, effect_type = 'resume'",
    ],
)
async def test_kept(db: Database, dsn: str, kept: str) -> None:
    effect_id = makers.make_effect(dsn)
    makers.change(dsn, kept)
    assert await withdraw.run_once(Withdrawing(db)) == 0
    assert effect_row(dsn, effect_id)["run_state"] == "approved"
