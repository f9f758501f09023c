"""Weighs what a gate may know of a draft, asks the gate, and notes when a kind earns or loses its exceptions.

Ground of opening. Not here: the modes themselves (bot/gates) or what follows from their verdict (opening).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from bot.cards.draft import fields_of, hidden_in
from bot.cards.views import Field
from bot.gates.gate import Draft, Judge, Verdict
from bot.policy.clauses import Earned
from bot.policy.earned import Evidence, has_earned, is_sampled
from bot.policy.kinds import Kind
from bot.policy.rules import RuleVerdict
from store import alerts, audit, earned
from store.audit import SYSTEM
from store.drafts import Content
from store.queries import Connection
from store.runs import ClaimedRun


@dataclass(frozen=True, slots=True)
class Proposal:
    """Content that passed, what the rules say of it, the policy that is frozen with it, and its gate."""

    kind: Kind
    content: Content
    found: RuleVerdict
    judge: Judge


@dataclass(frozen=True, slots=True)
class Weighed:
    """What the gate said, and what it knew."""

    verdict: Verdict
    draft: Draft


async def weigh(conn: Connection, run: ClaimedRun, proposal: Proposal) -> Weighed:
    """Ask the gate, in the transaction that opens the draft.

    The evidence is what is committed by now. A decision about another draft that commits a moment later might
    as well have been taken after this one opened: it moves the share by one case, and counts for the next.
    """
    kind = proposal.kind
    known = Draft(
        warned=bool(proposal.found.warnings) or hides(run.entity, proposal.content.body),
        allowed=proposal.found.allowed,
        corrects=kind.gate != "approve_first" and await earned.is_correction(conn, run.run_id),
    )
    if (terms := terms_of(kind)) is not None:
        known = with_evidence(known, await _evidence(conn, kind, terms), terms, run.run_id)
    return Weighed(proposal.judge(known, kind), known)


def terms_of(kind: Kind) -> Earned | None:
    """What a kind must earn; None where its gate does not ask."""
    return kind.earned or (Earned() if kind.gate == "by_exception" else None)


def with_evidence(draft: Draft, evidence: Evidence, terms: Earned, run_id: UUID) -> Draft:
    """Add what the kind has earned, and whether this run was drawn."""
    return Draft(
        warned=draft.warned,
        allowed=draft.allowed,
        earned=has_earned(evidence, terms),
        sampled=is_sampled(run_id, terms.sample),
        corrects=draft.corrects,
        evidence=evidence,
    )


def hides(entity: str, body: Mapping[str, Any]) -> bool:
    """Whether something in it is seen by nobody: what a card would warn of, a gate does not pass either."""
    draft, labels = fields_of(body)
    return hidden_in((*draft, *labels, Field("", entity))) > 0


async def _evidence(conn: Connection, kind: Kind, terms: Earned) -> Evidence:
    row = await earned.read_evidence(conn, ground=kind.ground, most=terms.decisions)
    evidence = Evidence(row.decisions, row.unedited)
    now = has_earned(evidence, terms)
    if now and not row.was_earned:
        if await earned.note_earned(conn, ground=kind.ground, kind=kind.name) is not None:
            await audit.append_system(conn, SYSTEM, "exceptions_earned", figures(kind, evidence))
    elif row.was_earned and not now:
        await _lose(conn, kind, evidence)
    return evidence


async def _lose(conn: Connection, kind: Kind, evidence: Evidence) -> None:
    """Go back to asking about everything, and tell ops once."""
    changes = await earned.note_lost(conn, ground=kind.ground)
    if changes is None:
        return
    await audit.append_system(conn, SYSTEM, "exceptions_lost", figures(kind, evidence))
    facts = {"kind": kind.name, "reason": f"{evidence.unedited}/{evidence.decisions}"}
    await alerts.raise_alert(
        conn, key=f"earned_lost:{kind.ground}:{changes}", name="earned_lost", facts=facts
    )


def figures(kind: Kind, evidence: Evidence) -> dict[str, Any]:
    """What the record says of the evidence."""
    terms = terms_of(kind)
    return {
        "kind": kind.name,
        "ground": kind.ground,
        "decisions": evidence.decisions,
        "unedited": evidence.unedited,
        "lower_bound": round(evidence.lower_bound, 4),
        "threshold": None if terms is None else terms.threshold,
    }
