"""Who may decide: facts about one person against lists of users and user groups, denied unless proven.
Not here: where the facts come from (bot/slack/people) and how many votes are needed (bot/flow/decide).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

Groups = Mapping[str, frozenset[str] | None]  # members by group id; None where they could not be read

_BARE_ID: Final = re.compile(r"[UW][A-Z0-9]+")


class Bar(StrEnum):
    """Why somebody may not: stable words for the record and for the notices."""

    UNKNOWN = "unknown"
    DEACTIVATED = "deactivated"
    BOT = "bot"
    GUEST = "guest"
    STRANGER = "stranger"
    NOT_REVIEWER = "not_reviewer"
    NOT_QUALIFIED = "not_qualified"
    GROUP_UNREADABLE = "group_unreadable"
    REQUESTER = "requester"
    EDITOR = "editor"


@dataclass(frozen=True, slots=True)
class Person:
    """What Slack says of an account; `known` is false when it could not be asked or its answer was not whole.

    `team_id` is the person's own team, never the team where the app is installed; `enterprise_user_id` is the
    organisation-wide id (W…) on Enterprise Grid, which may stand in groups and lists. `locale` is what their
    Slack speaks, as `en-GB`; it says how to talk to them, and nothing about what they may.
    """

    team_id: str
    user_id: str
    enterprise_user_id: str | None
    is_restricted: bool
    is_ultra_restricted: bool
    is_stranger: bool
    deleted: bool
    is_bot: bool
    known: bool
    locale: str | None = None


@dataclass(frozen=True, slots=True)
class Allowed:
    """They may; `via` is the user or group id that counted for them."""

    via: str


@dataclass(frozen=True, slots=True)
class NotAllowed:
    """They may not, and why (a word of `Bar`)."""

    reason: str


def subject(person: Person) -> str:
    """Name a person in the record: `slack:<team_id>:<user_id>`, with their own team (SPEC section 8)."""
    return f"slack:{person.team_id}:{person.user_id}"


def may_review(
    person: Person,
    *,
    home_team: str,
    reviewers_then: Collection[str],
    reviewers_now: Collection[str],
    groups: Groups,
) -> Allowed | NotAllowed:
    """Tell whether somebody may answer for a draft: a full member in the snapshot's reviewers and in today's.

    Whatever is unknown or unreadable means no (SPEC section 5, promise 5); an empty list means nobody.
    """
    if barred := check_account(person, home_team=home_team):
        return barred
    then = find_member(person, reviewers_then, groups=groups)
    if isinstance(then, NotAllowed):
        return then
    return find_member(person, reviewers_now, groups=groups)


def check_account(person: Person, *, home_team: str) -> NotAllowed | None:
    """Refuse every account that is not a known, living, full member of the team; None if nothing bars it."""
    if not person.known:
        return NotAllowed(Bar.STRANGER if person.is_stranger else Bar.UNKNOWN)
    if person.deleted:
        return NotAllowed(Bar.DEACTIVATED)
    if person.is_bot:
        return NotAllowed(Bar.BOT)
    if person.is_stranger or not home_team or person.team_id != home_team:
        return NotAllowed(Bar.STRANGER)
    if person.is_restricted or person.is_ultra_restricted:
        return NotAllowed(Bar.GUEST)
    return None


def find_member(
    person: Person, listed: Collection[str], *, groups: Groups, bar: Bar = Bar.NOT_REVIEWER
) -> Allowed | NotAllowed:
    """Find the entry of a list of user and group ids that covers somebody, users before groups.

    `bar` is the reason given when none does; that a group could not be read is told apart, since it may pass.
    """
    ids = _ids(person)
    for entry in listed:
        if entry in ids:
            return Allowed(entry)
    unreadable = False
    for entry in listed:
        if not entry.startswith("S"):
            continue
        members = groups.get(entry)
        if members is None:
            unreadable = True
        elif members & ids:
            return Allowed(entry)
    return NotAllowed(Bar.GROUP_UNREADABLE if unreadable else bar)


def check_qualified(person: Person, qualified: Collection[str], *, groups: Groups) -> Allowed | NotAllowed:
    """Tell whether somebody may decide on a regulated kind (SPEC section 7)."""
    return find_member(person, qualified, groups=groups, bar=Bar.NOT_QUALIFIED)


def check_separation(
    person: Person, *, requested_by: str | None, editors: Collection[str]
) -> NotAllowed | None:
    """Refuse whoever caused the action, on whichever path: who asked for it, and who last edited it.

    `editors` are subjects as `subject()` writes them. None if nothing bars the person.
    """
    if is_requester(person, requested_by):
        return NotAllowed(Bar.REQUESTER)
    if _subjects(person).intersection(editors):
        return NotAllowed(Bar.EDITOR)
    return None


def is_requester(person: Person, requested_by: str | None) -> bool:
    """Match `requested_by`: a bare Slack id in any team, `slack:T…:U…` exactly, other text nobody."""
    if requested_by is None:
        return False
    if _BARE_ID.fullmatch(requested_by):
        return requested_by in _ids(person)
    return requested_by in _subjects(person)


def _ids(person: Person) -> frozenset[str]:
    return frozenset(filter(None, (person.user_id, person.enterprise_user_id)))


def _subjects(person: Person) -> frozenset[str]:
    return frozenset(f"slack:{person.team_id}:{user_id}" for user_id in _ids(person))
