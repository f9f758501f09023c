"""What a person wrote becomes the next revision: exactly as typed, checked as strictly as a model's draft.

Not here: the form (open, bot/policy/editing), its drawing (bot/cards), or what errors are called (bot/doors).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from bot.contracts.answer import Click, NotDecided, Why
from bot.drafting.check import list_violations
from bot.flow.checkpoints import reach
from bot.flow.forms import form_of
from bot.flow.judging import RECOUNTS, Deciding, Progress, Weighed, answer_in_time, weigh
from bot.policy.editing import Form, Input, changed_fields, fill
from bot.policy.keys import body_hash
from bot.policy.kinds import Kind
from bot.policy.rules import RuleVerdict, check_rules
from bot.policy.sendable import find_unsendable
from bot.policy.tokens import hash_token
from store import audit, drafts, editing, heads
from store.drafts import Content
from store.editing import ContentRow
from store.errors import LostRace
from store.rows import EditedDraft, Spending

ANYTHING: Final = {"type": "object"}  # The schema of a kind without one.


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one field (None: with the whole): a word and its bound, or the policy's sentence."""

    field: str | None
    word: str
    bound: object = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Edited:
    """There is a next revision, with a question of its own."""

    revision: int


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The form came back as it was: nothing to store."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """What was typed does not pass; nothing was stored. `fields` are those that the form has."""

    faults: tuple[Fault, ...]
    fields: tuple[str, ...]


Answer = Edited | Unchanged | Unfit | NotDecided


@dataclass(frozen=True, slots=True)
class _Change:
    content: Content = field(repr=False)
    fields: tuple[str, ...]


async def edit(deps: Deciding, click: Click, typed: Mapping[str, str]) -> Answer:
    """Store what was typed, field by field, as the next revision; refused or unfit, nothing has changed.

    A database that is away, busy or lost in the commit becomes an answer, as in `decide`.
    """
    return await answer_in_time(partial(_try, deps, click, typed), partial(_read_again, deps, click))


async def _try(deps: Deciding, click: Click, typed: Mapping[str, str], progress: Progress) -> Answer:
    for _ in range(RECOUNTS):
        weighed = await weigh(deps, click)
        if isinstance(weighed, NotDecided):
            return weighed
        read = await _read(deps, weighed, typed)
        if not isinstance(read, _Change):
            return read
        try:
            made = await _write(deps, click, weighed, read, progress)
        except LostRace:
            progress.committing = False
            continue  # Something moved between reading and the lock: read again and say what.
        reach("edit.after_commit")
        return Edited(made.revision)
    return NotDecided(Why.TOO_SLOW)


async def _read(
    deps: Deciding, weighed: Weighed, typed: Mapping[str, str]
) -> _Change | Unchanged | Unfit | NotDecided:
    """Make the draft that the form means, and check it by the frozen schema and today's rules."""
    question = weighed.question
    kind = deps.policy.kinds.get(question.kind)
    async with deps.db.connection() as conn:
        stands = await editing.find_content(conn, question.draft_id, question.revision)
    if kind is None:
        return NotDecided(Why.KIND_GONE)
    if stands is None or stands.body is None:
        return NotDecided(Why.SETTLED)
    form = form_of(stands.body, question.snapshot)
    filled = fill(form, stands.body, typed)
    names = tuple(each.name for each in form.fields)
    if filled.wrong:
        return Unfit(tuple(_no_value(form, name) for name in filled.wrong), names)
    fields = changed_fields(stands.body, filled.body)
    if not fields:
        return Unchanged()
    faults = _faults(filled.body, question.snapshot, kind, stands)
    if faults:
        return Unfit(faults, names)
    warnings = [found.message for found in _judge(filled.body, kind, stands).warnings]
    content = Content(filled.body, body_hash(filled.body), weighed.judged.subject, warnings=warnings)
    return _Change(content, fields)


def _no_value(form: Form, name: str) -> Fault:
    each = next(one for one in form.fields if one.name == name)
    if each.input is not Input.NUMBER:
        return Fault(name, "value")
    return Fault(name, "whole_number" if each.whole else "number")


def _faults(
    body: dict[str, Any], snapshot: Mapping[str, Any], kind: Kind, stands: ContentRow
) -> tuple[Fault, ...]:
    """What keeps the draft from passing: the schema, then what cannot be sent, then hard rules."""
    faults = [
        Fault(each.field, each.keyword, each.bound)
        for each in list_violations(body, snapshot.get("output") or ANYTHING)
    ]
    faults += [
        Fault(_field_of(found.field), found.word, found.bound) for found in find_unsendable(body, kind.sends)
    ]
    if not faults:
        broken = _judge(body, kind, stands).broken
        faults = [Fault(_field_of(each.path), "rule", message=each.message) for each in broken]
    return tuple(faults)


def _judge(body: dict[str, Any], kind: Kind, stands: ContentRow) -> RuleVerdict:
    return check_rules(kind.rules, output=body, payload=stands.payload or {})


def _field_of(path: str) -> str | None:
    """The output's field in a path like `output.subject`; None for the payload's."""
    place, _, name = path.partition(".")
    return name.partition(".")[0].partition("[")[0] if place == "output" and name else None


async def _write(
    deps: Deciding, click: Click, weighed: Weighed, change: _Change, progress: Progress
) -> EditedDraft:
    question = weighed.question
    spending = Spending(hash_token(click.token), click.revision, click.surface, weighed.judged.subject)
    async with deps.db.transaction() as conn:
        await heads.lock_heads(conn, [question.draft_key])
        made = await editing.edit_draft(conn, spending)
        await drafts.write_revision(conn, made, made.run_id, change.content)
        detail = {
            "draft_id": str(question.draft_id),
            "revision": made.revision,
            "fields": list(change.fields),
            "before_hash": question.body_hash,
            "body_hash": change.content.body_hash,
            "shown_hash": question.shown_hash,
            "counted_as": weighed.judged.counted_as,
            "warnings": len(change.content.warnings),
        }
        line = audit.Entry(question.idempotency_key, weighed.judged.subject, "edited", detail)
        await audit.append(conn, [line])
        reach("edit.before_commit")
        progress.committing = True
    return made


async def _read_again(deps: Deciding, click: Click) -> Answer:
    """Find out what a commit did whose answer was lost; unless it is proven, say that it is not known."""
    who = f"slack:{click.team_id}:{click.user_id}"
    spending = Spending(hash_token(click.token), click.revision, click.surface, who)
    async with deps.db.connection() as conn:
        revision = await editing.find_revision_by(conn, spending)
    return NotDecided(Why.NOT_KNOWN_YET) if revision is None else Edited(revision)
