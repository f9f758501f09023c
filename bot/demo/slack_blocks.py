"""Says what Slack would refuse in blocks and views: every limit that is documented or was measured.

The words of the rules are in `slack_shape`; the error codes are given by `slack_chat` and `slack_views`.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bot.demo.slack_elements import ACCESSORIES, ACTIONS, IMAGE_ELEMENT, INPUTS, MESSAGE_TEXT, URL
from bot.demo.slack_rich_text import RICH_TEXT
from bot.demo.slack_shape import (
    Rule,
    Sheet,
    anything,
    boolean,
    by_type,
    mrkdwn_length,
    number,
    one_of,
    record,
    rows,
    string,
    text,
    words,
)

BLOCKS_AT_MOST: Final = {"message": 50, "modal": 100, "home": 100}
TEXT_BUDGET: Final = 13_000  # Undocumented; msg_blocks_too_long was seen a little above it.
MARKDOWN_BUDGET: Final = 12_000
VIEW_BYTES: Final = 250_000
_CHARTS_AT_MOST: Final = 2

_id: Final[dict[str, Rule]] = {"block_id": string(255)}
_words: Final = text("plain_text", "mrkdwn", maximum=MESSAGE_TEXT)
_point: Final = record({"label": string(20), "value": number(-(10**15), 10**15, whole=False)})
_axes: Final = record({"categories": rows(string(20), 1, 20)}, {"x_label": string(50), "y_label": string(50)})
_series: Final = rows(record({"name": string(20), "data": rows(_point, 1, 20)}), 1, 6)
_plot: Final = record({"series": _series, "axis_config": _axes})
_cell: Final[dict[str, Rule]] = {
    "raw_text": record({"text": words(MESSAGE_TEXT)}),
    "raw_number": record(
        {"value": number(-(10**15), 10**15, whole=False)}, {"text": words(MESSAGE_TEXT), "format": anything}
    ),
    "rich_text": RICH_TEXT,
}


def _markdown(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
    if not isinstance(value, str) or not value:
        return sheet.wrong(path, "must be a string of at least 1 character")
    sheet.markdown += len(value)
    sheet.characters += mrkdwn_length(value)
    return None


SHAPES: Final[dict[str, Rule]] = {
    "section": record(
        {},
        {
            **_id,
            "text": _words,
            "fields": rows(text("plain_text", "mrkdwn", maximum=2000), 1, 10),
            "accessory": by_type(ACCESSORIES),
            "expand": boolean,
        },
    ),
    "header": record({"text": text("plain_text", maximum=150)}, _id),
    "context": record(
        {
            "elements": rows(
                by_type({"image": IMAGE_ELEMENT, "plain_text": _words, "mrkdwn": _words}),
                1,
                10,
            )
        },
        _id,
    ),
    "actions": record({"elements": rows(by_type(ACTIONS), 1, 25)}, _id),
    "divider": record({}, _id),
    "image": record(
        {"alt_text": string(2000)},
        {**_id, "image_url": URL, "slack_file": anything, "title": text("plain_text", maximum=2000)},
    ),
    "input": record(
        {"label": text("plain_text", maximum=2000), "element": by_type(INPUTS)},
        {**_id, "hint": text("plain_text", maximum=2000), "optional": boolean, "dispatch_action": boolean},
    ),
    "rich_text": RICH_TEXT,
    "markdown": record({"text": _markdown}, _id),
    "table": record(
        {"rows": rows(rows(by_type(_cell), 1, 20), 1, 100)},
        {
            **_id,
            "column_settings": rows(
                record({}, {"align": one_of("left", "center", "right"), "is_wrapped": boolean}), 0, 20
            ),
        },
    ),
    "data_table": record(
        {"rows": rows(rows(by_type(_cell), 1, 20), 2, 101), "caption": words(MESSAGE_TEXT)},
        {**_id, "page_size": number(1, 100), "row_header_column_index": number(0, 19)},
    ),
    "data_visualization": record(
        {
            "title": words(50),
            "chart": by_type(
                {
                    "pie": record({"segments": rows(_point, 1, 6)}),
                    **dict.fromkeys(("bar", "area", "line"), _plot),
                }
            ),
        },
        _id,
    ),
    "alert": record(
        {"text": _words}, {**_id, "level": one_of("default", "info", "warning", "error", "success")}
    ),
}
# Blocks that may not stand everywhere. `alert` is for modals only (node-slack-sdk issue 2567).
_ONLY_IN: Final = {
    "alert": ("modal",),
    "markdown": ("message",),
    "table": ("message",),
    "data_table": ("message",),
    "data_visualization": ("message",),
}
_block: Final = by_type(SHAPES)

_VIEW: Final[dict[str, Rule]] = {
    "blocks": anything,
    "private_metadata": string(3000, minimum=0),
    "callback_id": string(255),
    "external_id": string(255),
}
VIEWS: Final[dict[str, Rule]] = {
    "modal": record(
        {"title": text("plain_text", maximum=24), "blocks": anything},
        {
            **_VIEW,
            **dict.fromkeys(("close", "submit"), text("plain_text", maximum=24)),
            **dict.fromkeys(("clear_on_close", "notify_on_close", "submit_disabled"), boolean),
        },
    ),
    "home": record({"blocks": anything}, _VIEW),
}


def check_blocks(blocks: object, surface: str = "message") -> Sheet:
    """Look at a whole list of blocks for one surface: `message`, `modal` or `home`."""
    sheet = Sheet(surface)
    rows(_block, 0 if surface == "message" else 1, BLOCKS_AT_MOST[surface])(sheet, "/blocks", blocks)
    known = [block for block in blocks if isinstance(block, Mapping)] if isinstance(blocks, list) else []
    for index, block in enumerate(known):
        _check_block(sheet, f"/blocks/{index}", block)
    _check_together(sheet, known)
    return sheet


def block_problems(blocks: object, surface: str = "message") -> list[str]:
    """Every complaint, the message's text budget among them; empty if Slack would take the blocks."""
    sheet = check_blocks(blocks, surface)
    if surface == "message" and sheet.characters > TEXT_BUDGET:
        sheet.wrong("/blocks", f"msg_blocks_too_long: {sheet.characters} characters in all")
    return sheet.problems


