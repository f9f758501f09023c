"""Logs hold no secret, no token and no address, whatever they are hidden in.
Not here: which fields the record may hold (test_snapshot).
"""

from typing import Any

import pytest

from bot.policy.redaction import REMOVED, SecretRemover, hide_text

SECRET = "Tr0ub4dor&3-correct"
TOKEN = "Ab0_-" * 8 + "xyz"
REMOVER = SecretRemover([SECRET, ""])


# A value under a telling name goes, whatever it is.
@pytest.mark.parametrize(
    "name",
    [
        "token",
        "slack_bot_token",
        "SIGNING_SECRET",
        "password",
        "Authorization",
        "api_key",
        "webhook-signature",
        "database_url",
        "SMTP_URL",
        "cookie",
    ],
)
@pytest.mark.parametrize("value", ["plain", b"plain", 5, ["plain"], {"a": "plain"}])
def test_names(name: str, value: object) -> None:
    assert REMOVER(None, "info", {name: value}) == {name: REMOVED}


# Secrets are recognised by their look and by being ours, inside any text and any nesting.
@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-123-abc-DEF",
        "xapp-1-A0-12-abc",
        "whsec_c2VjcmV0+/=",
        "sk-proj-abcdefgh",
        "amy.b+c@example.test",
        SECRET,
        f"{TOKEN}.3",
        "Bearer abcdef123456",
    ],
)
@pytest.mark.parametrize(
    "shape",
    [
        lambda secret: secret,
        lambda secret: f"post failed: <{secret}> again",
        lambda secret: [{"x": (secret,)}],
        lambda secret: {"a": {"b": secret}},
        lambda secret: ValueError(f"bad {secret}"),
    ],
)
def test_texts(secret: str, shape: Any) -> None:
    shown = str(REMOVER(None, "info", {"event": "failed", "detail": shape(secret)}))
    assert secret not in shown
    assert secret.removeprefix("Bearer ") not in shown
    assert REMOVED in shown


# User info goes from any address of a server, the rest of the address stays.
def test_user_info() -> None:
    assert hide_text("smtp://joe:pw@mail.example:25") == f"smtp://{REMOVED}@mail.example:25"
    assert hide_text("https://a.example/x?y=1") == "https://a.example/x?y=1"


# Figures and plain words stay as they are.
def test_harmless() -> None:
    event = {"event": "drafted", "tokens": 51, "prompt_tokens": 40, "ok": True, "share": 0.5, "none": None}
    assert REMOVER(None, "info", dict(event)) == event
    assert REMOVER(None, "info", {"key": "n8n:customer_email:evt-1001"}) == {
        "key": "n8n:customer_email:evt-1001"
    }


# What is nested without end is cut instead of followed.
def test_endless() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert REMOVED in str(REMOVER(None, "info", {"x": loop}))


# The remover itself shows none of the secrets it knows.
def test_repr() -> None:
    assert SECRET not in repr(REMOVER)
