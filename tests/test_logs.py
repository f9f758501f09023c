"""What stands in the logs, and what never does (F036).

Not here: how a secret is recognised (tests/policy/test_redaction.py).
"""

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

from bot.logs import set_up_logs

MARKS = ("MARK1", "MARK2", "MARK3", "MARK4")
SECRETS = ("xoxb-1-MARK1", "sk-MARK1xyz", "plain-value-MARK2")
Read = Callable[[], str]


@pytest.fixture
def set_up(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Read]]:
    """Set the logs up as serve does, and put pytest's own back afterwards."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    quiet = {name: logging.getLogger(name).level for name in list(root.manager.loggerDict)}

    def make(level: str = "INFO", form: Literal["json", "text"] = "json") -> Read:
        set_up_logs(level=level, form=form, secrets=SECRETS)
        return lambda: capsys.readouterr().err

    yield make
    root.handlers, root.level = before[0], before[1]
    root.setLevel(before[1])
    for name, level in quiet.items():
        logging.getLogger(name).setLevel(level)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# One event is one line of JSON: when, where, how grave, what, and the facts beside it.
def test_an_event_is_one_line(set_up: Callable[..., Read]) -> None:
    read = set_up()
    logging.getLogger("bot.flow.draft").info("a step\nin two lines", extra={"run_id": "r1", "rows": 3})
    (line,) = lines(read())
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "a step\nin two lines",
        "level": "info",
        "logger": "bot.flow.draft",
        "run_id": "r1",
        "rows": 3,
    }


# Values in the old manner are put in place before anything is judged.
def test_arguments_are_put_in_place(set_up: Callable[..., Read]) -> None:
    read = set_up()
    logging.getLogger("bot").warning("took %s of %d with %s", "one", 2, SECRETS[2])
    (line,) = lines(read())
    assert line["event"] == "took one of 2 with [removed]"


class Hostile(Exception):
    """Says what it should not."""


def fail(said: str) -> None:
    raise Hostile(said) from Hostile("cause sk-MARK1xyz")


def burst(logger: logging.Logger, level: int) -> None:
    """Every way a mark could get into a line."""
    try:
        fail(f"dial https://sink.example/{SECRETS[2]} refused, body MARK4")
    except Hostile:
        logger.log(level, "the call failed", exc_info=True)
        logger.log(level, "the call failed", exc_info=True, stack_info=True)
        logger.exception("the call failed")
    logger.log(level, "token %s", "xoxb-1-MARK1\n")
    logger.log(level, "call", extra={"headers": {"Authorization": "Bearer MARK1-abcdef"}, "token": "MARK3"})
    logger.log(level, "value %sMARK3.7 pressed", "M" * 38)
    logger.log(level, "posted", extra={"url": "https://user:MARK2pass@sink.example/"})
    logger.log(level, "posted", extra={"nested": [{"password": "MARK2"}, ("sk-MARK1xyz",)]})


# F036: none of the marks is in any line, in either form, at any level, for our loggers and for others'.
@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize("level", ["DEBUG", "INFO", "WARNING", "ERROR"])
@pytest.mark.parametrize("name", ["bot.flow.dispatch", "uvicorn.error", "somebody.else"])
def test_no_mark_is_logged(set_up: Callable[..., Read], form: str, level: str, name: str) -> None:
    read = set_up(level, form)
    for each in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        burst(logging.getLogger(name), each)
    text = read()
    assert "Hostile" in text
    assert not [mark for mark in MARKS if mark in text]


# F036: the framework logs the whole body of a badly signed request at INFO; its lines begin at WARNING.
@pytest.mark.parametrize(
    "name",
    [
        "slack_bolt.AsyncApp",
        "slack_sdk.web",
        "openai._base_client",
        "httpx2",
        "psycopg.pool",
        "aiohttp.access",
    ],
)
@pytest.mark.parametrize("level", ["DEBUG", "INFO"])
def test_frameworks_are_quiet(set_up: Callable[..., Read], level: str, name: str) -> None:
    read = set_up(level)
    logging.getLogger(name).debug("body=MARK4")
    logging.getLogger(name).info("Invalid request signature detected (body=MARK4)")
    assert read() == ""
    logging.getLogger(name).warning("said once")
    assert lines(read())[0]["event"] == "said once"


# Bolt copies the root's level onto its loggers, so a level on their parent would quiet nothing.
def test_a_logger_that_was_turned_up_is_quiet(set_up: Callable[..., Read]) -> None:
    turned_up = logging.getLogger("slack_bolt.AsyncApp")
    before = turned_up.level
    turned_up.setLevel(logging.DEBUG)
    try:
        read = set_up("DEBUG")
        turned_up.info("Invalid request signature detected (body=MARK4)")
        assert "MARK4" not in read()
    finally:
        turned_up.setLevel(before)


# An exception is named by its class alone, also when it is logged without a word.
@pytest.mark.parametrize("form", ["json", "text"])
def test_an_exception_is_named_by_its_class(set_up: Callable[..., Read], form: str) -> None:
    read = set_up("INFO", form)
    try:
        fail("Dear Amy")
    except Hostile as fault:
        logging.getLogger("bot").exception("failed")
        logging.getLogger("bot").warning("failed", exc_info=fault)
        logging.getLogger("bot").warning("failed", exc_info=(type(fault), fault, fault.__traceback__))
    text = read()
    assert text.count("Hostile") == 3
    assert "Dear Amy" not in text
    assert "Traceback" not in text


# What a library says ends where its values begin: they may hold a body, an address or what a person wrote.
@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Failed to run listener function (error: Dear Amy)", "Failed to run listener function"),
        ("Unhandled request ({'type': 'block_actions', 'text': 'Dear Amy'})", "Unhandled request"),
        ("Error: Dear Amy", "Error"),
        ("error connecting in 'pool-1': host=db.example Dear Amy", "error connecting in 'pool-1'"),
        ("Exception in ASGI application\nDear Amy", "Exception in ASGI application"),
    ],
)
def test_a_librarys_line_ends_where_its_values_begin(
    set_up: Callable[..., Read], said: str, kept: str
) -> None:
    read = set_up()
    logging.getLogger("slack_bolt.AsyncApp").warning(said, extra={"body": "Dear Amy"})
    text = read()
    assert lines(text)[0]["event"] == kept
    assert "Amy" not in text
