"""Block Kit pieces as Slack documents them: text, rich text, buttons; and the hash of what was shown.

What a card says is not here; text from outside enters only through `outside`, which marks hidden characters.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from string import Formatter
from typing import Any, Final

from bot.cards.lives import Who
from bot.cards.text import cut, escape, length, visible
from bot.cards.views import Channel
from bot.cards.words import say, template

Block = dict[str, Any]
Element = dict[str, Any]

MESSAGE_TEXT = (
    10_000  # Slack refused messages from 11,341 characters on (bolt-js 2509, 2867); some room below that.
)
VIEW_BLOCKS = 100  # Slack: blocks in a modal or Home
ELEMENT_TEXT = 2_900  # Slack gives no limit for a rich text element; a section may have 3,000.
HEADER_TEXT = 150  # Slack: header block
FALLBACK_TEXT = 600  # Shown in notifications only, where a phone shows some 200 characters.
CONFIRM_TEXT = 300  # Slack: text of a confirmation dialog

_USER: Final = re.compile(r"(?:slack:[A-Z0-9]+:)?([UW][A-Z0-9]{1,20})")
_STYLES: Final = {"*": "bold", "`": "code"}
_STYLE_SIGN: Final = re.compile("([*`])")
_GROUP: Final = re.compile(r"S[A-Z0-9]{1,20}")
_CHANNEL: Final = re.compile(r"[CG][A-Z0-9]{1,20}")
_BEYOND: Final = 100  # Line ends of two characters become one, and a joiner is judged by what follows it.
_DATE_FORMAT: Final = "{date_short_pretty} {time}"
_RUNNING_FORMAT: Final = f"{_DATE_FORMAT} ({{ago}})"


def words(value: str, **style: bool) -> Element:
    """Text of our own. Styles: bold, italic, strike, code."""
    element: Element = {"type": "text", "text": value}
    if style:
        element["style"] = style
    return element


def outside(value: str, *, limit: int = 300, **style: bool) -> Element:
    """Text from an event, a model or a person: hidden characters marked, cut at `limit`, never empty."""
    shown = clip(value, limit) or " "
    return words(shown, **style)


def clip(value: str, limit: int) -> str:
    """The visible form of a text, ending in `…` when it is longer than `limit`."""
    whole = visible(value[: 2 * limit + _BEYOND])  # What lies further is cut off, however it is drawn.
    return whole if length(whole) <= limit else cut(whole, limit - 1).shown.rstrip() + "…"


def person(who: Who) -> Element:
    """A person or group: the name as text, else the mention; what is no Slack id is shown as text."""
    if who.name:
        return outside(who.name, limit=80)
    if user := _USER.fullmatch(who.id):
        return {"type": "user", "user_id": user[1]}
    if _GROUP.fullmatch(who.id):
        return {"type": "usergroup", "usergroup_id": who.id}
    return outside(who.id, limit=80)


def channel(there: Channel) -> Element:
    """A link to a channel; what is no channel's id is shown as text."""
    if _CHANNEL.fullmatch(there.id):
        return {"type": "channel", "channel_id": there.id}
    return outside(there.id, limit=80)


def people(everyone: Sequence[Who]) -> list[Element]:
    """Several people with commas between."""
    found: list[Element] = []
    for who in everyone:
        found += [words(", "), person(who)] if found else [person(who)]
    return found


def date(at: datetime, *, running: bool = False) -> Element:
    """A time in the reader's time zone (Slack date formatting), in UTC where that does not work.

    `running` adds how far off it is, which the reader's Slack works out whenever it shows the message.
    """
    utc = at.astimezone(UTC)
    fallback = f"{utc:%Y-%m-%d %H:%M} UTC"
    shape = _RUNNING_FORMAT if running else _DATE_FORMAT
    return {"type": "date", "timestamp": int(utc.timestamp()), "format": shape, "fallback": fallback}


def phrase(language: str, key: str, /, **parts: Element | list[Element] | str | int) -> list[Element]:
    """The sentence under `key` as elements; strings given are our own, text from outside comes as `outside`.

    In the table `*` begins and ends bold, a backtick code; a place between them takes the style on.
    """
    found: list[Element] = []
    style: dict[str, bool] = {}
    for literal, place, _, _ in Formatter().parse(template(language, key)):
        for stretch in _STYLE_SIGN.split(literal):
            if name := _STYLES.get(stretch):
                style = {} if style else {name: True}
            elif stretch:
                found.append(words(stretch, **style))
        if place is not None:
            part = parts[place]
            elements = (
                part if isinstance(part, list) else [part if isinstance(part, dict) else words(str(part))]
            )
            found += [{**element, "style": style} if style else element for element in elements]
    return _merged(found)


def _merged(elements: list[Element]) -> list[Element]:
    """Neighbouring texts of one style as one."""
    found: list[Element] = []
    for element in elements:
        last = found[-1] if found else {}
        if element["type"] == last.get("type") == "text" and element.get("style") == last.get("style"):
            found[-1] = {**last, "text": last["text"] + element["text"]}
        else:
            found.append(element)
    return found


