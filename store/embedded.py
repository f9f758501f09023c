"""A PostgreSQL server under DATA_DIR: started by whoever comes first, stopped by whoever leaves last.
Not here: its programs (store/binaries), its folder (store/cluster), its schema (store/migrate).
"""

import fcntl
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum, auto
from pathlib import Path
from typing import IO

import psycopg
from psycopg.conninfo import make_conninfo

from store.binaries import Programs
from store.cluster import (
    ROLE,
    SHORT,
    Place,
    last_words,
    make_cluster,
    ready_programs,
    settle_place,
    socket_folder,
)
from store.errors import EmbeddedError

START_SECONDS = 60  # After a crash it reads at most max_wal_size (1 GB): on a slow disk a minute.
SILENT_SECONDS = 5  # A postmaster opens its socket in milliseconds; one silent for longer has lost it.
RETRY_SECONDS = 0.02
STOP_SECONDS = 60  # The last checkpoint writes at most shared_buffers (128 MB).
LAUNCHES = 2  # The second one is for a server that ended between our look and our start.
NO_SUCH_PID = 2**31 - 1  # Above every system's largest process id.

SETTINGS = (
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "max_connections=200",
    "timezone=UTC",
    "log_error_verbosity=terse",  # A DETAIL line would quote the row.
    "log_min_error_statement=panic",  # A failed statement may hold an event's words.
)
NOT_DURABLE = ("fsync=off", "full_page_writes=off")  # A killed server still keeps what was committed.
# Everything is passed as an argument, so that no path is ever read as shell.
LAUNCH = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 &'


class _Answer(Enum):
    UP = auto()
    WAIT = auto()
    SILENT = auto()


class Embedded:
    """One process's share in the server under `data_dir`.

    Processes share the server; the last one to stop ends it, and a process that was killed counts as gone.
    Without `durable` nothing is forced to disk: for tests, whose data may be lost with the machine.
    """

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        self._data_dir = data_dir.absolute()
        self._durable = durable
        self._share: IO[str] | None = None

    def start(self) -> str:
        """Attach to the server, starting it if need be, and return its DSN.

        Raises EmbeddedError, the mend in its message: nothing to start, data of another version, no rights.
        """
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True)
            with _turn(self._data_dir), ExitStack() as on_failure:
                share = on_failure.enter_context(_open_lock(self._data_dir / "postgres.users"))
                fcntl.flock(share, fcntl.LOCK_SH)
                dsn = _bring_up(settle_place(self._data_dir), durable=self._durable)
                on_failure.pop_all()
        except OSError as refused:
            raise EmbeddedError(
                f"{refused.filename or self._data_dir} cannot be used ({refused.strerror}):"
                " run Stet as the user who owns it, or choose another DATA_DIR"
            ) from refused
        self._share = share
        return dsn

    def leave(self) -> None:
        """Leave without stopping: the server waits for whoever comes next."""
        if self._share is not None:
            self._share.close()
            self._share = None

    def stop(self) -> None:
        """Leave; the last one to leave stops the server. Raises EmbeddedError if it does not stop."""
        if self._share is None:
            return
        with _turn(self._data_dir):
            share, self._share = self._share, None
            with share:
                if _take(share):
                    _shut_down(settle_place(self._data_dir))


@contextmanager
def server(data_dir: Path, *, durable: bool = True) -> Iterator[str]:
    """Yield the DSN of the server under `data_dir` for as long as the block runs."""
    embedded = Embedded(data_dir, durable=durable)
    dsn = embedded.start()
    try:
        yield dsn
    finally:
        embedded.stop()


@contextmanager
def ephemeral() -> Iterator[str]:
    """Yield the DSN of a server of our own, gone with all its data when the block ends: for tests."""
    folder = Path(tempfile.mkdtemp(prefix="stet-", dir=SHORT))
    folder.chmod(0o711)  # As root we start the server as somebody else, who must get through.
    try:
        with server(folder, durable=False) as dsn:
            yield dsn
    finally:
        shutil.rmtree(folder)


def _open_lock(path: Path) -> IO[str]:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="ascii")


