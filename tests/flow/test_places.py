"""Places: at most so many cards of a kind are open in a channel, the others wait behind one queue card.

Not here: the modal that its button opens (test_next) or how it looks (tests/cards).
"""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from bot.contracts.answer import NotDecided, Why
from bot.contracts.click import Decision
from bot.demo import slack_faults as fault
from bot.demo.slack_server import SlackStandIn
from bot.demo.slack_state import Message
from bot.demo.slack_workspace import C_REVIEW
from bot.flow import expire, places
from bot.flow.decide import Decided, decide
from bot.flow.draft import Drafter
from bot.flow.expire import Expiring
from bot.flow.naming import Names
from bot.flow.places import Placing
from bot.flow.show import Shower, Showing
from bot.slack.client import SlackClient
from bot.slack.pace import Pace
from store.database import Database
from tests.flow.screens import POST, NewShower, buttons, hurry, said, seen
from tests.flow.test_decide import click, deciding
from tests.makers import change, make_run, make_token, make_waiting, rows

NEXT = "stet.queue.next"


def placing(db: Database, most: int = 3, **others: int) -> Placing:
    """Kinds with so many places each."""
    limits = {"customer_email": most} | others
    kinds = {name: SimpleNamespace(max_open_cards=limit) for name, limit in limits.items()}
    return Placing(db, SimpleNamespace(kinds=kinds))


async def settle(deps: Placing, shower: Shower, dsn: str) -> None:
    """Both steps, until nothing is left to do; what waits for its turn is made due."""
    while await places.run_once(deps) + await shower.run_once():
        hurry(dsn)
    hurry(dsn)
    while await shower.run_once():
        hurry(dsn)


def queue_card(slack: SlackStandIn) -> Message:
    (card,) = [
        one for one in seen(slack) if one.text.startswith(("More waiting", "*More waiting", "Nothing waits"))
    ]
    return card


def shown(slack: SlackStandIn) -> list[str]:
    """The drafts whose cards people have before them with buttons to decide."""
    cards = [one for one in seen(slack) if "stet.approve" in buttons(one)]
    return sorted(one.text.partition("customer_email:")[2][:4] for one in cards)


def waiting(dsn: str) -> int:
    return int(rows(dsn, "SELECT count(*) AS n FROM cards WHERE waits_until IS NOT NULL")[0]["n"])


# A draft that opens gets its card at once while there are places, and no queue card is seen.
async def test_place_at_once(
    dsn: str,
    db: Database,
    slack: SlackStandIn,
    shower: NewShower,
    drafter_on: Callable[..., Drafter],
) -> None:
    make_run(dsn, inputs={"draft": {"subject": "Hi", "body": "From upstream."}})
    drafter = drafter_on(db)
    await drafter.run_once()
    await drafter.drain()
    one = shower()
    assert await one.run_once() == 0
    assert await places.run_once(placing(db)) == 1
    assert await places.run_once(placing(db)) == 0
    await one.run_once()
    assert len(seen(slack)) == 1
    assert "stet.approve" in buttons(seen(slack)[0])


# Above its places a kind's drafts wait behind one queue card that says how many; who expires first is in.
async def test_others_wait(dsn: str, db: Database, slack: SlackStandIn, shower: NewShower) -> None:
    make_waiting(dsn, 10)
    await settle(placing(db), shower(), dsn)
    assert shown(slack) == ["0000", "0001", "0002"]
    card = queue_card(slack)
    assert "More waiting in this channel: 7." in card.text
    assert set(buttons(card)) == {NEXT}
    assert len(seen(slack)) == 4