def section(elements: Iterable[Element]) -> Element:
    """One paragraph of rich text."""
    return {"type": "rich_text_section", "elements": list(elements)}


def quote(elements: Iterable[Element]) -> Element:
    """A paragraph with a bar at its side: somebody else's words."""
    return {"type": "rich_text_quote", "elements": list(elements)}


def preformatted(elements: Iterable[Element]) -> Element:
    """Text that keeps its shape."""
    return {"type": "rich_text_preformatted", "elements": list(elements)}


def bullets(items: Iterable[list[Element]]) -> Element:
    """A list with bullets."""
    return {"type": "rich_text_list", "style": "bullet", "elements": [section(item) for item in items]}


def lines(items: Iterable[list[Element]]) -> Element:
    """Several lines as one paragraph, which stays close together on a phone."""
    elements: list[Element] = []
    for item in items:
        elements += [words("\n"), *item] if elements else item
    return section(elements)


def rich(block_id: str, *parts: Element) -> Block:
    """A rich text block: nothing in it is parsed, so nothing mentions or links."""
    return {"type": "rich_text", "block_id": block_id, "elements": list(parts)}


def header(block_id: str, value: str) -> Block:
    """A headline; the value may come from outside."""
    return {"type": "header", "block_id": block_id, "text": plain_text(clip(value, HEADER_TEXT))}


def small(block_id: str, value: str) -> Block:
    """Small grey print; the value may come from outside."""
    return {"type": "context", "block_id": block_id, "elements": [plain_text(clip(value, ELEMENT_TEXT))]}


def plain_text(value: str) -> Element:
    """A plain text object; `:names:` in it stay as written."""
    return {"type": "plain_text", "text": value, "emoji": False}


def button(action_id: str, label: str, value: str, **more: object) -> Element:
    """A button. `more`: style, confirm."""
    return {"type": "button", "action_id": action_id, "text": plain_text(label), "value": value, **more}


def confirm(language: str, sentence: str, yes: str) -> Element:
    """A dialog that asks once more."""
    return {
        "title": plain_text(say(language, "confirm.title")),
        "text": plain_text(clip(sentence, CONFIRM_TEXT)),
        "confirm": plain_text(yes),
        "deny": plain_text(say(language, "button.back")),
    }


def actions(block_id: str, buttons: Sequence[Element]) -> list[Block]:
    """A row of buttons; no block at all without one (Slack refuses an empty row)."""
    return [{"type": "actions", "block_id": block_id, "elements": list(buttons)}] if buttons else []


def modal_of(language: str, title: str, blocks: Sequence[Block]) -> Block:
    """A modal that can be closed; what it submits is added by its maker."""
    close = plain_text(say(language, "button.close"))
    return {"type": "modal", "title": plain_text(title), "close": close, "blocks": list(blocks)}


def plain(elements: Iterable[Element]) -> str:
    """Elements as plain text, nothing escaped: for buttons' dialogs and titles, where nothing is parsed."""
    return "".join(
        str(element.get("text") or element.get("fallback") or element.get("channel_id") or "")
        for element in elements
    )


def message_text(elements: Iterable[Element]) -> str:
    """Elements as the `text` of a message: escaped once, people and dates as Slack's own codes."""
    return "".join(map(_as_mrkdwn, elements))


def _as_mrkdwn(element: Element) -> str:
    match element["type"]:
        case "user":
            return f"<@{element['user_id']}>"
        case "usergroup":
            return f"<!subteam^{element['usergroup_id']}>"
        case "channel":
            return f"<#{element['channel_id']}>"
        case "date":
            return f"<!date^{element['timestamp']}^{element['format']}|{element['fallback']}>"
        case _:
            return escape(str(element["text"]))


def text_length(blocks: object) -> int:
    """How long Slack may take all the text of these blocks to be together (see `text.length`)."""
    if isinstance(blocks, dict):
        strings = sum(
            length(str(blocks[k])) for k in ("text", "fallback", "url") if isinstance(blocks.get(k), str)
        )
        return strings + sum(text_length(value) for value in blocks.values())
    return sum(map(text_length, blocks)) if isinstance(blocks, list) else 0


def shown_hash(blocks: list[Block]) -> str:
    """SHA-256 (hex) of what a person could see: the canonical blocks without button values and block ids."""
    canonical = json.dumps(
        _without_secrets(blocks), ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    return hashlib.sha256(canonical.encode()).hexdigest()


def _without_secrets(part: object) -> object:
    if isinstance(part, list):
        return [_without_secrets(item) for item in part]
    if not isinstance(part, dict):
        return part
    hidden = {"block_id", "value"} if part.get("type") == "button" else {"block_id"}
    return {key: _without_secrets(value) for key, value in part.items() if key not in hidden}
