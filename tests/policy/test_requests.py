"""What a kind may add to its http requests, as policy.toml says it.

Not here: sending (tests/connectors/test_dress) or filling bodies (tests/store/test_bodies).
"""

import pytest

from bot.policy.effective import describe
from bot.policy.requests import compile_body, write_body
from bot.policy.snapshot import Snapshot
from tests.policy.samples import make_kind, policy_text, problems

TEMPLATE = '{"to":"{recipient}","text":"For {entity}: {output.body}","parts":["{output}",1,true,null,{}]}'
EXTRAS = f"""
success = [{{ path = "status", equals = "queued" }}, {{ path = "errors", equals = 0 }}]
headers = {{ "X-Api-Key" = "CRM_API_KEY" }}
client_certificate = "CRM_CERTIFICATE"
client_key = "CRM_KEY"
body = '{TEMPLATE}'
"""
OURS = (  # noqa: SIM905 - a list to read
    "Idempotency-Key idempotency-key Webhook-Id webhook-signature WEBHOOK-TIMESTAMP"
    " webhook-anything Host HOST Content-Length Content-Type content-encoding Transfer-Encoding"
    " Connection TE Trailer Upgrade Expect Proxy-Authorization Accept-Encoding User-Agent X:Y"
    " X\\u0020Y 1X"
).split()


def with_effect(keys: str, kind: str = "http") -> str:
    target = 'target = "https://n8n.example/x"' if kind == "http" else 'target = "C0123ABCD"'
    return policy_text(tail=f'[kinds.customer_email.effect]\ntype = "{kind}"\n{target}\n{keys}', effect="")


# All of it is told by `policy check`, and frozen with the draft; values of secrets are nowhere.
def test_whole() -> None:
    kind = make_kind(with_effect(EXTRAS))
    told = describe(kind)
    for words in (
        "done only if status is 'queued'",
        "done only if errors is 0",
        "header X-Api-Key from CRM_API_KEY",
        "certificate and key in the files of CRM_CERTIFICATE and CRM_KEY",
        f"body {TEMPLATE}",
    ):
        assert words in told
    assert Snapshot.read(kind.snapshot()).effect == kind.effect
    assert [name for _, name in kind.all_effects[0].variables()] == [
        "CRM_API_KEY",
        "CRM_CERTIFICATE",
        "CRM_KEY",
    ]


# A header that is Stet's own or HTTP's, in any case, does not load, nor does what is no name.
@pytest.mark.parametrize(
    "name",
    OURS,
)
@pytest.mark.parametrize("place", ["headers", "probe"])
def test_headers_not_to_be_set(name: str, place: str) -> None:
    headers = f'{{ "{name}" = "CRM_API_KEY" }}'
    keys = f"headers = {headers}"
    if place == "probe":
        keys = f'probe = {{ url = "https://crm.example/", version = "v", headers = {headers} }}'
    (problem,) = problems(with_effect(keys))
    assert "headers names the header" in problem


# What is wrong is said with its key.
@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ('headers = { "X-A" = "crm key" }', "effect.headers.X-A must be the name of an environment variable"),
        ('headers = { "X-A" = "A", "x-a" = "B" }', "effect.headers names a header twice"),
        ('client_certificate = "A"', "effect.client_certificate and client_key go together"),
        ('client_key = "A"', "effect.client_certificate and client_key go together"),
        ('success = [{ path = "a" }]', "effect.success[0].equals is required"),
        ('success = [{ path = "a", equals = [] }]', "effect.success[0].equals"),
        ("body = '{'", "effect.body must be JSON"),
        ("""body = '{"a": {recipient}}'""", "effect.body must be JSON"),
        ("""body = '{"a": "{payload.to}"}'""", "effect.body has the placeholder {payload.to}"),
        ("""body = '{"a": "{entity.x}"}'""", "effect.body has the placeholder {entity.x}"),
        ("""body = '{"a": "{output.}"}'""", "effect.body has the placeholder {output.}"),
        ("""body = '{"{entity}": 1}'""", "effect.body may have placeholders in values only"),
        ("""body = '{"a": 1, "a": 2}'""", "effect.body must be JSON"),
        ("body = 1", "effect.body must be text that holds JSON"),
    ],
)
def test_faults(keys: str, sentence: str) -> None:
    found = problems(with_effect(keys))
    assert any(f"kinds.customer_email.{sentence}" in problem for problem in found), found


# These keys are http's: another type that has one does not load.
@pytest.mark.parametrize("line", EXTRAS.strip().splitlines())
def test_http_only(line: str) -> None:
    found = problems(with_effect(line, kind="slack_message"))
    assert any("belongs to http: remove it for slack_message" in problem for problem in found), found


# A template is cut at its placeholders, and written again as it was; other braces stay text.
@pytest.mark.parametrize(
    "template", [TEMPLATE, '"{entity}"', '{"a":"{ x } {} {1} \\"{key}\\""}', "[]", "{}", "17", '"x"']
)
def test_cut_and_written(template: str) -> None:
    assert write_body(compile_body(template)) == template
