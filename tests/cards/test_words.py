"""The tables of sentences: complete in every language, used, short enough, and with the same places."""

import ast
import re
from pathlib import Path
from string import Formatter

import pytest

from bot.cards import answers
from bot.cards.blocks import plain
from bot.cards.notices import Alert, Done, Refusal, Thread
from bot.cards.status import because
from bot.cards.unknown import LookUp, Settled
from bot.cards.views import PendingNote
from bot.cards.words import TABLES, say
from bot.connectors import answers as outcomes
from bot.connectors import resume, slack_message, smtp
from bot.contracts.answer import Why
from bot.contracts.outcome import Sent
from bot.flow.reconcile import Choice
from bot.policy.people import Bar

ENGLISH = TABLES["en"]
CARDS = Path(__file__).parents[2] / "bot" / "cards"
# Keys that are put together from a word, and where the words come from.
MADE = {
    *(f"refused.{word}" for word in Refusal),
    *(f"done.{word}" for word in Done),
    *(f"alert.{word}" for word in Alert),
    *(f"thread.{word}" for word in Thread),
    *(f"unknown.look_up.{word}" for word in LookUp),
    *(f"unknown.{word}" for word in Settled),
    *(f"help.{word}" for word in (*answers.MEMBER_COMMANDS, *answers.ADMIN_COMMANDS)),
    *(f"withdrawn.{word}" for word in set(PendingNote) - {PendingNote.NEW, PendingNote.NEWER_FAILED}),
}
MADE_FROM = re.compile(
    r"^(fault|edit|reason|usage|mend|state|action|approved|confirm|button|rerun|erase|reject|redraft|typed|home)\."
)
# What an outcome or a look-up's answer is made by.
ANSWERED = {
    "NotSent",
    "Refused",
    "Unknown",
    "NoAnswer",
    "Blocked",
    "Result",
    "SlackUnknown",
    "SlackNotDelivered",
}
# What a person says without a reason: it was delivered.
OTHERWISE = {"delivered"}
SAID_BY_KEY = {"unknown.none", "unknown.open", "modal.overtaken", "resume.not_allowed"}


def places(sentence: str) -> set[str]:
    return {place for _, place, _, _ in Formatter().parse(sentence) if place}


# Every language has the sentences of English, with the same places.
@pytest.mark.parametrize("language", TABLES)
def test_complete(language: str) -> None:
    table = TABLES[language]
    assert set(table) == set(ENGLISH)
    assert [key for key in table if places(table[key]) != places(ENGLISH[key])] == []


# Every key written in the code of the cards has a sentence.
def test_keys_exist() -> None:
    wanted: set[str] = set()
    for path in CARDS.glob("*.py"):
        if path.name.startswith("words_"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found = re.fullmatch(r"([a-z_]+)\.[a-z_.]*[a-z]", node.value)
                if found and any(key.startswith(found[1] + ".") for key in ENGLISH):
                    wanted.add(node.value)
    assert wanted - set(ENGLISH) == set()
    assert (
        set(ENGLISH) - wanted - MADE - SAID_BY_KEY - {key for key in ENGLISH if MADE_FROM.match(key)} == set()
    )


# Every word that a reason, an alert or a state is made of has its sentence.
def test_made_keys_exist() -> None:
    assert set(ENGLISH) >= MADE


# Whatever keeps a click from counting has its words.
def test_every_refusal_is_worded() -> None:
    assert {word.value for word in Refusal} >= {word.value for word in (*Why, *Bar)}


# Style signs come in pairs, labels fit their buttons, titles their modals, in every language.
@pytest.mark.parametrize("language", TABLES)
def test_limits(language: str) -> None:
    table = TABLES[language]
    assert [key for key, text in table.items() if text.count("*") % 2 or text.count("`") % 2] == []
    assert [key for key in table if key.startswith("button.") and len(table[key]) > 30] == []
    titles = [
        key
        for key in table
        if re.fullmatch(r"(reject|redraft|edit|typed|read|message)\.title|button\.close", key)
    ]
    assert [key for key in titles if len(table[key]) > 24] == []


# A language without a table speaks English.
def test_fallback_language() -> None:
    assert say("xx", "button.approve") == "Approve"


def stored_reasons() -> set[str]:
    """Every word that the code can store as an outcome's reason, or show as a look-up's."""
    found = {str(choice) for choice in Choice} | {"absent", "found", "cancelled"}
    for module in (outcomes, resume, slack_message, smtp):
        tables = [one for name, one in vars(module).items() if isinstance(one, tuple) and name.isupper()]
        rows = [row for table in tables for row in table if isinstance(row, outcomes.Row)]
        found |= {row.reason or row.cause for row in rows if row.outcome is not Sent}
    places = ("connectors", "flow", "slack")
    for path in (path for place in places for path in (CARDS.parent / place).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ANSWERED:
                given = [*node.args, *(each.value for each in node.keywords if each.arg == "reason")]
                words = [each for one in given for each in ast.walk(one)]
                found |= {
                    each.value
                    for each in words
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                }
    sql = (CARDS.parents[1] / "sql" / "queries" / "outbox.sql").read_text(encoding="utf-8")
    for line in re.findall(r"reason = (.*)", sql):
        found |= set(re.findall(r"'([a-z_]+)'", line))
    return {word for word in found if re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", word)}


# Every reason that can be stored has a sentence of its own, or is a status with a number, in every language.
@pytest.mark.parametrize("language", TABLES)
def test_every_reason_is_worded(language: str) -> None:
    reasons = stored_reasons()
    assert {"gone", "shared_channel", "lease_expired", "newer_version", "deadline", "smtp_421"} <= reasons
    unworded = {
        word
        for word in reasons
        if f"reason.{word}" not in TABLES[language]
        and not re.fullmatch(r"(http|smtp)_([0-9]xx|[0-9]{3})", word)
    }
    assert unworded == OTHERWISE
    said = {
        word: plain(because(language, word)) for word in (*reasons, "smtp_550", "http_503", "is_archived")
    }
    assert "550" in said["smtp_550"]
    assert "503" in said["http_503"]
    assert "is_archived" in said["is_archived"]
    assert [word for word, sentence in said.items() if not sentence.strip() or "{" in sentence] == []
