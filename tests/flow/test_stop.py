"""The kill switch: closed, opened, missing, and what stands in the record.

Not here: kills against running dispatchers (tests/race).
"""

import psycopg
import pytest

from bot.flow import stop
from bot.policy.limits import RELEASE_WAIT_SECONDS
from bot.policy.switch import may_send
from store import database, switch
from store.database import Database
from store.errors import DatabaseBusy
from tests import makers
from tests.flow.outlets import Scripted, actions, dispatch, dispatcher, effect_row, make_due

ANN = "slack:T1:U0ANN"


# A closed scope keeps its effects; opened again, each leaves once.
@pytest.mark.parametrize("scope", ["all", "kind:customer_email", "effect:http"])
async def test_kill_and_resume(db: Database, dsn: str, scope: str) -> None:
    sink = Scripted()
    effect_id = makers.make_effect(dsn)
    await stop.kill(db, scope=scope, by=ANN, reason="wrong prices")
    await dispatch(db, sink)
    assert (sink.calls, effect_row(dsn, effect_id)["state"]) == ([], "pending")
    assert effect_row(dsn, effect_id)["wanted_version"] == 2
    await stop.resume(db, scope=scope, by=ANN, reason="mended")
    for _ in range(2):
        await dispatch(db, sink)
    assert len(sink.calls) == 1
    assert actions(dsn, "system") == [(ANN, "killed"), (ANN, "resumed")]
    assert makers.rows(dsn, "SELECT name, facts FROM alerts ORDER BY alert_id") == [
        {"name": "switch_closed", "facts": {"scope": scope, "who": ANN, "reason": "wrong prices"}},
        {"name": "switch_opened", "facts": {"scope": scope, "who": ANN, "reason": "mended"}},
    ]


# Once the switch has moved the answer says so, also when the cards of what waits cannot be asked for.
async def test_cards_do_not_undo_a_kill(db: Database, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(_conn: object, _scope: str) -> None:
        raise DatabaseBusy("a card is locked")

    effect_id = makers.make_effect(dsn)
    with monkeypatch.context() as patched:
        patched.setattr(switch, "want_waiting_cards", busy)
        switched = await stop.kill(db, by=ANN, reason="wrong prices")
        assert switched.scope == "all"
        assert makers.rows(dsn, "SELECT open FROM kill_switch") == [{"open": False}]
        with pytest.raises(DatabaseBusy):
            await stop.show_switched(db)
    assert effect_row(dsn, effect_id)["wanted_version"] == 1
    # Asked for again by the timer, and then no more.
    assert [await stop.show_switched(db) for _ in range(2)] == [1, 0]
    assert effect_row(dsn, effect_id)["wanted_version"] == 2


# A scope that does not concern it stops nothing.
@pytest.mark.parametrize("scope", ["llm", "kind:other", "effect:smtp"])
async def test_other_scope(db: Database, dsn: str, scope: str) -> None:
    sink = Scripted()
    makers.make_effect(dsn)
    await stop.kill(db, scope=scope, by=ANN, reason=None)
    await dispatch(db, sink)
    assert len(sink.calls) == 1


# Without the row nothing leaves, neither from the claim nor from the start; resume makes it again.
async def test_missing_row(db: Database, dsn: str) -> None:
    sink = Scripted()
    makers.make_effect(dsn)
    makers.change(dsn, "DELETE FROM kill_switch")
    await dispatch(db, sink)
    async with db.connection() as conn:
        scopes = await switch.read_scopes(conn)
    assert sink.calls == []
    assert not hasattr(may_send(scopes, actions_enabled=True, kind="k", effect_type="http"), "open")
    await stop.resume(db, by=ANN, reason="row was lost")
    await dispatch(db, sink)
    assert len(sink.calls) == 1


# The setting denies whatever the rows say.
async def test_setting(db: Database, dsn: str) -> None:
    sink = Scripted()
    makers.make_effect(dsn)
    await dispatch(db, sink, actions_enabled=False)
    assert sink.calls == []


# A kill names what is on the wire; that is recorded as it ends, and nothing else starts.
async def test_kill_lists_started(db: Database, dsn: str) -> None:
    sink = Scripted()
    sink.holds = lambda _: True
    sent, waiting = makers.make_effect(dsn), makers.make_effect(dsn)
    makers.change(
        dsn,
        "UPDATE effect_outbox SET next_attempt_at = now() + interval '1 hour' WHERE effect_id = %(id)s",
        id=waiting,
    )
    one = dispatcher(db, sink)
    await one.run_once()
    await sink.held.wait()
    killed = await stop.kill(db, by=ANN, reason=None)
    assert [effect.effect_id for effect in killed.started] == [sent]
    make_due(dsn)
    await one.run_once()
    sink.let_go.set()
    await one.quiet()
    assert (effect_row(dsn, sent)["state"], effect_row(dsn, waiting)["state"]) == ("completed", "pending")


# A kill closed between claim and start stops the call, and what was claimed goes back uncounted.
async def test_kill_between_claim_and_start(db: Database, dsn: str) -> None:
    sink = Scripted()
    effect_id = makers.make_effect(dsn)
    one = dispatcher(db, sink)
    await one.run_once()
    makers.change(dsn, "UPDATE kill_switch SET open = false")
    await one.quiet()
    row = effect_row(dsn, effect_id)
    assert (sink.calls, row["state"], row["attempts"]) == ([], "pending", 0)


# Held for longer than a start may wait, the switch lets nothing through; what was claimed goes back uncounted
# and is tried again within seconds, not once its lease is over.
async def test_held_switch(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCK_TIMEOUT_MS", 20)
    sink = Scripted()
    effect_id = makers.make_effect(dsn)
    db = Database(dsn)
    await db.open()
    try:
        with psycopg.connect(dsn) as other:
            other.execute("SELECT FROM kill_switch WHERE scope = 'all' FOR UPDATE")
            with pytest.raises(DatabaseBusy):
                await dispatch(db, sink)
        row = effect_row(dsn, effect_id)
        assert (sink.calls, row["state"], row["attempts"]) == ([], "pending", 0)
        assert row["wait"].total_seconds() <= RELEASE_WAIT_SECONDS
        make_due(dsn)
        await dispatch(db, sink)
        assert (effect_row(dsn, effect_id)["state"], len(sink.calls)) == ("completed", 1)
    finally:
        await db.close()


# A reason may follow: the same person closes it again, and the second word stands.
async def test_reason_follows(db: Database, dsn: str) -> None:
    await stop.kill(db, by=ANN, reason=None)
    await stop.kill(db, by=ANN, reason="wrong prices")
    async with db.connection() as conn:
        (row,) = await switch.read_switch(conn)
    assert (row.open, row.changed_by, row.reason) == (False, ANN, "wrong prices")
