"""The tree as the house tests read it: which files there are, what they import, how to say where.
Not here: any rule.
"""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def python_files(*folders: str) -> tuple[Path, ...]:
    """Python files below the folders, sorted."""
    return tuple(sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")))


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text("utf-8"), str(path))


def place(path: Path, line: int | None = None) -> str:
    """A file, and a line of it, as an editor opens it."""
    return str(path.relative_to(ROOT)) + (f":{line}" if line else "")


def module_name(path: Path) -> str:
    """The dotted name of a file: bot/flow/decide.py is bot.flow.decide, bot/flow/__init__.py is bot.flow."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def our_modules() -> frozenset[str]:
    """The dotted names of everything in bot and store."""
    return frozenset(module_name(path) for path in python_files("bot", "store"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each import; a name taken from a package counts as a module if it is one."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            whole = "." * node.level + (node.module or "")
            for alias in node.names:
                inner = f"{whole}.{alias.name}"
                yield node.lineno, inner if inner in our_modules() else whole


def functions(path: Path) -> Iterator[AnyFunction]:
    """Every function and method of a file, nested ones too."""
    return (node for node in ast.walk(parsed(path)) if isinstance(node, AnyFunction))


@cache
def text_files() -> tuple[Path, ...]:
    """Every text file under version control, or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (ROOT / name for name in sorted(set(listed.split("\0"))) if name)
    return tuple(path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:8_000])
