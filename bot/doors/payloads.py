"""Reads what Slack sends strictly into frozen values: presses, submissions, commands, visits to the Home.

Not here: what follows from them (buttons, modals, commands, home), or whether the signature is good (Bolt).
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bot.contracts.click import Surface
from bot.slack.identity import Ourselves

Payload = Mapping[str, Any]

# Docs, user object, conversation object, message ts. What is not of this shape was not made by Slack.
_USER: Final = re.compile(r"[UW][A-Z0-9]{1,30}")
_TEAM: Final = re.compile(r"[TE][A-Z0-9]{1,30}")
_CHANNEL: Final = re.compile(r"[CDG][A-Z0-9]{1,30}")
_TS: Final = re.compile(r"[0-9]{1,15}\.[0-9]{1,9}")
_LONGEST: Final = 3_000  # Slack: longest button value, private metadata and plain text input.
# Characters that are letters by their class and blank to the eye (Hangul fillers, braille blank).
_BLANKS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")


class Unreadable(Exception):
    """A payload has not the shape that Slack documents; names the part, never what stood there."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who acted; `team_id` is the person's own team, empty where Slack left it out."""

    team_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where one person can be told something in private: by a message, in their modal, over their Home."""

    caller: Caller
    channel: str | None = None
    response_url: str | None = field(default=None, repr=False)
    view_id: str | None = None
    trigger_id: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Shown:
    """A modal or Home as the person had it before them. Its private metadata is a button value of ours."""

    view_id: str
    view_hash: str
    is_home: bool
    callback_id: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Press:
    """One button pressed on a message, in a modal or on a Home."""

    place: Place
    action_id: str
    value: str = field(repr=False)
    surface: Surface
    trigger_id: str = field(repr=False)
    ts: str | None = None
    view: Shown | None = None


@dataclass(frozen=True, slots=True)
class Submission:
    """A modal that was sent; `answers` are the texts typed and the values chosen, by block id."""

    caller: Caller
    view: Shown
    answers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command as it was typed."""

    place: Place
    text: str = field(repr=False)


def read_press(body: Payload) -> Press:
    """Read block_actions. Raises Unreadable."""
    actions = body.get("actions")
    if not isinstance(actions, list) or len(actions) != 1 or not isinstance(actions[0], Mapping):
        raise Unreadable("actions")
    action = actions[0]
    container = _object(body, "container")
    action_id, value = _text(action, "action_id"), _text(action, "value")
    trigger_id = _text(body, "trigger_id")
    if container.get("type") == "view":
        view = read_view(body)
        surface = Surface.HOME if view.is_home else Surface.VIEW
        return Press(Place(read_caller(body)), action_id, value, surface, trigger_id, view=view)
    if container.get("type") != "message":
        raise Unreadable("container")
    place = Place(read_caller(body), _id(container, "channel_id", _CHANNEL), _url(body))
    ts = _id(container, "message_ts", _TS)
    return Press(place, action_id, value, Surface.MESSAGE, trigger_id, ts=ts)


def read_submission(body: Payload) -> Submission:
    """Read view_submission. Raises Unreadable."""
    state = _object(_object(body, "view"), "state")
    return Submission(read_caller(body), read_view(body), _answers(_object(state, "values")))


def read_command(body: Payload) -> Command:
    """Read a slash command's form. Raises Unreadable."""
    caller = Caller(_id(body, "team_id", _TEAM), _id(body, "user_id", _USER))
    text = body.get("text", "")
    if not isinstance(text, str):
        raise Unreadable("text")
    return Command(Place(caller, _known(body.get("channel_id"), _CHANNEL), _url(body)), storable(text))


def read_visit(body: Payload) -> Caller | None:
    """Read app_home_opened; None if it is not the Home tab that was opened. Raises Unreadable."""
    event = _object(body, "event")
    if event.get("tab", "home") != "home":
        return None
    return Caller(_known(body.get("team_id"), _TEAM) or "", _id(event, "user", _USER))


