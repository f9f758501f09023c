"""The shape of `rich_text` blocks, for the checker.

Source of the rules: Slack's documentation, rich text block. Other blocks are in `slack_blocks`.
"""

import re
from typing import Any, Final

from bot.demo.slack_shape import (
    Rule,
    Sheet,
    anything,
    boolean,
    by_type,
    number,
    one_of,
    record,
    rows,
    string,
    words,
)

_DATE_TOKEN: Final = re.compile(
    r"\{(?:date_num|date|date_slash|date_short|date_long|date_pretty|date_short_pretty|date_long_pretty|date_long_full"
    r"|day_divider_pretty|time|time_secs|ago)\}"
)
_LONGEST: Final = 13_000  # No limit of its own is documented: the message's budget is one.
_MANY: Final = 1_000


def _date_format(sheet: Sheet, path: str, value: Any) -> None:  # noqa: ANN401 - any JSON
    if not isinstance(value, str) or not _DATE_TOKEN.search(value):
        sheet.wrong(path, "must contain a date token")


STYLE: Final = record({}, dict.fromkeys(("bold", "italic", "strike", "code", "underline"), boolean))
_USER_STYLE: Final = {
    "style": record(
        {}, dict.fromkeys(("bold", "italic", "strike", "highlight", "client_highlight", "unlink"), boolean)
    )
}

ELEMENTS: Final[dict[str, Rule]] = {
    "text": record({"text": words(_LONGEST)}, {"style": STYLE}),
    "link": record({"url": string(3000)}, {"text": words(_LONGEST), "unsafe": boolean, "style": STYLE}),
    "emoji": record(
        {"name": string(100)}, {"unicode": string(100), "skin_tone": number(1, 6), "style": STYLE}
    ),
    "user": record({"user_id": string(30, pattern="[UW][A-Z0-9]+")}, _USER_STYLE),
    "usergroup": record({"usergroup_id": string(30, pattern="S[A-Z0-9]+")}, _USER_STYLE),
    "channel": record({"channel_id": string(30, pattern="[CDG][A-Z0-9]+")}, _USER_STYLE),
    "broadcast": record({"range": one_of("here", "channel", "everyone")}, {"style": STYLE}),
    "color": record({"value": string(20)}, {"style": STYLE}),
    "date": record(
        {"timestamp": number(1, 2**53), "format": _date_format},
        {"url": string(3000), "fallback": string(3000), "style": STYLE},
    ),
}

_inline: Final = rows(by_type(ELEMENTS), 1, _MANY)
_literal: Final = rows(by_type({name: ELEMENTS[name] for name in ("text", "link")}), 1, _MANY)
_section: Final = record({"elements": _inline})
_border: Final = {"border": number(0, 1)}

RICH_TEXT: Final = record(
    {
        "elements": rows(
            by_type(
                {
                    "rich_text_section": _section,
                    "rich_text_list": record(
                        {
                            "elements": rows(by_type({"rich_text_section": _section}), 1, _MANY),
                            "style": one_of("bullet", "ordered"),
                        },
                        {"indent": number(0, 8), "offset": number(0, _MANY), **_border},
                    ),
                    "rich_text_preformatted": record(
                        {"elements": _literal}, {"language": anything, **_border}
                    ),
                    "rich_text_quote": record({"elements": _inline}, _border),
                }
            ),
            1,
            _MANY,
        )
    },
    {"block_id": string(255)},
)
