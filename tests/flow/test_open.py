"""Opening: whoever may review gets a view of their own, with tokens that nobody else can use.

Not here: the doors that open it (tests/doors) or its exact blocks (tests/cards).
"""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bot.cards.reading import part_of_action
from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision, Surface, decode_value
from bot.flow.decide import Decided, decide
from bot.flow.open import Opened, Opening, ask, read
from bot.policy.people import Person
from bot.policy.tokens import hash_token
from store.database import Database
from tests.flow.test_decide import HOME, Book, account, click, counters, deciding
from tests.makers import change, make_draft, make_token, rows

LONG = {"subject": "Long", "body": "A long letter. " * 5_000}


class Directory(Book):
    """Accounts and groups as one look-up gives them."""

    async def look_up(
        self, team_id: str | None, user_id: str, group_ids: list[str]
    ) -> tuple[Person, Mapping[str, frozenset[str] | None]]:
        return await self.person(team_id, user_id), await self.members(group_ids)


def opening(db: Database, *people: Person) -> Opening:
    today = SimpleNamespace(reviewers=("U0ALICE", "U0BOB"), regulated=False, qualified=())
    known = people or (account("U0ALICE"), account("U0BOB"), account("U0MALLORY"))
    policy = SimpleNamespace(kinds={"customer_email": today})
    return Opening(db, Directory(*known), policy, lambda: HOME)


def buttons(opened: object) -> dict[str, str]:
    assert isinstance(opened, Opened)
    found = [element for block in opened.view["blocks"] for element in block.get("elements", [])]
    return {one["action_id"]: one["value"] for one in found if one.get("type") == "button"}


def within(view_click: Click, value: str, decision: Decision = Decision.APPROVE, **more: Any) -> Click:
    """A click on a button of a view: it has no channel and no ts."""
    decoded = decode_value(value)
    assert decoded is not None
    clicked = replace(view_click, surface=Surface.VIEW, channel=None, ts=None, decision=decision)
    return replace(clicked, token=decoded.token, revision=decoded.revision, **more)


