"""The block checker: what Slack takes passes, and each limit is kept to the character."""

from typing import Any

import pytest

from bot.demo.slack_blocks import TEXT_BUDGET, block_problems, view_is_too_large, view_problems

Json = dict[str, Any]


def plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def mrkdwn(text: str) -> Json:
    return {"type": "mrkdwn", "text": text}


def section(text: str = "x", **more: object) -> Json:
    return {"type": "section", "text": plain(text), **more}


def button(label: str = "ok", **more: object) -> Json:
    return {"type": "button", "text": plain(label), "action_id": "a", **more}


def actions(*elements: Json, **more: object) -> Json:
    return {"type": "actions", "elements": list(elements), **more}


def rich(*elements: Json, kind: str = "rich_text_section") -> Json:
    return {"type": "rich_text", "elements": [{"type": kind, "elements": list(elements)}]}


def field(**element: object) -> Json:
    return {"type": "input", "label": plain("l"), "element": {"type": "plain_text_input", **element}}


def confirm(**parts: object) -> Json:
    return {"title": plain("t"), "text": plain("x"), "confirm": plain("y"), "deny": plain("n"), **parts}


def chart(**more: object) -> Json:
    point = {"label": "Mon", "value": 3}
    bar = {"type": "bar", "series": [{"name": "s", "data": [point]}], "axis_config": {"categories": ["Mon"]}}
    return {"type": "data_visualization", "title": "t", "chart": bar, **more}


def table(rows: int, columns: int) -> Json:
    return {"type": "table", "rows": [[{"type": "raw_text", "text": "1"}] * columns] * rows}


def modal(*blocks: Json, **more: object) -> Json:
    return {"type": "modal", "title": plain("t"), "blocks": list(blocks) or [section()], **more}


TEXT = {"type": "text", "text": "draft"}
DATE = {
    "type": "date",
    "timestamp": 1_700_000_000,
    "format": "{date_short_pretty} {time}",
    "fallback": "then",
}

GOOD = {
    "section at its limit": [section("x" * 3000)],
    "escaped at its limit": [section("<" * 750)],
    "mrkdwn entities count once": [{"type": "section", "text": mrkdwn("&amp;" * 600)}],
    "ten fields": [{"type": "section", "fields": [plain("f" * 1000)] * 10}],
    "header": [{"type": "header", "text": plain("h" * 150)}],
    "context": [{"type": "context", "elements": [mrkdwn("small")] * 10}],
    "25 buttons": [actions(*(button(action_id=f"a{n}") for n in range(25)))],
    "whole button": [actions(button("l" * 75, value="v" * 2000, style="primary", confirm=confirm()))],
    "same action in two blocks": [actions(button()), actions(button())],
    "rich text": [rich({**TEXT, "style": {"bold": True}}, DATE, {"type": "user", "user_id": "U0ALICE"})],
    "preformatted": [rich(TEXT, kind="rich_text_preformatted")],
    "50 blocks": [{"type": "divider"}] * 50,
    "table": [table(100, 20)],
    "two charts": [chart(), chart()],
    "accessory": [section(accessory=button())],
    "image": [{"type": "image", "image_url": "https://x.example/i.png", "alt_text": "a"}],
    "budget to the last character": [section("x" * 3000)] * 4 + [section("x" * (TEXT_BUDGET - 12_000))],
}

