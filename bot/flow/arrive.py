"""One transaction of arrivals: the insert that decides, the version gate, and what a newer event overtakes.

Not here: grouping arrivals and answering for keys that are known already (receive).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.contracts.event import Event, Origin
from bot.contracts.fields import FieldError
from bot.flow.checkpoints import reach
from bot.policy.keys import draft_key, idempotency_key, payload_hash
from store import audit, intake
from store.cards import want_cards
from store.heads import Reopening, lock_heads, reopen_drafts
from store.ids import new_id
from store.intake import BornRun, NewRun, Overtaken
from store.queries import Connection
from store.states import FINAL_RUNS, DraftStatus

_NO_SUCH_RUN = FieldError("replaces", "names no run of this source and kind: check the old event_key")
_OTHER_ENTITY = FieldError("replaces", "names a run of another entity: a correction is about the same one")


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that passed every check of its kind, ready to be stored.

    `replaced_key` is the key of the run that it corrects; `recorded` what its kind lets into the record.
    """

    run: NewRun
    replaced_key: str | None = None
    recorded: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Stored:
    """The arrival has a run of its own now; `is_stale`: it was not newer than the newest and is over."""

    is_stale: bool
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """Its key is another delivery's: nothing was stored."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """What it replaces cannot be replaced by it; nothing was stored."""

    errors: tuple[FieldError, ...]


@dataclass(frozen=True, slots=True)
class Unsettled:
    """The run it replaces has an effect whose outcome is open; nothing was stored."""

    replaces: str


def make_arrival(event: Event, origin: Origin, recorded: Mapping[str, Any] | None = None) -> Arrival:
    """Name the event's run, draft and content."""
    url = event.resume_url
    run = NewRun(
        run_id=new_id(),
        idempotency_key=idempotency_key(event),
        source=event.source,
        kind=event.kind,
        event_key=event.event_key,
        entity=event.entity,
        draft_key=draft_key(event.entity, event.kind),
        source_version=event.source_version,
        payload_hash=payload_hash(event),
        payload=event.payload,
        draft=event.draft,
        record_url=event.record_url,
        requested_by=event.requested_by,
        reason=event.reason,
        n8n_workflow=origin.workflow,
        n8n_execution=origin.execution,
        workflow_version=origin.workflow_version,
        waiter_id=None if url is None else new_id(),
        resume_url=url,
        url_hash=None if url is None else intake.url_hash(url),
    )
    old = event.replaces
    replaced = None if old is None else f"{event.source}:{event.kind}:{old}"
    return Arrival(run, replaced, recorded or {})


async def store_arrivals(conn: Connection, arrivals: Sequence[Arrival], release: str) -> list[Stored | Known]:
    """Store arrivals of which no two share a key or a draft_key, none of them a correction."""
    born = await intake.insert_runs(conn, [arrival.run for arrival in arrivals])
    blocked = await _settle(conn, arrivals, born, release)
    reach("receive.before_commit")
    return [_answer(arrival, born, blocked) for arrival in arrivals]


async def store_correction(
    conn: Connection, arrival: Arrival, release: str
) -> Stored | Known | Unfit | Unsettled:
    """Store an event that replaces a run; the head is locked before the replaced run is judged.

    An equal version is taken if the replaced run is final and holds the newest.
    """
    run, key = arrival.run, arrival.replaced_key or ""
    await lock_heads(conn, [run.draft_key])
    replaced = await intake.find_replaced(conn, key)
    if replaced is None:
        return Unfit((_NO_SUCH_RUN,))
    if replaced.entity != run.entity:
        return Unfit((_OTHER_ENTITY,))
    if replaced.is_unsettled:
        return Unsettled(key)
    run = replace(run, replaces=replaced.run_id)
    born = await intake.insert_runs(conn, [run])
    if _is_stale(born.get(run.run_id)) and replaced.state in FINAL_RUNS:
        taken = await intake.take_head(conn, run=run, replaced=replaced.run_id)
        born[run.run_id] = BornRun(run_id=run.run_id, is_newest=taken)
    blocked = await _settle(conn, [replace(arrival, run=run)], born, release)
    reach("receive.before_commit")
    return _answer(arrival, born, blocked)


def _answer(arrival: Arrival, born: Mapping[Any, BornRun], blocked: set[str]) -> Stored | Known:
    row = born.get(arrival.run.run_id)
    if row is None:
        return Known()
    return Stored(is_stale=not row.is_newest, blocked=arrival.run.draft_key in blocked)


def _is_stale(row: BornRun | None) -> bool:
    return row is not None and not row.is_newest


async def _settle(
    conn: Connection, arrivals: Sequence[Arrival], born: Mapping[Any, BornRun], release: str
) -> set[str]:
    """Do what follows from the insert; give the draft_keys where something older was ended or blocked."""
    stored = [arrival for arrival in arrivals if arrival.run.run_id in born]
    stale = [arrival.run.run_id for arrival in stored if _is_stale(born[arrival.run.run_id])]
    newest = {a.run.draft_key: a.run for a in stored if not _is_stale(born[a.run.run_id])}
    holders = {key: run.run_id for key, run in newest.items()}
    if stale:
        await intake.retire_stale_runs(conn, stale)
    overtaken = await intake.overtake(conn, holders) if holders else []
    lines = [_received(arrival, born[arrival.run.run_id], release) for arrival in stored]
    if overtaken:
        withdrawn = await _block(conn, [one for one in overtaken if one.draft_id is not None])
        moved = [one for one in overtaken if one.draft_id is None or one.draft_id in withdrawn]
        lines += [_moved(one, newest[one.draft_key]) for one in moved]
    if lines:
        await audit.append(conn, lines)
    return {one.draft_key for one in overtaken}


async def _block(conn: Connection, drafts: Sequence[Overtaken]) -> set[Any]:
    """Withdraw what was approved and not started, end redrafts, ask for cards; give the withdrawn drafts."""
    if not drafts:
        return set()
    await intake.close_overtaken_redrafts(conn, [one.draft_id for one in drafts if one.draft_id])
    approved = [one for one in drafts if one.draft_status != DraftStatus.PENDING]
    withdrawn = await intake.cancel_unstarted_effects(conn, approved) if approved else []
    if withdrawn:
        reopened = await reopen_drafts(conn, [Reopening(one, "withdrawn_newer") for one in withdrawn])
        await intake.withdraw_runs(conn, [one.run_id for one in reopened])
    others = [one.draft_id for one in drafts if one.draft_id and one.draft_id not in withdrawn]
    if others:
        await want_cards(conn, others)
    return set(withdrawn)


def _received(arrival: Arrival, row: BornRun, release: str) -> audit.Entry:
    run = arrival.run
    detail: dict[str, Any] = {
        "run_id": run.run_id,
        "draft_key": run.draft_key,
        "source_version": str(run.source_version),
        "payload_hash": run.payload_hash,
        "release": release,
    }
    if arrival.recorded:
        detail["fields"] = arrival.recorded
    if arrival.replaced_key is not None:
        detail["replaces"] = arrival.replaced_key
    action = "received" if row.is_newest else "stale"
    return audit.Entry(run.idempotency_key, f"source:{run.source}", action, detail)


def _moved(one: Overtaken, by: NewRun) -> audit.Entry:
    action = "superseded" if one.draft_id is None else "withdrawn"
    return audit.Entry(one.idempotency_key, "system", action, {"by": by.idempotency_key})
