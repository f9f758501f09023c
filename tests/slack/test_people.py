"""Who a person is: strict reading, a cache younger than a minute, and no answer means nobody."""

import asyncio

import pytest

from bot.demo import slack_faults as fault
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_workspace import (
    ENTERPRISE_USER,
    OTHER_TEAM,
    S_EMPTY,
    S_REVIEWERS,
    TEAM,
    U_ALICE,
    U_BOB,
    U_CAROL,
    U_GONE,
    U_GRID,
    U_GUEST,
    U_ROBOT,
    U_STRANGER,
    U_ULTRA,
)
from bot.slack.client import SlackClient
from bot.slack.people import FRESH_SECONDS, REMEMBERED, People, read_members, read_person
from store import database
from store.errors import NetworkInTransaction


class Clock:
    """Stands still until told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def people(client: SlackClient, clock: Clock) -> People:
    return People(client, clock=clock, look_up_seconds=30)


# Each kind of account is told apart by its flags.
@pytest.mark.parametrize(
    ("user", "team", "flag"),
    [
        (U_GUEST, TEAM, "is_restricted"),
        (U_ULTRA, TEAM, "is_ultra_restricted"),
        (U_STRANGER, OTHER_TEAM, "is_stranger"),
        (U_GONE, TEAM, "deleted"),
        (U_ROBOT, TEAM, "is_bot"),
    ],
)
async def test_kinds_of_account(people: People, user: str, team: str, flag: str) -> None:
    person = await people.person(team, user)
    assert person.known
    assert getattr(person, flag) is True


# A full member has no such flag, and on Grid the organisation's id comes with them.
async def test_full_members(people: People) -> None:
    alice, greta = await people.person(TEAM, U_ALICE), await people.person(TEAM, U_GRID)
    assert alice.known
    flags = ("is_restricted", "is_ultra_restricted", "is_stranger", "deleted", "is_bot")
    assert not any(getattr(alice, flag) for flag in flags)
    assert greta.enterprise_user_id == ENTERPRISE_USER


# The same id in another team is another person: nobody we know.
@pytest.mark.parametrize("team", [OTHER_TEAM, "", None])
async def test_same_id_in_another_team(people: People, team: str | None) -> None:
    assert not (await people.person(team, U_ALICE)).known


# Whatever keeps Slack from answering, the person is unknown, a group unreadable, and it is not remembered.
@pytest.mark.parametrize(
    "trouble",
    [
        fault.limited(),
        fault.server_error(),
        fault.says("internal_error"),
        fault.says("user_not_found"),
        fault.dropped(after_work=True),
        fault.Fault(status=200, body=b"{}"),
        fault.Fault(status=200, body=b'{"ok": true}'),
        fault.Fault(status=200, body=b'{"ok": true, "user": {"id": "U0ALICE"}, "users": "U0ALICE"}'),
    ],
)
async def test_no_answer_means_nobody(slack: SlackStandIn, people: People, trouble: fault.Fault) -> None:
    slack.faults.order("users.info", trouble)
    slack.faults.order("usergroups.users.list", trouble)
    person, groups = await people.look_up(TEAM, U_ALICE, [S_REVIEWERS])
    assert not person.known
    assert groups == {S_REVIEWERS: None}
    assert (slack.journal.count("users.info"), slack.journal.count("usergroups.users.list")) == (1, 1)
    person, groups = await people.look_up(TEAM, U_ALICE, [S_REVIEWERS])
    assert person.known
    assert groups[S_REVIEWERS] is not None


# A look-up that takes too long is given up, and the person is unknown.
async def test_slow_look_up(slack: SlackStandIn, client: SlackClient) -> None:
    slack.faults.order("users.info", fault.hanging())
    person = await People(client, look_up_seconds=0.05).person(TEAM, U_ALICE)
    assert not person.known


# Groups list their members, an empty one nobody, one that does not exist cannot be read.
async def test_groups(people: People) -> None:
    groups = await people.members([S_REVIEWERS, S_EMPTY, "S0NOWHERE"])
    assert groups == {
        S_REVIEWERS: frozenset({U_ALICE, U_BOB, U_CAROL, ENTERPRISE_USER}),
        S_EMPTY: frozenset(),
        "S0NOWHERE": None,
    }


# An answer serves for less than a minute, counted from the question; then Slack is asked again.
async def test_answers_grow_old(slack: SlackStandIn, people: People, clock: Clock) -> None:
    await people.look_up(TEAM, U_ALICE, [S_REVIEWERS])
    clock.now += FRESH_SECONDS - 0.5
    await people.look_up(TEAM, U_ALICE, [S_REVIEWERS])
    assert (slack.journal.count("users.info"), slack.journal.count("usergroups.users.list")) == (1, 1)
    slack.state.workspace.users[U_ALICE].deleted = True
    slack.state.workspace.groups[S_REVIEWERS].remove(U_ALICE)
    clock.now += 0.5
    person, groups = await people.look_up(TEAM, U_ALICE, [S_REVIEWERS])
    assert person.deleted
    assert U_ALICE not in (groups[S_REVIEWERS] or ())


# An answer counts as old as its question: what waited on the wire is not fresher for it.
async def test_age_counts_from_the_question(slack: SlackStandIn, people: People, clock: Clock) -> None:
    slow = slack.faults.order("users.info", fault.hanging())
    asked = asyncio.create_task(people.person(TEAM, U_ALICE))
    await slow.reached.wait()
    clock.now += FRESH_SECONDS
    slow.release.set()
    assert (await asked).known
    await people.person(TEAM, U_ALICE)
    assert slack.journal.count("users.info") == 2


# Look-ups that come together share one call, and one that is cancelled takes none of the others along.
async def test_look_ups_are_shared(slack: SlackStandIn, people: People) -> None:
    slow = slack.faults.order("users.info", fault.hanging())
    asked = [asyncio.create_task(people.person(TEAM, U_ALICE)) for _ in range(10)]
    await slow.reached.wait()
    asked[0].cancel()
    slow.release.set()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert all(getattr(person, "known", False) for person in found[1:])
    assert slack.journal.count("users.info") == 1


# The memory has an end: whoever was unasked longest leaves.
async def test_memory_is_bounded(people: People) -> None:
    async def answer() -> object:
        return object()

    for number in range(REMEMBERED + 50):
        await people._people.get(number, answer)  # type: ignore[arg-type]
    assert len(people._people._known) == REMEMBERED
    assert people._people._running == {}


# Inside a transaction even a remembered answer is refused, so that the mistake always shows.
async def test_not_inside_a_transaction(people: People) -> None:
    await people.person(TEAM, U_ALICE)
    mark = database._in_transaction.set(True)
    try:
        with pytest.raises(NetworkInTransaction):
            await people.person(TEAM, U_ALICE)
        with pytest.raises(NetworkInTransaction):
            await people.members([S_EMPTY])
    finally:
        database._in_transaction.reset(mark)


# A flag that is missing or no boolean makes the whole answer unreadable.
@pytest.mark.parametrize(
    "change",
    [
        {"is_restricted": None},
        {"is_ultra_restricted": "false"},
        {"is_bot": 0},
        {"deleted": "no"},
        {"is_stranger": 1},
        {"id": "U0OTHER"},
        {"team_id": OTHER_TEAM},
    ],
)
def test_strict_reading(change: dict[str, object]) -> None:
    user = {
        "id": U_ALICE,
        "team_id": TEAM,
        "is_restricted": False,
        "is_ultra_restricted": False,
        "is_bot": False,
    }
    assert read_person(TEAM, U_ALICE, {"user": user}) is not None
    assert read_person(TEAM, U_ALICE, {"user": {**user, **change}}) is None


# Members that are no list of ids cannot be read.
@pytest.mark.parametrize("users", [None, "U1", [1], [""], {"U1": True}])
def test_unreadable_members(users: object) -> None:
    assert read_members({"users": users}) is None
