"""What freezes onto a draft, what may be edited, and what gets into the record.
Not here: how the policy is read (test_kinds).
"""

from pathlib import Path
from typing import Any

import pytest

from bot.policy.effective import describe
from bot.policy.keys import body_hash
from bot.policy.kinds import Kind, Snapshot
from bot.policy.redaction import allowed_fields
from bot.policy.snapshot import effects_of, may_edit, recipients_of
from tests.policy.samples import make_kind, policy_text

EXAMPLE = Path(__file__).parents[2] / "examples" / "policy.toml"


# What freezes onto a draft survives the database and hashes the same whenever the terms are the same.
def test_snapshot() -> None:
    kind = make_kind(EXAMPLE.read_text(encoding="utf-8"))
    row = kind.snapshot()
    snapshot = Snapshot.read(row)
    assert snapshot.as_row() == row
    assert snapshot.effect == kind.effect
    assert (snapshot.reviewers, snapshot.expires_after_seconds) == (kind.reviewers, 48 * 3600)
    assert snapshot.prompt_version == kind.prompt_version
    assert body_hash(row) == body_hash(Snapshot.read(dict(reversed(row.items()))).as_row())


# Every term that a reviewer relies on changes the snapshot's hash.
@pytest.mark.parametrize(
    "change",
    [
        {"quorum": 2},
        {"channel": "C9"},
        {"reviewers": ("U0B",)},
        {"separate_duties": False},
        {"confirm": "typed"},
        {"expires_after_seconds": 5},
        {"fresh_for_seconds": 5},
        {"editable": ()},
        {"record_hosts": ("a.example",)},
        {"regulated": True},
        {"qualified": ("U0B",)},
        {"output": {"type": "object"}},
        {"prompt": "Other: {payload}"},
    ],
)
def test_snapshot_tells_terms_apart(change: dict[str, Any]) -> None:
    assert body_hash(make_kind(**change).snapshot()) != body_hash(make_kind().snapshot())


# A snapshot written by a later version is still read.
def test_snapshot_of_later_version() -> None:
    assert Snapshot.read(make_kind().snapshot() | {"later": 1}).name == "customer_email"


def editable(snapshot: Snapshot, *names: str) -> tuple[str, ...]:
    """Which of these fields a reviewer may change."""
    recipients = recipients_of(snapshot.as_row())
    return tuple(name for name in names if may_edit(name, snapshot.editable, recipients))


# Several effects freeze as several, in their order; where a recipient is said again, no field may be edited.
def test_snapshot_of_several() -> None:
    effects = """[{ name = "mail", type = "smtp", recipient = "payload.to" },
      { name = "note", type = "http", target = "https://crm.example", recipient = "payload.owner",
        after = "mail", undo = { type = "http", target = "https://crm.example/u" } }]"""
    kind = make_kind(policy_text(effect="", effects=effects.replace("\n", "")))
    row = kind.snapshot()
    assert "effect" not in row
    assert [effect["name"] for effect in effects_of(row)] == ["mail", "note"]
    assert Snapshot.read(row).effects == kind.effects
    assert editable(Snapshot.read(row), "body", "to", "owner") == ("body",)
    assert "once mail is delivered" in describe(kind)
    assert "undone by" in describe(kind)


# Without `editable` every field of the draft may be changed, else those named, an empty list meaning none.
@pytest.mark.parametrize(
    ("named", "fields"), [(None, ("subject", "label")), (("subject",), ("subject",)), ((), ())]
)
def test_editable(named: tuple[str, ...] | None, fields: tuple[str, ...]) -> None:
    snapshot = Snapshot.read(make_kind(editable=named).snapshot())
    assert editable(snapshot, "subject", "label") == fields


# Only the fields that the kind allows get into the record.
def test_allowed_fields() -> None:
    kind: Kind = make_kind(record_fields=("payload.ticket.id", "output.label", "payload.none"))
    payload = {"ticket": {"id": 7, "text": "private"}, "to": "amy@example.test"}
    found = allowed_fields(kind, payload=payload, output={"label": "refund", "body": "private"})
    assert found == {"payload.ticket.id": 7, "output.label": "refund"}
    assert allowed_fields(make_kind(), payload=payload, output=None) == {}
