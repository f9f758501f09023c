"""Where log lines go and what never stands in them: one line an event, JSON or text, secrets removed.

Not here: what counts as a secret (bot/policy/redaction) or who logs what.
"""

import logging
import sys
from collections.abc import Collection, MutableMapping
from typing import Any, Literal

import structlog
from structlog.types import Processor

from bot.policy.redaction import SecretRemover

# Their lines hold whole requests, or addresses, at INFO and below.
_QUIET = (
    "slack_bolt",
    "slack_sdk",
    "openai",
    "httpx2",
    "httpcore2",
    "aiohttp",
    "apscheduler",
    "psycopg",
    "uvicorn",
)


def set_up_logs(*, level: str, form: Literal["json", "text"], secrets: Collection[str]) -> None:
    """Send every logger to standard error, through one chain that ends in the removal of secrets."""
    chain: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _name_fault,
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
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


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
