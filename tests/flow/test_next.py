"""The next in line: whoever may decide gets the draft that expires first, in a view of their own.

Not here: who gets a card instead (test_places) or the doors (tests/doors).
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bot.contracts.answer import Click, NotDecided, Why
from bot.contracts.click import Decision, Surface, decode_value
from bot.flow.decide import Decided, decide
from bot.flow.next import Wanted, open_next
from bot.flow.open import Opened, Opening, read
from bot.policy.people import Bar
from store.database import Database
from tests.flow.test_decide import HOME, account, counters, deciding
from tests.flow.test_open import Directory, buttons, opening
from tests.makers import change, make_waiting, rows

CHANNEL = "C0REVIEW"
ALICE = Wanted(HOME, "U0ALICE", CHANNEL)


def entity(opened: object) -> str:
    """Which draft stands in the modal."""
    assert isinstance(opened, Opened)
    return str(opened.view["blocks"][0]).partition("customer_email:")[2][:4]


def within(opened: object, action: str, decision: Decision = Decision.APPROVE, **more: Any) -> Click:
    """A click of Alice's on a button of the modal."""
    value = decode_value(buttons(opened)[action])
    assert value is not None
    facts: dict[str, Any] = {"team_id": HOME, "user_id": "U0ALICE", "surface": Surface.VIEW}
    return Click(token=value.token, revision=value.revision, decision=decision, **(facts | more))


def pass_over(opened: object, **more: Any) -> Wanted:
    """The click on Skip."""
    clicked = within(opened, "stet.queue.next", **more)
    return Wanted(clicked.team_id, clicked.user_id, None, clicked)


def two_kinds(db: Database) -> Opening:
    deps = opening(db)
    today = deps.policy.kinds["customer_email"]
    return replace(deps, policy=SimpleNamespace(kinds={"customer_email": today, "refund": today}))


# The first in line is the one that expires first; approved there, what was read is on the record.
async def test_first_in_line(dsn: str, db: Database) -> None:
    make_waiting(dsn, 3)
    opened = await open_next(opening(db), ALICE)
    assert entity(opened) == "0000"
    assert set(buttons(opened)) == {"stet.approve", "stet.reject", "stet.edit", "stet.queue.next"}
    stored = rows(dsn, "SELECT DISTINCT surface, holder FROM approval_tokens")
    assert stored == [{"surface": "view", "holder": f"slack:{HOME}:U0ALICE"}]
    answer = await decide(deciding(db), within(opened, "stet.approve"))
    assert isinstance(answer, Decided)
    assert answer.voted.shown_hash != "0" * 64
    assert counters(dsn) == (1, 1)
    assert entity(await open_next(opening(db), ALICE)) == "0001"


# Passing over shows the one behind it; after the last there is nothing, and the next click begins in front.
async def test_passing_over(dsn: str, db: Database) -> None:
    make_waiting(dsn, 3)
    deps = opening(db)
    opened = await open_next(deps, ALICE)
    for expected in ("0001", "0002"):
        opened = await open_next(deps, pass_over(opened))
        assert entity(opened) == expected
    assert await open_next(deps, pass_over(opened)) == NotDecided(Why.NONE_WAITING)
    assert entity(await open_next(deps, ALICE)) == "0000"


# The modal is one person's: nobody else passes over or decides by its buttons.
async def test_view_is_one_persons(dsn: str, db: Database) -> None:
    make_waiting(dsn, 2)
    opened = await open_next(opening(db), ALICE)
    assert await open_next(opening(db), pass_over(opened, user_id="U0BOB")) == NotDecided(Why.UNKNOWN_BUTTON)
    answer = await decide(deciding(db), within(opened, "stet.approve", user_id="U0BOB"))
    assert answer == NotDecided(Why.WRONG_SURFACE)
    assert counters(dsn) == (0, 0)


