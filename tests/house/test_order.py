"""One way only: what a file may import, and where each outside library lives. This file holds the lists.
Not here: sizes and names (test_sizes) and words (test_words).
"""

import ast
import sys
import tomllib
from pathlib import Path

from tests.house.tree import ROOT, imports, module_name, our_modules, parsed, place, python_files

# From left to right, side by side on a line. Nothing imports demo/, which may import anything.
ROOMS = (
    ("store",),
    ("bot.contracts",),
    ("bot.policy",),
    ("bot.environment",),
    ("bot.settings", "bot.logs"),
    ("bot.variables",),
    ("bot.slack",),
    ("bot.drafting", "bot.gates", "bot.cards", "bot.connectors"),
    ("bot.registry",),
    ("bot.flow",),
    ("bot.doors",),
    ("bot.examination",),
    ("bot.assembly",),
    ("bot.wiring", "bot.doctor", "bot.records", "bot.replay"),
    ("bot.__main__",),
)
# The ground of each room, from left to right: a ground file may import those to its left, every other file of
# the room any of them, and none of the others.
GROUND = {
    "store": "states errors ids queries rows showing database binaries cluster embedded migrate",
    "bot.contracts": "fields click strict_json",
    "bot.policy": "elapsed limits values requests ahead clauses sendable caps earned rules snapshot terms"
    " contradictions kinds people",
    "bot.slack": "marks answer client line",
    "bot.drafting": "faults prompt ask extract check reply",
    "bot.examination": "finding manifest",
    "bot.gates": "gate",
    "bot.cards": "text lives headlines views words_en words_en_answers words_en_reasons words_zh"
    " words_zh_answers words_zh_reasons words blocks diff draft status facts notices review unknown answers",
    "bot.connectors": "addresses reach dial exchange answers connector signing dress probe letter submission",
    "bot.flow": "failures checkpoints batches ballots judging holding hands budget wishes forms tally"
    " weighing"
    " opening parts arrive lanes resting settle outgoing giveback checking guarding claiming recorder life"
    " picture naming notes drawing pages turns setback posting",
    "bot.doors": (
        "answers senders timer payloads whispers windows callers tongues typed verdicts switching limited"
        " commands home buttons modals listeners slack_door socket_door rehearsal"
    ),
}
# Where an outside library may be imported; a dot at the end: anywhere in that room. Others may be anywhere.
ADDRESSES = {
    "psycopg": ("store.",),
    "psycopg_pool": ("store.",),
    "openai": ("bot.drafting.model",),
    "apscheduler": ("bot.doors.timer",),
    "slack_bolt": ("bot.doors.", "bot.wiring"),
    "slack_sdk": ("bot.slack.",),
    "aiohttp": ("bot.slack.",),  # what the Slack client lets through when the network fails
    "starlette": ("bot.doors.", "bot.assembly"),
    "uvicorn": ("bot.doors.", "bot.wiring"),
    "uvloop": ("bot.wiring", "bot.__main__"),
    "httpx2": ("bot.connectors.",),
    "httpcore2": ("bot.connectors.",),
    "aiosmtplib": ("bot.connectors.",),
    "dotenv": ("bot.environment",),
    "yaml": ("bot.examination.",),
}
# An import name that differs from the name on the shelf.
SHELF = {"dotenv": "python-dotenv", "yaml": "pyyaml", "re2": "google-re2", "pydantic_core": "pydantic"}

OURS = python_files("bot", "store")
OUTSIDE_DEMO = tuple(path for path in OURS if "demo" not in path.relative_to(ROOT).parts)


def room_of(module: str) -> str | None:
    """The room, or the file standing alone, that a module belongs to."""
    for side_by_side in ROOMS:
        for room in side_by_side:
            if module == room or module.startswith(f"{room}."):
                return room
    return None


def rank_of(room: str) -> int:
    return next(rank for rank, side_by_side in enumerate(ROOMS) if room in side_by_side)


