"""Turns stored effects into what a connector takes; remembers the frozen policies they were approved under.

Not here: sending (dispatch) or asking (reconcile).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from bot.connectors.connector import Effect
from bot.flow.settle import RESUME
from bot.policy.clauses import EffectPolicy, EffectTerms, UndoPolicy
from bot.policy.limits import EFFECT_TIMEOUT_SECONDS
from bot.policy.values import FROM_SNAPSHOT
from store.database import Database
from store.outbox import read_effect_policies
from store.rows import ClaimedRow

_DEFAULT_RESUME: Final = EffectPolicy(type=RESUME)  # For runs that ended without ever having a draft.
_NOT_ITS_OWN: Final[dict[str, object]] = {
    "type": RESUME,
    "target": "",
    "recipient": None,
    "response_id": None,
    "lookup": None,
    "idempotent": False,
    "probe": None,
    "success": (),
    "headers": {},
    "client_certificate": None,
    "client_key": None,
    "body": None,
}
MOST_REMEMBERED: Final = 1000  # A policy changes some times a day at most; each is a few hundred bytes.


@dataclass(frozen=True, slots=True)
class Held:
    """An effect that we hold, since when by our clock, and the policy it was approved under, if readable."""

    row: ClaimedRow
    policy: EffectPolicy | None
    claimed_at: float

    @property
    def has_probe(self) -> bool:
        """Whether its record is looked at before it is started."""
        return self.policy is not None and self.policy.probe is not None

    @property
    def timeout_seconds(self) -> int:
        """How long one call may take."""
        return EFFECT_TIMEOUT_SECONDS if self.policy is None else self.policy.timeout_seconds


class Policies:
    """The effects of policy snapshots by hash; snapshots never change, so what was read stays right."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[EffectTerms | None, ...]] = {}
        self._resumes: dict[str, EffectPolicy] = {}

    async def load(self, db: Database, rows: Iterable[ClaimedRow]) -> None:
        """Read what is not known yet."""
        missing = {row.snapshot_hash for row in rows} - self._known.keys()
        if not missing:
            return
        if len(self._known) > MOST_REMEMBERED:
            self._known.clear()
            self._resumes.clear()
            missing = {row.snapshot_hash for row in rows}
        async with db.connection() as conn:
            found = await read_effect_policies(conn, list(missing))
        for snapshot_hash in missing:
            self._known[snapshot_hash] = tuple(map(_read, found.get(snapshot_hash) or ()))

    def of(self, row: ClaimedRow) -> EffectPolicy | None:
        """Give the policy of a loaded row, None if it cannot be read.

        A resume effect takes timeout and attempts of its kind; target, recipient and ids are not its own.
        """
        effects = self._known.get(row.snapshot_hash, ())
        if row.effect_type != RESUME:
            return _at(effects, row.clause)
        known = self._resumes.get(row.snapshot_hash)
        if known is None:
            known = self._resumes[row.snapshot_hash] = _as_resume(_at(effects, None))
        return known


def to_effect(row: ClaimedRow, policy: EffectPolicy, attempt: int) -> Effect:
    """Give a connector what it takes; a resume effect's row names its target without telling the URL."""
    return Effect(
        effect_id=row.effect_id,
        key=row.idempotency_key,
        kind=row.kind,
        entity=row.entity,
        revision=row.revision,
        effect_type=row.effect_type,
        target=row.target if row.effect_type != RESUME else row.address or "",
        recipient=row.recipient,
        body=row.body or b"",
        policy=policy,
        attempt=attempt,
        created_at=row.created_at,
    )


def _as_resume(policy: EffectPolicy | None) -> EffectPolicy:
    return (policy or _DEFAULT_RESUME).model_copy(update=_NOT_ITS_OWN)


def _at(
    effects: Sequence[EffectTerms | None], clause: tuple[str, ...] | None
) -> EffectTerms | UndoPolicy | None:
    """Follow a row's clause: an effect, or what undoes it."""
    index, *undo = clause or ("0",)
    found = effects[int(index)] if int(index) < len(effects) else None
    return found.undo if found is not None and undo else found


def _read(body: object) -> EffectTerms | None:
    try:
        return EffectTerms.model_validate(body, context=FROM_SNAPSHOT, by_alias=False, by_name=True)
    except ValidationError:
        return None
