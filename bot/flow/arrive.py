"""One transaction of arrivals: the insert that decides, the version gate, and what a newer event overtakes.

Not here: grouping arrivals and answering for keys that are known already (receive).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from bot.contracts.event import Event, Origin
from bot.contracts.fields import FieldError
from bot.flow.checkpoints import reach
from bot.flow.parts import follow
from bot.policy.keys import draft_key, idempotency_key, payload_hash
from store import audit, intake
from store.cards import want_cards
from store.heads import Reopening, lock_heads, reopen_drafts
from store.ids import new_id
from store.intake import BornRun, NewRun, Overtaken, ReplacedRun
from store.queries import Connection
from store.states import FINAL_RUNS, DraftStatus

_NO_SUCH_RUN = FieldError("replaces", "names no run of this source and kind: check the old event_key")
_OTHER_ENTITY = FieldError("replaces", "names a run of another entity: a correction is about the same one")


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that passed every check of its kind, named and ready to be stored.

    `recorded` is what its kind lets into the record.
    """

    event: Event
    origin: Origin
    run_id: UUID
    key: str
    draft_key: str
    payload_hash: str
    recorded: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def replaced_key(self) -> str | None:
        """The key of the run that it corrects."""
        event = self.event
        return None if event.replaces is None else f"{event.source}:{event.kind}:{event.replaces}"


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
    return Arrival(
        event,
        origin,
        new_id(),
        idempotency_key(event),
        draft_key(event.entity, event.kind),
        payload_hash(event),
        recorded or {},
    )


async def store_arrivals(conn: Connection, arrivals: Sequence[Arrival], release: str) -> list[Stored | Known]:
    """Store arrivals of which no two share a key or a draft_key, none of them a correction."""
    born = await intake.insert_runs(conn, [_row(arrival, release) for arrival in arrivals])
    overtaken = await _follow(conn, arrivals, born)
    reach("receive.before_commit")
    return [_answer(arrival, born, overtaken) for arrival in arrivals]


async def store_correction(
    conn: Connection, arrival: Arrival, release: str
) -> Stored | Known | Unfit | Unsettled:
    """Store an event that replaces a run; the head is locked before the replaced run is judged.

    An equal version is taken if the replaced run is final and holds the newest.
    """
    key = arrival.replaced_key or ""
    await lock_heads(conn, [arrival.draft_key])
    replaced = await intake.find_replaced(conn, key)
    if replaced is None:
        return Unfit((_NO_SUCH_RUN,))
    if replaced.entity != arrival.event.entity:
        return Unfit((_OTHER_ENTITY,))
    if replaced.is_unsettled:
        return Unsettled(key)
    born = await intake.insert_runs(conn, [_row(arrival, release, replaced)])
    overtaken = await _follow(conn, [arrival], born)
    if overtaken:
        await intake.outdate_equals(conn, arrival.draft_key, arrival.event.source_version)
    reach("receive.before_commit")
    return _answer(arrival, born, overtaken)


def _row(arrival: Arrival, release: str, replaced: ReplacedRun | None = None) -> NewRun:
    event, origin, url = arrival.event, arrival.origin, arrival.event.resume_url
    salt, detail = audit.seal(_detail(arrival, release))
    return {
        "run_id": arrival.run_id,
        "idempotency_key": arrival.key,
        "source": event.source,
        "kind": event.kind,
        "event_key": event.event_key,
        "entity": event.entity,
        "draft_key": arrival.draft_key,
        "source_version": event.source_version,
        "payload_hash": arrival.payload_hash,
        "replaces": replaced.run_id if replaced else None,
        "takes_from": replaced.run_id if replaced and replaced.state in FINAL_RUNS else None,
        "payload": event.payload,
        "draft": event.draft,
        "record_url": event.record_url,
        "requested_by": event.requested_by,
        "reason": event.reason,
        "n8n_workflow": origin.workflow,
        "n8n_execution": origin.execution,
        "workflow_version": origin.workflow_version,
        "waiter_id": None if url is None else new_id(),
        "resume_url": url,
        "url_hash": None if url is None else intake.url_hash(url),
        "salt": salt,
        "detail": detail,
    }


