"""Asks a record's owner, right before a send, whether the record is still what the draft was made from.

Not here: what follows from the answer (bot/flow/checking). Any connector's effect may have a probe.
"""

import re
from collections.abc import Collection

from bot.connectors.answers import is_same, read_json, says_false, value_at
from bot.connectors.connector import Effect, Kit
from bot.connectors.dress import Wardrobe
from bot.connectors.exchange import Answered, Call, Exchange, Failed
from bot.connectors.signing import sign_effect
from bot.contracts.outcome import Changed, ProbeOutcome, Unchanged, Unclear
from bot.policy.ahead import Probe, fill_url
from store.database import outside_transaction

_OK = 200
_VERSION = re.compile(r"[0-9]{1,19}", re.ASCII)
_MOST_VERSION = 2**63 - 1


class Prober:
    """GETs records; follows no redirect, reaches allowed hosts only, believes nothing but a whole 200."""

    def __init__(self, kit: Kit) -> None:
        self._exchange = Exchange(kit.reach, resolve=kit.resolve, tls=kit.tls)
        self._wardrobe = Wardrobe(kit.variables, kit.tls)
        self._signing_secret = kit.signing_secret
        self._clock = kit.clock

    async def ask(self, effect: Effect, probe: Probe, versions: Collection[int]) -> ProbeOutcome:
        """Ask once; `versions` are those that the decision was taken under."""
        outside_transaction()
        places = {"entity": effect.entity, "key": effect.key, "effect_id": str(effect.effect_id)}
        url = fill_url(probe.url, **places)
        if url is None:
            return Unclear("bad_url")
        dress = self._wardrobe.dress(probe.headers)
        if dress is None:
            return Unclear("variable_not_set")
        signed = sign_effect(effect, b"", secret=self._signing_secret, now=self._clock())
        call = Call("GET", url, {**dress.headers, **signed})
        answer = await self._exchange.call(call, within_seconds=probe.timeout_seconds)
        return _judge(answer, probe, versions)


def build_prober(kit: Kit) -> Prober:
    """The prober, with an exchange of its own: a slow record must not take the places of sends."""
    return Prober(kit)


def _judge(answer: Answered | Failed, probe: Probe, versions: Collection[int]) -> ProbeOutcome:
    if isinstance(answer, Failed):
        return Unclear(answer.cause)
    if answer.status != _OK:
        return Unclear("redirect" if 300 <= answer.status < 400 else f"http_{answer.status}")  # noqa: PLR2004
    if answer.flaw is not None:
        return Unclear(answer.flaw)
    document = read_json(answer.body)
    if says_false(document):
        return Unclear("says_false")
    if probe.version is not None:
        version = _read_version(value_at(document, probe.version))
        if version is None:
            return Unclear("no_version")
        if version not in versions:
            # A version only grows: an older one is an answer that lags behind the event, and proves nothing.
            return Changed(version) if version > max(versions) else Unclear("old_version")
    return Unchanged() if probe.path is None else _judge_value(value_at(document, probe.path), probe)


def _judge_value(value: object, probe: Probe) -> ProbeOutcome:
    if not isinstance(value, str | int | float):
        return Unclear("no_value")
    is_open = any(is_same(value, each) for each in probe.open)
    return Unchanged() if is_open else Changed(None)


def _read_version(value: object) -> int | None:
    """An integer, or decimal digits as text: as events bring it (SPEC section 3)."""
    if isinstance(value, str) and _VERSION.fullmatch(value):
        value = int(value)
    return value if type(value) is int and 0 <= value <= _MOST_VERSION else None
