"""Look-ups tried with the id of an effect that never was: one that finds it calls every lost send delivered.

Not here: whether their hosts are allowed (doctor), or what a look-up is (bot/connectors).
"""

from collections.abc import AsyncIterator, Mapping
from typing import Final

from bot.connectors.connector import Connector, Effect, ask
from bot.contracts.outcome import Absent, Found
from bot.examination.finding import Finding
from bot.policy.clauses import EffectPolicy
from bot.policy.kinds import Policy
from store.ids import new_id

MOST_SECONDS: Final = 10  # Somebody waits for the doctor.
_TOLD_ELSEWHERE: Final = frozenset({"host_not_allowed", "address_not_allowed", "variable_not_set"})


async def examine_look_ups(connectors: Mapping[str, Connector], policy: Policy) -> AsyncIterator[Finding]:
    """Ask each `lookup` once. One that does not answer may still do so when it is needed."""
    for kind in policy.kinds.values():
        for where, send in kind.all_sends:
            if send.lookup is None:
                continue
            what = f"kinds.{kind.name}.{where}.lookup"
            answer = await ask(connectors[send.type], _never_was(kind.name, send))
            if isinstance(answer, Found):
                mend = "it finds an effect that never was: let it answer 404 for an id that it does not know"
                yield Finding(what, mend)
            elif isinstance(answer, Absent):
                yield Finding(f"{what}: does not find what never was")
            elif answer.reason not in _TOLD_ELSEWHERE:
                yield Finding(f"{what}: cannot be tried from here ({answer.reason})")


def _never_was(kind: str, send: EffectPolicy) -> Effect:
    seconds = min(send.timeout_seconds, MOST_SECONDS)
    return Effect(
        effect_id=new_id(),
        key="doctor",
        kind=kind,
        entity="doctor",
        revision=1,
        effect_type=send.type,
        target=send.target,
        recipient=None,
        body=b"",
        policy=send.model_copy(update={"timeout_seconds": seconds}),
    )