# Whoever may not review gets nothing to see, and hears why.
@pytest.mark.parametrize(
    ("user", "flags", "why"),
    [
        ("U0MALLORY", {}, Bar.NOT_REVIEWER),
        ("U0ALICE", {"is_restricted": True}, Bar.GUEST),
        ("U0ALICE", {"is_stranger": True}, Bar.STRANGER),
        ("U0ALICE", {"deleted": True}, Bar.DEACTIVATED),
        ("U0NOBODY", {"known": False}, Bar.UNKNOWN),
    ],
)
async def test_strangers(dsn: str, db: Database, user: str, flags: dict[str, bool], why: Bar) -> None:
    make_waiting(dsn, 1)
    deps = opening(db, account(user, HOME, **flags))
    assert await open_next(deps, Wanted(HOME, user, CHANNEL)) == NotDecided(why)
    assert rows(dsn, "SELECT * FROM approval_tokens") == []


# A draft whose own reviewers were others is passed over.
async def test_reviewers_of_then(dsn: str, db: Database) -> None:
    make_waiting(dsn, 1, kind="refund", snapshot={"reviewers": ["U0BOB"]}, first_expires_in_seconds=100)
    make_waiting(dsn, 1)
    assert entity(await open_next(two_kinds(db), ALICE)) == "0000"


# What cannot be decided by this person now does not stand in their line.
@pytest.mark.parametrize("state", ["voted", "blocked", "overdue", "redrafting", "has a place", "elsewhere"])
async def test_left_out(dsn: str, db: Database, state: str) -> None:
    make_waiting(dsn, 1)
    how: dict[str, Any] = {
        "voted": "INSERT INTO votes (approval_id, subject, decision, counted_as, shown_hash)"
        " SELECT approval_id, 'slack:T0HOME:U0ALICE', 'approve', 'user:U0ALICE', '' FROM drafts",
        "blocked": "UPDATE draft_heads SET source_version = 99",
        "overdue": "UPDATE drafts SET expires_at = now()",
        "redrafting": "INSERT INTO redrafts (redraft_id, draft_id, revision, requested_by)"
        " SELECT gen_random_uuid(), draft_id, 1, 'slack:T0HOME:U0BOB' FROM drafts",
        "has a place": "UPDATE cards SET waits_until = NULL",
        "elsewhere": "UPDATE cards SET channel = 'C0OTHER'",
    }
    change(dsn, how[state])
    assert await open_next(opening(db), ALICE) == NotDecided(Why.NONE_WAITING)


# The kinds of one channel stand in one line, by expiry.
async def test_kinds_in_one_line(dsn: str, db: Database) -> None:
    make_waiting(dsn, 1, first_expires_in_seconds=500)
    make_waiting(dsn, 1, kind="refund", first_expires_in_seconds=400)
    both = two_kinds(db)
    opened = await open_next(both, ALICE)
    assert isinstance(opened, Opened)
    assert "refund:0000" in str(opened.view["blocks"][0])
    assert entity(await open_next(both, pass_over(opened))) == "0000"


# A group that cannot be read lets nobody in.
async def test_unreadable_group(dsn: str, db: Database) -> None:
    make_waiting(dsn, 1)
    today = SimpleNamespace(reviewers=("S0GONE",), regulated=False, qualified=())
    policy = SimpleNamespace(kinds={"customer_email": today})
    deps = Opening(db, Directory(account("U0ALICE")), policy, lambda: HOME)
    assert await open_next(deps, ALICE) == NotDecided(Bar.GROUP_UNREADABLE)


# A long draft turns its pages as any other, and is decided on the last one.
async def test_long_draft(dsn: str, db: Database) -> None:
    make_waiting(dsn, 1)
    change(
        dsn,
        "UPDATE revisions SET body = jsonb_build_object('body', repeat('A letter. ', 8000))",
    )
    opened = await open_next(opening(db), ALICE)
    assert set(buttons(opened)) == {"stet.read.part.2", "stet.queue.next"}
    last = await read(opening(db), within(opened, "stet.read.part.2"), part=99)
    assert "stet.approve" in buttons(last)


# With the database away the person hears so.
async def test_database_away(db: Database) -> None:
    await db.close()
    assert await open_next(opening(db), ALICE) == NotDecided(Why.AWAY)
