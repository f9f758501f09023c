"""Where log lines go and what never stands in them: one line an event, JSON or text, secrets removed.

Not here: what counts as a secret (bot/policy/redaction) or who logs what.
"""

import logging
import re
import sys
from collections.abc import Collection, MutableMapping
from typing import Any, Literal

import structlog
from structlog.types import Processor

from bot.policy.redaction import SecretRemover

OURS = ("bot", "store")
# Where values begin in the lines of most libraries: "Failed to run listener function (error: ...)".
_VALUES_BEGIN = re.compile(r"[(:={\n]")
_KEPT = ("event", "level", "logger", "timestamp", "fault", "_record", "_from_structlog")


def set_up_logs(*, level: str, form: Literal["json", "text"], secrets: Collection[str]) -> None:
    """Send every logger to standard error, through one chain that ends in the removal of secrets."""
    chain: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _name_fault,
        _cut_others_short,
        SecretRemover(secrets),
    ]
    renderer: Processor = structlog.processors.JSONRenderer()
    if form == "text":
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=chain,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    handler.addFilter(_is_wanted)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in OURS


def _is_wanted(record: logging.LogRecord) -> bool:
    # Here and not by a level on their loggers: Bolt copies the root's level onto each of its own, and at INFO
    # writes the whole body of a request whose signature is wrong.
    return record.levelno >= logging.WARNING or _is_ours(record.name)


def _cut_others_short(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """End a library's line where its values begin: they may hold a request, or what a person wrote."""
    if _is_ours(str(event.get("logger", ""))):
        return event
    kept = {name: event[name] for name in _KEPT if name in event}
    kept["event"] = _VALUES_BEGIN.split(str(event.get("event", "")), maxsplit=1)[0].strip()
    return kept


def _name_fault(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Keep only the class of an exception: its message may hold what a person wrote, or an address."""
    caught = event.pop("exc_info", None)
    event.pop("exc_text", None)
    event.pop("stack_info", None)
    record = event.get("_record")
    if caught is None and isinstance(record, logging.LogRecord):
        caught = record.exc_info
    if isinstance(record, logging.LogRecord):
        record.exc_info = record.exc_text = None
    if isinstance(caught, tuple) and caught[0] is not None:
        event["fault"] = caught[0].__name__
    return event
