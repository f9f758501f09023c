"""What a person puts into a modal's fields, as Slack writes it down and as far as Slack lets them.

What happens when the modal is sent is in `slack_actor`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_WRITTEN: Final = {"plain_text_input", "email_text_input", "url_text_input", "number_input"}
# Where Slack puts the choice of each element, and where its first value comes from (docs, view state).
_CHOSEN: Final = {
    "static_select": ("selected_option", "initial_option"),
    "radio_buttons": ("selected_option", "initial_option"),
    "multi_static_select": ("selected_options", "initial_options"),
    "checkboxes": ("selected_options", "initial_options"),
    "users_select": ("selected_user", "initial_user"),
    "multi_users_select": ("selected_users", "initial_users"),
    "conversations_select": ("selected_conversation", "initial_conversation"),
    "channels_select": ("selected_channel", "initial_channel"),
    "datepicker": ("selected_date", "initial_date"),
    "timepicker": ("selected_time", "initial_time"),
    "datetimepicker": ("selected_date_time", "initial_date_time"),
}


class CannotDo(Exception):
    """Slack's own window would not let a person do this; nothing was sent to the bot."""


def type_into(
    view: Mapping[str, Any], values: Mapping[str, Any], *, checked: bool = True
) -> dict[str, dict[str, Any]]:
    """`state.values` for a view: what was given by block_id or action_id, else the first value.

    Raises CannotDo, if checked, for a name that is not there, a required field left empty or a text that does
    not fit; the window shows a sentence then and sends nothing.
    """
    fields = {block["block_id"]: block for block in view["blocks"] if block["type"] == "input"}
    names = {block["element"]["action_id"] for block in fields.values()}
    strange = values.keys() - fields.keys() - names
    if checked and strange:
        raise CannotDo(f"no such field: {sorted(strange)}")
    typed: dict[str, dict[str, Any]] = {}
    for block_id, block in fields.items():
        element = block["element"]
        given = values.get(block_id, values.get(element["action_id"], ...))
        written = _write(element, given)
        if checked:
            _check(block, written)
        typed[block_id] = {element["action_id"]: written}
    return typed


def _write(element: Mapping[str, Any], given: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON, or nothing given
    kind = element["type"]
    if kind in _WRITTEN:
        text = element.get("initial_value") if given is ... else given
        return {"type": kind, "value": text or None}  # Slack sends null for a field left empty.
    key, first = _CHOSEN[kind]
    value = element.get(first) if given is ... else _choose(element, given)
    return {"type": kind, key: [] if value is None and key.endswith("s") else value}


def _choose(element: Mapping[str, Any], given: Any) -> Any:  # noqa: ANN401 - any JSON
    """The whole option, for a person names it by its value."""
    options = [*element.get("options", [])]
    for group in element.get("option_groups", []):
        options += group["options"]
    if not options:
        return given
    if isinstance(given, str):
        return next((option for option in options if option["value"] == given), None)
    return [option for option in options if option["value"] in given]


def _check(block: Mapping[str, Any], written: Mapping[str, Any]) -> None:
    element = block["element"]
    content = next(value for key, value in written.items() if key != "type")
    if not content and not block.get("optional"):
        raise CannotDo(f"{block['block_id']}: Please complete this required field.")
    if isinstance(content, str) and element["type"] == "plain_text_input":
        shortest, longest = element.get("min_length", 0), element.get("max_length", 3000)
        if not shortest <= len(content) <= longest:
            raise CannotDo(f"{block['block_id']}: between {shortest} and {longest} characters")


def find_buttons(blocks: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Everything in blocks that a person can press, with the block it stands in, from top to bottom."""
    found = []
    for block in blocks:
        inside = list(block.get("elements", [])) if block["type"] == "actions" else []
        accessory = block.get("accessory")
        if accessory and accessory["type"] != "image":
            inside.append(accessory)
        found += [(block, element) for element in inside]
    return found
