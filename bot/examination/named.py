"""The variables that policy.toml names: whether each is set, and each certificate can be loaded.

Not here: the settings (bot/settings) or the requests they go into (bot/connectors).
"""

from collections.abc import Iterator

from bot.connectors.dress import CertificateUnusable, Wardrobe
from bot.policy.kinds import Policy
from bot.settings import SettingProblem
from bot.variables import Variables


def find_named_problems(policy: Policy, variables: Variables) -> Iterator[SettingProblem]:
    """One sentence for each variable that a kind names and that cannot be used."""
    wardrobe = Wardrobe(variables)
    sends = [(f"kinds.{kind.name}.{at}", one) for kind in policy.kinds.values() for at, one in kind.all_sends]
    for where, effect in sends:
        names = [(f"{where}.{key}", name) for key, name in effect.variables()]
        wrong = list(variables.find_problems(names))
        yield from wrong
        pair = effect.client_pair
        if pair is None or {each.variable for each in wrong} & set(pair):
            continue
        try:
            wardrobe.certified(pair)
        except CertificateUnusable as fault:
            yield SettingProblem(pair[0], f"{fault} ({where}.client_certificate): set it anew")
