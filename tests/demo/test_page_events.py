"""The sample events and the demo's policy, read by the product's own code. Not here: sending them."""

import json
from typing import Any

import pytest

from bot.contracts.event import read_event
from bot.demo.events import BUTTONS, SOURCE, Desk, key_of
from bot.demo.stage import POLICY, Addresses, Secrets, environment, language_in, write_policy
from bot.policy.keys import idempotency_key, payload_hash
from bot.policy.kinds import load_policy
from bot.settings import Settings


def read(event: dict[str, Any]) -> Any:
    return read_event(json.dumps(event).encode(), source=SOURCE, header_key=None)


# Whatever a button sends is an event that the product takes, of a kind that the demo's policy has.
@pytest.mark.parametrize("button", BUTTONS)
def test_every_button_makes_a_valid_event(button: str) -> None:
    policy = load_policy(POLICY.read_text(encoding="utf-8"))
    desk = Desk(resume_base="http://127.0.0.1:4000/webhook-waiting/")
    desk.make("ticket")
    event = desk.make(button)
    assert read(event).kind in policy.kinds
    assert idempotency_key(read(event)) == key_of(event)


# "Same again" is the same in key and hash, "conflict" only in its key.
def test_again_is_a_duplicate_and_conflict_is_none() -> None:
    desk = Desk()
    first, again, conflict = (read(desk.make(each)) for each in ("ticket", "again", "conflict"))
    assert idempotency_key(first) == idempotency_key(again) == idempotency_key(conflict)
    assert payload_hash(first) == payload_hash(again) != payload_hash(conflict)


# "Newer" and "older" are about the same entity, under keys of their own, on either side of its version.
def test_versions_go_up_and_down() -> None:
    desk = Desk()
    first, newer, older = (read(desk.make(each)) for each in ("ticket", "newer", "older"))
    assert first.entity == newer.entity == older.entity
    assert len({first.event_key, newer.event_key, older.event_key}) == 3
    assert older.source_version < newer.source_version
    assert newer.source_version > first.source_version


# Conflict and an older event leave the desk as it was: "same again" still repeats the last good event.
def test_bad_events_are_not_remembered() -> None:
    desk = Desk()
    first = desk.make("ticket")
    desk.make("conflict")
    desk.make("older")
    assert desk.make("again") == first


# What one button made is not changed by the next.
def test_events_are_copies() -> None:
    desk = Desk()
    first = desk.make("ticket")
    text = first["payload"]["text"]
    desk.make("newer")
    assert first["payload"]["text"] == text


# What upstream writes itself comes with a draft each time, and another one with each version.
@pytest.mark.parametrize("button", ["notice", "note"])
def test_no_version_lacks_a_draft(button: str) -> None:
    desk = Desk()
    drafts = [desk.make(each)["draft"] for each in (button, "newer", "older")]
    assert len({json.dumps(draft) for draft in drafts}) == 3


# The upstream draft is one that the kind's own schema takes.
def test_the_upstream_draft_fits() -> None:
    kind = load_policy(POLICY.read_text(encoding="utf-8")).kinds["customer_email"]
    draft = Desk().make("draft")["draft"]
    assert kind.output is not None
    assert set(draft) == set(kind.output["properties"])


# The environment of the demo is one that the settings take whole.
def test_the_settings_are_complete(tmp_path: Any) -> None:
    addresses = Addresses("http://127.0.0.1:1/api/", "http://127.0.0.1:2/v1", "http://127.0.0.1:3")
    made = environment(addresses, Secrets(), ("xoxb-x", "s" * 32), folder=tmp_path, port=3000)
    settings = Settings.load(made, env_file=tmp_path / ".env")
    assert settings.ai_actions_enabled
    assert settings.effect_allowed_hosts == "127.0.0.1:3"


# The policy that is written aims at the pretend world alone.
def test_the_policy_aims_at_the_world(tmp_path: Any) -> None:
    policy = load_policy(write_policy("http://127.0.0.1:3", tmp_path).read_text(encoding="utf-8"))
    effects = [effect for kind in policy.kinds.values() for effect in kind.all_effects]
    assert {effect.type for effect in effects} == {"http", "smtp", "slack_message"}
    assert {effect.target for effect in effects if effect.type == "http"} == {
        "http://127.0.0.1:3/webhook/send-mail",
        "http://127.0.0.1:3/webhook/refund",
        "http://127.0.0.1:3/webhook/crm-note",
    }


# The demo speaks one of our languages if it is asked to; what a system sets for other programs is no request.
@pytest.mark.parametrize(
    ("asked", "spoken"), [("zh-CN", "zh-CN"), ("en_GB:en", None), ("", None), (None, None)]
)
def test_language(asked: str | None, spoken: str | None) -> None:
    environ = {} if asked is None else {"LANGUAGE": asked}
    assert language_in(environ).get("LANGUAGE") == spoken
