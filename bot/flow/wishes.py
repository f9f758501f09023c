"""The transactions that end a wish for another revision: its answer used, the wish closed, or its time over.

Ground of redrafter. Not here: who claims and asks (redrafter), or keeping the wish (redraft).
"""

import logging
from enum import StrEnum
from typing import Any, Final

from bot.drafting.faults import DraftFault
from bot.flow.checkpoints import reach
from bot.policy.limits import REDRAFT_SECONDS
from bot.policy.retries import Fault
from store import alerts, audit, drafts, heads, redrafts
from store.audit import SYSTEM, Entry
from store.database import Database
from store.drafts import Content
from store.errors import DatabaseAway, LostRace
from store.redrafts import ClaimedRedraft, Grip

BATCH: Final = 100  # Overdue wishes closed at once, as many as drafts expire at once.

log = logging.getLogger(__name__)


class Outcome(StrEnum):
    """Why a wish is over without a revision, as far as a worker or the clock ends it."""

    FAILED = "failed"  # the model's answers did not pass, or it refused
    UNAVAILABLE = "unavailable"  # nobody could be asked
    OVERTAKEN = "overtaken"
    TIMED_OUT = "timed_out"


async def use_answer(db: Database, wish: ClaimedRedraft, grip: Grip, content: Content) -> None:
    """Put the answer before people, if its revision is still the one they have before them.

    Raises:
        LostRace: the lease was lost, the wish was closed, or its revision is not the open one any more.

    """
    async with db.transaction() as conn:
        await heads.lock_heads(conn, [wish.draft_key])
        made = await redrafts.use_redraft(conn, grip)
        await drafts.write_revision(conn, made, made.run_id, content)
        detail = _facts(wish.redraft_id, wish.draft_id, made.revision) | {
            "asked_by": wish.requested_by,
            "body_hash": content.body_hash,
            "model": content.model,
            "fingerprint": content.fingerprint,
            "prompt_version": content.prompt_version,
            "warnings": len(content.warnings),
        }
        await audit.append(conn, [Entry(wish.idempotency_key, SYSTEM, "redrafted", detail)])
        reach("redraft.before_commit")


async def close_overdue(db: Database) -> int:
    """End wishes whose ten minutes are over, whoever holds them; their cards open again."""
    async with db.connection() as conn:
        keys = await redrafts.list_overdue_redrafts(conn, most=BATCH, longest_seconds=REDRAFT_SECONDS)
    if not keys:
        return 0
    async with db.transaction() as conn:
        await heads.lock_heads(conn, keys)
        closed = await redrafts.close_overdue_redrafts(conn, keys, longest_seconds=REDRAFT_SECONDS)
        lines = [
            Entry(
                one.idempotency_key,
                SYSTEM,
                "redraft_closed",
                _facts(one.redraft_id, one.draft_id, one.revision) | {"outcome": Outcome.TIMED_OUT},
            )
            for one in closed
        ]
        if lines:
            await audit.append(conn, lines)
    return len(closed)


async def close(
    db: Database, wish: ClaimedRedraft, grip: Grip, outcome: Outcome, fault: DraftFault | None = None
) -> None:
    """End the wish and open its card again, on the record; nothing, if the wish is not ours any more."""
    detail = _facts(wish.redraft_id, wish.draft_id, wish.revision) | {"outcome": outcome}
    if fault is not None:
        detail |= {"fault": str(fault.word), "detail": fault.detail}
    try:
        async with db.transaction() as conn:
            await heads.lock_heads(conn, [wish.draft_key])
            await redrafts.close_redraft(conn, grip, outcome)
            await audit.append(conn, [Entry(wish.idempotency_key, SYSTEM, "redraft_closed", detail)])
            # Of a budget ops heard where it was looked at: once a day, not once a wish.
            if fault is not None and fault.row.alert and fault.word is not Fault.BUDGET:
                name = "quota" if fault.word is Fault.QUOTA_GONE else "drafting_failed"
                facts = {"key": wish.idempotency_key, "reason": fault.word, "detail": fault.detail}
                await alerts.raise_alert(conn, key=f"redraft:{wish.redraft_id}", name=name, facts=facts)
    except (LostRace, DatabaseAway) as lost:
        log.info("a wish was left", extra={"redraft_id": str(wish.redraft_id), "why": type(lost).__name__})


def _facts(redraft_id: object, draft_id: object, revision: int) -> dict[str, Any]:
    return {"redraft_id": str(redraft_id), "draft_id": str(draft_id), "revision": revision}
