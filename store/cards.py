"""The Slack messages of drafts and unknown effects, and how far behind the truth they are.

Not here: what a card shows (store/showing), how it looks (bot/cards) or when it is drawn (bot/flow/show).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from store.ids import new_id
from store.queries import Connection, query
from store.rows import Row

AMONG = 1000  # So many an outage may leave behind and have drawn in order; sorting takes milliseconds.

_WANT = query("want_cards")
_WANT_CORRECTIONS = query("want_corrections")
_OPEN = query("open_card")
_CLAIM = query("claim_cards")
_BEGIN = query("begin_showing")
_KEEP_FOUND = query("keep_found_message")
_NOTE_REVISION = query("note_revision")
_RECORD = query("record_shown")
_DROP_POST = query("drop_post")
_FORGET = query("forget_message")
_POSTPONE = query("postpone_card")
_KEEP_PROBLEM = query("keep_problem")


class ClaimedCard(Row):
    """A card that this worker draws: of a draft, of an effect or of a channel's queue."""

    card_id: UUID
    draft_id: UUID | None
    effect_id: UUID | None
    queue_of: str | None


@dataclass(frozen=True, slots=True)
class CardHold:
    """The hold on a claimed card. `owner` is new for each claim: no late worker passes for a later one."""

    card_id: UUID
    owner: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What Slack shows by now. `wait_seconds`: when to come back, if that is not the wanted version."""

    ts: str
    shown_version: int
    shown_hash: str
    noted_revision: int
    wait_seconds: float = 0.0


async def want_cards(
    conn: Connection, draft_ids: Sequence[UUID] = (), effect_ids: Sequence[UUID] = ()
) -> None:
    """Bump the wanted version of these cards, in the transaction of the change they show."""
    await _WANT.run(conn, {"draft_ids": list(draft_ids), "effect_ids": list(effect_ids)})


async def want_corrections(conn: Connection, run_ids: Sequence[UUID]) -> None:
    """Have the cards of what corrects these runs say what of them was sent by now."""
    await _WANT_CORRECTIONS.run(conn, {"run_ids": list(run_ids)})


async def open_card(
    conn: Connection, *, channel: str, draft_id: UUID | None = None, effect_id: UUID | None = None
) -> None:
    """Ask for the card of a draft or an unknown effect; one that exists is drawn again."""
    # Drawn again first: in a pipeline nobody knows yet whether there was one to open.
    await want_cards(conn, [draft_id] if draft_id else [], [effect_id] if effect_id else [])
    await _OPEN.run(
        conn, {"card_id": new_id(), "draft_id": draft_id, "effect_id": effect_id, "channel": channel}
    )


async def claim_cards(conn: Connection, *, owner: str, most: int, lease_seconds: float) -> list[ClaimedCard]:
    """Take up to `most` cards that are behind and due."""
    params = {"owner": owner, "most": most, "lease_seconds": lease_seconds, "among": AMONG}
    return await _CLAIM.rows(conn, params, ClaimedCard)


async def begin_showing(
    conn: Connection, hold: CardHold, *, ts: str | None, post_id: UUID, lease_seconds: float
) -> None:
    """Keep the lease for one call; without a message yet, name the post that is about to be made.

    Raises:
        LostRace: the card was lost, or a click has told its message's ts meanwhile.

    """
    params = {"ts": ts, "post_id": post_id, "lease_seconds": lease_seconds}
    await _BEGIN.run(conn, asdict(hold) | params)


async def keep_found_message(conn: Connection, hold: CardHold, ts: str) -> None:
    """Record the message of a post whose answer was lost; LostRace when the card was lost."""
    await _KEEP_FOUND.run(conn, asdict(hold) | {"ts": ts})


async def note_revision(conn: Connection, hold: CardHold, revision: int) -> None:
    """Take the one thread line of this revision; LostRace when it is taken or the card was lost."""
    await _NOTE_REVISION.run(conn, asdict(hold) | {"revision": revision})


async def record_shown(conn: Connection, hold: CardHold, shown: Shown) -> None:
    """Record what Slack shows and let go of the card; LostRace when somebody took it over."""
    await _RECORD.run(conn, asdict(hold) | asdict(shown))


async def drop_post(conn: Connection, hold: CardHold, post_id: UUID) -> None:
    """Record that a post provably never happened; LostRace when the card was lost."""
    await _DROP_POST.run(conn, asdict(hold) | {"post_id": post_id})


async def forget_message(conn: Connection, hold: CardHold, ts: str) -> None:
    """Let the card be posted anew, for its message is gone; LostRace when the card was lost."""
    await _FORGET.run(conn, asdict(hold) | {"ts": ts})


async def postpone_card(conn: Connection, hold: CardHold, *, wait_seconds: float, counted: bool) -> None:
    """Give the card back until later; LostRace when it was lost."""
    params = {"wait_seconds": wait_seconds, "counted": int(counted)}
    await _POSTPONE.run(conn, asdict(hold) | params)


async def keep_problem(conn: Connection, hold: CardHold, *, problem: str, wait_seconds: float) -> None:
    """Keep Slack's error word and give the card back until later; LostRace when it was lost."""
    await _KEEP_PROBLEM.run(conn, asdict(hold) | {"problem": problem, "wait_seconds": wait_seconds})
