"""Texts that try to do harm: whatever is drawn posts first time, pings nobody, links nowhere, hides nothing.

Not here: the texts (hostile) or what is drawn (surfaces).
"""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cards import answers, history, modals, reading, review
from bot.cards.blocks import outside, text_length
from bot.cards.notices import Notice
from bot.cards.text import graphemes, hidden_characters, length, visible
from bot.cards.views import Field, Pending
from bot.cards.words import DEFAULT_LANGUAGE, TABLES, say, template
from bot.demo.slack_blocks import block_problems, view_is_too_large, view_problems
from bot.policy.editing import make_form
from tests.cards.hostile import HOSTILE
from tests.cards.samples import ALL_BUTTONS, PLAIN, value, with_body
from tests.cards.surfaces import LONG, NOTICES, PIECES, SURFACES, Drawn, full
from tests.processes import CAMPAIGN

BOT = Path(__file__).parents[2] / "bot"
RAW_HIDDEN = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
HALF_ENTITY = re.compile(r"&(?!amp;|lt;|gt;)")
# What our own fallback texts hold of Slack's codes: dates, and people and channels by their id.
CODE = re.compile(r"<(?:!date\^\d+\^[^<>|^]+\|[^<>|]+|@[UW][A-Z0-9]+|!subteam\^S[A-Z0-9]+|#[CG][A-Z0-9]+)>")
FLAGS = re.compile("\U0001f3f4[\U000e0061-\U000e007a]+\U000e007f")
MARK = re.compile("⟦U\\+([0-9A-F]{4,6})⟧")
FAMILIES = sorted({name.rsplit("_", 1)[0] for name in HOSTILE})
NAMED = {"user", "usergroup", "channel"}
SHORT = 60  # Shown whole wherever it stands.
# Drawing these with everything takes minutes: `make crash` does, else each turn draws another share of every
# family, so that each text is drawn several times and each family everywhere.
HEAVY = tuple(name for name in SURFACES if name.endswith((".render", ".draw_alert")) and "queue" not in name)
SHARES = 10
DECIDING = [
    f"cards.{name}"
    for name in ("review.render", "reading.render", "unknown.render", "modals.typed", "modals.reject")
]


def share(turn: int, of: int = SHARES) -> dict[str, str]:
    """The texts of one turn: all of them in a campaign, else those of each family that fall to it."""
    found: dict[str, str] = {}
    for family in FAMILIES:
        names = [name for name in HOSTILE if name.startswith(f"{family}_")]
        found |= {
            name: HOSTILE[name] for place, name in enumerate(names) if CAMPAIGN or (place + turn) % of == 0
        }
    return found