@contextmanager
def _turn(data_dir: Path) -> Iterator[None]:
    """One process at a time looks, starts or stops."""
    with _open_lock(data_dir / "postgres.turn") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _take(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _bring_up(place: Place, *, durable: bool) -> str:
    programs = ready_programs(place)
    if not place.data.exists():
        make_cluster(place, programs, durable=durable)
    sockets = socket_folder(place)
    dsn = _dsn(sockets)
    settings = [f"unix_socket_directories={sockets}", *SETTINGS, *(() if durable else NOT_DURABLE)]
    command = [programs.path("postgres"), "-D", str(place.data)]
    for each in settings:
        command += ["-c", each]
    began = time.monotonic()
    launches = 0
    while (answer := _ask(dsn)) is not _Answer.UP:
        with _open_lock(place.folder / "server.lock") as life:
            if _take(life):
                if launches == LAUNCHES:
                    raise EmbeddedError(f"PostgreSQL does not start: {last_words(place)}")
                launches += 1
                _launch(place, command, life=life)
            elif answer is _Answer.SILENT and not launches and time.monotonic() - began > SILENT_SECONDS:
                _end_server(place, programs, life=life)
        if time.monotonic() - began > START_SECONDS:
            raise EmbeddedError(f"PostgreSQL runs but does not answer: {last_words(place)}")
        time.sleep(RETRY_SECONDS)
    return dsn


def _dsn(sockets: Path) -> str:
    return make_conninfo(host=str(sockets), dbname="postgres", user=ROLE)


def _ask(dsn: str) -> _Answer:
    """Only a connection proves that a server is there; a process id may be a zombie's or a stranger's."""
    try:
        psycopg.connect(dsn, connect_timeout=2).close()
    except psycopg.OperationalError as refused:
        words = str(refused)
        if "FATAL" not in words:
            return _Answer.SILENT
        if re.search("too many clients|connection slots", words):
            return _Answer.UP
        if re.search("starting up|shutting down|recovery|not yet accepting", words):
            return _Answer.WAIT
        raise EmbeddedError("the embedded server refuses us: it was started by another user") from refused
    return _Answer.UP


def _launch(place: Place, command: list[str], *, life: IO[str]) -> None:
    """Start the server with the lock in its hands: it is held as long as any process of the server lives."""
    # We hold the lock, so no server runs here, whoever has a process id that it left behind.
    pid_file = place.data / "postmaster.pid"
    if pid_file.exists():
        # The other lines stay: from them the server finds out if shared memory is still in use.
        _, _, others = pid_file.read_text("utf-8").partition("\n")
        pid_file.write_text(f"{NO_SUCH_PID}\n{others}", "utf-8")
    for leftover in socket_folder(place).glob(".s.PGSQL.*"):
        leftover.unlink()
    place.owner.run(["sh", "-c", LAUNCH, "sh", str(place.journal), *command], pass_fds=(life.fileno(),))


def _shut_down(place: Place) -> None:
    with _open_lock(place.folder / "server.lock") as life:
        if not _take(life):
            _end_server(place, ready_programs(place), life=life)


def _end_server(place: Place, programs: Programs, *, life: IO[str]) -> None:
    """Stop the server and take its lock, which proves that no process of it is left."""
    # What pg_ctl answers decides nothing: it goes by the process id, and fails on one that is long dead.
    place.owner.run(
        [programs.path("pg_ctl"), "stop", "-D", str(place.data), "-m", "fast", "-t", str(STOP_SECONDS)]
    )
    deadline = time.monotonic() + SILENT_SECONDS
    while not _take(life):
        if time.monotonic() > deadline:
            raise EmbeddedError(f"PostgreSQL does not stop: {last_words(place)}")
        time.sleep(RETRY_SECONDS)


def _start_alone(data_dir: Path) -> str:
    embedded = Embedded(data_dir)
    dsn = embedded.start()
    embedded.leave()
    return dsn


def _end_unused(data_dir: Path) -> str:
    with _turn(data_dir), _open_lock(data_dir / "postgres.users") as share:
        if not _take(share):
            raise EmbeddedError(
                "in use: stop every serve on this folder first, the last one stops the server"
            )
        _shut_down(settle_place(data_dir))
        return "stopped"


def _tell(data_dir: Path) -> str:
    place = settle_place(data_dir)
    with _open_lock(place.folder / "server.lock") as life:
        return "stopped" if _take(life) else f"running: {_dsn(socket_folder(place))}"


def main(arguments: list[str]) -> int:
    """`python -m store.embedded start|stop|status DIR`: a server without a bot, for looking into its data."""
    actions = {"start": _start_alone, "stop": _end_unused, "status": _tell}
    match arguments:
        case [("start" | "stop" | "status") as action, folder] if action == "start" or Path(folder).is_dir():
            try:
                print(actions[action](Path(folder).absolute()))
            except EmbeddedError as refused:
                print(refused)
                return 1
            return 0
        case _:
            print("usage: python -m store.embedded start|stop|status DATA_DIR")
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
