"""Counts the answers of intake in memory and adds them to the database within a second.

Not here: what the answers are (receive) and how figures are shown (bot/doors/health).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from store import intake
from store.database import Database
from store.errors import CommitUnknown, DatabaseAway

Counts = Mapping[tuple[str, str, str], int]


class Tally:
    """What was answered since the last flush: by source, kind and status, and by key for what came again.

    `due` is called when there is something to flush that was not there before.
    """

    def __init__(self, db: Database, *, due: Callable[[], None] = lambda: None) -> None:
        self._db = db
        self._due = due
        self._counts: Counter[tuple[str, str, str]] = Counter()
        self._repeats: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, source: str, kind: str, status: str, *, repeated_key: str | None = None) -> None:
        """Count one answer; `repeated_key` names the key that was seen again."""
        if not self._counts:
            self._due()
        self._counts[source, kind, status] += 1
        if repeated_key is not None:
            self._repeats[repeated_key][status] += 1

    def unflushed(self) -> Counts:
        """Give what no database has yet, for figures that must not lag."""
        return dict(self._counts)

    async def flush(self) -> int:
        """Write what was counted and give the number of answers; on a database that is away it stays here.

        After a commit whose answer was lost the numbers are dropped: a figure may be low, never double.
        """
        counts, repeats = self._counts, self._repeats
        if not counts:
            return 0
        self._counts, self._repeats = Counter(), defaultdict(Counter)
        try:
            async with self._db.transaction() as conn:
                await intake.add_event_counts(conn, counts)
                if repeats:
                    await intake.add_repeats(conn, repeats)
        except CommitUnknown:
            pass
        except DatabaseAway:
            self._counts.update(counts)
            for key, again in repeats.items():
                self._repeats[key].update(again)
            raise
        return counts.total()


async def run_once(tally: Tally) -> int:
    """Flush the counts; called a second after something was counted, and once more at the stop."""
    return await tally.flush()
