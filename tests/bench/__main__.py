"""`python -m tests.bench`: measures every path of the specification beside its limit and prints one table.
Not here: the measuring itself (paths, weights).
"""

import argparse
import asyncio
import logging
import os
import platform
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bot import RELEASE
from store import embedded
from tests.bench import paths, rows, weights
from tests.bench.figures import Line, as_markdown, as_text
from tests.bench.stage import ROOT, Bench, Ground, template
from tests.bench.standins import outside

PAGE = ROOT / "docs" / "speed.md"
BIG = 1_000_000
PAGE_TEXT = """# Speed

What one process reaches, measured by `make bench` in one run beside the limit of the same machine: trust
the shares, not the figures. Written by `make bench ARGS=--write`, never by hand.

Stet {release}{beside}, {day}: {machine}, {processors} processors for the database, the load generator and
Stet together, PostgreSQL with its default durability. On average {load} processes wanted a processor while it
was measured; more than {processors} means that others took part of the machine.

{table}
Clicks are decided while approved effects wait, for sending has lines of its own; events are accepted while
the model does not answer. The whole after an approval is: effect, run and draft ended, a line in the record,
the card asked for. Bytes and processor time of an event are those of its whole way: posted with a draft, its
card posted, approved there, sent, the card edited.

Where a target is missed, this is in the way. An accepted event takes Stet four times the processor time
of the empty endpoint, near half of it to parse, check and hash, and no part alone a tenth; to store it
PostgreSQL takes 70 µs for six rows and their indexes, on the same processors. A duplicate takes the same
Python and one indexed read. A click waits for a commit on the disk (told above), for a read (0.3 ms) and
for the vote (1 ms: it reads or changes fourteen tables, so that nothing is decided on old facts). Many at
once share commits, and still take Stet three times the processor time of the empty listener and
PostgreSQL a millisecond each. Between a commit and its send lie the rest of that commit, a claim and a
start. An effect is three updates, two of which enter it into its indexes anew.

To repeat it: `make bench`, with `DATABASE_URL` for a server of your own (it makes and drops databases
there), else an embedded one is started. `make bench ARGS="clicks effects"` runs some of the paths,
`ARGS="--seconds 5"` makes each round longer, `ARGS=--big` runs the rates beside 1,000,000 finished runs.
Nothing else should run meanwhile.
"""
Path_ = Callable[[Bench], Awaitable[list[Line]]]
PATHS: dict[str, Path_] = {
    "events": paths.events,
    "duplicates": paths.duplicates,
    "calm": paths.calm_clicks,
    "clicks": paths.busy_clicks,
    "effects": paths.effects,
    "wholes": paths.wholes,
    "cost": weights.cost,
    "memory": weights.memory,
    "idle": weights.idle,
}
# On one database with a long past: what leaves rows behind that others would meet comes last.
BIG_PATHS = ("effects", "wholes", "calm", "duplicates", "clicks", "events")


def main() -> int:
    """Measure, print, and write the page if that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("paths", nargs="*", metavar="PATH", help=f"some of: {', '.join(PATHS)}; default all")
    parser.add_argument("--seconds", type=float, default=1.5, help="length of one round under load")
    parser.add_argument(
        "--big", type=int, nargs="?", const=BIG, default=0, metavar="N", help="beside N finished runs"
    )
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    words = parser.parse_args()
    unknown = set(words.paths) - PATHS.keys()
    if unknown:
        parser.error(f"no such path: {', '.join(sorted(unknown))}")
    logging.getLogger("uvicorn").setLevel(
        logging.CRITICAL + 1
    )  # Calls that are cut off at the end are meant to be.
    lines = asyncio.run(_measure(words))
    print("\n" + as_text(lines))
    if words.write:
        PAGE.write_text(_page(lines, words), "utf-8")
    return 1 if any(line.reached is False for line in lines) else 0


async def _measure(words: argparse.Namespace) -> list[Line]:
    lines: list[Line] = []
    with _server() as server, template(server) as name, tempfile.TemporaryDirectory() as folder:
        async with outside() as stand_ins:
            bench = Bench(server, name, Path(folder), stand_ins, words.seconds)
            if not words.big:
                for path in words.paths or PATHS:
                    lines += await _one(bench, path)
                return lines
            with bench.ground() as ground:
                print(f"making {words.big:,} finished runs", file=sys.stderr)
                rows.fill(ground.dsn, bench.kind, rows.FINISHED, words.big)
                bench.past = Ground(ground.dsn, words.big)
                for path in BIG_PATHS:
                    if not words.paths or path in words.paths:
                        lines += await _one(bench, path)
    return lines


async def _one(bench: Bench, path: str) -> list[Line]:
    began = time.perf_counter()
    lines = await PATHS[path](bench)
    for line in lines:
        print("  ".join(line.cells), f"({time.perf_counter() - began:.0f} s)", file=sys.stderr)
    return lines


@contextmanager
def _server() -> Iterator[str]:
    """DATABASE_URL, else an embedded server that forces to disk what it says is committed."""
    given = os.environ.get("DATABASE_URL")
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="stet-") as folder:
        Path(folder).chmod(0o711)  # As root the server runs as somebody else, who must get through.
        with embedded.server(Path(folder)) as dsn:
            yield dsn


def _page(lines: list[Line], words: argparse.Namespace) -> str:
    beside = f" beside {words.big:,} finished runs" if words.big else ""
    machine = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return PAGE_TEXT.format(
        release=RELEASE,
        beside=beside,
        machine=machine,
        processors=os.cpu_count(),
        load=f"{os.getloadavg()[1]:.1f}",
        day=day,
        table=as_markdown(lines),
    )


if __name__ == "__main__":
    sys.exit(main())
