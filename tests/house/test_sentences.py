"""Every sentence that a person in Slack reads stands in a table of bot/cards, and so in each language.
Not here: that the tables are whole (tests/cards/test_words).
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import ROOT, parsed, place, python_files

# Two words, one after the other: as in a sentence, and in no key, name or format.
SENTENCE = re.compile(r"[A-Za-z]{2,},? [A-Za-z]{2,}")
# What these say is read over HTTP, by n8n and by those who run the server: English, as the names are.
FOR_MACHINES = {
    "bot/doors/answers.py",
    "bot/doors/health.py",
    "bot/doors/intake.py",
    "bot/doors/limited.py",
    "bot/doors/openapi.py",
    "bot/doors/runs.py",
    "bot/doors/senders.py",
    "bot/flow/admit.py",
    "bot/flow/arrive.py",
    "bot/flow/receive.py",
}
# Words of our own tables that are looked up, and never shown.
LOOKED_UP = {
    "bot/flow/alert.py": {"not JSON", "wrong JSON", "soft failure"},
    "bot/flow/edit.py": {"one line"},
}


def shown(path: Path) -> Iterator[ast.Constant]:
    """Sentences of a file that may be shown: no docstrings, nothing that is logged or raised."""
    tree = parsed(path)
    hidden: set[ast.AST] = set()
    for node in ast.walk(tree):
        is_log = isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log.")
        if is_log or isinstance(node, ast.Raise):
            hidden |= set(ast.walk(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in hidden:
            yield from [node] if SENTENCE.search(node.value) else []


# No sentence for people stands outside the tables.
def test_sentences_stand_in_the_tables() -> None:
    offenders = [
        f"{place(path, text.lineno)}: {text.value!r}"
        for path in python_files("bot/doors", "bot/flow", "bot/cards")
        if place(path) not in FOR_MACHINES and not path.name.startswith("words_")
        for text in shown(path)
        if text.value not in LOOKED_UP.get(place(path), set())
    ]
    assert not offenders, "\n".join(offenders)


# The lists name only what is there.
def test_lists_are_not_stale() -> None:
    assert {name for name in (*FOR_MACHINES, *LOOKED_UP) if not (ROOT / name).is_file()} == set()
