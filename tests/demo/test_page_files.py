"""The page's files as a browser will read them. Not here: what its server answers (test_page_server)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.demo.page_server import FILES

GOLDEN = Path(__file__).parents[1] / "cards" / "golden"
SCRIPTS = sorted(FILES.glob("*.js"))


def kinds(node: Any, parent: str = "") -> Iterator[tuple[str, str]]:
    """Every `type` in a card, with the type of what it stands in."""
    if isinstance(node, dict):
        kind = node.get("type", "")
        if kind:
            yield parent, kind
        for value in node.values():
            yield from kinds(value, kind or parent)
    elif isinstance(node, list):
        for value in node:
            yield from kinds(value, parent)


# No script can turn text into markup or code: data reaches the page as text nodes only.
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_text_is_never_read_as_markup(path: Path) -> None:
    forbidden = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")
    assert not forbidden.search(path.read_text(encoding="utf-8"))


# The page asks nothing of any other machine, and its policy would not let it.
def test_nothing_comes_from_elsewhere() -> None:
    for path in FILES.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(?:src|href|url\(|import|fetch\()[\"'=( ]*(?:https?:)?//", text), path.name


# Markup carries no style and no script of its own: the content policy would refuse them silently.
def test_nothing_is_inline() -> None:
    text = (FILES / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"\sstyle=|\son[a-z]+=|<style|<script(?![^>]*\ssrc=)", text)


# Every file that the page or a script names is there.
def test_every_named_file_exists() -> None:
    text = (FILES / "index.html").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:href|src)=\"([^\"]+)\"", text))
    for path in SCRIPTS:
        named |= set(re.findall(r"from \"\./([^\"]+)\"", path.read_text(encoding="utf-8")))
    assert {name for name in named if not (FILES / name).is_file()} == set()


# Every element that a script looks for by its id stands in the markup.
def test_every_id_exists() -> None:
    markup = (FILES / "index.html").read_text(encoding="utf-8")
    there = set(re.findall(r"\bid=\"([^\"]+)\"", markup))
    for path in SCRIPTS:
        asked = re.findall(r"(?:getElementById|\$)\(\"([a-z-]+)\"\)", path.read_text(encoding="utf-8"))
        assert set(asked) <= there, path.name


# The page can draw every block and element that our cards and modals are made of.
def test_every_block_of_our_cards_is_drawn() -> None:
    known = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    composed = {"modal", "home", "plain_text_input", "plain_text", "rich_text_section"}
    used = {
        kind
        for path in GOLDEN.glob("*.json")
        for _, kind in kinds(json.loads(path.read_text(encoding="utf-8")))
    }
    assert len(used) > 10
    missing = {kind for kind in used - composed if not re.search(rf"\b{kind}\b", known)}
    assert missing == set()
