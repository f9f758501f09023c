"""The pretend workspace: its people of every kind, user groups and channels, and the app's own identity.

What happens in it (messages, views, calls) is kept by `slack_state`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

TEAM: Final = "T0STET"
OTHER_TEAM: Final = "T0OTHER"
ENTERPRISE_USER: Final = "W0GRID"

U_ALICE: Final = "U0ALICE"  # reviewer
U_BOB: Final = "U0BOB"  # reviewer
U_CAROL: Final = "U0CAROL"  # reviewer, and lead
U_RITA: Final = "U0RITA"  # asks for things: `requested_by`
U_ADMIN: Final = "U0ADMIN"
U_MEMBER: Final = "U0MEMBER"  # a full member in no group
U_GUEST: Final = "U0GUEST"  # is_restricted
U_ULTRA: Final = "U0ULTRA"  # is_ultra_restricted
U_STRANGER: Final = "U0STRANGER"  # of another company, by Slack Connect
U_GONE: Final = "U0GONE"  # deactivated
U_ROBOT: Final = "U0ROBOT"  # another app's bot
U_GRID: Final = "U0GRID"  # an Enterprise Grid account; its group lists it as W0GRID
U_STET: Final = "U0STET"  # ourselves

S_REVIEWERS: Final = "S0REVIEWERS"
S_LEADS: Final = "S0LEADS"
S_ADMINS: Final = "S0ADMINS"
S_EMPTY: Final = "S0EMPTY"
GROUP_NAMES: Final = {  # and handles
    S_REVIEWERS: ("Reviewers", "reviewers"),
    S_LEADS: ("Leads", "leads"),
    S_ADMINS: ("Stet admins", "stet-admins"),
    S_EMPTY: ("Nobody yet", "nobody-yet"),
}

C_REVIEW: Final = "C0REVIEW"
C_SUPPORT: Final = "C0SUPPORT"
C_OPS: Final = "C0OPS"
C_ARCHIVED: Final = "C0ARCHIVED"
C_NOT_JOINED: Final = "C0NOTJOINED"
C_SHARED: Final = "C0SHARED"
C_PRIVATE: Final = "C0PRIVATE"  # private, and we are not in it: Slack hides that it exists

BOT_TOKEN: Final = "xoxb-0000-stand-in"
APP_TOKEN: Final = "xapp-0-stand-in"
SIGNING_SECRET: Final = "0123456789abcdef0123456789abcdef"
APP_ID: Final = "A0STET"
BOT_ID: Final = "B0STET"

SCOPES: Final = frozenset(
    {
        "chat:write",
        "commands",
        "channels:history",
        "channels:read",
        "groups:history",
        "groups:read",
        "im:history",
        "im:write",
        "usergroups:read",
        "users:read",
    }
)


@dataclass(slots=True)
class User:
    """One account, with the flags that Slack's user object has."""

    id: str
    name: str
    team_id: str = TEAM
    is_admin: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_stranger: bool = False
    is_bot: bool = False
    deleted: bool = False
    enterprise_user_id: str | None = None
    locale: str | None = None

    def as_slack(self) -> dict[str, Any]:
        """The user object of users.info; Slack leaves out what is empty (docs, user object)."""
        user: dict[str, Any] = {
            "id": self.id,
            "team_id": self.team_id,
            "name": self.name.lower(),
            "real_name": self.name,
            "deleted": self.deleted,
            "profile": {"real_name": self.name, "display_name": self.name},
            "is_bot": self.is_bot,
            "updated": 1_700_000_000,
        }
        if not self.deleted:
            user |= {
                "tz": "Europe/Berlin",
                "is_admin": self.is_admin,
                "is_owner": False,
                "is_primary_owner": False,
                "is_restricted": self.is_restricted,
                "is_ultra_restricted": self.is_ultra_restricted,
                "is_app_user": False,
            }
        if self.is_stranger:
            user["is_stranger"] = True
        if self.enterprise_user_id:
            user["enterprise_user"] = {
                "id": self.enterprise_user_id,
                "enterprise_id": "E0STET",
                "enterprise_name": "Stand-in Grid",
                "teams": [self.team_id],
            }
        return user


