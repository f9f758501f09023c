"""Reading policy.toml: good files load with the contract's defaults, bad ones name every fault and the mend.
Not here: single durations and paths (test_clauses), rules at work (test_rules).
"""

from pathlib import Path

import pytest
from pydantic import ValidationError

from bot.policy.effective import describe
from bot.policy.kinds import load_policy
from tests.policy.samples import faulty_keys, make_kind, policy_text, problems

EXAMPLE = Path(__file__).parents[2] / "examples" / "policy.toml"
ALLOW = """
[[kinds.customer_email.rules]]
level = "allow"
path = "output.label"
op = "equals"
value = "shipping"
message = "A question about a parcel."
"""


# What a file leaves out has the values that the contract shows, lists empty.
def test_defaults() -> None:
    kind = make_kind()
    assert kind.model_dump(exclude={"output", "effect", "prompt", "retention", "limits"}) == {
        "name": "customer_email",
        "gate": "approve_first",
        "cancel_window_seconds": None,
        "sources": ("n8n",),
        "channel": "C0123ABCD",
        "reviewers": ("S0REVIEWERS", "U0ALICE"),
        "quorum": 1,
        "separate_duties": True,
        "expires_after_seconds": 48 * 3600,
        "fresh_for_seconds": 24 * 3600,
        "remind_after_seconds": (),
        "escalate_to": None,
        "confirm": "none",
        "regulated": False,
        "qualified": (),
        "record_hosts": (),
        "record_fields": (),
        "max_open_cards": 30,
        "editable": None,
        "model": None,
        "timeout_seconds": 60,
        "max_tokens": 4000,
        "daily_tokens": None,
        "redrafts": 3,
        "effects": (),
        "rules": (),
        "earned": None,
    }
    (effect,) = kind.all_effects
    assert (effect.settle_seconds, effect.timeout_seconds, effect.attempts) == (60, 10, 5)
    assert (effect.idempotent, effect.lookup, effect.response_id) == (False, None, None)


# The example in the repository is valid, and its effective policy can be read.
def test_example() -> None:
    policy = load_policy(EXAMPLE.read_text(encoding="utf-8"))
    text = describe(policy.kinds["customer_email"])
    assert policy.daily_tokens == 500000
    for said in (
        "S0REVIEWERS",
        "C0123ABCD",
        "https://n8n.example/webhook/send-mail",
        "payload.to",
        "money back",
    ):
        assert said in text


# Each required key that is missing is named, and every kind's faults come in one answer.
def test_required() -> None:
    found = problems("[kinds.a]\n[kinds.b]\n")
    keys = ("gate", "sources", "channel", "reviewers", "effect")
    assert found == [f"kinds.{name}.{key} is required" for name in "ab" for key in keys]


# F020: an approver list that is missing, empty, blank or a text does not load: nobody is meant by accident.
@pytest.mark.parametrize(
    "value", ["", "[]", '""', '" , "', '[""]', '[" , "]', '["*"]', '["U0A", ""]', "true"]
)
def test_reviewers(value: str) -> None:
    assert {key.split("[")[0] for key in faulty_keys(policy_text(reviewers=value))} == {"reviewers"}


# An unknown key is refused wherever it stands, with the nearest one where there is one.
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (policy_text(quorums="1"), "kinds.customer_email.quorums is not a key here: do you mean quorum?"),
        (
            policy_text(expires_after_seconds="3"),
            "kinds.customer_email.expires_after_seconds is not a key here",
        ),
        (policy_text(zebra="3"), "kinds.customer_email.zebra is not a key here: remove it"),
        (policy_text(name='"x"'), "kinds.customer_email.name is not a key"),
        (policy_text(tail="[general]"), "general is not a key here"),
        ("[kind.x]\n", "kind is not a key here"),
        (
            policy_text(tail="[kinds.customer_email.earned]\nfoo=1"),
            "kinds.customer_email.earned.foo is not a key",
        ),
    ],
)
def test_unknown_keys(text: str, problem: str) -> None:
    assert [found for found in problems(text) if found.startswith(problem)]


