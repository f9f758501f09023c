"""What the keys of a kind must be to each other: every pair that is fine alone and wrong together.
Not here: what one key may be (terms, clauses), and the wording around the findings (kinds).
"""

from collections.abc import Iterator
from typing import Final

from bot.contracts.fields import wrong_url
from bot.policy.clauses import EffectPolicy, UndoPolicy
from bot.policy.limits import MAX_EFFECTS
from bot.policy.terms import Kind
from bot.policy.values import is_channel_or_user

Finding = tuple[str, str]  # the key, and a sentence that says how to mend it

EFFECT_ID_PLACEHOLDER: Final = "{effect_id}"
_MAIL_FIELDS: Final = ("subject", "body")  # what smtp takes from the output (SPEC section 7)
_MESSAGE_FIELDS: Final = ("text", "body")  # what slack_message takes from it: the first that is there


def find_contradictions(kind: Kind, effect_types: frozenset[str], gates: frozenset[str]) -> Iterator[Finding]:
    """Yield every contradiction within a kind whose keys are each valid."""
    yield from _in_gate(kind, gates)
    yield from _among_people(kind)
    yield from _among_draft(kind)
    yield from _among_limits(kind)
    yield from _among_effects(kind)
    for where, effect in kind.all_sends:
        if effect.type not in effect_types:
            yield f"{where}.type", f"must be one of {', '.join(sorted(effect_types))}"
            continue
        match effect.type:
            case "http":
                yield from _in_http(where, effect)
            case "smtp":
                yield from _in_smtp(kind, where, effect)
            case "slack_message":
                yield from _in_slack_message(kind, where, effect)


def _in_gate(kind: Kind, gates: frozenset[str]) -> Iterator[Finding]:
    if kind.gate not in gates:
        yield "gate", f"must be one of {', '.join(sorted(gates))}"
    if kind.regulated and kind.gate != "approve_first":
        yield "gate", 'must be "approve_first", since the kind is regulated'
    if kind.cancel_window_seconds is not None and kind.gate in {"approve_first", "by_exception"}:
        yield "cancel_window", 'belongs to gate = "delayed": remove it'
    if kind.earned is not None and kind.gate in {"approve_first", "delayed"}:
        yield "earned", 'belongs to gate = "by_exception": remove it'


def _among_people(kind: Kind) -> Iterator[Finding]:
    deciders = set(kind.reviewers)
    if kind.regulated and not kind.qualified:
        yield "qualified", "must name who may decide, since the kind is regulated: an empty list means nobody"
        return
    if kind.regulated and not _has_group(kind.reviewers) and not _has_group(kind.qualified):
        deciders &= set(kind.qualified)
    if not _has_group(deciders) and kind.quorum > len(deciders):
        yield "quorum", f"is {kind.quorum}, but only {len(deciders)} may decide: list more people or lower it"


def _among_draft(kind: Kind) -> Iterator[Finding]:
    if kind.output is None:
        if kind.prompt is not None:
            yield "output", "is required with prompt: give the JSON Schema of the draft"
        return
    for name in kind.editable or ():
        if not _may_have(kind, name):
            yield "editable", f'names "{name}", which is not among the properties of output'
    paths = [(f"rules[{index}].path", rule.path) for index, rule in enumerate(kind.rules)]
    paths += [("record_fields", path) for path in kind.record_fields]
    for key, path in paths:
        place, name = path.split(".")[:2]
        if place == "output" and not _may_have(kind, name):
            yield key, f'is "{path}", but "{name}" is not among the properties of output'


def _among_limits(kind: Kind) -> Iterator[Finding]:
    found = kind.limits
    if (found.value is None) != (found.cap_value_day is None):
        yield "limits.value", "and limits.cap_value_day belong together: give both, or neither"
    if found.value is not None and not _may_have(kind, name := found.value.split(".")[1]):
        yield "limits.value", f'is "{found.value}", but "{name}" is not among the properties of output'
    if found.breaker_rest_most_seconds < found.breaker_rest_seconds:
        yield "limits.breaker_rest_most", "is shorter than breaker_rest: raise it, or lower breaker_rest"


