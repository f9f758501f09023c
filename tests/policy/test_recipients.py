"""Who an effect goes to: exactly one plain address from the payload, or a refusal that names the field.
Not here: sending.
"""

from typing import Any

import pytest

from bot.policy.clauses import EffectPolicy
from bot.policy.recipients import WrongRecipient, find_recipient


def find(value: Any, effect_type: str = "http") -> str | WrongRecipient | None:
    effect = EffectPolicy(type=effect_type, target="https://a.example", recipient="payload.to")
    return find_recipient(effect, {"to": value})


# One plain address is taken as it stands, unchanged.
@pytest.mark.parametrize(
    "address",
    [
        "amy@example.test",
        "a.b+c=d@sub.example.co",
        "O'Neil_1@x-y.example",
        "x@xn--bcher-kva.example",
        "A@EXAMPLE.COM",
        "a-b=c?d-@example.com",
        "a" * 64 + "@example.com",
    ],
)
@pytest.mark.parametrize("effect_type", ["http", "smtp"])
def test_plain(address: str, effect_type: str) -> None:
    assert find(address, effect_type) == address


# Lists, names, header breaks, look-alikes and half addresses are no plain address.
@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "amy",
        "amy@",
        "@example.com",
        "amy@example",
        "a@b@c.example",
        "a@example..com",
        ".a@example.com",
        "a.@example.com",
        "a..b@example.com",
        "amy@example.com ",
        " amy@example.com",
        "amy@example.com\n",
        "a@example.com,b@example.com",
        "a@example.com;b@example.com",
        "a@example.com b@example.com",
        "Amy <amy@example.com>",
        "<amy@example.com>",
        '"a b"@example.com',
        "amy(x)@example.com",
        "amy@[127.0.0.1]",
        "amy@example.com\r\nBcc: eve@example.com",
        "amy@example.com\x00",
        "a\u200bmy@example.com",
        "amy@exаmple.com",
        "amy@bücher.example",
        "amy@example.com\u202e",
        "amy@-x.example",
        "amy@x-.example",
        "amy@1.2.3.4",
        "mailto:amy@example.com",
        "a" * 65 + "@example.com",
        "a@" + "x." * 130 + "com",
        "amy%0a@ex ample.com",
        "amy%eve.example@ours.test",
        "eve.test!amy@ours.test",
        "=?utf-8?q?a?=@ours.test",
        "a=?b@ours.test",
        "-oQ/tmp@ours.test",
        None,
        5,
        True,
        ["amy@example.com"],
        {"email": "amy@example.com"},
    ],
)
@pytest.mark.parametrize("effect_type", ["http", "smtp"])
def test_not_plain(value: object, effect_type: str) -> None:
    found = find(value, effect_type)
    assert isinstance(found, WrongRecipient)
    assert found.field == "payload.to"
    assert "eve" not in found.message


# A Slack message goes to one channel or user id, never to a name or a mail address.
@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("C0123", True),
        ("U0123", True),
        ("W01", True),
        ("D012", True),
        ("G012", True),
        ("#general", False),
        ("S0123", False),
        ("C0123,C0124", False),
        ("amy@example.com", False),
        ("c0123", False),
    ],
)
def test_slack(value: str, taken: bool) -> None:
    assert (find(value, "slack_message") == value) is taken


# A kind without a recipient has none, and a path that leads nowhere is a wrong field.
def test_no_recipient() -> None:
    none = EffectPolicy(type="http", target="https://a.example")
    assert find_recipient(none, {"to": "amy@example.test"}) is None
    deep = EffectPolicy(type="http", target="https://a.example", recipient="payload.customer.0.mail")
    assert find_recipient(deep, {"customer": [{"mail": "amy@example.test"}]}) == "amy@example.test"
    assert isinstance(find_recipient(deep, {"customer": []}), WrongRecipient)
