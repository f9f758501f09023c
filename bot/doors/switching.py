"""/stet kill and resume: which scope is meant, what is answered.

Not here: who may (commands), or closing and opening itself (bot/flow/stop).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from bot.cards import answers
from bot.cards.answers import Closed, SwitchView
from bot.cards.lives import Who
from bot.cards.notices import Notice
from bot.doors.callers import PolicyHolder, name_person
from bot.doors.typed import read_reason, read_scope
from bot.flow import stop
from bot.policy.people import Person
from bot.policy.switch import ALL_SCOPE, LLM_SCOPE, effect_scope, is_scope, kind_scope
from store.database import Database
from store.reading import count_open_work
from store.switch import SwitchRow, read_switch

REASON_TEXT: Final = 1_000  # As for a rejection: it stands whole in answers and alerts.
# Steps that have something to do when the switch moves: cards show it, ops hears of it, work goes on.
WOKEN: Final = ("show", "dispatch", "draft", "alert")


@dataclass(frozen=True, slots=True)
class Switching:
    """What the switch's commands need; `policy` and `effect_types` name the scopes that may be meant."""

    db: Database
    policy: PolicyHolder
    effect_types: Collection[str]
    actions_enabled: bool
    wake: Callable[..., None]
    language: str = "en"

    async def view(self) -> SwitchView:
        """The switch as people are shown it. Raises DatabaseAway."""
        async with self.db.connection() as conn:
            rows = await read_switch(conn)
        return SwitchView(
            enabled=self.actions_enabled,
            all_row=any(row.scope == ALL_SCOPE for row in rows),
            closed=tuple(
                Closed(row.scope, Who(row.changed_by), row.changed_at, row.reason or "–")
                for row in rows
                if not row.open
            ),
        )


async def kill(deps: Switching, person: Person, rest: str) -> Notice:
    """Close a scope, `all` unless another is named; without a reason too, which is asked for afterwards."""
    scope, reason, told = _read(rest)
    before = await _rows(deps)
    unknown = await _unknown_scope(deps, scope, before)
    if unknown is not None:
        return unknown
    switched = await stop.kill(deps.db, by=name_person(person), reason=reason or None, scope=scope)
    deps.wake(*WOKEN)
    row = before.get(scope)
    already = row is not None and not row.open
    answer = answers.killed(
        scope,
        in_flight=[one.idempotency_key for one in switched.started],
        already=already,
        reason=reason or (row.reason if row is not None and already else None) or "",
        language=deps.language,
    )
    return told(answer)


async def resume(deps: Switching, person: Person, rest: str) -> Notice:
    """Open a scope, `all` unless another is named; only with a reason."""
    scope, reason, told = _read(rest)
    before = await _rows(deps)
    unknown = await _unknown_scope(deps, scope, before)
    if unknown is not None:
        return unknown
    if not reason:
        return answers.usage("reason_missing", language=deps.language)
    await stop.resume(deps.db, by=name_person(person), reason=reason, scope=scope)
    deps.wake(*WOKEN)
    row = before.get(scope)
    was_open = row.open if row is not None else scope != ALL_SCOPE
    still = sorted(name for name, each in before.items() if not each.open and name != scope)
    return told(answers.resumed(scope, already=was_open, still_closed=still, language=deps.language))


def _read(rest: str) -> tuple[str, str, Callable[[Notice], Notice]]:
    """The scope, the reason, and what says that it was shortened: a kill waits for nobody to mend it."""
    scope, after = read_scope(rest)
    reason = read_reason(after)
    is_long = len(reason) > REASON_TEXT
    told = partial(answers.shortened, count=REASON_TEXT) if is_long else _as_it_is
    return scope or ALL_SCOPE, reason[:REASON_TEXT], told


def _as_it_is(notice: Notice) -> Notice:
    return notice


async def _rows(deps: Switching) -> Mapping[str, SwitchRow]:
    async with deps.db.connection() as conn:
        return {row.scope: row for row in await read_switch(conn)}


async def _unknown_scope(deps: Switching, scope: str, rows: Mapping[str, SwitchRow]) -> Notice | None:
    """Refuse a kind or type that nobody knows, with the list of those there are; None for a good scope."""
    if scope in (ALL_SCOPE, LLM_SCOPE):
        return None
    known = await _known_scopes(deps, rows)
    if scope in known:
        return None
    wanted = scope.partition(":")[0] + ":"
    listed = ", ".join(name for name in known if name.startswith(wanted)) or "–"
    return answers.usage("scope_unknown", scope=scope[:100], known=listed, language=deps.language)


async def _known_scopes(deps: Switching, rows: Mapping[str, SwitchRow]) -> list[str]:
    """Every scope that can mean something: of the policy, of the connectors, of what is still in the works.

    A kind that left the policy file still has approved effects, which its scope must be able to hold.
    """
    async with deps.db.connection() as conn:
        at_work = {one.kind for one in await count_open_work(conn)}
    kinds = {kind_scope(name) for name in {*deps.policy.kinds, *at_work}}
    types = {effect_scope(name) for name in deps.effect_types}
    return sorted(name for name in kinds | types | set(rows) if is_scope(name))
