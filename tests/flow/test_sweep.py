"""Sweeping: what ran out long ago goes, some at a time, and nothing else.

Not here: that the statement is flat (tests/store/test_explain).
"""

import pytest

from bot.flow import sweep
from bot.flow.sweep import Sweeping, run_once
from store.database import Database
from store.tokens import ENDED_KEEP_SECONDS
from tests.makers import change, make_draft, make_token, rows

AGED = "UPDATE approval_tokens SET expires_at = now() - %(s)s * interval '1 second' WHERE decision = %(d)s"


# Tokens that ran out long ago go without their card being drawn; those that a click is still told of stay.
async def test_old_tokens(dsn: str, db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "MOST", 2)
    draft = make_draft(dsn, status="expired")
    for decision in ("approve", "approve", "approve", "reject", "read"):
        make_token(dsn, draft, decision)
    change(dsn, AGED, s=ENDED_KEEP_SECONDS + 60, d="approve")
    change(dsn, AGED, s=ENDED_KEEP_SECONDS - 60, d="reject")
    assert [await run_once(Sweeping(db)) for _ in range(3)] == [2, 1, 0]
    left = rows(dsn, "SELECT decision FROM approval_tokens ORDER BY decision")
    assert [one["decision"] for one in left] == ["read", "reject"]
