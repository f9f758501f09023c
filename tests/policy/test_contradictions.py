"""Keys that are fine alone and wrong together: each pair is named at the key to mend.
Not here: what one key may be (test_kinds).
"""

import pytest

from bot.policy.kinds import load_policy
from tests.policy.samples import faulty_keys, make_kind, policy_text, problems


# A quorum that the listed people cannot reach is refused; behind a group there may be enough.
@pytest.mark.parametrize(
    ("reviewers", "more", "refused"),
    [
        ('["U0A", "U0B"]', {"quorum": "3"}, {"quorum"}),
        ('["U0A", "U0A"]', {"quorum": "2"}, {"quorum"}),
        ('["U0A", "S0B"]', {"quorum": "3"}, set()),
        ('["U0A", "U0B"]', {"regulated": "true", "qualified": '["U0B"]', "quorum": "2"}, {"quorum"}),
        ('["U0A"]', {"regulated": "true", "qualified": '["U0B"]'}, {"quorum"}),
        ('["U0A", "U0B"]', {"regulated": "true", "qualified": '["S0B"]', "quorum": "2"}, set()),
        ('["U0A"]', {"regulated": "true"}, {"qualified"}),
    ],
)
def test_quorum(reviewers: str, more: dict[str, str], refused: set[str]) -> None:
    text = policy_text(reviewers=reviewers, **more)
    if refused:
        assert faulty_keys(text) == refused
    else:
        assert load_policy(text).kinds


# Each effect type is held to what it needs; what another type has is refused instead of ignored.
@pytest.mark.parametrize(
    ("effect", "refused"),
    [
        ('{ type = "http", target = "http://127.0.0.1:9/x" }', set()),
        ('{ type = "http" }', {"effect.target"}),
        ('{ type = "http", target = "ftp://a.example" }', {"effect.target"}),
        ('{ type = "http", target = "https://u:p@a.example/" }', {"effect.target"}),
        (
            '{ type = "http", target = "https://a.example", lookup = "https://a.example/x" }',
            {"effect.lookup"},
        ),
        ('{ type = "http", target = "https://a.example", lookup = "a/{effect_id}" }', {"effect.lookup"}),
        ('{ type = "http", target = "https://a.example", lookup = "http://a.example/{effect_id}" }', set()),
        ('{ type = "http", target = "https://a.example", recipient = "output.to" }', {"effect.recipient"}),
        ('{ type = "http", target = "https://a.example", recipient = "payload" }', {"effect.recipient"}),
        ('{ type = "http", target = "https://a.example", attempts = 0 }', {"effect.attempts"}),
        ('{ type = "http", target = "https://a.example", timeout = "1h" }', {"effect.timeout"}),
        ('{ type = "http", target = "https://a.example", settle = "0s" }', set()),
        ('{ type = "http", target = "https://a.example", response_id = "a b" }', {"effect.response_id"}),
        ('{ type = "smtp", recipient = "payload.to" }', set()),
        ('{ type = "smtp" }', {"effect.recipient"}),
        ('{ type = "smtp", recipient = "payload.to", idempotent = true }', {"effect.idempotent"}),
        ('{ type = "smtp", recipient = "payload.to", response_id = "id" }', {"effect.response_id"}),
        ('{ type = "slack_message", target = "C0ANY" }', set()),
        ('{ type = "slack_message", recipient = "payload.channel" }', set()),
        ('{ type = "slack_message", target = "#any" }', {"effect.target"}),
        ('{ type = "resume", target = "https://a.example" }', {"effect.type"}),
        ('{ type = "fax", target = "1" }', {"effect.type"}),
        ('{ target = "https://a.example" }', {"effect.type"}),
    ],
)
def test_effects(effect: str, refused: set[str]) -> None:
    text = policy_text(effect=effect)
    if refused:
        assert faulty_keys(text) == refused
    else:
        assert load_policy(text).kinds


MAIL = '{ name = "mail", type = "smtp", recipient = "payload.to" }'
NOTE = '{ name = "note", type = "http", target = "https://crm.example/notes", after = "mail" }'
NAMELESS = '{ type = "http", target = "https://crm.example/notes" }'
ITSELF = '{ name = "note", type = "http", target = "https://crm.example/notes", after = "note" }'
SIX = ", ".join(f'{{ name = "n{n}", type = "http", target = "https://crm.example/{n}" }}' for n in range(6))


# Of several effects each is held to what it needs, and all of them to each other: names, order, targets.
@pytest.mark.parametrize(
    ("effects", "refused"),
    [
        (f"[{MAIL}, {NOTE}]", set()),
        (f"[{MAIL}]", set()),
        (f"[{NOTE}, {MAIL}]", {"effects[0].after"}),
        (f"[{MAIL}, {NOTE.replace('note', 'mail', 1)}]", {"effects[1].name"}),
        (f"[{MAIL}, {NAMELESS}]", {"effects[1].name"}),
        (f"[{MAIL}, {NOTE}, {NOTE.replace('note', 'other', 1)}]", {"effects[2].target"}),
        (f"[{MAIL}, {ITSELF}]", {"effects[1].after"}),
        (f"[{MAIL}, {NOTE.replace('https://crm.example/notes', '')}]", {"effects[1].target"}),
        (f"[{MAIL}, {NOTE.replace('notes', 'a')}, 7]", {"effects[2]"}),
        (f"[{MAIL.replace('mail', 'Mail', 1)}]", {"effects[0].name"}),
        (f"[{MAIL.replace('payload.to', 'output.to')}]", {"effects[0].recipient"}),
        (f"[{SIX}]", {"effects"}),
        ("[]", {"effect"}),
        ('"mail"', {"effects"}),
    ],
)
def test_several_effects(effects: str, refused: set[str]) -> None:
    text = policy_text(effect="", effects=effects)
    if refused:
        assert faulty_keys(text) == refused
    else:
        assert load_policy(text).kinds


