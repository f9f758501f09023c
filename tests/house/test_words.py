"""What may not be written, and what must be: places, hosts, sleeps, promises for later, opening lines.
Not here: sizes and names of files (test_sizes).
"""

import ast
import re
from pathlib import Path

from tests.house.tree import AnyFunction, functions, parsed, place, python_files, text_files

THIS_FILE = Path(__file__)
# The paths of one machine, and the hosts that packages come from: neither helps anybody else.
MACHINES = re.compile(r"(?<![\w.~$}-])/(?:root|home|Users|work|workspace|opt/pypi)/|\.pyenv|[A-Z]:\\Users")
REGISTRIES = re.compile(
    r"pypi\.|pythonhosted|npmjs\.|registry\.yarnpkg|crates\.io|rubygems\.org|proxy\.golang|jfrog|artifactory",
    re.IGNORECASE,
)
LATER = re.compile(r"\b(TODO|FIXME|HACK|NotImplementedError)\b")


def found(pattern: re.Pattern[str], paths: tuple[Path, ...]) -> list[str]:
    return [
        f"{place(path, number)}: {line.strip()[:80]}"
        for path in paths
        if path != THIS_FILE
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]


# Nothing names the machine it was written on.
def test_no_machine_paths() -> None:
    offenders = found(MACHINES, text_files())
    assert not offenders, "\n".join(offenders)


# Nothing names a package registry; whoever installs has their own.
def test_no_registry_hosts() -> None:
    offenders = found(REGISTRIES, text_files())
    assert not offenders, "\n".join(offenders)


# Nothing is put off: it is written or it is not there.
def test_nothing_is_put_off() -> None:
    paths = tuple(path for path in text_files() if path.suffix in {".py", ".sql", ".toml", ".yml", ".sh"})
    offenders = found(LATER, paths)
    assert not offenders, "\n".join(offenders)


# A test waits for an event, never for a time; giving way to other tasks once is not waiting.
def test_tests_do_not_sleep() -> None:
    offenders = [
        place(path, call.lineno)
        for path in python_files("tests")
        if "bench" not in path.parts  # a bench measures what an idle process costs in some seconds
        for call in ast.walk(parsed(path))
        if isinstance(call, ast.Call)
        and ast.unparse(call.func).split(".")[-1] == "sleep"
        and not is_zero(call)
    ]
    assert not offenders, "\n".join(offenders)


def is_zero(call: ast.Call) -> bool:
    return [ast.unparse(argument) for argument in call.args] == ["0"]


# Every test has a sentence above it that names the behaviour.
def test_every_test_has_its_sentence() -> None:
    offenders = [
        f"{place(path, function.lineno)}: {function.name}"
        for path in python_files("tests")
        for function in functions(path)
        if function.name.startswith("test_") and not has_sentence(path, function)
    ]
    assert not offenders, "\n".join(offenders)


def has_sentence(path: Path, function: AnyFunction) -> bool:
    lines = path.read_text("utf-8").splitlines()
    first = min([function.lineno, *(each.lineno for each in function.decorator_list)])
    above = lines[first - 2].strip() if first > 1 else ""
    return above.startswith("# ") and len(above.split()) > 2


# Every module says in its first two lines what lives there and what does not.
def test_every_module_says_what_lives_there() -> None:
    offenders = [
        place(path)
        for path in python_files("bot", "store")
        if len([line for line in (ast.get_docstring(parsed(path)) or "").splitlines() if line.strip()]) < 2
    ]
    assert not offenders, "\n".join(offenders)
