"""The pool, transactions, and the guard that keeps network calls out of them.

Not here: statements (sql/queries) or which role owns the schema (store/migrate).
"""

import asyncio
import select
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar
from weakref import WeakKeyDictionary

import orjson
import psycopg
from psycopg import errors
from psycopg.types.json import set_json_dumps, set_json_loads
from psycopg_pool import AsyncConnectionPool, PoolTimeout, TooManyRequests

from store.errors import CommitUnknown, DatabaseAway, DatabaseBusy, NetworkInTransaction
from store.queries import Connection, query

T = TypeVar("T")

APP_ROLE = "stet_app"
LOCK_TIMEOUT_MS = 1_500  # A click has 2.5 s in all: past this we can still say that nothing was decided.
STATEMENT_TIMEOUT_MS = 20_000  # No statement of ours takes a second; one that does has met a fault.
IDLE_IN_TRANSACTION_MS = 10_000  # A held snapshot costs the outbox nine tenths of its rate.
TRANSACTION_MS = 30_000  # More than any statement may take; only a frozen process takes longer over a whole.
CONNECT_TIMEOUT_SECONDS = 5
ACQUIRE_TIMEOUT_SECONDS = 2.0  # Waiting longer for a connection than a click may take helps nobody.
RECONNECT_SECONDS = 3.0  # Later tries wait ever longer; after this the next caller begins anew, at once.
TRUSTED_SECONDS = 30.0  # Used this recently it is alive, or its socket says so, or one call fails.
NEVER = float("-inf")
RETRIES = 3  # Serialisation faults and lost connections repeat seldom; more tries hide an outage.

_last_used: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()

_SET_SESSION = query("set_session")
_TAKE_ROLE = query("take_role")

_in_transaction: ContextVar[bool] = ContextVar("stet_in_transaction", default=False)

# Class 08, 57P01..03: the server went away; 40001, 40P01: it asks to run the whole transaction again.
_AGAIN = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
)
_BUSY = (errors.LockNotAvailable, errors.QueryCanceled)
_AWAY = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.IdleInTransactionSessionTimeout,
    errors.ReadOnlySqlTransaction,  # the primary became a standby under us
)

set_json_dumps(orjson.dumps)
set_json_loads(orjson.loads)


def outside_transaction() -> None:
    """Assert that no transaction is open here; every network call begins with this.

    Raises:
        NetworkInTransaction: a transaction of this task (or of the one that spawned it) is open.

    """
    if _in_transaction.get():
        raise NetworkInTransaction("a network call may not be made inside a database transaction")


class _NewestFirst(deque[Connection]):
    """Lends what came back last: its plans are made, its caches are full, and it was alive a moment ago."""

    def popleft(self) -> Connection:
        """Take the newest; the pool asks for the oldest."""
        return self.pop()


