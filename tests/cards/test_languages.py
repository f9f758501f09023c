"""Every card, answer and window in the other languages: golden files, Slack's limits, no English left.

Not here: that the tables are whole (test_words), or what is drawn in which state (the other files).
"""

import re
from collections.abc import Callable
from dataclasses import replace
from string import Formatter
from typing import Any

import pytest

from bot.cards import home, modals, notices, queue, reading, rehearsal, review, unknown
from bot.cards.blocks import phrase, text_length, words
from bot.cards.rehearsal import Stage
from bot.cards.words import DEFAULT_LANGUAGE, TABLES
from bot.demo.slack_blocks import block_problems, view_problems
from tests.cards.samples import PLAIN, REVIEW_STATES, UNKNOWN_STATES, value, with_body
from tests.cards.test_home import HOMES
from tests.cards.test_notices import ANSWERS, FORM

Golden = Callable[[str, object], None]
OTHERS = [language for language in TABLES if language != DEFAULT_LANGUAGE]
# What stays as it is in any language: commands, settings, states and what stands for them.
CODE = re.compile(r"`[^`]*`|\{[a-z_]+\}")
NAMES = {"Stet", "Slack", "doctor", "token", "SCOPE", "U"}


def windows(language: str) -> dict[str, Any]:
    """A modal of each kind."""
    question = modals.QuestionView(value("b"), "customer:42", language)
    spoken = replace(PLAIN, language=language, warnings=("Check the amount.",), confirm="dialog")
    return {
        "reject": modals.reject(question),
        "redraft": modals.redraft(question),
        "typed": modals.typed(question),
        "edit": modals.edit(modals.EditView(value("d"), FORM, language)),
        "overtaken": modals.message(modals.MessageView("modal.overtaken", PLAIN.draft, language)),
        "read": reading.render(reading.ReadView(spoken)),
        "read_in_line": reading.render(reading.ReadView(spoken, in_line=True)),
    }


# Each state of a draft's card, in each language, within Slack's limits.
@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", REVIEW_STATES)
def test_review(name: str, language: str, golden: Golden) -> None:
    view = replace(REVIEW_STATES[name], language=language)
    blocks = review.render(view)
    golden(f"{language}/review_{name}", {"text": review.fallback(view), "blocks": blocks})
    assert block_problems(blocks) == []
    assert text_length(blocks) <= 10_000


# Each state of an unknown effect's card.
@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", UNKNOWN_STATES)
def test_unknown(name: str, language: str, golden: Golden) -> None:
    view = replace(UNKNOWN_STATES[name], language=language)
    blocks = unknown.render(view)
    golden(f"{language}/unknown_{name}", {"text": unknown.fallback(view), "blocks": blocks})
    assert block_problems(blocks) == []


# Each answer to a command.
@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name: str, language: str, golden: Golden) -> None:
    notice = replace(ANSWERS[name], language=language)
    blocks = notices.render(notice)
    golden(f"{language}/answer_{name}", {"text": notices.fallback(notice), "blocks": blocks})
    assert block_problems(blocks) == []


# Each kind of Home, the drafts on it included.
@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", HOMES)
def test_homes(name: str, language: str, golden: Golden) -> None:
    view = HOMES[name]
    waiting = tuple(replace(draft, language=language) for draft in view.waiting)
    drawn = home.render(replace(view, language=language, waiting=waiting))
    golden(f"{language}/home_{name}", drawn)
    assert view_problems(drawn) == []


# Each kind of window, and the other cards.
@pytest.mark.parametrize("language", OTHERS)
def test_windows_and_cards(language: str, golden: Golden) -> None:
    for name, view in windows(language).items():
        golden(f"{language}/modal_{name}", view)
        assert view_problems(view) == [], name
    for count in (0, 12):
        blocks = queue.render(queue.QueueView(count, 3, language))
        golden(f"{language}/queue_{count}", blocks)
        assert block_problems(blocks) == []
    for stage in Stage:
        golden(f"{language}/rehearsal_{stage}", rehearsal.render(stage, language=language))


# Whether a draft stands whole on its card does not depend on who reads it by much: no state overflows.
@pytest.mark.parametrize("language", TABLES)
@pytest.mark.parametrize("length", [7000, 8250, 9000, 14_000])
def test_long_drafts(language: str, length: int) -> None:
    for text in ("x" * length, "退" * length, "<" * length):
        view = replace(with_body(text), language=language, warnings=("w" * 290,) * 12)
        blocks = review.render(view)
        assert text_length(blocks) <= 10_000
        assert block_problems(blocks) == []


# Every sentence can be drawn with its places filled, and says something.
@pytest.mark.parametrize("language", TABLES)
def test_every_sentence_draws(language: str) -> None:
    for key, sentence in TABLES[language].items():
        places = {place for _, place, _, _ in Formatter().parse(sentence) if place}
        drawn = phrase(language, key, **{place: words(f"[{place}]") for place in places})
        text = "".join(str(element["text"]) for element in drawn)
        assert text.strip(), key
        assert "*" not in text, key
        assert {f"[{place}]" for place in places} <= set(re.findall(r"\[\w+\]", text)), key


# Chinese sentences are Chinese: only code and names are left of the English ones, and signs are wide.
def test_chinese_is_chinese() -> None:
    table = TABLES["zh-CN"]
    for key, sentence in table.items():
        plain = CODE.sub("", sentence)
        assert set(re.findall(r"[A-Za-z]+", plain)) <= NAMES, key
        assert not re.search(r"[一-鿿][,;:!?().]|[,;:!?][一-鿿]", plain), key
    same = {key for key in table if table[key] == TABLES["en"][key]}
    assert same == {"message.title", "show.title", "show.line", "kill.line", "unknown.settled_at"}
