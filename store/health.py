"""Facts about the database itself, for readiness and the doctor.

Not here: whether the schema is ours (store/migrate).
"""

from store.queries import Connection, query

OLDEST_SERVER = 15  # SPEC section 2; older ones lack what the migrations use.

_SERVER_VERSION = query("server_version")


async def server_version(conn: Connection) -> int:
    """Give the server's major version."""
    return int(await _SERVER_VERSION.value(conn))