# A value of the wrong type or size is refused at its key; nothing is coerced.
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gate", '"auto"'),
        ("gate", '["approve_first"]'),
        ("sources", "[]"),
        ("sources", '"n8n"'),
        ("channel", '"#general"'),
        ("channel", '"U0ALICE"'),
        ("channel", "5"),
        ("quorum", "0"),
        ("quorum", "1.0"),
        ("quorum", "true"),
        ("quorum", '"1"'),
        ("separate_duties", '"no"'),
        ("separate_duties", "0"),
        ("expires_after", '"0s"'),
        ("expires_after", "3600"),
        ("expires_after", '"2 days"'),
        ("fresh_for", '"-1h"'),
        ("escalate_to", '"leads"'),
        ("confirm", '"yes"'),
        ("max_open_cards", "0"),
        ("prompt", '" "'),
        ("prompt", '"Hello {name}: {payload}"'),
        ("prompt", '"{payload.text}"'),
        ("model", '""'),
        ("timeout", '"1d"'),
        ("max_tokens", "0"),
        ("daily_tokens", '"many"'),
        ("redrafts", "-1"),
        ("effect", '"http"'),
        ("cancel_window", '"10m"'),
        ("editable", '["recipient"]'),
        ("output", "5"),
    ],
)
def test_wrong_values(key: str, value: str) -> None:
    text = policy_text(**{key: value})
    if key in {"prompt", "output"}:
        text = policy_text().replace('prompt = "Answer: {payload}"', f"{key} = {value}", 1)
        text = text.split("[kinds.customer_email.output]")[0] if key == "output" else text
    assert faulty_keys(text) == {key}


# Entries of lists are named by their place.
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sources", '["n8n", "N8N"]'),
        ("reviewers", '["U0A", "@alice"]'),
        ("qualified", '["U0A", "C0A"]'),
        ("remind_after", '["24h", "soon"]'),
        ("record_hosts", '["a.example", "https://b.example"]'),
        ("record_hosts", '["a.example", "*.b.example"]'),
        ("record_fields", '["payload.x", "text"]'),
    ],
)
def test_list_entries(key: str, value: str) -> None:
    assert faulty_keys(policy_text(**{key: value})) == {f"{key}[1]"}


# The effective policy says what a gate will do, and when it never can.
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (policy_text(gate='"delayed"'), "goes out after 10m unless somebody cancels"),
        (policy_text(gate='"delayed"', cancel_window='"45s"'), "goes out after 45s"),
        (policy_text(gate='"by_exception"'), "without a rule of level allow: a person decides everything"),
        (
            policy_text(gate='"by_exception"', tail=ALLOW),
            "earned by 50 of the last 50 approved unedited",
        ),
        (
            policy_text(gate='"by_exception"', tail=f"{ALLOW}[kinds.customer_email.earned]\ndecisions = 10"),
            "never: 10 decisions prove at most 0.72",
        ),
    ],
)
def test_gates_are_described(text: str, said: str) -> None:
    assert said in describe(load_policy(text).kinds["customer_email"])


# What people judge when they judge a draft is one ground; who judges it and where it goes is no part.
def test_ground() -> None:
    kind = make_kind()
    others = [
        make_kind(prompt="Other: {payload}"),
        make_kind(model="m"),
        make_kind(output={"type": "object"}),
        make_kind(policy_text(tail=ALLOW)),
        make_kind(name="other"),
    ]
    assert len({kind.ground, *(other.ground for other in others)}) == 6
    assert make_kind(reviewers=("U0B",), quorum=2, gate="by_exception").ground == kind.ground
    assert kind.snapshot()["ground"] == kind.ground


# The output is a JSON Schema of an object, whole in itself; a faulty one says where.
@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("{}", 'add type = "object"'),
        ('{ type = "array" }', 'add type = "object"'),
        ('{ type = "objekt" }', "look at output.type"),
        ('{ type = "object", properties = { a = { type = 5 } } }', "look at output.properties.a.type"),
        ('{ type = "object", required = "a" }', "look at output.required"),
        ('{ type = "object", properties = { a = { "$ref" = "https://x.example/s" } } }', 'begins with "#"'),
        ('{ type = "object", default = 2026-01-01 }', "which JSON cannot"),
        ('{ type = "object", default = inf }', "which JSON cannot"),
    ],
)
def test_output(output: str, said: str) -> None:
    text = policy_text().split("[kinds.customer_email.output]")[0] + f"output = {output}\n"
    (problem,) = problems(text)
    assert problem.startswith("kinds.customer_email.output ")
    assert said in problem


