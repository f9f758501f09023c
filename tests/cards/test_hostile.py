"""Texts that try to do harm: every card posts first time, pings nobody, links nowhere, hides nothing."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cards import modals, notices, reading, review, unknown
from bot.cards.blocks import text_length
from bot.cards.lives import Action, Who
from bot.cards.text import graphemes, hidden_characters, visible
from bot.cards.views import EarlierRejection, Field, Rejected, ReviewView, Source
from bot.demo.slack_blocks import block_problems, view_problems
from bot.policy.editing import make_form
from tests.cards.samples import (
    ALL_BUTTONS,
    CORRECTION,
    DECIDED,
    FIRST_REVISION,
    HOSTILE,
    PLAIN,
    UNKNOWN,
    with_body,
)

RAW_HIDDEN = re.compile(
    "[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f\x00\x1b]"
)


def everywhere(text: str) -> ReviewView:
    """Put one text into every place of the card that the outside fills."""
    some = text or "-"
    return replace(
        PLAIN,
        entity=some[:512],
        actions=(Action("http", "n8n.example", some[:254]),),
        draft=(Field("subject", text[:200]), Field("body", text)),
        labels=(Field("label", text[:400]),),
        warnings=(some[:400],),
        previous=FIRST_REVISION,
        source=Source(some, frozenset({"crm.example"}), some),
        small=replace(PLAIN.small, key=some[:380], model=some),
        replaces=replace(CORRECTION, reason=some, sent=(some,)),
        earlier=EarlierRejection(Who("U0BEN", some), DECIDED, some),
        state=PLAIN.state,
    )


def leaves(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
        for inner in part.values():
            yield from leaves(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from leaves(inner)


def assert_harmless(blocks: list[dict[str, Any]]) -> None:
    for part in leaves(blocks):
        assert part.get("type") not in {
            "mrkdwn",
            "broadcast",
            "user",
            "usergroup",
            "channel",
            "link",
            "emoji",
        }
        if isinstance(part.get("text"), str):
            assert not RAW_HIDDEN.search(part["text"])
            part["text"].encode()


# The card posts first time with any text in any place, within the budget, and pings or links nothing.
@pytest.mark.parametrize("name", HOSTILE)
def test_card(name: str) -> None:
    blocks = review.render(everywhere(HOSTILE[name]))
    assert block_problems(blocks) == []
    assert text_length(blocks) <= 10_000
    assert_harmless(blocks)


# A rejection's reason, typed by a person, is as harmless.
@pytest.mark.parametrize("name", HOSTILE)
def test_rejected_card(name: str) -> None:
    view = replace(PLAIN, source=Source(), state=Rejected(Who("U0BEN", "Ben"), DECIDED, HOSTILE[name]))
    blocks = review.render(view)
    assert block_problems(blocks) == []
    assert_harmless(blocks)


# The card of an unknown effect takes any text too.
@pytest.mark.parametrize("name", HOSTILE)
def test_unknown_card(name: str) -> None:
    text = HOSTILE[name]
    view = replace(UNKNOWN, entity=text[:512] or "-", key=text[:380] or "-", sent=(Field("body", text),))
    assert block_problems(unknown.render(view)) == []
    assert_harmless(unknown.render(view))


# In the fallback text each of the three signs is an entity exactly once, and nothing is cut inside one.
@pytest.mark.parametrize("name", HOSTILE)
def test_fallback(name: str) -> None:
    view = everywhere(HOSTILE[name])
    text = review.fallback(view)
    assert len(text) <= 4_000
    assert not re.search(r"&(?!amp;|lt;|gt;)|[<>]", text)
    assert not RAW_HIDDEN.search(text)


# A subject that shouts at the channel is spelled out in the fallback text.
def test_fallback_spells_out() -> None:
    view = replace(PLAIN, draft=(Field("subject", "<!channel> <@U0BOSS> AT&T"),))
    assert "&lt;!channel&gt; &lt;@U0BOSS&gt; AT&amp;T" in review.fallback(view)


# On the card itself the same text is literal, in rich text.
def test_card_is_literal() -> None:
    blocks = review.render(with_body("<!channel> <@U0BOSS> AT&T"))
    assert {"type": "text", "text": "<!channel> <@U0BOSS> AT&T"} in list(leaves(blocks))


# Hidden characters show as markers with a warning; ordinary right-to-left prose is untouched and unwarned.
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


# Every notice takes any text in its places.
@pytest.mark.parametrize("name", HOSTILE)
def test_notices(name: str) -> None:
    notice = notices.alert(notices.Alert.EFFECT_FAILED, key=HOSTILE[name], reason=HOSTILE[name])
    assert block_problems(notices.render(notice)) == []
    assert_harmless(notices.render(notice))
    assert not re.search(r"&(?!amp;|lt;|gt;)|[<>]", notices.fallback(notice))


# Read in all its parts, the modal shows the whole draft, sign for sign, and approves on the last part only.
@pytest.mark.parametrize("name", HOSTILE)
def test_reading(name: str) -> None:
    review_view = replace(everywhere(HOSTILE[name]), buttons=ALL_BUTTONS)
    count = reading.part_count(review_view)
    read = ""
    for part in range(1, count + 1):
        view = reading.render(reading.ReadView(review_view, part))
        assert view_problems(view) == []
        assert len(json.dumps(view)) < 250_000
        assert_harmless(view["blocks"])
        assert ("stet.approve" in json.dumps(view)) == (part == count)
        read += "".join(_bodies(view["blocks"]))
    expected = [visible(field.text) or "(empty)" for field in (*review_view.draft, *review_view.labels)]
    assert read == "".join(expected)


def _bodies(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for block in blocks:
        if re.fullmatch(r"stet\.read\.r\d+\.\d+", block["block_id"]):
            yield from (e["text"] for e in block["elements"][-1]["elements"])


# The questions and the edit modal stay within Slack's limits for any text.
@pytest.mark.parametrize("name", HOSTILE)
def test_modals(name: str) -> None:
    text = HOSTILE[name]
    question = modals.QuestionView("t" * 43 + ".2", text[:512] or "-")
    for draw in (modals.reject, modals.redraft, modals.typed):
        assert view_problems(draw(question)) == []
    fields = (Field("subject", text[:100]), Field("body", text))
    assert view_problems(modals.message(modals.MessageView("modal.overtaken", fields))) == []
    body = {"subject": text[:100], "body": text, text[:300] or "-": text, "label": text[:80]}
    schema = {"properties": {"label": {"enum": [text[:80], "x"]}}}
    form = make_form(body, schema, tuple(body), fits=modals.can_edit)
    assert view_problems(modals.edit(modals.EditView("t" * 43 + ".2", form))) == []


# Whatever the text, the card is within limits, harmless, and never parts what reads as one character.
@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.integers(1, 40))
def test_any_text(text: str, times: int) -> None:
    blocks = review.render(everywhere(text * times))
    assert block_problems(blocks) == []
    assert text_length(blocks) <= 10_000
    assert_harmless(blocks)


# What is marked has nothing left to mark, and graphemes joined are the text.
@settings(deadline=None)
@given(st.text(max_size=200))
def test_marking_is_complete(text: str) -> None:
    once = visible(text)
    assert hidden_characters(once) == 0
    assert "".join(graphemes(once)) == once
