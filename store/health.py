"""Facts about the database itself, for readiness and the doctor.

Not here: whether the schema is ours (store/migrate).
"""

from datetime import datetime

from store.queries import Connection, query

OLDEST_SERVER = 15  # SPEC section 2; older ones lack what the migrations use.

_SERVER_VERSION = query("server_version")
_SERVER_CLOCK = query("server_clock")


async def server_version(conn: Connection) -> int:
    """Give the server's major version."""
    return int(await _SERVER_VERSION.value(conn))


async def server_clock(conn: Connection) -> datetime:
    """Give the server's time, by which every deadline is tested."""
    told: datetime = await _SERVER_CLOCK.value(conn)
    return told
