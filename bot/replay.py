"""What another policy would have made of past decisions: `python -m bot policy replay FILE`.

Not here: the gates (bot/gates) or a running one's evidence (bot/flow/weighing). Says keys, never content.
"""

import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from bot.flow.weighing import hides, terms_of, with_evidence
from bot.gates.gate import Ask, Draft, Judge
from bot.policy.earned import Evidence
from bot.policy.kinds import Kind, Policy
from bot.policy.rules import check_rules
from store import replay
from store.database import Database
from store.replay import DecidedRow

QUESTIONS_AT_ONCE = 200  # A page in memory with its contents: some megabytes at the very most.


@dataclass(slots=True)
class Outcome:
    """Of one kind's decisions: how many, erased since, gone out alone, and the keys that people changed."""

    judged: int = 0
    erased: int = 0
    alone: int = 0
    changed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Case:
    """A decision without its content: what the rules said of it is known, only the evidence is missing."""

    row: DecidedRow
    draft: Draft | None


async def replay_policy(
    dsn: str, policy: Policy, gates: Mapping[str, Judge], days: int
) -> dict[str, Outcome]:
    """Judge the decisions of the last days by another policy, by kind.

    Evidence of a draft are the last decisions that people had taken on its kind when it opened, whatever
    prompt and rules it was made by: changed ones have none of their own yet.
    """
    cases: dict[str, list[_Case]] = defaultdict(list)
    db = Database(dsn)
    await db.open()
    try:
        async with db.connection() as conn:
            after = UUID(int=0)
            while page := await replay.list_decided(conn, after=after, most=QUESTIONS_AT_ONCE):
                for row in await replay.read_decided(conn, page, days=days):
                    if row.kind in policy.kinds:
                        cases[row.kind].append(_prepare(row, policy.kinds[row.kind]))
                after = page[-1]
    finally:
        await db.close()
    return {name: _judge(cases[name], kind, gates[kind.gate]) for name, kind in policy.kinds.items()}


def _prepare(row: DecidedRow, kind: Kind) -> _Case:
    draft = None
    if row.output is not None and row.payload is not None:
        found = check_rules(kind.rules, output=row.output, payload=row.payload)
        warned = bool(found.warnings or found.broken) or hides(row.entity, row.output)
        draft = Draft(warned=warned, allowed=found.allowed, corrects=row.corrects)
    return _Case(row.model_copy(update={"output": None, "payload": None}), draft)


def _judge(cases: Sequence[_Case], kind: Kind, gate: Judge) -> Outcome:
    outcome, terms = Outcome(), terms_of(kind)
    record = _Record(case.row for case in cases)
    for case in sorted(cases, key=lambda case: case.row.decided_at):
        if not case.row.is_judged:
            continue
        outcome.judged += 1
        if case.draft is None:
            outcome.erased += 1
            continue
        known = case.draft
        if terms is not None:
            known = with_evidence(known, record.before(case.row, terms.decisions), terms, case.row.run_id)
        if not isinstance(gate(known, kind), Ask):
            outcome.alone += 1
            outcome.changed += [] if case.row.unedited else [case.row.key]
    return outcome


class _Record:
    """The decisions of a kind in their order, to count the last ones before any moment."""

    def __init__(self, rows: Iterable[DecidedRow]) -> None:
        ordered = sorted(rows, key=lambda row: row.decided_at)
        self._times = [row.decided_at for row in ordered]
        self._sums = [0]
        for row in ordered:
            self._sums.append(self._sums[-1] + row.unedited)

    def before(self, row: DecidedRow, most: int) -> Evidence:
        """Count up to `most` decisions that were taken before this one's draft opened."""
        end = bisect.bisect_left(self._times, row.opened_at)
        start = max(0, end - most)
        return Evidence(end - start, self._sums[end] - self._sums[start])


def report(outcomes: Mapping[str, Outcome], days: int, say: Callable[[str], None]) -> None:
    """Say the figures of each kind, and the keys of what would have gone out against people's judgement."""
    for name, outcome in outcomes.items():
        for line in _lines(name, outcome, days):
            say(line)


def _lines(name: str, outcome: Outcome, days: int) -> Iterator[str]:
    yield f"{name}: {outcome.judged} decisions in {days} days"
    if outcome.erased:
        yield f"  {outcome.erased} cannot be judged any more: their content was removed"
    yield f"  would have gone out without approval: {outcome.alone}"
    yield f"  of those edited, rejected or cancelled by people: {len(outcome.changed)}"
    for key in outcome.changed:
        yield f"    {key}"