# Braces that are no placeholder may stand in a prompt, such as an example in JSON.
def test_braces_in_prompt() -> None:
    text = policy_text().replace('"Answer: {payload}"', "'Like {\"a\": 1} or { x }: {payload}'")
    assert make_kind(text).prompt == 'Like {"a": 1} or { x }: {payload}'


# Rules are held to their level, path, operator and value.
@pytest.mark.parametrize(
    "rule",
    [
        'level = "soft", path = "output.label", op = "equals", value = "x", message = "m"',
        'level = "warn", path = "label", op = "equals", value = "x", message = "m"',
        'level = "warn", path = "output", op = "present", message = "m"',
        'level = "warn", path = "output.lable", op = "equals", value = "x", message = "m"',
        'level = "warn", path = "output.label", op = "is", value = "x", message = "m"',
        'level = "warn", path = "output.label", op = "equals", message = "m"',
        'level = "warn", path = "output.label", op = "equals", value = [1], message = "m"',
        'level = "warn", path = "output.label", op = "in", value = "x", message = "m"',
        'level = "warn", path = "output.label", op = "in", value = [], message = "m"',
        'level = "warn", path = "output.label", op = "min", value = nan, message = "m"',
        'level = "warn", path = "output.label", op = "max", value = "9", message = "m"',
        'level = "warn", path = "output.label", op = "min", value = true, message = "m"',
        'level = "warn", path = "output.label", op = "matches", value = "(", message = "m"',
        'level = "warn", path = "output.label", op = "matches", value = "(?=a)b", message = "m"',
        'level = "warn", path = "output.label", op = "present", value = "x", message = "m"',
        'level = "warn", path = "output.label", op = "equals", value = "x", message = ""',
        'level = "warn", path = "output.label", op = "equals", value = "x"',
        'level = "warn", path = "output.label", op = "equals", value = "x", message = "m", tone = 1',
    ],
)
def test_rules(rule: str) -> None:
    (problem,) = problems(policy_text(rules=f"[{{ {rule} }}]"))
    assert problem.startswith("kinds.customer_email.rules[0]")


# Paths into the payload are free: its shape is upstream's.
def test_payload_rule() -> None:
    rule = '[{ level = "hard", path = "payload.items.0.sku", op = "present", message = "m" }]'
    assert make_kind(policy_text(rules=rule)).rules[0].path == "payload.items.0.sku"


# Names of kinds keep to the contract; a kind with a dot is written in quotes.
@pytest.mark.parametrize("name", ["Customer", '"a b"', "_x", '"a:b"', '""', "k" * 65])
def test_kind_names(name: str) -> None:
    assert len(problems(policy_text().replace("kinds.customer_email", f"kinds.{name}"))) == 1


# A kind with a dot in its name is a kind.
def test_dotted_kind() -> None:
    assert (
        "order.paid" in load_policy(policy_text().replace("kinds.customer_email", 'kinds."order.paid"')).kinds
    )


# A file that is no TOML, or holds no tables, says so instead of raising something else.
@pytest.mark.parametrize(
    "text", ["[kinds", "a = 1\na = 2", "kinds = 5", "[kinds]\nx = 5", "[[kinds]]", "kinds = []"]
)
def test_no_policy(text: str) -> None:
    assert problems(text)


# A file without kinds loads: the last kind may be taken out while its drafts run off.
def test_no_kinds() -> None:
    assert load_policy("").kinds == {}


# Faults never repeat what stands in the file beyond the names of keys.
def test_values_are_not_repeated() -> None:
    text = policy_text(
        effect='{ type = "http", target = "https://user:hunter2@a.example" }', channel='"hunter2"'
    )
    assert "hunter2" not in "\n".join(problems(text))


# Keeping times are set once for all kinds and differently for one.
def test_retention() -> None:
    text = '[retention]\nruns = "30d"\neffects = "60d"\n' + policy_text(
        tail='[kinds.customer_email.retention]\nruns = "7d"'
    )
    kept = make_kind(text).retention
    assert (kept.runs_seconds, kept.effects_seconds, kept.drafts_seconds) == (
        7 * 86400,
        60 * 86400,
        365 * 86400,
    )
    assert problems('[retention]\nruns = "5s"\n' + policy_text()) == [
        "retention.runs must be greater than or equal to 86400"
    ]


# The policy cannot be changed once it is read.
def test_frozen() -> None:
    kind = make_kind()
    with pytest.raises(ValidationError):
        kind.quorum = 0  # type: ignore[misc]