# A short draft is one part, with Approve and Reject bound to this person's view and to what was read.
async def test_read_a_short_draft(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    opened = await read(opening(db), click(draft, make_token(dsn, draft, "read")))
    assert set(buttons(opened)) == {"stet.approve", "stet.reject", "stet.edit"}
    stored = rows(dsn, "SELECT * FROM approval_tokens WHERE surface = 'view' ORDER BY decision")
    assert [row["decision"] for row in stored] == ["approve", "edit", "reject"]
    assert {row["holder"] for row in stored} == {f"slack:{HOME}:U0ALICE"}
    assert {row["approval_id"] for row in stored} == {draft["approval_id"]}
    assert {row["card_id"] for row in stored} == {None}
    assert len({row["shown_hash"] for row in stored}) == 1


# Approving in the modal decides, and records the hash of the whole draft as it was read.
async def test_approve_in_the_modal(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    first = click(draft, make_token(dsn, draft, "read"))
    opened = await read(opening(db), first)
    answer = await decide(deciding(db), within(first, buttons(opened)["stet.approve"]))
    assert isinstance(answer, Decided)
    assert answer.voted.shown_hash != "0" * 64
    assert counters(dsn) == (1, 1)


# Another reviewer cannot use the tokens of this person's view.
async def test_view_is_one_persons(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    first = click(draft, make_token(dsn, draft, "read"))
    value = buttons(await read(opening(db), first))["stet.approve"]
    answer = await decide(deciding(db), within(first, value, user_id="U0BOB"))
    assert answer == NotDecided(Why.WRONG_SURFACE)
    assert counters(dsn) == (0, 0)


# A long draft turns its pages, and only the last one decides; every page hashes the same whole draft.
async def test_pages_of_a_long_draft(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, body=LONG)
    deps = opening(db)
    first = click(draft, make_token(dsn, draft, "read", shown_hash="a" * 64))
    found = buttons(await read(deps, first))
    assert set(found) == {"stet.read.part.2"}
    pages = 1
    while (following := [one for one in found if (part_of_action(one) or 0) > pages]) and pages < 20:
        pages += 1
        found = buttons(await read(deps, within(first, found[following[0]]), part=pages))
    assert pages > 1
    assert set(found) == {"stet.approve", "stet.reject", "stet.edit", f"stet.read.part.{pages - 1}"}
    hashes = rows(dsn, "SELECT DISTINCT shown_hash FROM approval_tokens WHERE surface = 'view'")
    assert len(hashes) == 1
    assert isinstance(await decide(deciding(db), within(first, found["stet.approve"])), Decided)


# A part number past the end shows the last part.
async def test_part_past_the_end(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    opened = await read(opening(db), click(draft, make_token(dsn, draft, "read")), part=99)
    assert "stet.approve" in buttons(opened)


READABLE = {
    "blocked": "UPDATE draft_heads SET source_version = 18",
    "overdue": "UPDATE drafts SET expires_at = now()",
    "rejected": "UPDATE drafts SET status = 'rejected', approval_id = NULL",
    "expired": "UPDATE drafts SET status = 'expired', approval_id = NULL",
}


# What can no longer be decided can still be read, without buttons.
@pytest.mark.parametrize("case", READABLE)
async def test_read_without_deciding(dsn: str, db: Database, case: str) -> None:
    draft = make_draft(dsn)
    token = make_token(dsn, draft, "read")
    change(dsn, READABLE[case])
    assert buttons(await read(opening(db), click(draft, token))) == {}
    assert not rows(dsn, "SELECT 1 FROM approval_tokens WHERE surface = 'view'")


REFUSALS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a token that was never ours": ("none", {}, Why.UNKNOWN_BUTTON),
    "an approve token": ("approve", {}, Why.WRONG_SURFACE),
    "another channel": ("read", {"channel": "C0OTHER"}, Why.WRONG_SURFACE),
    "another message": ("read", {"ts": "1700000000.999999"}, Why.WRONG_SURFACE),
    "as if from a view": ("read", {"surface": Surface.VIEW}, Why.WRONG_SURFACE),
    "another revision": ("read", {"revision": 2}, Why.NEWER_REVISION),
    "no reviewer": ("read", {"user_id": "U0MALLORY"}, "not_reviewer"),
    "somebody unknown": ("read", {"user_id": "U0NOBODY"}, "unknown"),
    "the same id in another team": ("read", {"team_id": "T0OTHER"}, "unknown"),
}


# Whoever may not review reads nothing, and no token is made for them.
@pytest.mark.parametrize("case", REFUSALS)
async def test_refused_reading(dsn: str, db: Database, case: str) -> None:
    decision, change_, why = REFUSALS[case]
    draft = make_draft(dsn)
    token = "x" * 43 if decision == "none" else make_token(dsn, draft, decision)
    assert await read(opening(db), click(draft, token, **change_)) == NotDecided(why)
    assert not rows(dsn, "SELECT 1 FROM approval_tokens WHERE surface = 'view'")


# An account that is no living full member reads nothing, reviewer or not.
@pytest.mark.parametrize("flag", ["is_restricted", "is_stranger", "deleted", "is_bot"])
async def test_accounts_that_may_not_read(dsn: str, db: Database, flag: str) -> None:
    draft = make_draft(dsn)
    alice = replace(account("U0ALICE"), **{flag: True})  # type: ignore[arg-type]
    deps = opening(db, alice)
    answer = await read(deps, click(draft, make_token(dsn, draft, "read")))
    assert isinstance(answer, NotDecided)


# A kind that is gone from the policy is nobody's to read or decide.
async def test_kind_gone(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    deps = replace(opening(db), policy=SimpleNamespace(kinds={}))
    answer = await read(deps, click(draft, make_token(dsn, draft, "read")))
    assert answer == NotDecided(Why.KIND_GONE)


# A rejection asks for its reason in a view of this person; its answer rejects what the card showed.
async def test_reject_asks_why(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    first = click(draft, make_token(dsn, draft, "reject"), decision=Decision.REJECT)
    opened = await ask(opening(db), first)
    assert isinstance(opened, Opened)
    assert counters(dsn) == (0, 0)
    submitted = within(first, opened.view["private_metadata"], Decision.REJECT, reason="Wrong amount")
    answer = await decide(deciding(db), submitted)
    assert isinstance(answer, Decided)
    row = rows(dsn, "SELECT decision, reason, shown_hash FROM approvals")[0]
    assert row == {"decision": "reject", "reason": "Wrong amount", "shown_hash": "0" * 64}


# Reject in the reading modal asks the same, from that view.
async def test_reject_from_the_modal(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    deps = opening(db)
    first = click(draft, make_token(dsn, draft, "read"))
    value = buttons(await read(deps, first))["stet.reject"]
    opened = await ask(deps, within(first, value, Decision.REJECT))
    assert isinstance(opened, Opened)
    submitted = within(first, opened.view["private_metadata"], Decision.REJECT, reason="No")
    assert isinstance(await decide(deciding(db), submitted), Decided)


# A kind whose approval is typed is asked so, and approved by the entity alone.
async def test_typed_approval(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, snapshot={"confirm": "typed"})
    first = click(draft, make_token(dsn, draft))
    opened = await ask(opening(db), first)
    assert isinstance(opened, Opened)
    value = opened.view["private_metadata"]
    wrong = await decide(deciding(db), within(first, value, typed="customer:43"))
    assert isinstance(wrong, NotDecided)
    assert counters(dsn) == (0, 0)
    right = await decide(deciding(db), within(first, value, typed="customer:42"))
    assert isinstance(right, Decided)


# The requester may read and reject, and is not even asked to type an approval.
async def test_requester(dsn: str, db: Database) -> None:
    draft = make_draft(dsn, run={"inputs": {"requested_by": "U0ALICE"}})
    deps = opening(db)
    assert await ask(deps, click(draft, make_token(dsn, draft))) == NotDecided("requester")
    assert isinstance(await read(deps, click(draft, make_token(dsn, draft, "read"))), Opened)


# What is over is told before anything opens.
@pytest.mark.parametrize(
    ("case", "why"),
    [("blocked", Why.BLOCKED), ("overdue", Why.EXPIRED), ("rejected", Why.SETTLED), ("expired", Why.EXPIRED)],
)
async def test_ask_about_what_is_over(dsn: str, db: Database, case: str, why: str) -> None:
    draft = make_draft(dsn)
    token = make_token(dsn, draft, "reject")
    change(dsn, READABLE[case])
    answer = await ask(opening(db), click(draft, token, decision=Decision.REJECT))
    assert isinstance(answer, NotDecided)
    assert answer.why == why
    assert not rows(dsn, "SELECT 1 FROM approval_tokens WHERE surface = 'view'")


# A token of a view dies with its question, like any other.
async def test_view_dies_with_its_question(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    first = click(draft, make_token(dsn, draft, "read"))
    value = buttons(await read(opening(db), first))["stet.approve"]
    change(dsn, "UPDATE approvals SET ended_at = now(), end_reason = 'superseded'")
    change(dsn, "UPDATE drafts SET approval_id = gen_random_uuid()")
    answer = await decide(deciding(db), within(first, value))
    assert isinstance(answer, NotDecided)
    assert counters(dsn) == (0, 0)


# Only hashes are stored: no token of a view stands in the database.
async def test_only_hashes(dsn: str, db: Database) -> None:
    draft = make_draft(dsn)
    found = buttons(await read(opening(db), click(draft, make_token(dsn, draft, "read"))))
    values = [decode_value(value) for value in found.values()]
    stored = {row["token_hash"] for row in rows(dsn, "SELECT token_hash FROM approval_tokens")}
    assert {hash_token(value.token) for value in values if value} <= stored
    assert not {value.token for value in values if value} & stored
