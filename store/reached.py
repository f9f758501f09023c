"""Which database a command works on: the one named, else an embedded server under DATA_DIR.

Not here: the embedded server itself (embedded).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from store import embedded


def is_dsn(text: str) -> bool:
    """Whether libpq can read a connection string; its own complaint would quote a password."""
    try:
        conninfo_to_dict(text)
    except (psycopg.ProgrammingError, UnicodeEncodeError):
        return False
    return True


@contextmanager
def database_of(named: SecretStr | None, data_dir: Path) -> Iterator[str]:
    """Give the DSN to use for as long as the context lasts; with a named one nothing is ever started."""
    if named is not None:
        yield named.get_secret_value()
        return
    with embedded.server(data_dir) as dsn:
        yield dsn