# One effect or several: a file that gives both is refused, as is an effect that waits for nothing.
def test_effect_or_effects() -> None:
    assert faulty_keys(policy_text(effects=f"[{MAIL}]")) == {"effects"}
    waiting = '{ type = "http", target = "https://a.example", after = "mail" }'
    assert faulty_keys(policy_text(effect=waiting)) == {"effect.after"}


# What undoes an effect is an effect itself, to a target of its own; a mail or message brings its own words.
@pytest.mark.parametrize(
    ("undo", "refused"),
    [
        ('{ type = "http", target = "https://crm.example/undo" }', set()),
        ('{ type = "http", target = "https://crm.example/notes" }', {"effect.undo.target"}),
        ('{ type = "http", target = "" }', {"effect.undo.target"}),
        ('{ type = "fax", target = "1" }', {"effect.undo.type"}),
        (
            '{ type = "smtp", recipient = "payload.to", output = { subject = "No", body = "Forget it." } }',
            set(),
        ),
        (
            '{ type = "smtp", recipient = "payload.to", output = { subject = "Sorry" } }',
            {"effect.undo.output"},
        ),
        ('{ type = "slack_message", target = "C0ANY" }', {"effect.undo.output"}),
        ('{ type = "slack_message", target = "C0ANY", output = { text = "Undone." } }', set()),
        ('{ type = "http", target = "https://crm.example/undo", undo = {} }', {"effect.undo.undo"}),
        (
            '{ type = "http", target = "https://crm.example/undo", output = { body = 1 } }',
            {"effect.undo.output.body"},
        ),
    ],
)
def test_undo(undo: str, refused: set[str]) -> None:
    text = policy_text(effect=f'{{ type = "http", target = "https://crm.example/notes", undo = {undo} }}')
    if refused:
        assert faulty_keys(text) == refused
    else:
        assert load_policy(text).kinds


# A gate is held to its own keys, and a regulated kind to the one gate where a person always decides.
@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ({"gate": '"delayed"', "cancel_window": '"5m"'}, set()),
        ({"gate": '"delayed"'}, set()),
        ({"gate": '"by_exception"', "earned": "{ decisions = 20, threshold = 0.8, sample = 0.2 }"}, set()),
        ({"gate": '"by_exception"'}, set()),
        ({"gate": '"by_exception"', "cancel_window": '"5m"'}, {"cancel_window"}),
        ({"cancel_window": '"5m"'}, {"cancel_window"}),
        ({"earned": "{}"}, {"earned"}),
        ({"gate": '"delayed"', "earned": "{}"}, {"earned"}),
        ({"gate": '"delayed"', "regulated": "true", "qualified": '["S0B"]'}, {"gate"}),
        ({"gate": '"by_exception"', "regulated": "true", "qualified": '["S0B"]'}, {"gate"}),
        ({"gate": '"by_exception"', "earned": "{ threshold = 1.0 }"}, {"earned.threshold"}),
        ({"gate": '"by_exception"', "earned": "{ threshold = nan }"}, {"earned.threshold"}),
        ({"gate": '"by_exception"', "earned": "{ sample = nan }"}, {"earned.sample"}),
        ({"gate": '"by_exception"', "earned": "{ decisions = 0 }"}, {"earned.decisions"}),
        ({"gate": '"sometimes"'}, {"gate"}),
    ],
)
def test_gates(more: dict[str, str], refused: set[str]) -> None:
    text = policy_text(**more)
    if refused:
        assert faulty_keys(text) == refused
    else:
        assert load_policy(text).kinds


# A new connector's type is known as soon as the caller says so.
def test_new_effect_type() -> None:
    text = policy_text(effect='{ type = "fax", target = "1" }')
    (effect,) = load_policy(text, effect_types=frozenset({"fax"})).kinds["customer_email"].all_effects
    assert effect.type == "fax"


# What smtp sends must be in the output.
def test_smtp_output() -> None:
    text = policy_text(effect='{ type = "smtp", recipient = "payload.to" }').replace("body = {", "text = {")
    assert problems(text) == ['kinds.customer_email.output must have the property "body": smtp sends it']


# A prompt needs an output; without a prompt every event brings its draft, whose schema may still be given.
def test_upstream_drafts() -> None:
    without_output = policy_text().split("[kinds.customer_email.output]")[0]
    assert faulty_keys(without_output) == {"output"}
    neither = without_output.replace('prompt = "Answer: {payload}"', "")
    assert make_kind(neither).drafts_here is False
    assert make_kind(policy_text().replace('prompt = "Answer: {payload}"', "")).output is not None
    assert make_kind().drafts_here is True
