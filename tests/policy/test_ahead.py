"""The `probe` of an effect: what may stand there, and how its address is filled.

Not here: asking (tests/connectors/test_probe) or what follows (tests/flow/test_checking).
"""

import pytest

from bot.policy.ahead import fill_url
from bot.policy.effective import describe
from bot.policy.snapshot import Snapshot
from tests.policy.samples import make_kind, policy_text, problems

URL = 'url = "https://crm.example/tickets/{entity}?k={key}&e={effect_id}"'


def with_probe(keys: str) -> str:
    return policy_text(tail=f"[kinds.customer_email.effect.probe]\n{keys}", effect="").replace(
        "[kinds.customer_email.effect.probe]",
        '[kinds.customer_email.effect]\ntype = "http"\ntarget = "https://n8n.example/x"\n'
        "[kinds.customer_email.effect.probe]",
    )


# A probe says where the record is and what must be found; both are told, and frozen with the draft.
def test_whole_probe() -> None:
    keys = f'{URL}\nversion = "data.version"\npath = "status"\nopen = ["open", 1, true]\ntimeout = "3s"'
    kind = make_kind(with_probe(keys))
    probe = kind.all_effects[0].probe
    assert probe is not None
    assert (probe.version, probe.open, probe.timeout_seconds) == ("data.version", ("open", 1, True), 3)
    assert "data.version is the draft's source_version and status is one of open, 1, True" in describe(kind)
    assert Snapshot.read(kind.snapshot()).effect == kind.effect


# What cannot be asked, or asks for nothing, does not load.
@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ('version = "v"', "effect.probe.url is required"),
        (URL, "effect.probe needs version"),
        (f'{URL}\npath = "status"', "effect.probe needs path and open together"),
        (f'{URL}\nversion = "v"\nopen = ["open"]', "effect.probe needs path and open together"),
        (f'{URL}\nversion = "v"\nopen = [{{}}]', "effect.probe.open"),
        (
            'url = "https://crm.example/{payload}"\nversion = "v"',
            "effect.probe.url has the placeholder",
        ),
        (
            'url = "https://{entity}/x"\nversion = "v"',
            "effect.probe.url may have placeholders in",
        ),
        ('url = "crm.example/{entity}"\nversion = "v"', "effect.probe.url must be an absolute"),
        (f'{URL}\nversion = "v"\ntimeout = "16s"', "effect.probe.timeout must be less than or equal to 15"),
        (f'{URL}\nversion = "v"\nmethod = "POST"', "effect.probe.method is not a key here"),
    ],
)
def test_faults(keys: str, sentence: str) -> None:
    found = problems(with_probe(keys))
    assert any(f"kinds.customer_email.{sentence}" in problem for problem in found), found


# What an event says cannot leave its place in the address: it is encoded whole, and may not climb.
@pytest.mark.parametrize(
    ("entity", "filled"),
    [
        ("customer:42", "https://crm.example/a/customer%3A42"),
        ("../admin?x=1#y", "https://crm.example/a/..%2Fadmin%3Fx%3D1%23y"),
        ("{key}", "https://crm.example/a/%7Bkey%7D"),
        ("客户 1", "https://crm.example/a/%E5%AE%A2%E6%88%B7%201"),
        ("%2e%2e", "https://crm.example/a/%252e%252e"),
        (".", None),
        ("..", None),
    ],
)
def test_filled(entity: str, filled: str | None) -> None:
    assert fill_url("https://crm.example/a/{entity}", entity=entity, key="k", effect_id="e") == filled
