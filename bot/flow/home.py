"""Keeps App Homes true: draws what waits for a person, makes its tokens, publishes; again when it changes.

Not here: who opened a Home or pressed what on it (bot/doors), what it looks like (bot/cards/home).
"""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from bot.cards import home
from bot.cards.answers import SwitchView, usage
from bot.cards.blocks import shown_hash
from bot.cards.home import AdminView, Decided, HomeView, Unsettled, Week
from bot.cards.notices import Notice, Refusal, refused, render
from bot.cards.views import Buttons, Pending, ReviewView
from bot.cards.words import language_of
from bot.contracts.click import ButtonValue, Decision, EffectValue, Surface, encode_effect_value, encode_value
from bot.flow.drawing import READ, changes
from bot.flow.life import Scene, action_of
from bot.flow.notes import Notes
from bot.flow.picture import review_view
from bot.policy.people import Bar, NotAllowed, Person, subject
from bot.policy.tokens import hash_token, mint_token
from bot.slack.answer import SlackAnswer, SlackLimited, SlackOk, SlackRefused
from bot.slack.client import SlackClient
from bot.slack.pace import Pace
from store import asking, homes, showing, tokens
from store.asking import Asker
from store.database import Database
from store.homes import HomeRow, Published
from store.queries import Connection
from store.showing import DraftCard
from store.tokens import TokenRow

log = logging.getLogger(__name__)

BATCH: Final = 10  # Homes looked at together; each is a handful of short questions.
METHOD: Final = "views.publish"
WEEK_SECONDS: Final = 300.0  # The week's figures may be five minutes old: they cost more than all the rest.


@dataclass(frozen=True, slots=True)
class Standing:
    """Who somebody is to us: the kinds they may review today, and whether they are an admin.

    Not `is_whole`: a group could not be read, so that there may be more kinds.
    """

    person: Person
    kinds: tuple[str, ...]
    is_admin: bool
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Homing:
    """What Homes need. `standing` and `switch` are asked of the doors; the pace is the process's own."""

    db: Database
    slack: SlackClient
    pace: Pace
    standing: Callable[[str, str], Awaitable[Standing | NotAllowed]]
    switch: Callable[[], Awaitable[SwitchView]]
    actions_enabled: bool
    language: str = "en"
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A Home as it would look now; the cards of its waiting drafts are what its tokens are made for."""

    view: HomeView
    holder: str
    shown_hash: str
    cards: tuple[DraftCard, ...] = field(repr=False)


class Homes:
    """The Homes that people have open; any number of processes may keep them true."""

    def __init__(self, deps: Homing) -> None:
        self._deps = deps
        self._week: tuple[float, Week] | None = None
        self._notes = Notes(deps.clock)

    async def show(self, team_id: str, user_id: str, page: int | None = None) -> None:
        """Draw the Home of somebody who has it before them, whatever stood there; raises DatabaseAway.

        Where Slack's pace does not let it through now, the next look does it. Who opens it or turns to a page
        has read what was said there.
        """
        if page is not None:
            self._notes.forget(team_id, user_id)
        standing = await self._deps.standing(team_id, user_id)
        if isinstance(standing, NotAllowed):
            await self._refuse(user_id, standing.reason)
            return
        async with self._deps.db.connection() as conn:
            row = await homes.open_home(conn, team_id=team_id, user_id=user_id, page=page)
        await self._publish(row.model_copy(update={"view_hash": None}), await self._draw(standing, row.page))

    async def say(self, team_id: str, user_id: str, notice: Notice) -> None:
        """Say something above a Home that somebody has before them; raises DatabaseAway.

        It is no part of what the Home is compared by: it goes with the next change.
        """
        self._notes.write(team_id, user_id, notice)
        await self.show(team_id, user_id)

    async def run_once(self) -> int:
        """Look at up to BATCH Homes that were opened lately; give how many changed and were published."""
        async with self._deps.db.connection() as conn:
            due = await homes.claim_homes(conn, most=BATCH)
        return sum([await self._look_at(row) for row in due])

    async def _look_at(self, row: HomeRow) -> bool:
        standing = await self._deps.standing(row.team_id, row.user_id)
        if isinstance(standing, NotAllowed):
            return False  # Slack may just be away: what stands there stays, and its buttons decide nothing.
        drawn = await self._draw(standing, row.page)
        note = self._notes.find(row.team_id, row.user_id)
        if drawn.shown_hash == row.shown_hash and (note is None or note.is_shown):
            return False
        return await self._publish(row, drawn)

    async def _publish(self, row: HomeRow, drawn: _Drawn) -> bool:
        """Put it before the person, its tokens stored first; whoever was faster stays."""
        deps = self._deps
        if deps.pace.take(METHOD, now=deps.clock()) > 0:
            return False
        view, minted = _with_buttons(drawn)
        note = self._notes.find(row.team_id, row.user_id)
        async with deps.db.connection() as conn:
            await tokens.insert_tokens(conn, minted)
        answer = await deps.slack.publish_home(
            row.user_id, home.render(view, None if note is None else note.notice), view_hash=row.view_hash
        )
        answer = deps.pace.heard(METHOD, answer, now=deps.clock())
        published = _published(row, drawn, answer)
        if published is None:
            return False
        async with deps.db.connection() as conn:
            await homes.record_home(conn, published)
            await homes.drop_home_tokens(conn, drawn.holder)
        if note is not None:
            note.is_shown = True
        return True

    async def _refuse(self, user_id: str, why: str) -> None:
        language = self._deps.language
        unread = why == Bar.UNKNOWN
        notice = (
            refused(Refusal.UNKNOWN, language=language)
            if unread
            else usage("members_only", language=language)
        )
        answer = await self._deps.slack.publish_home(user_id, {"type": "home", "blocks": render(notice)})
        self._deps.pace.heard(METHOD, answer, now=self._deps.clock())

    async def _draw(self, standing: Standing, page: int) -> _Drawn:
        holder, language = subject(standing.person), self._language(standing)
        asker = Asker(holder, standing.kinds)
        async with self._deps.db.connection() as conn:
            total = sum(one.n for one in await asking.count_waiting(conn, asker))
            page = min(page, home.page_count(total))
            passed = (page - 1) * home.PAGE
            waiting = await asking.list_waiting(conn, asker, most=home.PAGE, passed=passed)
            cards = await _cards_of(conn, [one.draft_id for one in waiting])
            decided = await self._decided(conn, holder)
        view = HomeView(
            waiting=tuple(review_view(card, self._scene(language)) for card in cards),
            total=total,
            page=page,
            decided=decided,
            is_whole=standing.is_whole,
            admin=await self._admin() if standing.is_admin else None,
            language=language,
        )
        return _Drawn(view, holder, shown_hash(home.render(view)["blocks"]), cards)

    def _scene(self, language: str) -> Scene:
        return Scene(self._deps.actions_enabled, language=language)

    def _language(self, standing: Standing) -> str:
        """That of the person's Slack where we speak it: nobody else sees their Home."""
        return language_of(standing.person.locale, self._deps.language)

    async def _decided(self, conn: Connection, holder: str) -> tuple[Decided, ...]:
        rows = await homes.list_decided(conn, holder, most=home.MOST_DECIDED)
        cards = {card.draft_id: card for card in await _cards_of(conn, [row.draft_id for row in rows])}
        return tuple(
            Decided(
                kind=card.kind,
                entity=card.entity,
                decision=row.decision,
                at=row.voted_at,
                state=review_view(card, self._scene(self._deps.language)).state,
            )
            for row in rows
            if (card := cards.get(row.draft_id)) is not None
        )

    async def _admin(self) -> AdminView:
        switch = await self._deps.switch()
        async with self._deps.db.connection() as conn:
            unknown = await homes.list_unsettled(conn, most=home.MOST_UNKNOWN)
            week = await self._count_week(conn)
        return AdminView(
            switch=switch,
            unknown=tuple(_unsettled(row) for row in unknown),
            unknown_total=unknown[0].total if unknown else 0,
            week=week,
        )

    async def _count_week(self, conn: Connection) -> Week:
        now = self._deps.clock()
        if self._week is None or now - self._week[0] > WEEK_SECONDS:
            self._week = now, Week(**(await homes.count_week(conn)).model_dump())
        return self._week[1]


