"""The command that tries a policy on past decisions: what would have gone out alone, and against people.

Not here: the gates themselves (tests/gates).
"""

from pathlib import Path
from typing import Any

import pytest

from bot import __main__ as program
from bot import replay
from bot.policy.kinds import Policy, load_policy
from bot.registry import find_gates
from bot.replay import Outcome, replay_policy, report
from store.database import Database
from store.ids import new_id
from tests.flow.conftest import POLICY
from tests.flow.test_by_exception import TERMS
from tests.makers import change, insert_vote, make_draft

GATES = {name: module.judge for name, module in find_gates().items()}
BODY = {"subject": "Hi", "body": "CONTENT", "label": "shipping"}


def with_gate(gate: str, more: str = "") -> Policy:
    return load_policy(POLICY.replace('gate = "approve_first"', f'gate = "{gate}"') + more)


def decided(
    dsn: str,
    *,
    decision: str = "approve",
    days_ago: float = 1.0,
    body: dict[str, Any] | None = None,
    edited: bool = False,
) -> str:
    """A draft that opened and was decided so long ago; gives its key."""
    statuses = {"approve": "sent", "reject": "rejected"}
    draft = make_draft(
        dsn, status=statuses[decision], body=body or BODY, run={"entity": f"customer:{new_id()}"}
    )
    approval = insert_vote(dsn, draft, subject="slack:T0HOME:U0ALICE", decision=decision)
    ago = {"id": draft["draft_id"], "approval": approval, "days": days_ago}
    if edited:
        change(
            dsn,
            "INSERT INTO revisions (draft_id, revision, run_id, body, body_hash, author)"
            " SELECT draft_id, 2, run_id, body, 'h', 'slack:T0HOME:U0CAROL' FROM revisions"
            " WHERE draft_id = %(id)s",
            **ago,
        )
        change(dsn, "UPDATE approvals SET revision = 2 WHERE approval_id = %(approval)s", **ago)
    change(
        dsn,
        "UPDATE revisions SET created_at = now() - %(days)s * interval '1 day' WHERE draft_id = %(id)s",
        **ago,
    )
    change(
        dsn,
        "UPDATE approvals SET consumed_at = now() - %(days)s * interval '1 day' + interval '1 minute'"
        " WHERE approval_id = %(approval)s",
        **ago,
    )
    return str(draft["key"])


# With `delayed` all would have gone out that nothing warned of; what people changed is told by its key.
async def test_delayed(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "QUESTIONS_AT_ONCE", 2)
    decided(dsn)
    rejected = decided(dsn, decision="reject", days_ago=2)
    edited = decided(dsn, edited=True, days_ago=1.5)
    decided(dsn, body=BODY | {"label": "refund"})
    decided(dsn, body=BODY | {"body": "a\u202eb"})
    decided(dsn, days_ago=40)
    outcomes = await replay_policy(dsn, with_gate("delayed"), GATES, 30)
    assert outcomes == {"customer_email": Outcome(judged=5, alone=3, changed=[rejected, edited])}


# With `by_exception` only what came after enough agreement would have gone out, as it stood at each opening.
async def test_by_exception(dsn: str) -> None:
    for number in range(20):
        decided(dsn, days_ago=50 - number)
    decided(dsn, days_ago=5)
    wrong = decided(dsn, decision="reject", days_ago=4)
    decided(dsn, days_ago=3)
    outcomes = await replay_policy(dsn, with_gate("by_exception", TERMS), GATES, 30)
    assert outcomes == {"customer_email": Outcome(judged=3, alone=2, changed=[wrong])}


# What was erased is told apart and went nowhere; a policy without kinds has nothing to say.
async def test_what_cannot_be_judged(dsn: str) -> None:
    decided(dsn)
    change(dsn, "UPDATE revisions SET body = NULL, erased_at = now()")
    for gate, erased in (("approve_first", 1), ("delayed", 1)):
        outcomes = await replay_policy(dsn, with_gate(gate), GATES, 30)
        assert outcomes == {"customer_email": Outcome(judged=1, erased=erased)}
    assert await replay_policy(dsn, load_policy(""), GATES, 30) == {}


# What gates let through themselves is no judgement of people.
async def test_only_people_count(dsn: str, db: Database) -> None:
    decided(dsn)
    change(dsn, "UPDATE approvals SET approver_subject = 'gate:delayed' WHERE decision IS NOT NULL")
    outcomes = await replay_policy(dsn, with_gate("delayed"), GATES, 30)
    assert outcomes == {"customer_email": Outcome()}
    assert db is not None


# The report says figures and keys, never content.
def test_report() -> None:
    said: list[str] = []
    outcome = Outcome(judged=9, erased=1, alone=3, changed=["n8n:customer_email:7"])
    report({"customer_email": outcome}, 30, said.append)
    assert said == [
        "customer_email: 9 decisions in 30 days",
        "  1 cannot be judged any more: their content was removed",
        "  would have gone out without approval: 3",
        "  of those edited, rejected or cancelled by people: 1",
        "    n8n:customer_email:7",
    ]


# The command reads the file, then the database; days that are none are refused in a sentence.
def test_command(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY.replace('gate = "approve_first"', 'gate = "delayed"'), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", dsn)
    decided(dsn)
    assert program.main(["policy", "replay", str(file), "--days", "7"]) == 0
    printed = capsys.readouterr().out
    assert "customer_email: 1 decisions in 7 days\n  would have gone out without approval: 1\n" in printed
    assert "CONTENT" not in printed
    for days in ("0", "-1", "x", "99999", "1.5", ""):
        with pytest.raises(SystemExit):
            program.main(["policy", "replay", str(file), "--days", days])
