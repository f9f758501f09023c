"""The transactions that end a drafting attempt: a draft opened or revised, a run postponed or failed.

Not here: who claims and asks (draft).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from bot.drafting.faults import DraftFault
from bot.flow.checkpoints import reach
from bot.flow.weighing import Proposal, Weighed, figures, weigh
from bot.gates.gate import Ask, SendAfter, SendNow
from bot.policy.keys import body_hash
from bot.policy.limits import TAKEOVERS_ALERT
from bot.policy.retries import Fault
from store import alerts, audit, drafts, heads, letting, runs
from store.audit import Entry
from store.database import Database
from store.drafts import Frozen, OpenDraft, Opening
from store.heads import Reopening
from store.letting import Letting
from store.queries import Connection
from store.rows import RevisedDraft
from store.runs import ClaimedRun, Held

SYSTEM = "system"
GATE: Final = "gate:"  # And the mode: who approved where no person did. No subject of a person is like it.
WAIT_FOR_EFFECT_SECONDS = 5.0  # An older effect settles, or is withdrawn, within seconds.


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a run rests, and whether that was one of its attempts."""

    seconds: float
    counted: bool


async def open_or_revise(db: Database, run: ClaimedRun, held: Held, proposal: Proposal) -> None:
    """Show the content to people: revise the draft that is pending, else open a new one.

    What the gate lets through gets its effects in the same transaction; people may still cancel it. A run
    that is no longer the newest becomes superseded without a card.

    Raises:
        LostRace: the lease was lost, or a person decided the older draft at this moment.

    """
    snapshot = proposal.kind.snapshot()
    frozen = Frozen(body_hash(snapshot), proposal.kind.name, snapshot)
    async with db.transaction() as conn:
        head = (await heads.lock_heads(conn, [run.draft_key]))[run.draft_key]
        if head.run_id != run.run_id:
            await runs.supersede_claimed_run(conn, held)
            await audit.append(
                conn, [Entry(run.idempotency_key, SYSTEM, "superseded", {"by": str(head.run_id)})]
            )
            return
        older = await drafts.find_open_draft(conn, run.draft_key)
        if older is not None and older.status != "pending":
            # Of it something is still on its way; what becomes of it decides which draft this run gets.
            await runs.postpone_run(
                conn, held, failure="older_effect", wait_seconds=WAIT_FOR_EFFECT_SECONDS, counted=False
            )
            return
        opening = Opening(run.run_id, run.draft_key, run.entity, frozen)
        made = await _open(conn, opening, older)
        await drafts.write_revision(conn, made, run.run_id, proposal.content)
        weighed = await weigh(conn, run, proposal)
        await _follow(conn, held, made, _letting(proposal, weighed))
        await audit.append(conn, _lines(run, made, proposal, weighed))
        reach("draft.before_open_commit")


async def _open(conn: Connection, opening: Opening, older: OpenDraft | None) -> RevisedDraft:
    if older is None:
        return await drafts.open_draft(conn, opening)
    made = await drafts.revise_draft(conn, opening, older.draft_id)
    await runs.supersede_shown_run(conn, older.run_id)
    key = await runs.find_key(conn, older.run_id)
    await audit.append(conn, [_superseded(key, opening.run_id)])
    return made


def _letting(proposal: Proposal, weighed: Weighed) -> Letting | None:
    """How it goes out without a person; None where a person is asked."""
    gate, effects = f"{GATE}{proposal.kind.gate}", len(proposal.kind.all_effects)
    match weighed.verdict:
        case Ask():
            return None
        case SendAfter(window_seconds=seconds):
            return Letting(gate, effects, window_seconds=seconds)
        case SendNow(rule=rule):
            return Letting(gate, effects, rule=rule)


async def _follow(conn: Connection, held: Held, made: RevisedDraft, letting_it: Letting | None) -> None:
    if letting_it is None:
        await runs.settle_drafted_run(conn, held, draft_id=made.draft_id)
    else:
        await letting.let_through(conn, held.params(), made.draft_id, letting_it)


def _superseded(key: str, by: UUID) -> Entry:
    return Entry(key, SYSTEM, "superseded", {"by": str(by)})


