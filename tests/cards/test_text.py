"""Marking, escaping, cutting and splitting: the ground under every card."""

import pytest

from bot.cards.text import cut, escape, graphemes, hidden_characters, length, split, visible


# Direction controls, invisible characters, controls and lone surrogates become markers.
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Pay to \u202egro.dab\u202c now", "Pay to ⟦U+202E⟧gro.dab⟦U+202C⟧ now"),
        ("\u2066x\u2069", "⟦U+2066⟧x⟦U+2069⟧"),
        ("a\u200bb", "a⟦U+200B⟧b"),
        ("a\u200db", "a⟦U+200D⟧b"),
        ("\u200f\u061c", "⟦U+200F⟧⟦U+061C⟧"),
        ("so\u00adft", "so⟦U+00AD⟧ft"),
        ("x\U000e0100y", "x⟦U+E0100⟧y"),
        ("x\U000e0041", "x⟦U+E0041⟧"),
        ("\U0001f3f4\U000e0041\U000e007f", "\U0001f3f4⟦U+E0041⟧⟦U+E007F⟧"),
        ("1\ufe0f", "1⟦U+FE0F⟧"),
        ("\ufeffx\u2060\u3164\u2800", "⟦U+FEFF⟧x⟦U+2060⟧⟦U+3164⟧⟦U+2800⟧"),
        ("a\rb\x00\x85", "a⟦U+000D⟧b⟦U+0000⟧⟦U+0085⟧"),
        ("\ud83d", "⟦U+D83D⟧"),
    ],
)
def test_marked(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert hidden_characters(text) > 0


# Ordinary prose of any script, its joiners, and emoji are untouched.
@pytest.mark.parametrize(
    "text",
    [
        "Grüße,\n\tJo — “fine”\u00a0…",
        "שלום עולם",
        "مرحبا بالعالم",
        "می\u200cخواهم",
        "क्\u200dष क्\u200cष",
        "👩\u200d👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3 👍🏽 🇩🇪",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "葛\U000e0100城市 東京",
    ],
)
def test_untouched(text: str) -> None:
    assert visible(text) == text
    assert hidden_characters(text) == 0


# A line end of two characters is one line end.
def test_line_ends() -> None:
    assert visible("a\r\nb") == "a\nb"


# The three signs become entities exactly once.
def test_escape() -> None:
    assert escape("<a> & &lt;") == "&lt;a&gt; &amp; &amp;lt;"


# Length is what Slack may count: entities whole, an emoji as two.
def test_length() -> None:
    assert length("a<&>😀") == 1 + 4 + 5 + 4 + 2


# F014: a cut counts after escaping, says how much is left out, and ends at a space where one is near.
def test_cut() -> None:
    assert cut("<<<<", 9).shown == "<<"
    assert cut("<<<<", 9).left_out == 2
    assert cut("one two three", 9).shown == "one two "
    assert cut("short", 5).left_out == 0
    assert cut("abc", 0).shown == ""


# A split loses nothing, keeps each piece within the limit, and parts no grapheme.
@pytest.mark.parametrize(
    "text", ["<&> word " * 50, "👩\u200d👩\u200d👧" * 40, "e\u0301" * 100, "🇩🇪🇫🇷" * 30, "\n" * 99]
)
def test_split(text: str) -> None:
    pieces = split(text, 25)
    assert "".join(pieces) == text
    assert all(0 < length(piece) <= 25 for piece in pieces)
    assert [g for piece in pieces for g in graphemes(piece)] == list(graphemes(text))


# One grapheme longer than the limit is cut all the same, so that splitting always ends.
def test_split_endless_grapheme() -> None:
    text = "e" + "\u0301" * 100
    assert "".join(split(text, 10)) == text
    assert "".join(split("&&", 3)) == "&&"