@dataclass(slots=True)
class Channel:
    """One conversation. `is_member` is about our bot."""

    id: str
    name: str
    is_member: bool = True
    is_private: bool = False
    is_archived: bool = False
    is_ext_shared: bool = False
    is_im: bool = False

    def as_slack(self) -> dict[str, Any]:
        """The channel object of conversations.info."""
        return {
            "id": self.id,
            "name": self.name,
            "is_channel": not (self.is_private or self.is_im),
            "is_group": self.is_private,
            "is_im": self.is_im,
            "is_mpim": False,
            "is_private": self.is_private,
            "is_archived": self.is_archived,
            "is_general": False,
            "is_frozen": False,
            "is_shared": self.is_ext_shared,
            "is_ext_shared": self.is_ext_shared,
            "is_org_shared": False,
            "is_member": self.is_member,
            "context_team_id": TEAM,
        }


@dataclass(slots=True)
class Workspace:
    """All that an admin of the workspace could see and change; tests change it at will."""

    users: dict[str, User]
    groups: dict[str, list[str]]
    channels: dict[str, Channel]
    token: str = BOT_TOKEN
    app_token: str = APP_TOKEN
    signing_secret: str = SIGNING_SECRET
    scopes: set[str] = field(default_factory=lambda: set(SCOPES))
    home_enabled: bool = True
    messages_tab_enabled: bool = True
    paid_plan: bool = True
    group_names: dict[str, tuple[str, str]] = field(default_factory=lambda: dict(GROUP_NAMES))
    """Name and handle of each user group."""
    forbidden_channels: Mapping[str, set[str]] = field(default_factory=dict)
    """Users who are not in a channel, by channel; everybody else is."""

    def conversation_with(self, user: User) -> Channel:
        """Our conversation with one person, made when somebody first asks for it."""
        name = f"D{user.id[1:]}"
        return self.channels.setdefault(name, Channel(name, user.name, is_im=True))

    def is_in(self, user: str, channel: str) -> bool:
        """Whether a person is in a channel."""
        return user in self.users and user not in self.forbidden_channels.get(channel, set())


def make_workspace() -> Workspace:
    """A workspace with one of everything."""
    users = [
        User(U_ALICE, "Alice"),
        User(U_BOB, "Bob"),
        User(U_CAROL, "Carol"),
        User(U_RITA, "Rita"),
        User(U_ADMIN, "Ada", is_admin=True),
        User(U_MEMBER, "Max"),
        User(U_GUEST, "Gina", is_restricted=True),
        User(U_ULTRA, "Uli", is_restricted=True, is_ultra_restricted=True),
        User(U_STRANGER, "Stella", team_id=OTHER_TEAM, is_stranger=True),
        User(U_GONE, "Gone", deleted=True),
        User(U_ROBOT, "Robot", is_bot=True),
        User(U_GRID, "Greta", enterprise_user_id=ENTERPRISE_USER),
        User(U_STET, "Stet", is_bot=True),
    ]
    channels = [
        Channel(C_REVIEW, "approvals"),
        Channel(C_SUPPORT, "support"),
        Channel(C_OPS, "ops"),
        Channel(C_ARCHIVED, "old-approvals", is_archived=True),
        Channel(C_NOT_JOINED, "not-joined", is_member=False),
        Channel(C_SHARED, "with-partner", is_ext_shared=True),
        Channel(C_PRIVATE, "private", is_member=False, is_private=True),
    ]
    groups = {
        S_REVIEWERS: [U_ALICE, U_BOB, U_CAROL, ENTERPRISE_USER],
        S_LEADS: [U_CAROL],
        S_ADMINS: [U_ADMIN],
        S_EMPTY: [],
    }
    return Workspace({user.id: user for user in users}, groups, {channel.id: channel for channel in channels})