BAD = {
    "no list": {"type": "section"},
    "unknown type": [{"type": "banner"}],
    "no type": [{"text": plain("x")}],
    "unknown key": [section(colour="red")],
    "empty section": [{"type": "section"}],
    "empty text": [section("")],
    "section too long": [section("x" * 3001)],
    "too long once escaped": [section("<" * 751)],
    "bare ampersands count as entities": [{"type": "section", "text": mrkdwn("&" * 601)}],
    "eleven fields": [{"type": "section", "fields": [plain("f")] * 11}],
    "field of 2001": [{"type": "section", "fields": [plain("f" * 2001)]}],
    "mrkdwn header": [{"type": "header", "text": mrkdwn("h")}],
    "header of 151": [{"type": "header", "text": plain("h" * 151)}],
    "verbatim on plain text": [{"type": "section", "text": {**plain("x"), "verbatim": True}}],
    "eleven in a context": [{"type": "context", "elements": [mrkdwn("s")] * 11}],
    "button in a context": [{"type": "context", "elements": [button()]}],
    "no buttons": [actions()],
    "26 buttons": [actions(*(button(action_id=f"a{n}") for n in range(26)))],
    "label of 76": [actions(button("l" * 76))],
    "value of 2001": [actions(button(value="v" * 2001))],
    "empty value": [actions(button(value=""))],
    "number as value": [actions(button(value=7))],
    "url of 3001": [actions(button(url="u" * 3001))],
    "style": [actions(button(style="green"))],
    "action id of 256": [actions(button(action_id="a" * 256))],
    "same action twice in a block": [actions(button(), button())],
    "two primaries": [actions(button(style="primary"), button(action_id="b", style="primary"))],
    "same block id": [section(block_id="b"), section(block_id="b")],
    "block id of 256": [section(block_id="b" * 256)],
    "confirm title of 101": [actions(button(confirm=confirm(title=plain("t" * 101))))],
    "confirm text of 301": [actions(button(confirm=confirm(text=plain("t" * 301))))],
    "confirm without deny": [actions(button(confirm={"title": plain("t"), "text": plain("x")}))],
    "51 blocks": [{"type": "divider"}] * 51,
    "101 rows": [table(101, 1)],
    "21 columns": [table(1, 21)],
    "two tables": [table(1, 1), table(1, 1)],
    "three charts": [chart(), chart(), chart()],
    "chart title of 51": [chart(title="t" * 51)],
    "markdown sum": [{"type": "markdown", "text": "m" * 6001}] * 2,
    "alert in a message": [{"type": "alert", "text": plain("careful")}],
    "empty rich text": [{"type": "rich_text", "elements": []}],
    "empty text in rich text": [rich({"type": "text", "text": ""})],
    "mrkdwn in rich text": [rich({"type": "mrkdwn", "text": "x"})],
    "user in preformatted": [rich({"type": "user", "user_id": "U0A"}, kind="rich_text_preformatted")],
    "date without token": [rich({**DATE, "format": "soon"})],
    "unknown style": [rich({**TEXT, "style": {"blink": True}})],
    "broadcast to nobody": [rich({"type": "broadcast", "range": "world"})],
    "one character over the budget": [section("x" * 3000)] * 4 + [section("x" * (TEXT_BUDGET - 11_999))],
}

BAD_VIEWS = {
    "no title": {"type": "modal", "blocks": [section()]},
    "title of 25": modal(title=plain("t" * 25)),
    "submit of 25": modal(submit=plain("s" * 25)),
    "no blocks": {"type": "modal", "title": plain("t"), "blocks": []},
    "101 blocks": modal(*[{"type": "divider"}] * 101),
    "input without submit": modal(field()),
    "private_metadata of 3001": modal(private_metadata="p" * 3001),
    "callback_id of 256": modal(callback_id="c" * 256),
    "unknown key": modal(colour="red"),
    "title on a home": {"type": "home", "title": plain("t"), "blocks": [section()]},
    "alert on a home": {"type": "home", "blocks": [{"type": "alert", "text": plain("x")}]},
    "table in a modal": modal(table(1, 1)),
    "longest over 3000": modal(field(max_length=3001), submit=plain("s")),
    "no view": [section()],
}


# What Slack takes passes the checker.
@pytest.mark.parametrize("name", GOOD)
def test_good_blocks(name: str) -> None:
    assert block_problems(GOOD[name]) == []


# What Slack refuses is refused, with a pointer to the fault.
@pytest.mark.parametrize("name", BAD)
def test_bad_blocks(name: str) -> None:
    problems = block_problems(BAD[name])
    assert problems
    assert all("[json-pointer:/" in line for line in problems)


# Modals may carry alerts, inputs and a hundred blocks; Homes a hundred blocks.
@pytest.mark.parametrize(
    "view",
    [
        modal({"type": "alert", "level": "warning", "text": plain("careful")}),
        modal(field(max_length=3000, initial_value=""), submit=plain("Send")),
        modal(*[{"type": "divider"}] * 100, private_metadata="", callback_id="stet.reject"),
        {"type": "home", "blocks": [{"type": "divider"}] * 100},
    ],
)
def test_good_views(view: Json) -> None:
    assert view_problems(view) == []


# Each limit of a view is kept.
@pytest.mark.parametrize("name", BAD_VIEWS)
def test_bad_views(name: str) -> None:
    assert view_problems(BAD_VIEWS[name])


# A view over 250 kB is too large, whatever its blocks.
def test_large_view() -> None:
    assert view_is_too_large(modal(*[section("x" * 2900)] * 90))
    assert not view_is_too_large(modal(*[section("x" * 2000)] * 90))