class Database:
    """A pool of connections that have taken the restricted role."""

    def __init__(
        self,
        dsn: str,
        *,
        role: str | None = APP_ROLE,
        min_size: int = 1,
        max_size: int = 10,
        name: str = "stet",
    ) -> None:
        """Describe the pool; nothing connects before `open`."""
        self._role = role
        self._dsn = dsn
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            dsn,
            min_size=min_size,
            max_size=max_size,
            open=False,
            timeout=ACQUIRE_TIMEOUT_SECONDS,
            configure=self._configure,
            reconnect_timeout=RECONNECT_SECONDS,
            kwargs={"autocommit": True, "application_name": name, "connect_timeout": CONNECT_TIMEOUT_SECONDS},
        )
        self._pool._pool = _NewestFirst()  # noqa: SLF001 - psycopg_pool lends in turn and has no setting for it

    async def open(self) -> None:
        """Start the pool in the background; the first connection may come later."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        """Give every connection back and close them."""
        await self._pool.close(timeout=2)

    async def _configure(self, conn: Connection) -> None:
        await _SET_SESSION.value(
            conn,
            {
                "lock_timeout": str(LOCK_TIMEOUT_MS),
                "statement_timeout": str(STATEMENT_TIMEOUT_MS),
                "idle_timeout": str(IDLE_IN_TRANSACTION_MS),
                "transaction_timeout": str(TRANSACTION_MS),
            },
        )
        if self._role is not None:
            await _TAKE_ROLE.value(conn, {"role": self._role})

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend a connection in autocommit: for one statement that is a whole by itself.

        Raises:
            DatabaseAway: none could be had in time, or it broke.
            DatabaseBusy: a lock or statement timeout.

        """
        try:
            conn = await self._take()
            try:
                yield conn
                _last_used[conn] = time.monotonic()
            except errors.ReadOnlySqlTransaction:
                await conn.close()  # It leads to a standby; the next one asks for a primary again.
                raise
            finally:
                await self._pool.putconn(conn)
        except (PoolTimeout, TooManyRequests) as fault:
            raise DatabaseAway("no database connection in time") from fault
        except _BUSY as fault:
            raise DatabaseBusy("the database took too long") from fault
        except _AWAY as fault:
            _last_used.clear()  # What ended this connection may have ended its neighbours.
            raise DatabaseAway("the database connection broke") from fault

    async def _take(self) -> Connection:
        # The pool's own check waits a second after each dead connection: a click has no time for two.
        deadline = time.monotonic() + ACQUIRE_TIMEOUT_SECONDS
        while True:
            conn = await self._pool.getconn(deadline - time.monotonic())
            try:
                await _check_if_idle(conn)
            except psycopg.Error:
                await self._pool.putconn(conn)
            except BaseException:
                await self._pool.putconn(conn)
                raise
            else:
                return conn

    @asynccontextmanager
    async def transaction(self, *, pipelined: bool = False) -> AsyncIterator[Connection]:
        """Open a transaction; any exception undoes it, and network calls inside it are refused.

        `pipelined`: statements travel together until something is fetched, which saves their round trips.

        Raises:
            DatabaseAway, DatabaseBusy: nothing was committed.
            CommitUnknown: the connection broke while committing.

        """
        async with self.connection() as conn:
            mark = _in_transaction.set(True)
            committing = False
            try:
                async with conn.pipeline() if pipelined else nullcontext():
                    await conn.execute("BEGIN")
                    try:
                        yield conn
                    except BaseException:
                        await _roll_back(conn)
                        raise
                    committing = True
                    await conn.execute("COMMIT")
            except (psycopg.OperationalError, psycopg.InterfaceError) as fault:
                if committing and not _was_refused(fault):
                    raise CommitUnknown("the connection broke while committing") from fault
                raise
            finally:
                _in_transaction.reset(mark)

    async def retrying(self, work: Callable[[Connection], Awaitable[T]], *, pipelined: bool = False) -> T:
        """Run `work` in a transaction, the whole again when the server asks for it or went away.

        Raises:
            CommitUnknown: never retried here; re-read by key.
            DatabaseAway: still away after the last try.

        """
        for left in reversed(range(RETRIES)):
            try:
                async with self.transaction(pipelined=pipelined) as conn:
                    return await work(conn)
            except (CommitUnknown, DatabaseBusy):
                raise
            except (*_AGAIN, DatabaseAway):
                if left == 0:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")


async def _check_if_idle(conn: Connection) -> None:
    """Ask a connection whether it lives, unless it was used not long ago: the question costs a round trip.

    A server that ended it has said so; only behind a proxy or a dead line is there nothing to be read.
    """
    is_fresh = _last_used.get(conn, NEVER) > time.monotonic() - TRUSTED_SECONDS
    if is_fresh and conn.pgconn.socket >= 0 and not _has_said(conn.pgconn.socket):
        return
    await AsyncConnectionPool.check_connection(conn)


def _has_said(number: int) -> bool:
    """Whether there is something to be read, as there is at the end of a connection."""
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


async def _roll_back(conn: Connection) -> None:
    # A cancelled task leaves its statement running; a broken connection has nothing left to undo. The pool
    # throws away whatever is not idle when it comes back.
    if conn.closed or conn.broken:
        return
    try:
        await asyncio.shield(conn.rollback())
    except psycopg.Error:
        await conn.close()


def _was_refused(fault: psycopg.Error) -> bool:
    """Whether the server itself said no, so nothing was committed; a shutdown may follow the commit."""
    return fault.sqlstate is not None and not fault.sqlstate.startswith(("57P", "08"))
