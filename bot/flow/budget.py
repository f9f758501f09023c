"""Asks the model within the day's tokens, and counts what it cost.

Ground of draft and redrafter. Not here: asking (bot/drafting) or how a run waits for the next day (draft).
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from bot.cards.notices import Alert
from bot.drafting.faults import BudgetUsedUp, DraftFault
from bot.drafting.model import Answer
from bot.policy.kinds import Kind
from store import alerts, budget
from store.database import Database
from store.errors import DatabaseAway

ALL: Final = "all"  # No kind can have this scope: theirs is `kind:` and the name.

log = logging.getLogger(__name__)


class Budgeted(Protocol):
    """Today's policy (bot/wiring)."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds by name."""
        ...

    @property
    def daily_tokens(self) -> int | None:
        """The tokens a UTC day of all kinds together; None: no limit."""
        ...


async def ask_within(
    db: Database,
    policy: Budgeted,
    kind: Kind,
    ask: Callable[[], Awaitable[Answer]],
    keep: Callable[[Answer], Awaitable[None]],
) -> Answer:
    """Ask, keep the answer before anything else, then count what it cost.

    The budget is looked at before each question: questions that are out at that moment may exceed it.

    Raises:
        BudgetUsedUp: nothing was asked; it waits until the day turns.
        DraftFault: as `ask` raises it; what the tries cost is counted.

    """
    await _check(db, policy, kind)
    try:
        answer = await ask()
    except DraftFault as fault:
        await _count(db, kind, fault.spent.prompt_tokens + fault.spent.completion_tokens)
        raise
    await keep(answer)
    await _count(db, kind, answer.prompt_tokens + answer.completion_tokens)
    return answer


async def _check(db: Database, policy: Budgeted, kind: Kind) -> None:
    if kind.daily_tokens is None and policy.daily_tokens is None:
        return
    async with db.connection() as conn:
        spent = await budget.read_tokens(conn, kind=kind.name)
        if kind.daily_tokens is not None and spent.of_kind >= kind.daily_tokens:
            scope, detail = f"kind:{kind.name}", "kind"
        elif policy.daily_tokens is not None and spent.of_all >= policy.daily_tokens:
            scope, detail = ALL, "all"
        else:
            return
        await alerts.raise_alert(
            conn, key=f"budget:{scope}:{spent.day}", name=Alert.BUDGET, facts={"scope": scope}
        )
    raise BudgetUsedUp(detail, retry_after_seconds=spent.left_seconds)


async def _count(db: Database, kind: Kind, tokens: int) -> None:
    """Add to the day's figure; a figure that is lost ends no draft."""
    if not tokens:
        return
    try:
        async with db.connection() as conn:
            await budget.add_tokens(conn, kind=kind.name, tokens=tokens)
    except DatabaseAway:
        log.warning("tokens were not counted: the database is away", extra={"kind": kind.name})