def _detail(arrival: Arrival, release: str) -> dict[str, Any]:
    """What the first line of the record says; the entity may name a person, so it is not there."""
    detail: dict[str, Any] = {
        "run_id": arrival.run_id,
        "draft_key": arrival.draft_key,
        "source_version": str(arrival.event.source_version),
        "payload_hash": arrival.payload_hash,
        "release": release,
    }
    if arrival.recorded:
        detail["fields"] = arrival.recorded
    if arrival.replaced_key is not None:
        detail["replaces"] = arrival.replaced_key
    return detail


def _answer(arrival: Arrival, born: Mapping[UUID, BornRun], overtaken: set[str]) -> Stored | Known:
    row = born.get(arrival.run_id)
    if row is None:
        return Known()
    return Stored(is_stale=not row.is_newest, blocked=arrival.draft_key in overtaken)


async def _follow(conn: Connection, arrivals: Sequence[Arrival], born: Mapping[UUID, BornRun]) -> set[str]:
    """Do what follows from the insert; give the draft_keys where something older was ended or blocked."""
    stale = [run_id for run_id, row in born.items() if not row.is_newest]
    if stale:
        await intake.retire_stale_runs(conn, stale)
    later = {
        a.draft_key: a for a in arrivals if (row := born.get(a.run_id)) and row.is_newest and row.is_later
    }
    if not later:
        return set()
    overtaken = await intake.overtake(conn, {key: arrival.run_id for key, arrival in later.items()})
    withdrawn = await _block(conn, [one for one in overtaken if one.draft_id is not None])
    held = await _outdate(conn, list(later), {one.run_id for one in overtaken})
    moved = [one for one in overtaken if one.draft_id is None or one.draft_id in withdrawn]
    await audit.append(conn, [_moved(one, later[one.draft_key]) for one in moved])
    return held | {one.draft_key for one in overtaken}


async def _outdate(conn: Connection, draft_keys: Sequence[str], blocked: set[UUID]) -> set[str]:
    """See to what is open though its draft is over, one of several having failed; give its draft_keys."""
    effects = await intake.find_open_effects(conn, draft_keys)
    over = [one for one in effects if one.run_id not in blocked]
    unknown = [one.effect_id for one in effects if one.is_unknown]
    if over or unknown:
        # Their cards offer something else from now on, and say that something newer waits.
        await want_cards(conn, sorted({one.draft_id for one in over}), unknown)
    if left := [one for one in over if one.is_part]:
        await follow(conn, left)
    return {one.draft_key for one in effects}


async def _block(conn: Connection, drafts: Sequence[Overtaken]) -> set[UUID]:
    """Withdraw what was approved and not started, end redrafts, ask for cards; give the withdrawn drafts."""
    if not drafts:
        return set()
    await intake.close_overtaken_redrafts(conn, [one.draft_id for one in drafts if one.draft_id])
    approved = [one for one in drafts if one.draft_status != DraftStatus.PENDING]
    effects = await intake.lock_unfinished_effects(conn, approved) if approved else []
    withdrawn = await intake.cancel_unstarted_effects(conn, approved) if effects else []
    if withdrawn:
        reopened = await reopen_drafts(conn, [Reopening(one, "withdrawn_newer") for one in withdrawn])
        await intake.withdraw_runs(conn, [one.run_id for one in reopened])
    if effects and (left := [one for one in approved if one.draft_id not in withdrawn]):
        await follow(conn, left)  # One of several effects may have left: no other follows it now.
    others = [one.draft_id for one in drafts if one.draft_id and one.draft_id not in withdrawn]
    if others:
        await want_cards(conn, others)
    return set(withdrawn)


def _moved(one: Overtaken, by: Arrival) -> audit.Entry:
    action = "superseded" if one.draft_id is None else "withdrawn"
    return audit.Entry(one.idempotency_key, "system", action, {"by": by.key})
