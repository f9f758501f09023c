"""Targets that fail rest after so many failures in a row; one trial at a time finds out when they are well.

Not here: how several processes share a trial (tests/race), or what people are told (test_news).
"""

from typing import Any

import pytest

from bot.contracts.outcome import NotSent, Refused, SendOutcome, Sent, Unknown
from store.database import Database
from tests import makers
from tests.flow.outlets import Scripted, dispatch, dispatcher, effect_row, make_due

RESTED = "UPDATE targets SET rests_until = now() - interval '1 second'"


def target(dsn: str) -> dict[str, Any]:
    found = makers.rows(
        dsn, "SELECT *, extract(epoch FROM rests_until - clock_timestamp())::float AS seconds FROM targets"
    )
    return found[0] if found else {"failures": 0, "opened_at": None}


# Failures in a row prove that nothing was sent, or that it may have been; a refusal of one effect ends the
# row, and our own faults say nothing of the target.
@pytest.mark.parametrize(
    ("answers", "failures"),
    [
        ([NotSent("connection_refused"), NotSent("http_429"), Unknown("http_500"), Unknown("timeout")], 4),
        ([NotSent("dns_failed"), Sent(None), NotSent("dns_failed")], 1),
        ([NotSent("dns_failed"), Refused("http_400")], 0),
        ([NotSent("dns_failed"), *(kind("x", asked=False) for kind in (NotSent, Refused, Unknown))], 1),
    ],
)
async def test_in_a_row(db: Database, dsn: str, answers: list[SendOutcome], failures: int) -> None:
    for answer in answers:
        makers.change(dsn, "UPDATE effect_outbox SET next_attempt_at = now() + interval '1 hour'")
        makers.make_effects(dsn, 1)
        await dispatch(db, Scripted(answer))
    assert (target(dsn)["failures"], target(dsn)["opened_at"]) == (failures, None)


# At the bound the target rests: nothing of it is claimed, nothing of it counts, other targets go on.
async def test_opens(db: Database, dsn: str) -> None:
    makers.limit(dsn, breaker_after=3)
    makers.make_effects(dsn, 6)
    sink = Scripted(NotSent("connection_refused"))
    for _ in range(3):
        await dispatch(db, sink)
        make_due(dsn)
    assert len(sink.calls) == 6  # they were under way together
    assert 25 < target(dsn)["seconds"] <= 30
    makers.make_effects(dsn, 1, effect={"target": "https://other.example"})
    other = Scripted()
    await dispatch(db, other)
    assert [call.target for call in other.calls] == ["https://other.example"]
    assert len(sink.calls) == 6


# While it rests nothing fails and no attempt is used up: not by what was under way, and not by trials.
@pytest.mark.parametrize("answer", [NotSent("http_503"), NotSent("http_429", 0.0)])
async def test_uses_up_no_attempts(db: Database, dsn: str, answer: SendOutcome) -> None:
    makers.limit(dsn, breaker_after=2)
    made = makers.make_effects(dsn, 2, effect={"attempts": 1})
    sink = Scripted(answer)
    for _ in range(6):
        await dispatch(db, sink)
        make_due(dsn)
        makers.change(dsn, RESTED)
    rows = [effect_row(dsn, each) for each in made]
    assert len(sink.calls) == 2 + 5
    assert {(row["state"], row["attempts"]) for row in rows} == {("pending", 0)}
    sink.answer = Sent(None)
    await dispatch(db, sink)
    await dispatch(db, sink)
    assert {effect_row(dsn, each)["state"] for each in made} == {"completed"}


# What may be repeated is repeated past its attempts while the target rests; what may not is unknown, as ever.
@pytest.mark.parametrize(("repeats", "state"), [(True, "pending"), (False, "unknown")])
async def test_ambiguous_while_resting(db: Database, dsn: str, repeats: bool, state: str) -> None:
    makers.limit(dsn, breaker_after=1)
    (made,) = makers.make_effects(dsn, 1, effect={"attempts": 1})
    await dispatch(db, Scripted(Unknown("timeout"), repeats=repeats))
    assert effect_row(dsn, made)["state"] == state


# After its rest one effect tries it; each trial that fails doubles the rest, up to the kind's most.
async def test_rest_grows(db: Database, dsn: str) -> None:
    makers.limit(dsn, breaker_after=2, breaker_rest_seconds=60, breaker_rest_most_seconds=200)
    makers.make_effects(dsn, 4)
    sink = Scripted(NotSent("connection_refused"))
    await dispatch(db, sink)
    rests = [target(dsn)["seconds"]]
    for _ in range(3):
        make_due(dsn)
        makers.change(dsn, RESTED)
        await dispatch(db, sink)
        rests.append(target(dsn)["seconds"])
    assert len(sink.calls) == 4 + 3
    assert [round(seconds, -1) for seconds in rests] == [60, 120, 200, 200]
    opened = target(dsn)["opened_at"]
    assert opened is not None


# A trial that is answered, even by a refusal of that one effect, brings everything back.
@pytest.mark.parametrize("answer", [Sent(None), Refused("http_400")])
async def test_closes(db: Database, dsn: str, answer: SendOutcome) -> None:
    makers.limit(dsn, breaker_after=2)
    makers.make_effects(dsn, 3)
    sink = Scripted(NotSent("connection_refused"))
    await dispatch(db, sink)
    make_due(dsn)
    makers.change(dsn, RESTED)
    sink.answer = answer
    one = dispatcher(db, sink)
    assert await one.run_once() == 1
    await one.quiet()
    row = target(dsn)
    assert (row["opened_at"], row["failures"], row["trials"], row["trial_id"]) == (None, 0, 0, None)
    await dispatch(db, sink)
    assert len(sink.calls) == 3 + 3


# A trial whose owner died ends with its lease: then another is made.
async def test_lost_trial(db: Database, dsn: str) -> None:
    makers.limit(dsn, breaker_after=1)
    makers.make_effects(dsn, 2)
    await dispatch(db, Scripted(NotSent("connection_refused")))
    make_due(dsn)
    makers.change(dsn, RESTED)
    dead = dispatcher(db, Scripted(), owner="dead")
    dead._set_going = lambda *batch: len(batch[0])  # type: ignore[method-assign] # killed right after its claim
    assert await dead.run_once() == 1
    assert 35 < target(dsn)["seconds"] <= 40
    assert await dispatcher(db, Scripted()).run_once() == 0
    makers.change(dsn, RESTED)
    sink = Scripted()
    await dispatch(db, sink)
    assert len(sink.calls) == 1


# Without limits of its own a kind goes by the defaults; 0 turns it off.
@pytest.mark.parametrize(("after", "rests"), [(None, True), (0, False)])
async def test_defaults(db: Database, dsn: str, after: int | None, rests: bool) -> None:
    if after is not None:
        makers.limit(dsn, breaker_after=after)
    makers.make_effects(dsn, 60)
    sink = Scripted(NotSent("connection_refused"))
    for _ in range(6):
        await dispatch(db, sink)
    assert (target(dsn)["opened_at"] is not None) == rests
