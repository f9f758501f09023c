"""What an event's kind asks of it, before anything is stored: every objection at once.

Not here: what an event is at all (bot/contracts/event) or storing it (receive).
"""

from collections.abc import Mapping

from bot.connectors.reach import Blocked, Reach
from bot.contracts.event import Event
from bot.contracts.fields import FieldError
from bot.drafting.check import find_violations
from bot.drafting.faults import Misconfigured
from bot.policy.recipients import find_wrong_recipients
from bot.policy.rules import check_rules
from bot.policy.sendable import find_unsendable
from bot.policy.terms import Kind

_NO_KIND = "is not a kind of this server's policy: check the name, or ask for it to be added"
_NO_SOURCE = "does not take events from this source: the kind's policy has to list it under sources"
_NO_DRAFT = "is required: this kind has no prompt, so every event has to bring its draft"
_BAD_SCHEMA = "cannot be checked: the kind's output schema is wrong, tell whoever keeps the policy"
_RESUME_REASONS = {
    "bad_url": "is not a URL that can be called: plain http or https, no user name, no fragment",
    "host_not_allowed": "names a host that is not in EFFECT_ALLOWED_HOSTS: have it added",
    "address_not_allowed": "names an address that may be reached only if EFFECT_ALLOWED_HOSTS names it",
}


def find_objections(event: Event, kinds: Mapping[str, Kind], reach: Reach) -> tuple[FieldError, ...]:
    """List what is wrong with the event for its kind; empty: it may be stored. No message quotes content."""
    kind = kinds.get(event.kind)
    if kind is None:
        return (FieldError("kind", _NO_KIND),)
    if event.source not in kind.sources:
        return (FieldError("kind", _NO_SOURCE),)
    wrong = find_wrong_recipients(kind, event.payload)
    found = [FieldError(one.field, one.message) for one in wrong]
    if event.resume_url is not None:
        checked = reach.check_url(event.resume_url)
        if isinstance(checked, Blocked):
            found.append(FieldError("resume_url", _RESUME_REASONS[checked.reason]))
    if event.draft is not None:
        found += _draft_objections(event, event.draft, kind)
    elif not kind.drafts_here:
        found.append(FieldError("draft", _NO_DRAFT))
    return tuple(found)


def _draft_objections(event: Event, draft: Mapping[str, object], kind: Kind) -> list[FieldError]:
    """Hold a draft made upstream to what a model's answer is held to."""
    found: list[FieldError] = []
    if kind.output is not None:
        try:
            found += [FieldError("draft", hint) for hint in find_violations(draft, kind.output)]
        except Misconfigured:
            found.append(FieldError("draft", _BAD_SCHEMA))
    found += [FieldError(_in_event(one.field), one.message) for one in find_unsendable(draft, kind.sends)]
    if not found:
        verdict = check_rules(kind.rules, output=draft, payload=event.payload)
        found += [FieldError(_in_event(one.path), one.message) for one in verdict.broken]
    return found


def _in_event(path: str) -> str:
    """Say `draft` where rules say `output`: what the sender knows it by."""
    return f"draft{path.removeprefix('output')}" if path.startswith("output") else path
