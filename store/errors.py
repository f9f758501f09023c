"""The exceptions the store raises, one tree.

Not here: expected answers (they are return values of bot/flow) or model faults (bot/drafting/faults).
"""


class StetError(Exception):
    """Root of what the store raises."""


class LostRace(StetError):
    """A conditional write touched no row; `meaning` is the query's own sentence on zero rows."""

    def __init__(self, query: str, meaning: str) -> None:
        super().__init__(f"{query}: {meaning}")
        self.query = query
        self.meaning = meaning


class NetworkInTransaction(StetError):
    """A network call was attempted while a database transaction was open."""


class SchemaMismatch(StetError):
    """The database's schema is not the one this program knows."""


class BadMigration(StetError):
    """A migration that already ran reads differently now."""


class BadQuery(StetError):
    """A file under sql/queries breaks the rules of the loader."""


class Unstorable(StetError):
    """The database refused a value: nothing was committed, and the same value will be refused again."""


class DatabaseAway(StetError):
    """No connection could be had, or it broke before anything was committed."""


class DatabaseBusy(DatabaseAway):
    """A lock or a statement took longer than allowed; nothing was committed."""


class CommitUnknown(DatabaseAway):
    """The connection broke while committing: what happened must be read again by key."""


class EmbeddedError(StetError):
    """The embedded server cannot be had; the message names the mend."""
