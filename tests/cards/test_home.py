"""The App Home: as its golden files say, within Slack's limits, and as harmless as the cards."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.cards import home
from bot.cards.answers import Closed, SwitchView
from bot.cards.home import AdminView, Decided, HomeView, Unsettled, Week
from bot.cards.lives import Action, SendFailed, Sent
from bot.cards.views import Approved, Buttons, Field, Pending, PendingNote, Rejected, ReviewView
from bot.demo.slack_blocks import view_problems
from tests.cards.samples import (
    ANNA,
    BEN,
    CORRECTION,
    DECIDED,
    EARLIER,
    FIRST_REVISION,
    OPENED,
    PLAIN,
    value,
)

BUTTONS = Buttons(approve=value("a"), reject=value("b"), read=value("c"), edit=value("d"), redraft=value("e"))
SHORT = replace(
    PLAIN,
    draft=(Field("subject", "Your refund"), Field("body", "45 EUR, today.")),
    labels=(),
    buttons=BUTTONS,
)
LONG = replace(PLAIN, buttons=BUTTONS)
MINE = (
    Decided(
        "customer_email",
        "customer:42",
        "approve",
        DECIDED,
        Approved(Sent(DECIDED, "msg-1"), (ANNA,), DECIDED),
    ),
    Decided(
        "refund", "order:7", "approve", DECIDED, Approved(SendFailed(DECIDED, "http_422"), (ANNA,), DECIDED)
    ),
    Decided("refund", "order:8", "reject", DECIDED, Rejected(ANNA, DECIDED, "twice")),
)
LOST = Unsettled(
    kind="customer_email",
    entity="customer:42",
    action=Action("http", "n8n.example", "jo@customer.example"),
    since=DECIDED,
    button_value="01957a3e-1111-7000-8000-000000000001.3",
)
ADMIN = AdminView(
    switch=SwitchView(enabled=True, closed=(Closed("effect:http", BEN, DECIDED, "wrong template"),)),
    unknown=(LOST, replace(LOST, newer_waits=True)),
    unknown_total=7,
    week=Week(1_204, 37, 3, 1, 640, 41, 12, 633, 2),
)
HOMES: dict[str, HomeView] = {
    "empty": HomeView((), 0),
    "waiting": HomeView((SHORT, LONG), 2, decided=MINE),
    "second_page": HomeView((SHORT,), 20, page=2),
    "admin": HomeView((), 0, admin=ADMIN),
}

Golden = Callable[[str, object], None]


# Every kind of Home is drawn as its golden file says.
@pytest.mark.parametrize("name", HOMES)
def test_homes(name: str, golden: Golden) -> None:
    drawn = home.render(HOMES[name])
    golden(f"home_{name}", drawn)
    assert view_problems(drawn) == []


# Approve stands beside a draft only if all there is to read does: else Read, and a line that says why.
@pytest.mark.parametrize(
    "more",
    [
        {"draft": (Field("body", "One.\nTwo."),)},
        {"draft": (Field("body", "x" * 201),)},
        {"draft": (Field("body", "a\u200bb"),)},
        {"draft": tuple(Field(name, "x") for name in "abcd")},
        {"draft": (Field("data", "{}", literal=True),)},
        {"labels": tuple(Field(name, "x") for name in "abc")},
        {"warnings": ("Check the amount.",)},
        {"previous": FIRST_REVISION},
        {"replaces": CORRECTION},
        {"earlier": EARLIER},
        {"state": Pending(PendingNote.NEWER_FAILED)},
        {"entity": "customer\u202e42"},
    ],
    ids=lambda more: next(iter(more)),
)
def test_approve_beside_all_of_it(more: dict[str, object]) -> None:
    assert home.fits(SHORT)
    view: ReviewView = replace(SHORT, **more)  # type: ignore[arg-type]
    assert not home.fits(view)
    drawn = json.dumps(home.item_blocks(view, 0))
    assert "stet.approve" not in drawn
    assert "stet.read" in drawn
    assert "There is more to read" in drawn


# A full page with everything an admin sees stays within Slack's hundred blocks and the size of a view.
def test_full_home() -> None:
    many = tuple(replace(LONG, entity=f"customer:{n}") for n in range(home.PAGE))
    unknown = (LOST,) * home.MOST_UNKNOWN
    view = HomeView(many, 999, 3, MINE * 3, replace(ADMIN, unknown=unknown))
    drawn = home.render(view)
    assert view_problems(drawn) == []
    assert len(drawn["blocks"]) < 60
    assert len(json.dumps(drawn)) < 100_000


# Pages are counted from one, and an action names only pages there can be.
def test_pages() -> None:
    assert [home.page_count(n) for n in (0, 1, 8, 9, 17)] == [1, 1, 1, 2, 3]
    assert home.page_of_action("stet.home.page.12") == 12
    assert home.page_of_action("stet.home.page.0") is None
    assert home.page_of_action("stet.approve") is None


# Slack is told when something expires by a date in the reader's time zone.
def test_dates() -> None:
    drawn = json.dumps(home.item_blocks(SHORT, 0))
    assert str(int((OPENED + timedelta(hours=48)).timestamp())) in drawn
