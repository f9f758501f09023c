"""Takes an event in once, however often it comes, and says what became of it; arrivals share transactions.

Not here: HTTP and the checks of a kind (bot/doors/intake, admit), or what one transaction does (arrive).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from bot.flow.arrive import Arrival, Known, Stored, Unfit, Unsettled, store_arrivals, store_correction
from bot.flow.batches import Batcher
from bot.flow.checkpoints import reach
from bot.flow.tally import Tally
from bot.policy.limits import INTAKE_BATCH, INTAKE_SECONDS
from store import audit, intake
from store.alerts import raise_alert
from store.database import Database
from store.errors import CommitUnknown, DatabaseAway, LostRace, Unstorable
from store.heads import lock_heads
from store.intake import KnownRun
from store.states import RunState, outcome_of

LOOK_FIRST_SHARE = 0.2  # A read in vain costs about a quarter of what an insert in vain does.
LEARNING_RATE = 1 / 32  # Some tens of deliveries turn it over: a burst of repeats is met at its beginning.
_UNSTORABLE = "holds a value that the database cannot keep: send it as plain text"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What every good answer says of the run; `outcome` is one word, None until there is one."""

    key: str
    run_id: UUID
    state: RunState
    draft_key: str
    revision: int | None = None
    outcome: str | None = None
    decided_by: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A new key, stored durably."""

    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The same key with the same content: nothing started again."""

    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Stale:
    """Not newer than the newest version known of its draft_key: over from the start."""

    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Conflict:
    """The same key with other content: nothing changed, ops is told once a content."""

    key: str


@dataclass(frozen=True, slots=True)
class Unkeepable:
    """The database refused a value of the event: it would refuse it again."""

    message: str = _UNSTORABLE


Received = Accepted | Duplicate | Stale | Conflict | Unfit | Unsettled | Unkeepable
Entered = Stored | Known | Unfit | Unsettled | Unkeepable


