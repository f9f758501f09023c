"""The word difference: true to both texts, readable, and bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cards.blocks import text_length
from bot.cards.diff import MOST_EDITS, Piece, Turn, word_diff
from bot.cards.draft import DIFF_TEXT, draw_changes, fields_of
from bot.cards.views import Field


# Without the new pieces the difference is the old text, without the gone ones the new.
@given(st.text(alphabet="ab é字\n.", max_size=40), st.text(alphabet="ab é字\n.", max_size=40))
def test_true_to_both(old: str, new: str) -> None:
    pieces = word_diff(old, new)
    assert pieces is not None
    assert "".join(piece.text for piece in pieces if piece.turn is not Turn.NEW) == old
    assert "".join(piece.text for piece in pieces if piece.turn is not Turn.GONE) == new


# Words change whole, and a space between two changed words belongs to both.
def test_words() -> None:
    assert word_diff("we will refund 40 EUR", "we have refunded 45 EUR") == (
        Piece(Turn.SAME, "we "),
        Piece(Turn.GONE, "will refund 40"),
        Piece(Turn.NEW, "have refunded 45"),
        Piece(Turn.SAME, " EUR"),
    )


# Chinese has no spaces: single characters change.
def test_unspaced() -> None:
    assert word_diff("退款四十元", "退款五十元") == (
        Piece(Turn.SAME, "退款"),
        Piece(Turn.GONE, "四"),
        Piece(Turn.NEW, "五"),
        Piece(Turn.SAME, "十元"),
    )


# Two large texts that share little are not compared word by word.
def test_rewrite() -> None:
    assert word_diff("a b " * (MOST_EDITS * 10), "c d " * (MOST_EDITS * 10)) is None


# One word changed in 60 KB is found.
def test_large() -> None:
    text = "some words of a text " * 3000
    pieces = word_diff(text + "old " + text, text + "new " + text)
    assert pieces is not None
    assert [piece.text for piece in pieces if piece.turn is not Turn.SAME] == ["old", "new"]


# The drawing keeps a little around each change and stays within its room.
def test_drawn_short() -> None:
    text = "some words of a text " * 500
    drawn = draw_changes(
        (Field("body", text + "old " + text),), (Field("body", text + "new " + text),), language="en"
    )
    assert text_length(drawn) < 200
    assert "old" in str(drawn)
    many = [f"{word}{i}" for i in range(300) for word in ("x", "same ")]
    changed = "".join(many).replace("x", "y")
    drawn = draw_changes((Field("body", "".join(many)),), (Field("body", changed),), language="en")
    assert text_length(drawn) < DIFF_TEXT + 200


# A field that came or went is a change of its own; equal fields are not drawn.
def test_fields_come_and_go() -> None:
    drawn = draw_changes(
        (Field("a", "x"), Field("b", "y")), (Field("a", "x"), Field("c", "z")), language="en"
    )
    assert [part["elements"][0]["text"] for part in drawn] == ["C", "B"]


# A body is parted into draft and labels, the subject first, and nothing is lost.
def test_fields_of() -> None:
    body = {"body": "Dear", "subject": "Hi", "score": 0.5, "label": "refund", "lines": [{"a": 1}], "ok": True}
    draft, labels = fields_of(body)
    assert [field.name for field in draft] == ["subject", "body", "lines"]
    assert draft[2].literal
    assert [(field.name, field.text) for field in labels] == [
        ("score", "0.5"),
        ("label", "refund"),
        ("ok", "Yes"),
    ]


# Yes, no and nothing are said in the reader's language.
@pytest.mark.parametrize(
    ("language", "words"), [("en", ["Yes", "No", "(empty)"]), ("zh-CN", ["是", "否", "（空）"])]
)
def test_yes_and_no(language: str, words: list[str]) -> None:
    _, labels = fields_of({"a": True, "b": False, "c": None}, language)
    assert [field.text for field in labels] == words
