"""Who may decide: only a known, living, full member who is listed then and now, and apart from the cause.
Not here: where facts about people come from.
"""

from dataclasses import replace

import pytest

from bot.policy.people import (
    Allowed,
    NotAllowed,
    Person,
    check_account,
    check_qualified,
    check_separation,
    find_member,
    is_requester,
    may_review,
    subject,
)

ALICE = Person(
    team_id="T1",
    user_id="U1",
    enterprise_user_id=None,
    is_restricted=False,
    is_ultra_restricted=False,
    is_stranger=False,
    deleted=False,
    is_bot=False,
    known=True,
)
GROUPS: dict[str, frozenset[str] | None] = {
    "S1": frozenset({"U1", "U2"}),
    "S2": frozenset(),
    "SLOST": None,
    "SGRID": frozenset({"W9"}),
}


def judge(person: Person, then: list[str], now: list[str]) -> Allowed | NotAllowed:
    return may_review(person, home_team="T1", reviewers_then=then, reviewers_now=now, groups=GROUPS)


# Whoever is not a known full member of the team is refused, reviewer or not, and told apart why.
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"known": False}, "unknown"),
        ({"deleted": True}, "deactivated"),
        ({"is_bot": True}, "bot"),
        ({"is_stranger": True}, "stranger"),
        ({"is_stranger": True, "known": False}, "stranger"),
        ({"team_id": "T2"}, "stranger"),
        ({"team_id": ""}, "stranger"),
        ({"is_restricted": True}, "guest"),
        ({"is_ultra_restricted": True}, "guest"),
    ],
)
def test_accounts(change: dict[str, object], reason: str) -> None:
    person = replace(ALICE, **change)  # type: ignore[arg-type]
    assert judge(person, ["U1"], ["U1"]) == NotAllowed(reason)
    assert check_account(person, home_team="T1") == NotAllowed(reason)


# Without a home team to compare with, nobody belongs to it.
def test_no_home_team() -> None:
    person = replace(ALICE, team_id="")
    assert check_account(person, home_team="") == NotAllowed("stranger")


# A reviewer counts by their own id or through a group, in the snapshot and today; today's entry is named.
@pytest.mark.parametrize(
    ("then", "now", "answer"),
    [
        (["U1"], ["U1"], Allowed("U1")),
        (["S1"], ["U1"], Allowed("U1")),
        (["U1"], ["S2", "S1"], Allowed("S1")),
        (["S1", "U1"], ["S1", "U1"], Allowed("U1")),
        (["U2"], ["U1"], NotAllowed("not_reviewer")),
        (["U1"], ["U2"], NotAllowed("not_reviewer")),
        ([], [], NotAllowed("not_reviewer")),
        (["U1"], [], NotAllowed("not_reviewer")),
        (["S2"], ["S1"], NotAllowed("not_reviewer")),
        (["SLOST"], ["U1"], NotAllowed("group_unreadable")),
        (["U1"], ["SLOST"], NotAllowed("group_unreadable")),
        (["S404"], ["U1"], NotAllowed("group_unreadable")),
        (["SLOST", "U1"], ["SLOST", "S1"], Allowed("S1")),
        (["U"], ["U11"], NotAllowed("not_reviewer")),
    ],
)
def test_reviewers(then: list[str], now: list[str], answer: Allowed | NotAllowed) -> None:
    assert judge(ALICE, then, now) == answer


# On Enterprise Grid the organisation-wide id counts, in lists and in groups.
@pytest.mark.parametrize("entry", ["W9", "SGRID"])
def test_grid(entry: str) -> None:
    assert judge(replace(ALICE, enterprise_user_id="W9"), [entry], [entry]) == Allowed(entry)
    assert judge(ALICE, [entry], [entry]) == NotAllowed("not_reviewer")


# On a regulated kind only the qualified count, and an empty list is nobody.
def test_qualified() -> None:
    assert check_qualified(ALICE, ["S1"], groups=GROUPS) == Allowed("S1")
    assert check_qualified(ALICE, [], groups=GROUPS) == NotAllowed("not_qualified")
    assert check_qualified(ALICE, ["SLOST"], groups=GROUPS) == NotAllowed("group_unreadable")
    assert find_member(ALICE, ["U2"], groups={}) == NotAllowed("not_reviewer")


# A bare Slack id is that user in any team, a whole subject is exact, other text is nobody.
@pytest.mark.parametrize(
    ("requested_by", "is_alice"),
    [
        ("U1", True),
        ("slack:T1:U1", True),
        ("slack:T2:U1", False),
        ("U11", False),
        ("u1", False),
        ("<@U1>", False),
        ("Alice", False),
        ("slack::U1", False),
        ("", False),
        (None, False),
        ("T1:U1", False),
        ("slack:T1:U1 ", False),
    ],
)
def test_requester(requested_by: str | None, is_alice: bool) -> None:
    assert is_requester(ALICE, requested_by) is is_alice
    expected = NotAllowed("requester") if is_alice else None
    assert check_separation(ALICE, requested_by=requested_by, editors=()) == expected


# Whoever edited last may not approve; somebody else's edit bars nobody else.
def test_editor() -> None:
    assert check_separation(ALICE, requested_by=None, editors=["slack:T1:U1"]) == NotAllowed("editor")
    assert check_separation(ALICE, requested_by="U2", editors=["slack:T1:U2", "slack:T2:U1"]) is None


# One person with two ids cannot cause with one and approve with the other.
def test_two_ids() -> None:
    person = replace(ALICE, enterprise_user_id="W9")
    assert check_separation(person, requested_by="W9", editors=()) == NotAllowed("requester")
    assert check_separation(person, requested_by=None, editors=["slack:T1:W9"]) == NotAllowed("editor")


# The record names a person by their own team.
def test_subject() -> None:
    assert subject(replace(ALICE, team_id="T7")) == "slack:T7:U1"
