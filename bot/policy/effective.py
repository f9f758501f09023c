"""The effective policy of a kind in words: what `python -m bot policy check FILE` prints.
Not here: finding faults (kinds) and printing (bot/__main__).
"""

from collections.abc import Iterator, Sequence

from bot.policy.clauses import Earned, EffectPolicy, EffectTerms, Rule, UndoPolicy
from bot.policy.earned import Evidence, has_earned, lower_bound
from bot.policy.limits import CANCEL_WINDOW_SECONDS
from bot.policy.requests import write_body
from bot.policy.terms import Kind
from bot.policy.values import write_duration


def describe(kind: Kind) -> str:
    """Say in some lines what holds for a kind, defaults included."""
    lines = [kind.name, *(f"  {label:<15}{text}" for label, text in _lines(kind))]
    return "\n".join(lines)


def _lines(kind: Kind) -> Iterator[tuple[str, str]]:
    yield "gate", _gate(kind)
    yield "sources", _list(kind.sources)
    yield "channel", f"{kind.channel}, at most {kind.max_open_cards} open cards"
    yield "reviewers", f"{_list(kind.reviewers)}; {kind.quorum} must approve"
    yield "duties", _duties(kind)
    yield "confirm", kind.confirm
    yield "expires after", f"{write_duration(kind.expires_after_seconds)}; {_reminders(kind)}"
    yield "fresh for", write_duration(kind.fresh_for_seconds)
    yield "draft", _drafting(kind)
    yield "editable", "every field of the draft" if kind.editable is None else _list(kind.editable)
    for effect in kind.all_effects:
        yield (f"effect {effect.name}" if effect.name else "effect"), _effect(effect)
        yield "  undone by", "nothing: no Undo on the card" if effect.undo is None else _effect(effect.undo)
    yield from kind.limits.describe()
    yield "on the record", _list(kind.record_fields, nothing="keys and hashes only")
    yield "record links", _list(kind.record_hosts)
    yield "kept for", _kept(kind)
    for rule in kind.rules:
        yield f"rule ({rule.level})", _rule(rule)


def _gate(kind: Kind) -> str:
    if kind.gate == "delayed":
        window = write_duration(kind.cancel_window_seconds or CANCEL_WINDOW_SECONDS)
        return f"delayed: goes out after {window} unless somebody cancels; with a warning a person decides"
    if kind.gate != "by_exception":
        return kind.gate
    if not any(rule.level == "allow" for rule in kind.rules):
        return "by_exception, but without a rule of level allow: a person decides everything"
    terms = kind.earned or Earned()
    least = next((n for n in range(terms.decisions + 1) if _earns(n, terms)), None)
    if least is None:
        best = lower_bound(terms.decisions, terms.decisions)
        return (
            f"by_exception, never: {terms.decisions} decisions prove at most {best:.2f}; ask for more of them"
        )
    return (
        f"by_exception: earned by {least} of the last {terms.decisions} approved unedited, "
        f"{terms.sample:.0%} shown all the same"
    )


def _earns(unedited: int, terms: Earned) -> bool:
    return has_earned(Evidence(terms.decisions, unedited), terms)


def _duties(kind: Kind) -> str:
    separate = "requester and last editor may not approve" if kind.separate_duties else "not separated"
    return f"{separate}; regulated: only {_list(kind.qualified)}" if kind.regulated else separate


def _reminders(kind: Kind) -> str:
    after = _list([write_duration(seconds) for seconds in kind.remind_after_seconds], nothing="no reminders")
    reminders = f"reminders after {after}" if kind.remind_after_seconds else after
    return f"{reminders}, escalates to {kind.escalate_to}" if kind.escalate_to else reminders


def _drafting(kind: Kind) -> str:
    if not kind.drafts_here:
        return "made upstream: every event must bring one"
    budget = f"{kind.daily_tokens} tokens a day" if kind.daily_tokens else "no daily limit of its own"
    return (
        f"by {kind.model or 'the model of OPENAI_MODEL'}, prompt {str(kind.prompt_version)[:12]}, "
        f"within {write_duration(kind.timeout_seconds)}, at most {kind.max_tokens} tokens, {budget}, "
        f"{kind.redrafts} redrafts"
    )


def _effect(effect: EffectPolicy) -> str:
    parts = [effect.type]
    if effect.target:
        parts.append(f"to {effect.target}")
    parts.append(f"recipient from {effect.recipient}" if effect.recipient else "no recipient")
    parts.append(f"within {write_duration(effect.timeout_seconds)}, {effect.attempts} attempts")
    parts.append("target deduplicates" if effect.idempotent else "never repeated when unclear")
    parts.extend(_request(effect))
    if effect.probe:
        parts.append(f"only while at {effect.probe.url} {' and '.join(effect.probe.told())}")
    if effect.lookup:
        parts.append(f"looked up at {effect.lookup} after {write_duration(effect.settle_seconds)}")
    if isinstance(effect, EffectTerms) and effect.after:
        parts.append(f"once {effect.after} is delivered")
    if isinstance(effect, UndoPolicy) and effect.output:
        parts.append(f"with its own {_list(sorted(effect.output))}")
    return ", ".join(parts)


def _request(effect: EffectPolicy) -> Iterator[str]:
    for rule in effect.success:
        yield f"done only if {rule.path} is {rule.equals!r}"
    for header, name in effect.headers.items():
        yield f"header {header} from {name}"
    if effect.client_certificate:
        yield f"certificate and key in the files of {effect.client_certificate} and {effect.client_key}"
    if effect.body:
        yield f"body {write_body(effect.body)}"


def _kept(kind: Kind) -> str:
    kept = kind.retention
    return (
        f"events {write_duration(kept.runs_seconds)}, drafts {write_duration(kept.drafts_seconds)}, "
        f"effects {write_duration(kept.effects_seconds)}, record {write_duration(kept.audit_details_seconds)}"
    )


def _rule(rule: Rule) -> str:
    value = "" if rule.op == "present" else f" {rule.value!r}"
    return f"{rule.path} {rule.op}{value}: {rule.message}"


def _list(items: Sequence[str], *, nothing: str = "none") -> str:
    return ", ".join(items) or nothing
