"""What a draft must be like for its connectors to carry it, looked at before anybody is asked about it.

Not here: the schema and the rules of a kind (bot/drafting/check, rules), or recipients (recipients).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bot.contracts.strict_json import find_faults
from bot.policy.clauses import EffectPolicy, UndoPolicy

HEADER_FIELDS: Final = frozenset({"subject"})  # what becomes a mail header, here or behind an http target
# What ends a header line somewhere, or is no text: all controls but the tab (RFC 5322, section 2.2).
NO_HEADER: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
# Slack gives no limit for the text of a message's blocks and refuses some from 11,000 characters on.
MESSAGE_CHARACTERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Unsendable:
    """What cannot be sent: where, a word and its bound for people's own language, and a sentence."""

    field: str
    word: str
    message: str
    bound: int | None = None


def find_unsendable(output: Mapping[str, Any], sends: Iterable[EffectPolicy] = ()) -> tuple[Unsendable, ...]:
    """List what keeps a draft from being sent by any of these effects and undos, each once.

    For whatever effect: line breaks in headers, NUL, integers losing digits.
    """
    found = [Unsendable(one.field, "unsendable", one.message) for one in find_faults(dict(output), "output")]
    found += [
        Unsendable(f"output.{name}", "one_line", "must be one line: it becomes a mail header")
        for name, value in output.items()
        if name.lower() in HEADER_FIELDS and isinstance(value, str) and NO_HEADER.search(value)
    ]
    for send in sends:
        whole = {**output, **send.output} if isinstance(send, UndoPolicy) else output
        if send.type == "smtp":
            found += _not_in_a_mail(whole)
        elif send.type == "slack_message":
            found += _not_in_a_message(whole)
    return tuple(dict.fromkeys(found))


def message_field(output: Mapping[str, Any]) -> str:
    """Which field is the text of a Slack message: `text`, or else `body` under its `subject`."""
    return "text" if isinstance(output.get("text"), str) else "body"


def _not_in_a_mail(output: Mapping[str, Any]) -> Iterator[Unsendable]:
    for name in ("subject", "body"):
        if not isinstance(output.get(name), str):
            yield Unsendable(f"output.{name}", "required", f"must be text: it becomes the mail's {name}")


def _not_in_a_message(output: Mapping[str, Any]) -> Iterator[Unsendable]:
    name = message_field(output)
    text, subject = output.get(name), output.get("subject")
    if not isinstance(text, str) or not text.strip():
        yield Unsendable(f"output.{name}", "required", "must be text: it becomes the Slack message")
        return
    most = MESSAGE_CHARACTERS - (len(subject) if name == "body" and isinstance(subject, str) else 0)
    if len(text) > most:
        sentence = f"must be at most {most} characters: it becomes one Slack message"
        yield Unsendable(f"output.{name}", "maxLength", sentence, most)