# A decided card makes room for the next in line, and the queue card says one fewer by an edit.
async def test_decided_makes_room(dsn: str, db: Database, slack: SlackStandIn, shower: NewShower) -> None:
    made = make_waiting(dsn, 5)
    one = shower()
    await settle(placing(db), one, dsn)
    first = rows(dsn, "SELECT ts FROM cards WHERE draft_id = %(id)s", id=made[0]["draft_id"])[0]["ts"]
    answer = await decide(deciding(db), click(made[0], make_token(dsn, made[0]), ts=first))
    assert not isinstance(answer, NotDecided)
    await settle(placing(db), one, dsn)
    assert shown(slack) == ["0001", "0002", "0003"]
    assert "channel: 1." in queue_card(slack).text
    assert slack.journal.count(POST) == 5


# With the last one let in the queue card says that nothing waits, without a button; an edit brings it back.
async def test_empty_queue(dsn: str, db: Database, slack: SlackStandIn, shower: NewShower) -> None:
    make_waiting(dsn, 4)
    one = shower()
    await settle(placing(db), one, dsn)
    await settle(placing(db, 9), one, dsn)
    card = queue_card(slack)
    assert "Nothing waits" in card.text
    assert not buttons(card)
    change(
        dsn, "UPDATE cards SET ts = NULL, shown_version = 0, waits_until = now() WHERE draft_id IS NOT NULL"
    )
    await settle(placing(db, 1), one, dsn)
    assert queue_card(slack).ts == card.ts
    assert "channel: 3." in queue_card(slack).text


# A waiting draft still expires; it is never posted then, and the number is right again.
async def test_waiting_drafts_expire(dsn: str, db: Database, slack: SlackStandIn, shower: NewShower) -> None:
    make_waiting(dsn, 6)
    one = shower()
    await settle(placing(db), one, dsn)
    change(
        dsn,
        "UPDATE drafts SET expires_at = now() FROM cards AS c"
        " WHERE c.draft_id = drafts.draft_id AND c.waits_until IS NOT NULL"
        " AND entity <> 'customer_email:0005'",
    )
    assert await expire.run_once(Expiring(db)) == 2
    await settle(placing(db), one, dsn)
    assert len(seen(slack)) == 4
    assert "channel: 1." in queue_card(slack).text
    assert rows(dsn, "SELECT count(*) AS n FROM cards WHERE wanted_version > shown_version") == [{"n": 1}]


# A draft decided while it waits gets its card after all: what became of it is seen in the channel.
async def test_decided_while_waiting(dsn: str, db: Database, slack: SlackStandIn, shower: NewShower) -> None:
    made = make_waiting(dsn, 5)
    one = shower()
    await settle(placing(db), one, dsn)
    home: dict[str, Any] = {"surface": "home", "card_id": None, "holder": "slack:T0HOME:U0ALICE"}
    token = make_token(dsn, made[4], "reject", **home)
    pressed = click(
        made[4], token, decision=Decision.REJECT, reason="no", surface="home", channel=None, ts=None
    )
    assert not isinstance(await decide(deciding(db), pressed), NotDecided)
    await settle(placing(db), one, dsn)
    assert [one for one in seen(slack) if "Rejected" in said(one)]
    assert "channel: 1." in queue_card(slack).text
    assert len(shown(slack)) == 3


# Each kind has its own places, and one queue card stands for the channel.
async def test_kinds_share_the_queue_card(
    dsn: str, db: Database, slack: SlackStandIn, shower: NewShower
) -> None:
    make_waiting(dsn, 4)
    make_waiting(dsn, 3, kind="refund")
    await settle(placing(db, 2, refund=1), shower(), dsn)
    assert "channel: 4." in queue_card(slack).text
    assert len(seen(slack)) == 4


# A kind that left the policy has the default number of places: its cards are shown, and expire.
async def test_kind_gone(dsn: str, db: Database) -> None:
    make_waiting(dsn, 2, kind="gone")
    assert await places.run_once(placing(db)) == 2
    assert waiting(dsn) == 0


