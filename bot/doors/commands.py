"""/stet: reads the word, asks who may, and answers the caller alone.

Not here: kill and resume (switching), reading what was typed (typed), drawing answers (bot/cards/answers).
"""

import logging
from dataclasses import dataclass

from bot.cards import answers, history
from bot.cards.lives import Who
from bot.cards.notices import Notice, Refusal, refused
from bot.doors.callers import ADMINS_UNREADABLE, About, Callers, name_person, record_refusal
from bot.doors.limited import read_keeping
from bot.doors.payloads import Caller, Command
from bot.doors.switching import Switching, kill, resume
from bot.doors.typed import read_key, read_typed
from bot.policy.people import Bar, NotAllowed, Person
from store import asking, audit
from store.asking import Asker, KeyHistory
from store.database import Database
from store.errors import CommitUnknown, DatabaseAway
from store.reading import count_open_work
from store.rows import AuditRow

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Commands:
    """What the commands need; kill and resume need `switching`."""

    db: Database
    callers: Callers
    switching: Switching
    language: str = "en"


@dataclass(frozen=True, slots=True)
class _Asked:
    """One command by somebody who may use it."""

    caller: Caller
    person: Person
    rest: str


async def answer(deps: Commands, command: Command) -> Notice:
    """Answer one command; whatever goes wrong becomes an answer too."""
    try:
        return await _answer(deps, command)
    except CommitUnknown:
        return answers.usage("not_known", language=deps.language)
    except DatabaseAway:
        return refused(Refusal.AWAY, language=deps.language)
    except Exception as fault:  # noqa: BLE001 - the person must hear something, the log its class only
        log.error("a command failed", extra={"fault": type(fault).__name__})  # noqa: TRY400
        return answers.usage("not_known", language=deps.language)


async def _answer(deps: Commands, command: Command) -> Notice:
    typed = read_typed(command.text)
    caller = command.place.caller
    standing = await _standing(deps, caller, typed.word)
    if isinstance(standing, NotAllowed):
        return await _refuse(deps, caller, typed.word, standing.reason)
    asked = _Asked(caller, standing, typed.rest)
    match typed.word:
        case "status":
            return await _status(deps)
        case "queue":
            return await waiting_for(deps, standing)
        case "show":
            return await _show(deps, asked)
        case "unknown":
            return await _unknown(deps)
        case "kill":
            return await kill(deps.switching, standing, typed.rest)
        case "resume":
            return await resume(deps.switching, standing, typed.rest)
        case word if word in answers.LATER_COMMANDS:
            return answers.usage("later", command=word, language=deps.language)
        case word:
            return await _usage(deps, caller, word)


async def _standing(deps: Commands, caller: Caller, word: str) -> Person | NotAllowed:
    """The person, if they may use this word at all."""
    if word == "kill":
        return await deps.callers.killer(caller)
    if word == "resume" and not isinstance(await deps.callers.admin(caller), Person):
        # Who may pull the switch hears why they may not release it.
        killer = await deps.callers.killer(caller)
        return NotAllowed("kill_only") if isinstance(killer, Person) else killer
    if word in (*answers.ADMIN_COMMANDS, *answers.LATER_COMMANDS):
        return await deps.callers.admin(caller)
    return await deps.callers.member(caller)


async def _refuse(deps: Commands, caller: Caller, word: str, reason: str) -> Notice:
    known = (*answers.MEMBER_COMMANDS, *answers.ADMIN_COMMANDS, *answers.LATER_COMMANDS)
    named = word if word in known else "help"
    await record_refusal(deps.db, caller, {"command": named, "why": reason})
    if reason == "kill_only":
        return answers.answer("resume.not_allowed", language=deps.language)
    if reason in (Refusal.NOT_ADMIN, Refusal.UNKNOWN, Refusal.ADMINS_UNREADABLE):
        return refused(Refusal(reason), language=deps.language)
    return answers.usage("members_only", language=deps.language)


async def _usage(deps: Commands, caller: Caller, word: str) -> Notice:
    """Help without a word; for a word nobody knows, usage and how the switch stands: never nothing."""
    admin = isinstance(await deps.callers.admin(caller), Person)
    killer = admin or isinstance(await deps.callers.killer(caller), Person)
    helped = answers.help_text(admin=admin, killer=killer, language=deps.language)
    if word in ("", "help"):
        return helped
    return answers.unknown_word(word, helped, switch=await deps.switching.view())