def view_problems(view: object) -> list[str]:
    """Every complaint about a view, `view_too_large` apart (see `view_is_too_large`)."""
    if not isinstance(view, Mapping) or view.get("type") not in VIEWS:
        return ["[ERROR] must be a view of type modal or home [json-pointer:/view]"]
    sheet = check_blocks(view.get("blocks"), str(view["type"]))
    VIEWS[view["type"]](sheet, "/view", view)
    blocks = view.get("blocks")
    inputs = [block for block in blocks if _kind(block) == "input"] if isinstance(blocks, list) else []
    if view["type"] == "modal" and inputs and "submit" not in view:
        sheet.wrong("/view/submit", "is required when the view has an input block")
    return sheet.problems


def view_is_too_large(view: object) -> bool:
    """Over 250 kB as JSON (docs, views.open)."""
    return len(json.dumps(view).encode()) > VIEW_BYTES


def _check_block(sheet: Sheet, path: str, block: Mapping[str, Any]) -> None:
    """The rules within one block that no table of keys can say."""
    kind = _kind(block)
    if sheet.surface not in _ONLY_IN.get(kind, (sheet.surface,)):
        sheet.wrong(path, f"unsupported type: {kind} in a {sheet.surface}")
    if kind == "section" and not block.get("text") and not block.get("fields"):
        sheet.wrong(path, "must have text or fields")
    if kind == "image" and ("image_url" in block) == ("slack_file" in block):
        sheet.wrong(path, "must have either image_url or slack_file")
    elements = [item for item in _elements(block) if isinstance(item, Mapping)]
    for action_id in _repeated(item.get("action_id") for item in elements):
        sheet.wrong(path, f"action_id {action_id} stands twice in one block")
    if sum(item.get("style") == "primary" for item in elements) > 1:
        sheet.wrong(path, "only one primary button in a set")


def _check_together(sheet: Sheet, blocks: list[Mapping[str, Any]]) -> None:
    """The rules over all blocks of a payload."""
    for block_id in _repeated(block.get("block_id") for block in blocks):
        sheet.wrong("/blocks", f"block_id {block_id} already exists")
    if sheet.markdown > MARKDOWN_BUDGET:
        sheet.wrong("/blocks", f"markdown blocks have more than {MARKDOWN_BUDGET} characters together")
    kinds = Counter(_kind(block) for block in blocks)
    if kinds["table"] > 1:
        sheet.wrong("/blocks", "only_one_table_allowed")
    if kinds["data_visualization"] > _CHARTS_AT_MOST:
        sheet.wrong("/blocks", "more than 2 data_visualization blocks")


def _elements(block: Mapping[str, Any]) -> Iterator[Any]:
    listed = block.get("elements")
    if _kind(block) == "actions" and isinstance(listed, list):
        yield from listed
    yield from (block[key] for key in ("accessory", "element") if key in block)


def _repeated(ids: Iterator[Any]) -> list[str]:
    return [
        name for name, count in Counter(str(item) for item in ids if item is not None).items() if count > 1
    ]


def _kind(block: object) -> str:
    return str(block.get("type")) if isinstance(block, Mapping) else ""
