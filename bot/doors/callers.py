"""Who may use what besides deciding: admins, those who may pull the kill switch, full members, reviewers.

Not here: who may decide (bot/flow/decide), or where facts about people come from (bot/slack/people).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from uuid import UUID

from bot.doors.payloads import Caller
from bot.policy.people import Allowed, Bar, NotAllowed, Person, check_account, find_member, subject
from bot.policy.terms import Kind
from bot.policy.tokens import hash_token
from store import audit, decisions, heads
from store.asking import Chain, find_chain
from store.database import Database
from store.errors import DatabaseAway
from store.queries import Connection

NOT_ADMIN: Final = "not_admin"
ADMINS_UNREADABLE: Final = "admins_unreadable"


class Accounts(Protocol):
    """Who a person is and who stands in groups (bot/slack/people)."""

    async def person(self, team_id: str | None, user_id: str) -> Person:
        """Give what is known of one account."""

    async def members(self, group_ids: list[str]) -> Mapping[str, frozenset[str] | None]:
        """Give the members of each group, None where unreadable."""


class PolicyHolder(Protocol):
    """Whatever holds the policy that is in force now."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds by name."""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The kinds that somebody may review today; not `is_whole`: a group was not read, there may be more."""

    kinds: tuple[str, ...]
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class About:
    """What somebody was refused: what a token asks, an effect, or a key; or nothing of these."""

    token: str | None = field(default=None, repr=False)
    effect_id: UUID | None = None
    key: str | None = None


NOTHING: Final = About()


@dataclass(frozen=True, slots=True)
class Callers:
    """Looks callers up; `admins` and `killers` are ADMIN_USERS and KILL_USERS, user and group ids.

    Unknown or unreadable means no, and an empty list means nobody (SPEC section 5, promise 5).
    """

    people: Accounts
    policy: PolicyHolder
    home_team: Callable[[], str]
    admins: tuple[str, ...] = ()
    killers: tuple[str, ...] = ()

    async def member(self, caller: Caller) -> Person | NotAllowed:
        """A full member of the workspace, or why not."""
        person = await self.people.person(caller.team_id, caller.user_id)
        return check_account(person, home_team=self.home_team()) or person

    async def admin(self, caller: Caller) -> Person | NotAllowed:
        """A full member who stands in ADMIN_USERS, or why not."""
        return await self._listed(caller, self.admins)

    async def killer(self, caller: Caller) -> Person | NotAllowed:
        """A full member who may close the switch, or why not."""
        return await self._listed(caller, (*self.admins, *self.killers))

    async def kinds_of(self, person: Person) -> Reviewed:
        """What a full member may review today, as far as Slack says who they are."""
        kinds = self.policy.kinds
        groups = await self._groups({entry for kind in kinds.values() for entry in kind.reviewers})
        found = {name: find_member(person, kind.reviewers, groups=groups) for name, kind in kinds.items()}
        return Reviewed(
            tuple(name for name, member in found.items() if isinstance(member, Allowed)),
            NotAllowed(Bar.GROUP_UNREADABLE) not in found.values(),
        )

    async def _listed(self, caller: Caller, listed: Collection[str]) -> Person | NotAllowed:
        person = await self.member(caller)
        if isinstance(person, NotAllowed):
            return person
        found = find_member(person, listed, groups=await self._groups(listed))
        if isinstance(found, Allowed):
            return person
        return NotAllowed(ADMINS_UNREADABLE if found.reason == Bar.GROUP_UNREADABLE else NOT_ADMIN)

    async def _groups(self, listed: Collection[str]) -> Mapping[str, frozenset[str] | None]:
        return await self.people.members(sorted({entry for entry in listed if entry.startswith("S")}))


def name_of(caller: Caller) -> str:
    """The caller as the record names people, with `?` for a team that Slack left out."""
    return f"slack:{caller.team_id or '?'}:{caller.user_id}"


def name_person(person: Person) -> str:
    """A person as the record names people."""
    return subject(person)


async def record_refusal(
    db: Database, caller: Caller, detail: Mapping[str, Any], about: About = NOTHING
) -> None:
    """Put a refusal on the record in its own transaction; with the database away only the person knows.

    It stands under the key that it is about, or under the system's where there is none.
    """
    try:
        async with db.transaction() as conn:
            chain, told = await _find_chain(conn, about)
            if chain is None:
                return await audit.append_system(conn, name_of(caller), "refused", detail)
            await heads.lock_heads(conn, [chain.draft_key])
            line = audit.Entry(chain.idempotency_key, name_of(caller), "refused", {**detail, **told})
            return await audit.append(conn, [line])
    except DatabaseAway:
        return None


async def _find_chain(conn: Connection, about: About) -> tuple[Chain | None, Mapping[str, Any]]:
    """The record, and what its line says besides."""
    if about.token is None:
        return await find_chain(conn, effect_id=about.effect_id, key=about.key), {}
    question = await decisions.find_question(conn, hash_token(about.token))
    if question is None:
        return None, {}
    return Chain(idempotency_key=question.idempotency_key, draft_key=question.draft_key), {
        "revision": question.revision
    }
