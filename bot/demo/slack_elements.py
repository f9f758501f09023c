"""The shape of Block Kit's interactive elements and composition objects, for the checker.

Source of the rules: Slack's documentation, block elements and composition objects. Not here: blocks.
"""

from typing import Final

from bot.demo.slack_shape import Rule, anything, boolean, number, one_of, record, rows, string, text

MESSAGE_TEXT: Final = 3000
_placeholder: Final = text("plain_text", maximum=150)
ACTION_ID: Final = string(255)
URL: Final = string(3000)

CONFIRM: Final = record(
    {
        "title": text("plain_text", maximum=100),
        "text": text("plain_text", "mrkdwn", maximum=300),
        "confirm": text("plain_text", maximum=30),
        "deny": text("plain_text", maximum=30),
    },
    {"style": one_of("primary", "danger")},
)


def option(*kinds: str, link: bool = False) -> Rule:
    """One choice; only an overflow menu's choices may have a link."""
    optional: dict[str, Rule] = {"description": text(*kinds, maximum=75)}
    if link:
        optional["url"] = URL
    return record({"text": text(*kinds, maximum=75), "value": string(150)}, optional)


_plain_option: Final = option("plain_text")
_rich_option: Final = option("plain_text", "mrkdwn")
_common: Final[dict[str, Rule]] = {"action_id": ACTION_ID, "confirm": CONFIRM}
_field: Final[dict[str, Rule]] = {**_common, "focus_on_load": boolean}
_select: Final[dict[str, Rule]] = {**_field, "placeholder": _placeholder}
_multi: Final[dict[str, Rule]] = {**_select, "max_selected_items": number(1, 100)}
_groups: Final = rows(
    record({"label": text("plain_text", maximum=75), "options": rows(_plain_option, 1, 100)}), 1, 100
)
_dispatch: Final = record(
    {}, {"trigger_actions_on": rows(one_of("on_enter_pressed", "on_character_entered"), 1, 2)}
)
_typed: Final[dict[str, Rule]] = {
    "action_id": ACTION_ID,
    "placeholder": _placeholder,
    "focus_on_load": boolean,
    "dispatch_action_config": _dispatch,
}

IMAGE_ELEMENT: Final = record({"alt_text": string(2000)}, {"image_url": URL, "slack_file": anything})

BUTTON: Final = record(
    {"text": text("plain_text", maximum=75)},
    {
        **_common,
        "url": URL,
        "value": string(2000),
        "style": one_of("primary", "danger"),
        "accessibility_label": string(75),
    },
)

CHOOSERS: Final[dict[str, Rule]] = {
    "static_select": record(
        {},
        {
            **_select,
            "options": rows(_plain_option, 1, 100),
            "option_groups": _groups,
            "initial_option": anything,
        },
    ),
    "multi_static_select": record(
        {},
        {
            **_multi,
            "options": rows(_plain_option, 1, 100),
            "option_groups": _groups,
            "initial_options": anything,
        },
    ),
    "users_select": record({}, {**_select, "initial_user": string(30)}),
    "multi_users_select": record({}, {**_multi, "initial_users": rows(string(30), 1, 100)}),
    "conversations_select": record(
        {},
        {
            **_select,
            "initial_conversation": string(30),
            "default_to_current_conversation": boolean,
            "response_url_enabled": boolean,
            "filter": anything,
        },
    ),
    "channels_select": record(
        {}, {**_select, "initial_channel": string(30), "response_url_enabled": boolean}
    ),
    "datepicker": record({}, {**_select, "initial_date": string(10, pattern=r"\d{4}-\d\d-\d\d")}),
    "timepicker": record(
        {}, {**_select, "initial_time": string(5, pattern=r"\d\d:\d\d"), "timezone": string(60)}
    ),
    "datetimepicker": record({}, {**_field, "initial_date_time": number(10**9, 10**10 - 1)}),
    "checkboxes": record({"options": rows(_rich_option, 1, 10)}, {**_field, "initial_options": anything}),
    "radio_buttons": record({"options": rows(_rich_option, 1, 10)}, {**_field, "initial_option": anything}),
}

# What may stand in an actions block, beside a section's text, and in an input block.
ACTIONS: Final[dict[str, Rule]] = {
    **CHOOSERS,
    "button": BUTTON,
    "overflow": record({"options": rows(option("plain_text", link=True), 1, 5)}, _common),
}
ACCESSORIES: Final[dict[str, Rule]] = {**ACTIONS, "image": IMAGE_ELEMENT}
INPUTS: Final[dict[str, Rule]] = {
    **CHOOSERS,
    "plain_text_input": record(
        {},
        {
            **_typed,
            "initial_value": string(MESSAGE_TEXT, minimum=0),
            "multiline": boolean,
            "min_length": number(0, MESSAGE_TEXT),
            "max_length": number(1, MESSAGE_TEXT),
        },
    ),
    "email_text_input": record({}, {**_typed, "initial_value": string(MESSAGE_TEXT, minimum=0)}),
    "url_text_input": record({}, {**_typed, "initial_value": string(MESSAGE_TEXT, minimum=0)}),
    "number_input": record(
        {"is_decimal_allowed": boolean},
        {
            **_typed,
            "initial_value": string(100, minimum=0),
            "min_value": string(100),
            "max_value": string(100),
        },
    ),
}