async def _status(deps: Commands) -> Notice:
    switch = await deps.switching.view()
    async with deps.db.connection() as conn:
        work = await count_open_work(conn)
    counted = {(one.thing, one.state): 0 for one in work}
    for one in work:
        counted[one.thing, one.state] += one.n
    counts = answers.Counts(
        waiting=counted.get(("draft", "pending"), 0),
        queued=counted.get(("effect", "pending"), 0),
        sending=counted.get(("effect", "sending"), 0),
        unknown=counted.get(("effect", "unknown"), 0),
    )
    return answers.status(switch, counts, await read_keeping(deps.db), language=deps.language)


async def waiting_for(deps: Commands, person: Person) -> Notice:
    """List what waits for a full member: open drafts of the kinds they may review, as on their Home."""
    reviewed = await deps.callers.kinds_of(person)
    asker = Asker(name_person(person), reviewed.kinds)
    async with deps.db.connection() as conn:
        counts = await asking.count_waiting(conn, asker)
        rows = await asking.list_waiting(conn, asker, most=answers.MOST_LINES)
    waiting = [answers.Waiting(row.kind, row.entity, row.opened_at, row.expires_at) for row in rows]
    found = {one.kind: one.n for one in counts}
    return answers.queue(waiting, counts=found, is_whole=reviewed.is_whole, language=deps.language)


async def _show(deps: Commands, asked: _Asked) -> Notice:
    if not asked.rest:
        return answers.usage("key_missing", command="show", language=deps.language)
    async with deps.db.connection() as conn:
        found = await asking.find_history(conn, _keys(deps, asked.rest))
    bar = await _why_not_read(deps, asked, found.kind if found else None)
    if bar is not None:
        if found is not None:
            about = About(key=found.idempotency_key)
            await record_refusal(deps.db, asked.caller, {"command": "show", "why": bar}, about)
        if bar == Bar.GROUP_UNREADABLE:
            return refused(Refusal.GROUP_UNREADABLE, language=deps.language)
    if found is None or bar is not None:
        return answers.usage("key_unknown", key=asked.rest[:200], language=deps.language)
    async with deps.db.connection() as conn:
        lines = await audit.read_chain(conn, found.idempotency_key)
    return history.shown(_history(found, lines), language=deps.language)


async def _why_not_read(deps: Commands, asked: _Asked, kind: str | None) -> str | None:
    """Why they may not read of a kind, None if they may. No kind, for a key that there is not, is any other:
    what they may not read, they may not learn the existence of either.
    """
    reviewed = await deps.callers.kinds_of(asked.person)
    admin = await deps.callers.admin(asked.caller)
    if kind in reviewed.kinds or isinstance(admin, Person):
        return None
    unread = not reviewed.is_whole or admin.reason == ADMINS_UNREADABLE
    return Bar.GROUP_UNREADABLE if unread else Bar.NOT_REVIEWER


def _keys(deps: Commands, rest: str) -> list[str]:
    """The whole keys that may be meant: what was typed, or an event key of any source and kind of today."""
    typed = read_key(rest)
    prefixes = [
        f"{source}:{name}" for name, kind in deps.callers.policy.kinds.items() for source in kind.sources
    ]
    return [*typed, *(f"{prefix}:{key}" for prefix in prefixes for key in typed)]


def _history(found: KeyHistory, lines: list[AuditRow]) -> history.History:
    made = decided = None
    if found.revision is not None:
        author = Who(found.author or "?")
        made = history.Made(found.revision, author, found.model, found.prompt_version)
    if found.decision is not None and found.decided_at is not None:
        decided = history.Decided(
            found.decision, Who(found.decided_by or "?"), found.decided_at, found.reason
        )
    return history.History(
        key=found.idempotency_key,
        state=found.state,
        received_at=found.received_at,
        failure=found.failure,
        repeats=found.repeats or 0,
        made=made,
        decided=decided,
        effects=tuple(map(_done, found.effects)),
        lines=tuple(history.Line(line.at, Who(line.actor), line.action) for line in lines),
    )


def _done(one: asking.EffectLine) -> history.Done:
    by = Who(one.undo_by) if one.undo_by else None
    called = f"{one.name} · {one.effect_type}" if one.name else one.effect_type
    return history.Done(called, one.state, one.provider_id, by, undoes=one.undoes, waits_for=one.waits_for)


async def _unknown(deps: Commands) -> Notice:
    async with deps.db.connection() as conn:
        rows = await asking.list_unknown(conn, most=answers.MOST_LINES)
    waiting = [answers.Unknown(row.idempotency_key, row.effect_type, row.ambiguous_at) for row in rows]
    return answers.unknowns(waiting, total=rows[0].total if rows else 0, language=deps.language)