def leaves(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
        for inner in part.values():
            yield from leaves(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from leaves(inner)


def read(content: Any) -> str:
    """All that stands there, in order."""
    return "".join(part["text"] for part in leaves(content) if isinstance(part.get("text"), str))


def unmarked(shown: str) -> str:
    return MARK.sub(lambda found: chr(int(found[1], 16)), shown)


def assert_harmless(content: Any, text: str = "") -> None:
    """Nothing is parsed, so nothing pings or links; and nobody is named by what the text says."""
    for part in leaves(content):
        assert part.get("type") not in {"mrkdwn", "broadcast", "emoji", "section", "markdown"}
        if part.get("type") in NAMED:
            named = next(str(part[key]) for key in part if key.endswith("_id"))
            assert text == "" or named == text.rsplit(":", 1)[-1], part
        if part.get("type") == "link":
            assert part["url"].startswith("https://crm.example/")
            assert part["text"] == "crm.example"
        if part.get("type") == "plain_text":
            assert part["emoji"] is False
        if isinstance(part.get("text"), str):
            assert not RAW_HIDDEN.search(FLAGS.sub("", part["text"]))
            part["text"].encode()


def assert_fits(drawn: Drawn) -> None:
    """Slack takes it as it is."""
    if drawn.is_view:
        assert view_problems(drawn.content) == []
        assert not view_is_too_large(drawn.content)
        return
    assert block_problems(drawn.content) == []
    assert text_length(drawn.content) <= 10_000
    assert len(drawn.text) <= 4_000  # chat.update
    assert len(drawn.text.encode()) <= 4_000  # chat.postEphemeral
    bare = CODE.sub("", drawn.text)
    assert not re.search("[<>]", bare)
    assert not HALF_ENTITY.search(bare)
    assert not RAW_HIDDEN.search(FLAGS.sub("", bare))


def inputs(content: Any) -> Iterator[dict[str, Any]]:
    return (part for part in leaves(content) if str(part.get("type", "")).endswith("_input"))


# Any of two hundred texts in every place of everything that is drawn, in each language: Slack takes it, it
# pings nobody and links nowhere, and what would not be seen is marked, with a warning where one decides.
@pytest.mark.parametrize("language", TABLES)
@pytest.mark.parametrize("surface", SURFACES)
def test_surfaces(surface: str, language: str) -> None:
    warning = template(language, "warnings.hidden").split("{count}")[0]
    turn = len(HEAVY) * list(TABLES).index(language) + HEAVY.index(surface) if surface in HEAVY else None
    for name, text in (HOSTILE if turn is None else share(turn)).items():
        if len(text) > LONG and language != DEFAULT_LANGUAGE:
            continue  # How long it is does not depend on the language.
        for drawn in SURFACES[surface](text, language):
            try:
                assert_fits(drawn)
                assert_harmless(drawn.content, text)
                if drawn.warns and len(text) <= SHORT and hidden_characters(text):
                    assert warning in read(drawn.content)
            except AssertionError as fault:
                raise AssertionError(f"{name} ({text[:40]!r}): {fault}") from fault


# The short form leaves no text out: each is drawn in several places, and each family in every place.
def test_shares() -> None:
    turns = [share(turn) for turn in range(len(HEAVY) * len(TABLES))]
    assert set().union(*turns) == HOSTILE.keys()
    assert all({name.rsplit("_", 1)[0] for name in turn} == set(FAMILIES) for turn in turns)


# What is short enough stands there sign for sign wherever one decides, and gives back the very text.
@pytest.mark.parametrize("surface", DECIDING)
def test_read_back(surface: str) -> None:
    for name, text in share(DECIDING.index(surface), of=len(DECIDING)).items():
        shown = visible(text)
        if not 0 < length(shown) <= SHORT or not shown.strip() or "\n" in text:
            continue
        drawn = [one for one in SURFACES[surface](text, "en") if one.warns]
        assert [one for one in drawn if shown not in read(one.content)] == [], name
        if "⟦U" not in text:
            assert unmarked(shown) == text, name


def _drawing(path: Path) -> Iterator[str]:
    """Public functions of the cards, and any outside them, that make blocks."""
    in_cards = path.parent.name == "cards"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.returns is None:
            continue
        makes_blocks = re.search(r"\bBlock\b", ast.unparse(node.returns)) or (not in_cards and _makes(node))
        if makes_blocks and not (in_cards and node.name[0] == "_"):
            yield ".".join((*path.relative_to(BOT).with_suffix("").parts, node.name))


def _makes(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    called = {
        one.func.id for one in ast.walk(node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
    }
    return bool(called & {"outside", "clip", "rich", "plain_text", "section"})


# Every function that draws is among the surfaces: a new one without an entry fails here.
def test_every_surface_is_listed() -> None:
    grounds = {BOT / "cards" / "blocks.py", BOT / "cards" / "text.py"}
    found = {
        name
        for path in BOT.rglob("*.py")
        if path not in grounds and "demo" not in path.parts and "connectors" not in path.parts
        for name in _drawing(path)
    }
    assert found == SURFACES.keys() | PIECES


# So is every function that puts an answer together.
def test_every_answer_is_listed() -> None:
    made = {
        f"{module.__name__.removeprefix('bot.')}.{name}"
        for module in (answers, history)
        for name, one in inspect.getmembers(module, inspect.isfunction)
        if one.__module__ == module.__name__ and inspect.signature(one).return_annotation is Notice
    }
    assert made == NOTICES


# F013: a subject that shouts at the channel is spelled out in the fallback text, and literal on the card.
def test_spelled_out() -> None:
    shouting = "<!channel> <@U0BOSS> AT&T"
    view = replace(PLAIN, draft=(Field("subject", shouting),))
    assert "&lt;!channel&gt; &lt;@U0BOSS&gt; AT&amp;T" in review.fallback(view)
    assert {"type": "text", "text": shouting} in list(leaves(review.render(with_body(shouting))))


# F015: hidden characters show as markers with a warning; ordinary right-to-left prose is left as it is.
def test_hidden_characters_are_marked() -> None:
    for text, marker in (
        ("Pay to \u202egro.dab\u202c", "⟦U+202E⟧"),
        ("a\u200bb", "⟦U+200B⟧"),
        ("x\U000e0100y", "⟦U+E0100⟧"),
    ):
        drawn = json.dumps(review.render(with_body(text)), ensure_ascii=False)
        assert marker in drawn
        assert "Hidden or direction-changing characters" in drawn
    prose = "שלום עולם. مرحبا بالعالم می‌خواهم"
    drawn = json.dumps(review.render(with_body(prose)), ensure_ascii=False)
    assert prose in drawn
    assert "direction-changing" not in drawn


# Read in all its parts, the modal shows the whole draft, sign for sign, and approves on the last part only.
@pytest.mark.parametrize("family", FAMILIES)
def test_reading(family: str) -> None:
    for name, text in HOSTILE.items():
        if not name.startswith(family):
            continue
        review_view = replace(full(text, "en", Pending()), buttons=ALL_BUTTONS)
        count = reading.part_count(review_view)
        whole = ""
        for part in range(1, count + 1):
            view = reading.render(reading.ReadView(review_view, part))
            assert ("stet.approve" in json.dumps(view)) == (part == count)
            whole += "".join(_bodies(view["blocks"]))
        fields = (*review_view.draft, *review_view.labels)
        assert whole == "".join(visible(field.text) or "(empty)" for field in fields), name


def _bodies(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for block in blocks:
        if re.fullmatch(r"stet\.read\.r\d+\.\d+", block["block_id"]):
            yield from (e["text"] for e in block["elements"][-1]["elements"])


# The edit form holds each text as it is stored, or says that it stays; nothing is shortened or tidied.
def test_edit_form_is_exact() -> None:
    for name, text in HOSTILE.items():
        form = make_form({"body": text}, {}, ("body",), fits=modals.can_edit)
        view = modals.edit(modals.EditView(value("d"), form, "en"))
        stands = [one.get("initial_value", "") for one in inputs(view["blocks"])]
        assert stands == ([text] if length(text) <= 3_000 else []), name
        assert stands or say("en", "edit.left_out", names="Body") in read(view["blocks"])


# Whatever the text, the card is within limits, harmless, and never parts what reads as one character.
@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.integers(1, 40))
def test_any_text(text: str, times: int) -> None:
    blocks = review.render(full(text * times, "en", Pending()))
    assert block_problems(blocks) == []
    assert text_length(blocks) <= 10_000
    assert_harmless(blocks, text * times)


# What is marked has nothing left to mark, and graphemes joined are the text.
@settings(deadline=None)
@given(st.text(max_size=200))
def test_marking_is_complete(text: str) -> None:
    once = visible(text)
    assert hidden_characters(once) == 0
    assert "".join(graphemes(once)) == once


# A short text cut from a long one reads as that one does: where it ends changes nothing before its end.
@pytest.mark.parametrize("limit", [80, 120, 300])
def test_clipping_is_marking_cut(limit: int) -> None:
    for text in HOSTILE.values():
        shown = str(outside(text, limit=limit)["text"])
        assert length(shown) <= limit
        assert visible(text).startswith(shown.removesuffix("…")) or shown == " "
