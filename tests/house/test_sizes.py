"""Sizes and names of files and functions, as HOUSE gives them.
Not here: who imports whom (test_order) and what is written (test_words).
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import AnyFunction, functions, parsed, place, python_files

FILE_LINES = 300
FUNCTION_LINES = 60
MOST_FUNCTION_LINES = 35  # nine in ten
PARAMETERS = 5
NAMELESS = {"base", "common", "core", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}

OURS = python_files("bot", "store")


def length(function: AnyFunction) -> int:
    """Lines of a function without its docstring, which is its contract and may be as long as it needs."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def methods(path: Path) -> set[AnyFunction]:
    """Functions whose first parameter is the object itself."""
    return {
        node
        for owner in ast.walk(parsed(path))
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, AnyFunction)
        and not any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in node.decorator_list)
    }


def too_many_parameters(path: Path) -> Iterator[str]:
    with_self = methods(path)
    for function in functions(path):
        if function.name.startswith("__") and function.name != "__init__":
            continue  # Python itself says what these take.
        arguments = function.args
        taken = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
        taken -= function in with_self
        if taken > PARAMETERS:
            yield f"{place(path, function.lineno)}: {function.name} takes {taken} parameters"


# A file is read in one sitting.
def test_files_are_short() -> None:
    sizes = {place(path): len(path.read_text("utf-8").splitlines()) for path in OURS}
    offenders = {path: lines for path, lines in sizes.items() if lines > FILE_LINES}
    assert not offenders


# A function is seen at once, and nine in ten without scrolling at all.
def test_functions_are_short() -> None:
    lengths = {
        f"{place(path, function.lineno)} {function.name}": length(function)
        for path in OURS
        for function in functions(path)
    }
    assert not {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES}
    long = {name: lines for name, lines in lengths.items() if lines > MOST_FUNCTION_LINES}
    assert len(long) * 10 <= len(lengths), long


# Whoever calls a function can keep in mind what it takes.
def test_parameters_are_few() -> None:
    offenders = [offence for path in OURS for offence in too_many_parameters(path)]
    assert not offenders, "\n".join(offenders)


# No file has a name that says nothing.
def test_files_have_names_that_say_something() -> None:
    offenders = [place(path) for path in python_files("bot", "store", "tests") if path.stem in NAMELESS]
    assert not offenders
