"""The folder of an embedded server: where it lies, who owns it, and how it is made.
Not here: starting and stopping what runs on it (store/embedded).
"""

import logging
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from store.binaries import SHARED, Owner, Programs, find_programs, owner_for, within_reach
from store.errors import EmbeddedError

ROLE = "stet"
SHORT = Path("/tmp")  # For sockets only, each in a folder of mkdtemp: unguessable and private.
PRIVATE = 0o700
SOCKET_PATH_BYTES = 100  # The kernel takes 103 to 107, depending on the system.
PLAIN_PATH = re.compile(rf"[\w./-]{{1,{SOCKET_PATH_BYTES - len('/.s.PGSQL.5432')}}}", re.ASCII)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """The server's private folder and who owns it."""

    folder: Path
    owner: Owner

    @property
    def data(self) -> Path:
        """PostgreSQL's data folder."""
        return self.folder / "pgdata"

    @property
    def journal(self) -> Path:
        """The server's log."""
        return self.folder / "server.log"


def settle_place(data_dir: Path) -> Place:
    """Find or make the private folder. As root it must be in reach of the user that the server runs as.

    Raises EmbeddedError: the folder is another user's, or lies elsewhere and is gone.
    """
    folder = data_dir / "postgres"
    if folder.is_symlink() and not folder.exists():
        raise EmbeddedError(
            f"{folder} points to {folder.readlink()}, which is gone:"
            " restore that folder, or remove the link to begin empty"
        )
    owner = owner_for(folder)
    if not folder.exists():
        _make_folder(folder, owner)
    folder = folder.resolve()
    if owner.dropped and folder.stat().st_uid == 0:
        owner.take(folder)
    if folder.stat().st_uid != owner.uid:
        raise EmbeddedError(f"{folder} is another user's: run Stet as that user, or choose another DATA_DIR")
    return Place(folder, owner)


def _make_folder(folder: Path, owner: Owner) -> None:
    if not owner.dropped or owner.may("-x", folder.parent):
        folder.mkdir(mode=PRIVATE)
        return
    SHARED.mkdir(mode=0o755, parents=True, exist_ok=True)
    elsewhere = tempfile.mkdtemp(prefix="data-", dir=SHARED)
    folder.symlink_to(elsewhere)
    log.warning("the database lies in %s: user %s cannot enter %s", elsewhere, owner.name, folder.parent)


def ready_programs(place: Place) -> Programs:
    """Find the programs that fit the data in `place`. Raises EmbeddedError, see find_programs."""
    version = place.data / "PG_VERSION"
    try:
        wanted = int(version.read_text("ascii")) if place.data.exists() else None
    except (OSError, ValueError) as broken:
        raise EmbeddedError(
            f"{version} cannot be read: restore {place.data}, or move it away to begin empty"
        ) from broken
    return within_reach(find_programs(wanted), place.owner)


def make_cluster(place: Place, programs: Programs, *, durable: bool) -> None:
    """Make the data folder beside its place and move it there whole: a half-made one is never taken for it.

    Only the server's own user and root get in, by peer authentication; nothing listens on a network.
    """
    fresh = place.folder / "pgdata.new"
    shutil.rmtree(fresh, ignore_errors=True)
    options = ["-U", ROLE, "-E", "UTF8", "--locale=C", "--auth-local=peer", "--auth-host=reject"]
    if not durable:
        options.append("--no-sync")
    made = place.owner.run([programs.path("initdb"), "-D", str(fresh), *options])
    if made.returncode:
        raise EmbeddedError(f"initdb failed: {made.stderr.strip() or made.returncode}")
    (fresh / "pg_hba.conf").write_text("local all all peer map=stet\n", "ascii")
    users = dict.fromkeys((place.owner.name, "root"))
    (fresh / "pg_ident.conf").write_text("".join(f'stet "{user}" {ROLE}\n' for user in users), "utf-8")
    fresh.rename(place.data)


def socket_folder(place: Place) -> Path:
    """The place itself, or a short folder elsewhere if the kernel or libpq could not take its name."""
    if PLAIN_PATH.fullmatch(str(place.folder)):
        return place.folder
    note = place.folder / "socket_folder"
    if note.exists() and _is_private(known := Path(note.read_text("utf-8")), place.owner):
        return known
    made = Path(tempfile.mkdtemp(prefix="stet-", dir=SHORT))
    place.owner.take(made)
    note.write_text(str(made), "utf-8")
    return made


def _is_private(folder: Path, owner: Owner) -> bool:
    if not folder.is_dir() or folder.is_symlink():
        return False
    facts = folder.stat()
    return facts.st_uid == owner.uid and stat.S_IMODE(facts.st_mode) == PRIVATE


def last_words(place: Place) -> str:
    """The newest reason in the server's log, or where to read it."""
    lines = place.journal.read_text("utf-8", "replace").splitlines() if place.journal.exists() else []
    return next((line for line in reversed(lines) if "FATAL" in line), f"see {place.journal}")