def _among_effects(kind: Kind) -> Iterator[Finding]:
    if len(kind.effects) > MAX_EFFECTS:
        yield "effects", f"are {len(kind.effects)}: one card can answer for {MAX_EFFECTS} at most"
    if kind.effect is not None and kind.effect.after is not None:
        yield "effect.after", "belongs to effects: there is nothing that this one could wait for"
    names: list[str] = []
    for index, effect in enumerate(kind.effects):
        if effect.name is None:
            yield f"effects[{index}].name", 'is required among effects: a word of its own, like "mail"'
        elif effect.name in names:
            yield f"effects[{index}].name", f'is "{effect.name}", which another effect of the kind is called'
        if effect.after is not None and effect.after not in names:
            yield f"effects[{index}].after", f'is "{effect.after}", but no effect listed before is called so'
        names += [effect.name] if effect.name else []
    yield from _among_targets(kind)


def _among_targets(kind: Kind) -> Iterator[Finding]:
    places: dict[tuple[str, str], str] = {}
    for where, send in kind.all_sends:
        if isinstance(send, UndoPolicy) and send.probe is not None:
            yield f"{where}.probe", "belongs to the effect: an undo does not look at the record"
        first = places.setdefault((send.type, send.target), where)
        if first != where:
            yield f"{where}.target", f"is that of {first}: a target gets one effect of a type for an event"


def _in_http(where: str, effect: EffectPolicy) -> Iterator[Finding]:
    if not effect.target:
        yield f"{where}.target", "is required for http: the URL to POST to"
    elif message := wrong_url(effect.target):
        yield f"{where}.target", message
    if (effect.client_certificate is None) != (effect.client_key is None):
        yield f"{where}.client_certificate", "and client_key go together: name a variable for each"
    if effect.client_certificate and not effect.target.startswith("https:"):
        yield f"{where}.client_certificate", "needs an https target: it is shown in the handshake"
    if effect.lookup is None:
        return
    if effect.lookup.count(EFFECT_ID_PLACEHOLDER) != 1:
        yield f"{where}.lookup", f"must hold {EFFECT_ID_PLACEHOLDER} once: the id that is looked for"
    elif message := wrong_url(effect.lookup.replace(EFFECT_ID_PLACEHOLDER, "id")):
        yield f"{where}.lookup", message


def _in_smtp(kind: Kind, where: str, effect: EffectPolicy) -> Iterator[Finding]:
    if effect.recipient is None:
        yield f"{where}.recipient", 'is required for smtp: a path into the payload, like "payload.to"'
    if effect.idempotent:
        yield f"{where}.idempotent", "cannot be true for smtp: mail servers do not recognise a repeated mail"
    for name in _MAIL_FIELDS:
        if isinstance(effect, UndoPolicy):
            if not effect.output.get(name):
                yield f"{where}.output", f'must have "{name}": smtp sends it'
        elif kind.output is not None and not _may_have(kind, name):
            yield "output", f'must have the property "{name}": smtp sends it'
    yield from _without_answers(where, effect)


def _in_slack_message(kind: Kind, where: str, effect: EffectPolicy) -> Iterator[Finding]:
    if effect.recipient is None and not is_channel_or_user(effect.target):
        yield f"{where}.target", "must be a Slack channel or user id, unless recipient is a path to one"
    if effect.idempotent:
        yield f"{where}.idempotent", "cannot be true for slack_message: Slack posts a repeated message twice"
    if isinstance(effect, UndoPolicy):
        if not any(effect.output.get(name) for name in _MESSAGE_FIELDS):
            yield f"{where}.output", 'must have "text" or "body": slack_message posts it'
    elif kind.output is not None and not any(_may_have(kind, name) for name in _MESSAGE_FIELDS):
        yield "output", 'must have the property "text" or "body": slack_message posts it'
    yield from _without_answers(where, effect)


def _without_answers(where: str, effect: EffectPolicy) -> Iterator[Finding]:
    for name in ("lookup", "response_id", "success", "headers", "client_certificate", "client_key", "body"):
        if getattr(effect, name):
            yield f"{where}.{name}", f"belongs to http: remove it for {effect.type}"


def _has_group(entries: tuple[str, ...] | set[str]) -> bool:
    return any(entry.startswith("S") for entry in entries)


def _may_have(kind: Kind, name: str) -> bool:
    """Tell whether a draft can have this field; a schema that lists no properties may have any."""
    properties = (kind.output or {}).get("properties")
    return not isinstance(properties, dict) or name in properties
