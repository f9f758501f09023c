"""What people are told of targets that rest and of caps: cards, alerts, each occasion once.

Not here: the words (tests/cards) or posting (test_alert, test_show).
"""

import json
from typing import Any

import pytest

from bot.cards.review import render
from bot.contracts.outcome import NotSent, SendOutcome, Sent
from bot.doors.limited import figures, read_keeping
from bot.flow import news
from bot.flow.alert import draw_alert
from bot.flow.life import Scene
from bot.flow.picture import review_view
from store.database import Database
from store.showing import read_draft_cards
from tests import makers
from tests.flow.outlets import Scripted, dispatch, effect_row, make_due
from tests.flow.test_limits import make_worth

RESTED = "UPDATE targets SET rests_until = now() - interval '1 second'"


def told(dsn: str) -> list[str]:
    return [row["name"] for row in makers.rows(dsn, "SELECT name FROM alerts ORDER BY raised_at, alert_id")]


def wanted(dsn: str) -> set[int]:
    found = makers.rows(
        dsn, "SELECT wanted_version FROM cards JOIN effect_outbox USING (draft_id) WHERE state = 'pending'"
    )
    return {row["wanted_version"] for row in found}


# Ops hears once that a target rests, however long its rest grows, and once that it is back; cards that wait
# there are drawn again each time.
async def test_rest_is_told_once(db: Database, dsn: str) -> None:
    makers.limit(dsn, breaker_after=2)
    makers.make_effects(dsn, 2)
    sink = Scripted(NotSent("connection_refused"))
    await dispatch(db, sink)
    before = wanted(dsn)
    assert (await news.run_once(db), await news.run_once(db)) == (1, 0)
    assert (told(dsn), min(wanted(dsn))) == (["target_resting"], min(before) + 1)
    for answer in (NotSent("connection_refused"), Sent(None)):
        make_due(dsn)
        makers.change(dsn, RESTED)
        sink.answer = answer
        await dispatch(db, sink)
        assert await news.run_once(db) == 1
    assert told(dsn) == ["target_resting", "target_back"]


# Ops hears once a kind and window that a cap is reached, and what waits is drawn again, also when it goes on.
async def test_cap_is_told_once_a_window(db: Database, dsn: str) -> None:
    makers.limit(dsn, cap_day=1)
    makers.make_effects(dsn, 3)
    sink = Scripted()
    for _ in range(3):
        await dispatch(db, sink)
        await news.run_once(db)
    assert (told(dsn), wanted(dsn)) == (["cap_full"], {2})
    makers.change(dsn, "UPDATE departures SET taken_at = taken_at - interval '1 day'")
    makers.change(dsn, "UPDATE kind_limits SET full_until = full_until - interval '1 day'")
    for _ in range(2):
        await dispatch(db, sink)
        await news.run_once(db)
    assert told(dsn) == ["cap_full"]  # the clock stood still: it is the same day
    assert len(sink.calls) == 2


# A card says what keeps its effect waiting, and until when.
@pytest.mark.parametrize(
    ("limits", "answer", "says"),
    [
        ({"cap_day": 1}, Sent(None), "as many as may leave in a day have left"),
        ({"breaker_after": 1}, NotSent("timeout"), " is not answering. Next try: "),
        ({"cap_value_day": 5, "value": "output.amount"}, Sent(None), "its value is not a plain number"),
    ],
)
async def test_cards_say_so(
    db: Database, dsn: str, limits: dict[str, Any], answer: SendOutcome, says: str
) -> None:
    makers.limit(dsn, value=limits.pop("value", None), columns=limits)
    _, waiting = (makers.make_effect(dsn), makers.make_effect(dsn))
    await dispatch(db, Scripted(answer))
    await news.run_once(db)
    draft_id = effect_row(dsn, waiting)["draft_id"]
    async with db.connection() as conn:
        (card,) = await read_draft_cards(conn, [draft_id])
    assert says in json.dumps(render(review_view(card, Scene(actions_enabled=True))))


# Status and metrics show how much of each cap is used, and which targets rest.
async def test_figures(db: Database, dsn: str) -> None:
    caps = {"cap_hour": 5, "cap_day": 10, "cap_value_day": 100}
    makers.limit(dsn, value="output.amount", columns=caps, breaker_after=1)
    first, _ = make_worth(dsn, 60.5, 50)
    await dispatch(db, Scripted(lambda one: Sent(None) if one.effect_id == first else NotSent("dns_failed")))
    make_worth(dsn, 30)
    await dispatch(db, Scripted(NotSent("connection_refused")))
    keeping = await read_keeping(db)
    assert [(one.cap, float(one.used), float(one.most)) for one in keeping.caps] == [
        ("cap_hour", 1, 5),
        ("cap_day", 1, 10),
        ("cap_value_day", 60.5, 100),
    ]
    assert [(one.kind, one.target) for one in keeping.resting] == [
        ("customer_email", "https://n8n.example/webhook/send-mail")
    ]
    assert {one.name for one in await figures(db)} == {"stet_target_resting", "stet_cap_used", "stet_cap"}


# Every alert about limits has its sentence, in both languages.
async def test_alerts_have_words(db: Database, dsn: str) -> None:
    makers.limit(dsn, breaker_after=1, cap_day=1)
    makers.make_effects(dsn, 2)
    sink = Scripted(NotSent("connection_refused"))
    await dispatch(db, sink)
    await news.run_once(db)
    for row in makers.rows(dsn, "SELECT name, facts FROM alerts"):
        for language in ("en", "zh-CN"):
            text, _ = draw_alert(row["name"], row["facts"], language)
            assert not text.startswith(row["name"])