# A draft that comes back to its reviewers takes its place again.
async def test_withdrawn_takes_its_place(dsn: str, db: Database) -> None:
    made = make_waiting(dsn, 3)
    await places.run_once(placing(db, 1))
    change(
        dsn, "UPDATE drafts SET status = 'approved', approval_id = NULL WHERE entity = 'customer_email:0000'"
    )
    await places.run_once(placing(db, 1))
    assert waiting(dsn) == 1
    change(
        dsn,
        "UPDATE drafts SET status = 'pending', approval_id = %(id)s WHERE entity = 'customer_email:0000'",
        id=made[0]["approval_id"],
    )
    assert await places.run_once(placing(db, 2)) == 0
    assert waiting(dsn) == 1


# Two processes never give the same place away.
async def test_two_processes(dsn: str, db: Database) -> None:
    make_waiting(dsn, 20)
    for _ in range(5):
        await asyncio.gather(*(places.run_once(placing(db)) for _ in range(4)))
    assert waiting(dsn) == 17


# A lost answer to the queue card's post is looked for: there is never a second one in a channel.
async def test_one_queue_card(dsn: str, db: Database, slack: SlackStandIn, shower: NewShower) -> None:
    make_waiting(dsn, 2)
    one = shower()
    await places.run_once(placing(db, 1))
    await one.run_once()
    hurry(dsn)
    slack.state.messages[C_REVIEW].clear()
    change(dsn, "UPDATE cards SET ts = NULL, shown_version = 0, queue_count = 5 WHERE queue_of IS NOT NULL")
    slack.faults.order(POST, fault.dropped(after_work=True))
    for _ in range(4):
        await places.run_once(placing(db, 1))
        await one.run_once()
        hurry(dsn)
    assert len(seen(slack)) == 1
    assert "channel: 1." in queue_card(slack).text


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


# A burst under Slack's real limits, kept to the last call: never more cards are open than there are places,
# and one queue card; while people decide the next ones come at Slack's pace, and no draft has a second card.
async def test_burst(dsn: str, db: Database) -> None:
    made = {one["draft_id"]: one for one in make_waiting(dsn, 1_000)}
    clock, deps = Clock(), placing(db, 30)
    decided: set[Any] = set()
    async with SlackStandIn(monotonic=clock) as slack:
        client = SlackClient(slack.state.workspace.token, base_url=slack.api_url, deadline_seconds=30)
        pace = Pace()
        names = Names(client, pace, clock=clock)
        one = Shower(Showing(db, "one", client, pace, names, actions_enabled=True, clock=clock))
        for turn in range(100):
            clock.now += 1.0
            hurry(dsn)
            await places.run_once(deps)
            await one.run_once()
            assert len(shown(slack)) <= 30
            if turn % 55 == 40:
                first = f"{len(decided):04}"
                assert shown(slack) == [f"{int(first) + number:04}" for number in range(30)]
                await decide_all(dsn, db, made, decided)
        await client.close()
        assert not [call for call in slack.journal.calls if call.outcome != "ok"]
        posted = rows(dsn, "SELECT count(*) AS n FROM cards WHERE ts IS NOT NULL")[0]["n"]
        assert posted == slack.journal.count(POST) == len(seen(slack))
        assert len(decided) < posted <= len(decided) + 31
        left = rows(dsn, "SELECT queue_count FROM cards WHERE queue_of IS NOT NULL")[0]["queue_count"]
        assert left == 1_000 - 30 - len(decided) == waiting(dsn)


async def decide_all(dsn: str, db: Database, made: dict[Any, dict[str, Any]], decided: set[Any]) -> None:
    """Approve every card that is open."""
    for row in rows(dsn, "SELECT draft_id, ts FROM cards WHERE draft_id IS NOT NULL AND ts IS NOT NULL"):
        draft = made[row["draft_id"]]
        if row["draft_id"] not in decided:
            press = click(draft, make_token(dsn, draft), ts=row["ts"])
            answer = await decide(deciding(db), press)
            while answer == NotDecided(Why.TOO_SLOW):  # On a busy machine, and said before anything was done.
                answer = await decide(deciding(db), press)
            assert isinstance(answer, Decided)
            decided.add(row["draft_id"])