def refusal(importer: str, imported: str) -> str | None:
    """Why one of our modules may not import another; None if it may."""
    if imported == "bot.demo" or imported.startswith("bot.demo."):
        return "demo is imported by nothing"
    here, there = room_of(importer), room_of(imported)
    if here is None or there is None:
        return f"{importer if here is None else imported} stands in no room of this list"
    if here != there:
        return None if rank_of(there) < rank_of(here) else f"{there} does not stand to the left of {here}"
    ground = [f"{here}.{name}" for name in GROUND.get(here, "").split()]
    if imported not in ground:
        return f"{imported} is not ground of its room (GROUND in this test)"
    if importer in ground and ground.index(imported) >= ground.index(importer):
        return f"{imported} does not stand to the left of {importer}"
    return None


# Each file imports only what stands to its left, and its room's ground.
def test_imports_point_left() -> None:
    offenders = {
        f"{place(path, line)}: {reason}"
        for path in OUTSIDE_DEMO
        for line, imported in imports(path)
        if imported in our_modules() - {"bot"} and (reason := refusal(module_name(path), imported))
    }
    assert not offenders, "\n".join(sorted(offenders))


# No file of ours imports itself through others, demo included.
def test_no_cycles() -> None:
    graph = {
        module_name(path): sorted({name for _, name in imports(path)} & our_modules() - {module_name(path)})
        for path in OURS
    }
    cycles: list[str] = []
    done: set[str] = set()

    def walk(module: str, trail: tuple[str, ...]) -> None:
        if module in trail:
            cycles.append(" -> ".join((*trail[trail.index(module) :], module)))
        elif module not in done:
            for imported in graph.get(module, ()):
                walk(imported, (*trail, module))
            done.add(module)

    for module in graph:
        walk(module, ())
    assert not cycles, "\n".join(cycles)


# The list names only files that exist, so that it cannot allow what nobody remembers.
def test_ground_exists() -> None:
    missing = [
        f"{room}.{name}"
        for room, names in GROUND.items()
        for name in names.split()
        if f"{room}.{name}" not in our_modules()
    ]
    assert not missing


# Nothing hides from the order: imports stand at the top, are absolute, and no TYPE_CHECKING sets them apart.
def test_no_hidden_imports() -> None:
    offenders: list[str] = []
    for path in OURS:
        top = set(parsed(path).body)
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Import | ast.ImportFrom) and node not in top:
                offenders.append(f"{place(path, node.lineno)}: an import below the top")
            if isinstance(node, ast.ImportFrom) and node.level:
                offenders.append(f"{place(path, node.lineno)}: a relative import")
            if isinstance(node, ast.Name | ast.alias) and "TYPE_CHECKING" in ast.dump(node):
                offenders.append(f"{place(path, node.lineno)}: TYPE_CHECKING")
    assert not offenders, "\n".join(offenders)


# Each outside library is imported at its address only.
def test_outside_libraries_stay_at_their_address() -> None:
    offenders = [
        f"{place(path, line)}: {imported} belongs to {', '.join(allowed)}"
        for path in OUTSIDE_DEMO
        for line, imported in imports(path)
        if (allowed := ADDRESSES.get(imported.partition(".")[0]))
        and not any(f"{module_name(path)}.".startswith(f"{address.rstrip('.')}.") for address in allowed)
    ]
    assert not offenders, "\n".join(offenders)


# Whatever is imported is declared: nothing rests on what another package happens to bring along.
def test_outside_libraries_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {name_of(requirement) for requirement in project["dependencies"]}
    known = declared | set(sys.stdlib_module_names) | {"bot", "store"}
    offenders = sorted(
        {
            f"{place(path)}: {top}"
            for path in OURS
            for _, imported in imports(path)
            if SHELF.get(top := imported.partition(".")[0], top).replace("_", "-") not in known
            and top not in known
        }
    )
    assert not offenders, "\n".join(offenders)


def name_of(requirement: str) -> str:
    return next(requirement[:end] for end in range(len(requirement)) if requirement[end] in "[<>=; ")


# One colour: contracts, policy, gates, cards and states are arithmetic and wait for nothing.
def test_rules_do_not_wait() -> None:
    rooms = [ROOT / "bot" / room for room in ("contracts", "policy", "gates", "cards")]
    still: tuple[Path, ...] = (
        ROOT / "store" / "states.py",
        *(path for room in rooms for path in room.rglob("*.py")),
    )
    offenders = [
        place(path, node.lineno)
        for path in still
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
    ]
    assert not offenders, "\n".join(offenders)