def read_caller(body: Payload) -> Caller:
    """Who acted, with their own team, never the one where the app is installed. Raises Unreadable."""
    user = _object(body, "user")
    return Caller(_known(user.get("team_id"), _TEAM) or "", _id(user, "id", _USER))


def read_view(body: Payload) -> Shown:
    """The view of a press or a submission. Raises Unreadable."""
    view = _object(body, "view")
    return Shown(
        view_id=_text(view, "id"),
        view_hash=_text(view, "hash"),
        is_home=view.get("type") == "home",
        callback_id=_text(view, "callback_id"),
        value=_text(view, "private_metadata"),
    )


def is_for(body: Payload, ourselves: Ourselves) -> bool:
    """Whether an interaction is with our app where it is installed, as far as the payload says."""
    app, team, enterprise = (body.get(name) for name in ("api_app_id", "team", "enterprise"))
    if ourselves.app_id is not None and app != ourselves.app_id:
        return False
    if isinstance(team, Mapping):
        return team.get("id") == ourselves.team_id
    # Installed for a whole organisation, Slack names no team (docs, block_actions payload).
    known = ourselves.enterprise_id
    return known is not None and isinstance(enterprise, Mapping) and enterprise.get("id") == known


def find_place(body: object) -> Place | None:
    """Where to answer whoever sent something that cannot be read; None if even that cannot be made out."""
    if not isinstance(body, Mapping):
        return None
    try:
        caller = read_command(body).place.caller if "user_id" in body else read_caller(body)
    except Unreadable:
        return None
    view, trigger = body.get("view"), body.get("trigger_id")
    if isinstance(view, Mapping) and isinstance(trigger, str):
        shown = view.get("id") if view.get("type") == "modal" else None
        return Place(caller, view_id=shown if isinstance(shown, str) else None, trigger_id=trigger)
    inside = [body.get("channel"), body.get("container")]
    named = [part.get("id") or part.get("channel_id") for part in inside if isinstance(part, Mapping)]
    channels = [_known(each, _CHANNEL) for each in (body.get("channel_id"), *named)]
    return Place(caller, next(filter(None, channels), None), _url(body))


def storable(text: str) -> str:
    """Text as the database can keep it: no NUL, no half of a surrogate pair; no white space around."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()


def is_blank(text: str) -> bool:
    """Whether nobody could see anything in it: white space, control and format characters, fillers."""
    return all(unicodedata.category(char)[0] in "ZC" or char in _BLANKS for char in text)


def _answers(values: Payload) -> dict[str, str]:
    found: dict[str, str] = {}
    for block_id, elements in values.items():
        if not isinstance(elements, Mapping) or len(elements) != 1:
            raise Unreadable("state")
        element = next(iter(elements.values()))
        if not isinstance(element, Mapping):
            raise Unreadable("state")
        found[block_id] = _typed(element)
    return found


def _typed(element: Payload) -> str:
    """What was typed or chosen in one field, a choice by its value; empty where it was left empty."""
    chosen = element.get("selected_option")
    if isinstance(chosen, Mapping):
        typed = chosen.get("value")
    else:
        typed = chosen or element.get("selected_date") or element.get("value")
    if typed is not None and not isinstance(typed, str):
        raise Unreadable("state")
    return typed or ""


def _object(part: Payload, name: str) -> Payload:
    found = part.get(name)
    if not isinstance(found, Mapping):
        raise Unreadable(name)
    return found


def _text(part: Payload, name: str) -> str:
    """A text that may be left out or empty."""
    found = part.get(name)
    if found is None:
        return ""
    if not isinstance(found, str) or len(found) > _LONGEST:
        raise Unreadable(name)
    return found


def _id(part: Payload, name: str, shape: re.Pattern[str]) -> str:
    found = _known(part.get(name), shape)
    if found is None:
        raise Unreadable(name)
    return found


def _known(found: object, shape: re.Pattern[str]) -> str | None:
    return found if isinstance(found, str) and shape.fullmatch(found) else None


def _url(body: Payload) -> str | None:
    found = body.get("response_url")
    return found if isinstance(found, str) and found else None