def _lines(run: ClaimedRun, made: RevisedDraft, proposal: Proposal, weighed: Weighed) -> list[Entry]:
    """Say that a draft opened and why a person is asked, or what let it through without one."""
    let = _letting(proposal, weighed)
    opened = Entry(run.idempotency_key, SYSTEM, "draft_opened", _opened(made, proposal, weighed))
    if let is None:
        return [opened]
    action = "approved" if let.window_seconds is None else "scheduled"
    return [opened, Entry(run.idempotency_key, let.gate, action, _reasons(made, proposal, weighed, let))]


def _opened(made: RevisedDraft, proposal: Proposal, weighed: Weighed) -> dict[str, Any]:
    content = proposal.content
    detail: dict[str, Any] = {
        "draft_id": str(made.draft_id),
        "revision": made.revision,
        "body_hash": content.body_hash,
        "author": content.author,
        "gate": proposal.kind.gate,
        "warnings": len(content.warnings),
    }
    if isinstance(weighed.verdict, Ask):
        detail["asked_because"] = weighed.verdict.why
    if content.author == "model":
        detail |= {
            "model": content.model,
            "fingerprint": content.fingerprint,
            "prompt_version": content.prompt_version,
        }
    return detail


def _reasons(made: RevisedDraft, proposal: Proposal, weighed: Weighed, let: Letting) -> dict[str, Any]:
    """The figures that a machine's approval rests on, beside what it approved."""
    detail = {"revision": made.revision, "body_hash": proposal.content.body_hash}
    if let.window_seconds is not None:
        return detail | {"window_seconds": let.window_seconds}
    allows = [rule.path for rule in proposal.kind.rules if rule.level == "allow"]
    return detail | {"rules": allows} | figures(proposal.kind, weighed.draft.evidence)


async def postpone(db: Database, run: ClaimedRun, held: Held, fault: DraftFault, wait: Wait) -> None:
    """Give the run back until later, on the record."""
    async with db.transaction() as conn:
        await runs.postpone_run(
            conn, held, failure=fault.word, wait_seconds=wait.seconds, counted=wait.counted
        )
        await audit.append(conn, [_failed(run, fault, "failed_retryable")])


async def end_failed(db: Database, run: ClaimedRun, held: Held, fault: DraftFault) -> None:
    """End the run, tell ops, and give an older open draft back to its reviewers with a warning."""
    async with db.transaction() as conn:
        head = (await heads.lock_heads(conn, [run.draft_key]))[run.draft_key]
        older = await drafts.find_open_draft(conn, run.draft_key)
        if older is not None and older.status == "pending" and head.run_id == run.run_id:
            await heads.reopen_drafts(conn, [Reopening(older.draft_id, "newer_failed")])
        await runs.fail_run(conn, held, failure=fault.word)
        await audit.append(conn, [_failed(run, fault, "failed_terminal")])
        name = "quota" if fault.word is Fault.QUOTA_GONE else "drafting_failed"
        facts = {"key": run.idempotency_key, "reason": fault.word, "detail": fault.detail}
        await alerts.raise_alert(conn, key=f"drafting_failed:{run.run_id}", name=name, facts=facts)


def _failed(run: ClaimedRun, fault: DraftFault, state: str) -> Entry:
    detail: Mapping[str, Any] = {
        "fault": str(fault.word),
        "detail": fault.detail,
        "state": state,
        "attempts": run.attempts,
        "requests": fault.spent.requests,
        "prompt_tokens": fault.spent.prompt_tokens,
        "completion_tokens": fault.spent.completion_tokens,
    }
    return Entry(run.idempotency_key, SYSTEM, "drafting_failed", detail)


async def alert_takeovers(db: Database, run: ClaimedRun) -> None:
    """Tell ops when workers keep dying on one run."""
    if run.takeovers != TAKEOVERS_ALERT:
        return
    async with db.connection() as conn:
        facts = {"key": run.idempotency_key, "count": run.takeovers}
        await alerts.raise_alert(conn, key=f"takeovers:{run.run_id}", name="takeovers", facts=facts)