class Receiver:
    """The intake of one process. `wake` is told which steps have work: draft, show, resume, alert."""

    def __init__(
        self, db: Database, tally: Tally, *, wake: Callable[[str], None], release: str = "unknown"
    ) -> None:
        self._db = db
        self._tally = tally
        self._wake = wake
        self._release = release
        self._share_known = 0.0
        self._lookups: Batcher[Arrival, KnownRun | None] = Batcher(self._look_up, INTAKE_BATCH)
        self._entries: Batcher[Arrival, Entered] = Batcher(self._enter, INTAKE_BATCH)

    async def receive(self, arrival: Arrival) -> Received:
        """Store the arrival or recognise it.

        Raises:
            DatabaseAway: not known to be stored; the sender tries again and is told what it finds then.

        """
        known = await self._lookups.add(arrival) if self._looks_first else None
        while known is None:
            entered = await self._entries.add(arrival)
            self._learn(known=isinstance(entered, Known))
            if not isinstance(entered, Known):
                return self._answer_entered(arrival, entered)
            known = await self._lookups.add(arrival)
        self._learn(known=True)
        return await self._answer_known(arrival, known)

    @property
    def _looks_first(self) -> bool:
        """Whether to read before inserting: cheaper for what came again, wasted on what is new."""
        return self._share_known > LOOK_FIRST_SHARE

    def _learn(self, *, known: bool) -> None:
        self._share_known += (known - self._share_known) * LEARNING_RATE

    async def close(self) -> None:
        """Answer what is in hand and write the counts."""
        await self._lookups.close()
        await self._entries.close()
        await self._tally.flush()

    async def _look_up(self, batch: list[Arrival]) -> Sequence[KnownRun | None]:
        """Read what is known of each key, and note new waiters of what came again unchanged."""
        async with _in_time(), self._db.connection() as conn:
            known = await intake.find_runs(conn, [arrival.key for arrival in batch])
            waiting = [
                (found.run_id, arrival.event.resume_url)
                for arrival in batch
                if arrival.event.resume_url is not None
                and (found := known.get(arrival.key)) is not None
                and found.payload_hash == arrival.payload_hash
            ]
            if waiting and await intake.add_waiters(conn, waiting):
                self._wake("resume")
        return [known.get(arrival.key) for arrival in batch]

    async def _enter(self, batch: list[Arrival]) -> list[Entered | Exception]:
        """Store a batch in order of arrival, in rounds of which no two share a key or a draft_key."""
        answers: list[Entered | Exception] = [Known()] * len(batch)
        for places in rounds(batch):
            plain = [place for place in places if batch[place].replaced_key is None]
            groups = [plain] if plain else []
            groups += [[place] for place in places if batch[place].replaced_key is not None]
            for group in groups:
                for place, answer in zip(group, await self._group([batch[p] for p in group]), strict=True):
                    answers[place] = answer
        self._wake_for(batch, answers)
        return answers

    async def _group(self, group: Sequence[Arrival]) -> Sequence[Entered | Exception]:
        """Store one group in one transaction; a value that the database refuses fails its own event alone."""
        try:
            async with _in_time():
                return await self._transact(group)
        except CommitUnknown as fault:
            return await self._read_again(group, fault)
        except DatabaseAway as fault:
            return [fault] * len(group)
        except (Unstorable, LostRace) as fault:
            if len(group) == 1:
                return [Unkeepable() if isinstance(fault, Unstorable) else fault]
            return [answer for arrival in group for answer in await self._group([arrival])]

    async def _transact(self, group: Sequence[Arrival]) -> Sequence[Entered]:
        answers: Sequence[Entered]
        async with intake.refusing_bad_values():
            if group[0].replaced_key is None:
                answers = await self._db.retrying(
                    lambda conn: store_arrivals(conn, group, self._release), pipelined=True
                )
            else:
                answers = [
                    await self._db.retrying(lambda conn: store_correction(conn, group[0], self._release))
                ]
        reach("receive.after_commit")
        return answers

    async def _read_again(
        self, group: Sequence[Arrival], fault: CommitUnknown
    ) -> Sequence[Entered | Exception]:
        """After a commit whose answer was lost: only what can be read was stored."""
        try:
            async with _in_time(), self._db.connection() as conn:
                known = await intake.find_runs(conn, [arrival.key for arrival in group])
        except DatabaseAway as away:
            return [away] * len(group)
        return [recognise(arrival, known.get(arrival.key), fault) for arrival in group]

    def _wake_for(self, batch: Sequence[Arrival], answers: Sequence[Entered | Exception]) -> None:
        stored = [(a, s) for a, s in zip(batch, answers, strict=True) if isinstance(s, Stored)]
        if any(not answer.is_stale for _, answer in stored):
            self._wake("draft")
        if any(answer.blocked for _, answer in stored):
            self._wake("show")
        if any(
            answer.blocked or (answer.is_stale and arrival.event.resume_url) for arrival, answer in stored
        ):
            self._wake("resume")

    def _answer_entered(self, arrival: Arrival, entered: Stored | Unfit | Unsettled | Unkeepable) -> Received:
        if not isinstance(entered, Stored):
            return entered
        event = arrival.event
        if entered.is_stale:
            self._tally.add(event.source, event.kind, "stale", repeated_key=arrival.key)
            over, word = RunState.SUPERSEDED, outcome_of(RunState.SUPERSEDED)
            return Stale(Receipt(arrival.key, arrival.run_id, over, arrival.draft_key, outcome=word))
        self._tally.add(event.source, event.kind, "accepted")
        return Accepted(Receipt(arrival.key, arrival.run_id, RunState.RECEIVED, arrival.draft_key))

    async def _answer_known(self, arrival: Arrival, known: KnownRun) -> Received:
        event = arrival.event
        if known.payload_hash != arrival.payload_hash:
            await self._report_conflict(arrival, known)
            self._tally.add(event.source, event.kind, "conflict", repeated_key=arrival.key)
            return Conflict(arrival.key)
        status = "stale" if known.was_stale else "duplicate"
        self._tally.add(event.source, event.kind, status, repeated_key=arrival.key)
        receipt = Receipt(
            known.idempotency_key,
            known.run_id,
            known.state,
            known.draft_key,
            known.revision,
            outcome_of(known.state),
            known.decided_by,
        )
        return Stale(receipt) if known.was_stale else Duplicate(receipt)

    async def _report_conflict(self, arrival: Arrival, known: KnownRun) -> None:
        """Tell ops and the record, once a key and content."""
        key, given = arrival.key, arrival.payload_hash
        facts = {"key": key, "known_hash": known.payload_hash, "payload_hash": given}
        async with self._db.transaction() as conn:
            alert_key = f"conflict:{key}:{given}"
            if not await raise_alert(conn, key=alert_key, name="payload_conflict", facts=facts):
                return
            # Some write to this key's record under the head's lock alone, others under the run's: hold both.
            await lock_heads(conn, [known.draft_key])
            await intake.lock_run_of_key(conn, key)
            await audit.append(conn, [audit.Entry(key, f"source:{arrival.event.source}", "conflict", facts)])
        self._wake("alert")


def rounds(batch: Sequence[Arrival]) -> list[list[int]]:
    """Split a batch so that a key and a draft_key occur once a round, in order of arrival."""
    made: list[list[int]] = []
    used: dict[str, int] = {}
    for place, arrival in enumerate(batch):
        names = (arrival.key, arrival.draft_key)
        number = max(used.get(name, 0) for name in names)
        if number == len(made):
            made.append([])
        made[number].append(place)
        used |= dict.fromkeys(names, number + 1)
    return made


def recognise(
    arrival: Arrival, found: KnownRun | None, fault: CommitUnknown
) -> Stored | Known | CommitUnknown:
    """Say after a lost commit what a key's run is: our own, another delivery's, or not there."""
    if found is None:
        return fault
    return Stored(is_stale=found.was_stale) if found.run_id == arrival.run_id else Known()


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    """Bound what one group may take: a sender who waits longer has given up already."""
    try:
        async with asyncio.timeout(INTAKE_SECONDS):
            yield
    except TimeoutError as fault:
        raise DatabaseAway("the database took too long to take an event") from fault