async def _cards_of(conn: Connection, draft_ids: list[UUID]) -> tuple[DraftCard, ...]:
    """All there is to draw of these drafts, in their order."""
    if not draft_ids:
        return ()
    found = {card.draft_id: card for card in await showing.read_draft_cards(conn, draft_ids)}
    return tuple(found[one] for one in draft_ids if one in found)


def _unsettled(row: homes.UnsettledRow) -> Unsettled:
    return Unsettled(
        kind=row.kind,
        entity=row.entity,
        action=action_of(row.effect_type, row.target, row.recipient),
        since=row.ambiguous_at,
        button_value=encode_effect_value(EffectValue(row.effect_id, row.version)),
        newer_waits=row.newer_waits,
    )


def _published(row: HomeRow, drawn: _Drawn, answer: SlackAnswer) -> Published | None:
    """What the person has before them by now; None while that is what it was."""
    match answer:
        case SlackOk(data=data):
            view = data.get("view")
            made = view.get("hash") if isinstance(view, dict) else None
            hashed = made if isinstance(made, str) else None
            return Published(row.team_id, row.user_id, drawn.view.page, drawn.shown_hash, hashed)
        case SlackRefused(error="hash_conflict"):
            # Another drawing was published meanwhile; the next look compares anew and publishes over it.
            return Published(row.team_id, row.user_id, row.page, "", None)
        case SlackLimited():
            return None
        case _:
            log.warning("a Home could not be published")
            return None


def _with_buttons(drawn: _Drawn) -> tuple[HomeView, list[TokenRow]]:
    """The Home with a fresh token for each button, bound to the person and to what stands beside it."""
    waiting: list[ReviewView] = []
    minted: list[TokenRow] = []
    for number, (card, view) in enumerate(zip(drawn.cards, drawn.view.waiting, strict=True)):
        made = {decision: mint_token() for decision in _answers(card, view)}
        values = {name: encode_value(ButtonValue(token, card.revision)) for name, token in made.items()}
        item = replace(view, buttons=Buttons(**values))
        shown = shown_hash(home.item_blocks(item, number))
        waiting.append(item)
        minted += [_row(card, name, token, drawn.holder, shown) for name, token in made.items()]
    return replace(drawn.view, waiting=tuple(waiting)), minted


def _answers(card: DraftCard, view: ReviewView) -> list[str]:
    """Approve only beside all there is to read (SPEC section 9)."""
    if card.approval_id is None or card.body is None or not isinstance(view.state, Pending):
        return []
    return [str(Decision.REJECT), str(Decision.APPROVE) if home.fits(view) else READ, *changes(card)]


def _row(card: DraftCard, decision: str, token: str, holder: str, shown: str) -> TokenRow:
    if card.approval_id is None:
        raise AssertionError("unreachable: no button is drawn without a question")
    return TokenRow(
        token_hash=hash_token(token),
        approval_id=card.approval_id,
        revision=card.revision,
        decision=decision,
        surface=Surface.HOME,
        shown_hash=shown,
        expires_at=card.expires_at,
        holder=holder,
    )
